//go:build vm

package vm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/agent"
	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
)

// A forced detach by Nova, a failed host or an outage of the storage removes the disk while a pod writes. Every call must answer, and the driver
// must release the volume. When the disk is back, the volume must have its data.
func TestAVirtioDiskRemovedWhileAPodWritesIsReportedAndReleased(t *testing.T) {
	t.Parallel()
	n := boot(t, guest.Machine{})
	n.startDriver(t, nil, "--with-topology=false")
	for _, fsType := range []string{"ext4", "xfs", ""} {
		t.Run(claim{fsType: fsType}.kind(), func(t *testing.T) { n.removed(t, claim{newVolume(), fsType}, "virtio") })
	}
}

func (c claim) kind() string {
	if c.fsType == "" {
		return "raw block"
	}
	return c.fsType
}

func (n *node) removed(t *testing.T, c claim, bus string) {
	n.plug(t, guest.Disk{Volume: c.id, Bus: bus, LUN: 1})
	n.use(t, c)
	file, read := c.target()+"/file", "sha256sum < "+c.target()+"/file"
	more := c.target() + "/more"
	if c.fsType == "" {
		file, read, more = c.target(), "dd if="+c.target()+" bs=1M count=8 iflag=direct 2>/dev/null | sha256sum", c.target()+" seek=512"
	}
	n.sh(t, fmt.Sprintf("dd if=/dev/urandom of=%s bs=1M count=8 conv=fsync,notrunc 2>/dev/null", file))
	sum := n.sh(t, read)
	script := fmt.Sprintf("while dd if=/dev/zero of=%s bs=64k count=16 conv=fsync,notrunc 2>/dev/null; do :; done; echo failed", more)
	log := "/run/writer-" + c.id
	_, err := n.Start(agent.Command{Args: []string{"/busybox/sh", "-c", script}, Log: log})
	must(t, "start the writer", err)
	n.unplug(t, c.id)
	n.sh(t, fmt.Sprintf("for i in $(seq 600); do grep -q failed %s && exit 0; usleep 100000; done; exit 1", log))

	stats := n.stats(t, c)
	health := n.health(t, c)
	if !slices.Contains(health, "INACCESSIBLE DiskMissing") {
		t.Errorf("want the disk reported as missing, got %v", health)
	}
	refused(t, "stage", n.stage(bounded(t), c), []string{c.id}, codes.DeadlineExceeded)
	_, err = n.expand(bounded(t), c, 2*gib)
	refused(t, "expand", err, []string{c.id}, codes.NotFound, codes.DeadlineExceeded)
	must(t, "release", n.release(n.ctx(t), c))
	if left := n.try("grep " + c.id + " /proc/mounts"); !strings.Contains(left, "exit code 1") {
		t.Errorf("want no mount left, got %s", left)
	}

	n.plug(t, guest.Disk{Volume: c.id, Bus: bus, LUN: 1})
	n.use(t, c)
	if got := n.sh(t, read); got != sum {
		t.Errorf("want the bytes as they were written, %s, got %s", sum, got)
	}
	must(t, "release", n.release(n.ctx(t), c))
	n.unplug(t, c.id)
	record(t, "The disk is removed while a pod writes", "Linux | machine | bus | volume | statistics | health | unpublish, unstage | data",
		n.kernel, n.Machine, bus, c.kind(), stats, strings.Join(health, ", "), "OK, no mount left", "as written, when the disk is back")
}

// stats is the code of NodeGetVolumeStats, which must answer in time.
func (n *node) stats(t *testing.T, c claim) codes.Code {
	t.Helper()
	ctx, cancel := context.WithTimeout(n.ctx(t), 20*time.Second)
	defer cancel()
	_, err := n.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: c.id, VolumePath: c.target(), StagingTargetPath: c.staging()})
	if code := status.Code(err); code == codes.DeadlineExceeded || code == codes.Internal || code == codes.Unknown {
		t.Errorf("want an answer, got %v", err)
	}
	return status.Code(err)
}

// health are the states and reasons in the answer of NodeGetVolumeHealth.
func (n *node) health(t *testing.T, c claim) (found []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(n.ctx(t), 20*time.Second)
	defer cancel()
	r, err := n.NodeGetVolumeHealth(ctx, &csi.NodeGetVolumeHealthRequest{VolumeId: c.id, StagingTargetPath: c.staging(), VolumePublishPath: c.target()})
	if err != nil {
		t.Errorf("ask for the volume's health: %v", err)
	}
	for _, s := range r.GetVolumeHealth().GetHealthStatuses() {
		found = append(found, s.GetStatus().String()+" "+s.GetReason())
	}
	slices.Sort(found)
	return found
}
