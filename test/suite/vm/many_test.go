//go:build vm

package vm

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
)

// Many disks come at once when a node with many pods starts.
func TestManyDisksAreStagedAtOnce(t *testing.T) {
	for _, c := range []struct {
		bus     string
		disks   int
		machine guest.Machine
	}{{"virtio", 25, guest.Machine{Type: "q35", Ports: 25}}, {"scsi", 25, guest.Machine{SCSI: true}}, {"scsi", 100, guest.Machine{SCSI: true}}} {
		t.Run(fmt.Sprint(c.bus, " ", c.disks), func(t *testing.T) {
			n := boot(t, c.machine)
			n.startDriver(t, nil, "--with-topology=false")
			n.manyAtOnce(t, c.bus, c.disks)
		})
	}
}

// manyAtOnce calls the driver for all disks before the first is attached. Each file system must be on the disk of its own volume.
func (n *node) manyAtOnce(t *testing.T, bus string, disks int) {
	claims := make([]claim, disks)
	for i := range claims {
		claims[i] = claim{newVolume(), "ext4"}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	began := time.Now()
	var tries atomic.Int32
	onAll := func(do func(claim) error) (wait func()) {
		var all sync.WaitGroup
		for _, c := range claims {
			all.Go(func() {
				err := do(c)
				for canBeRepeated(err) && ctx.Err() == nil { // as kubelet
					tries.Add(1)
					time.Sleep(time.Second)
					err = do(c)
				}
				if err != nil {
					t.Errorf("volume %s: %v", c.id, err)
				}
			})
		}
		return all.Wait
	}
	staged := onAll(func(c claim) error { return n.stage(ctx, c) })
	for i, c := range claims {
		must(t, "plug", n.Plug(guest.Disk{Volume: c.id, Bus: bus, LUN: i + 1, Bytes: 64 << 20}))
	}
	plugged := time.Since(began)
	staged()
	took := time.Since(began)
	onAll(func(c claim) error { return n.publish(ctx, c) })()
	for _, c := range claims {
		n.sh(t, "echo "+c.mark()+" > "+c.target()+"/whose")
	}
	onAll(func(c claim) error { return n.release(ctx, c) })()
	for _, c := range claims {
		content, err := os.ReadFile(n.FileOf(c.id))
		must(t, "read the disk's file", err)
		if got := strings.Count(string(content), "volume-of-"); got != 1 || !strings.Contains(string(content), c.mark()) {
			t.Errorf("want the file of volume %s alone on its disk, got %d files", c.id, got)
		}
		n.unplug(t, c.id)
	}
	record(t, "Disks at once, with calls for all before the first is there", "Linux | machine | bus | disks | all attached after | all formatted and staged after | calls repeated | outcome",
		n.kernel, n.Machine, bus, disks, plugged, took, tries.Load(), "each file system on the disk of its own volume")
}

// canBeRepeated reports whether the error says that a later call may succeed. Any other error of a healthy disk is a defect.
func canBeRepeated(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted:
		return true
	}
	return false
}

func (c claim) mark() string { return "volume-of-" + c.id }
