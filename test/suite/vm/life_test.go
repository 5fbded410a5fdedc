//go:build vm

package vm

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/agent"
	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
)

func TestAVirtioDiskGrowsWhileAPodWrites(t *testing.T) {
	t.Parallel()
	n := boot(t, guest.Machine{})
	n.startDriver(t, nil, "--with-topology=false")
	n.live(t, "virtio", "ext4")
}

// live uses a volume: it formats and writes it, expands it while a pod writes, unplugs it and plugs it again.
func (n *node) live(t *testing.T, bus, fsType string) {
	c := claim{newVolume(), fsType}
	n.plug(t, guest.Disk{Volume: c.id, Bus: bus, LUN: 1})
	n.use(t, c)
	sum := n.write(t, c)
	stop := n.keepWriting(t, c)
	began := time.Now()
	grown := n.growing(t, c, 2*gib)
	must(t, "grow the disk", n.Grow(c.id, 2*gib))
	must(t, "expand", <-grown)
	took := time.Since(began)
	stop()
	n.wantSize(t, c, 2*gib)
	n.wantData(t, c, sum)
	must(t, "release", n.release(n.ctx(t), c))
	n.unplug(t, c.id)
	n.plug(t, guest.Disk{Volume: c.id, Bus: bus, LUN: 1})
	n.use(t, c)
	n.wantData(t, c, sum)
	must(t, "release", n.release(n.ctx(t), c))
	n.unplug(t, c.id)
	recordGrowth(t, n, bus, fsType, "1 to 2 GiB, mounted and written to", took)
}

func recordGrowth(t *testing.T, n *node, bus, fsType, how string, took time.Duration) {
	record(t, "Growth, from the call of NodeExpandVolume, before the disk grew, to its answer", "Linux | machine | bus | file system | how | took | data",
		n.kernel, n.Machine, bus, fsType, how, took, "as written, also after detach and attach")
}

// growing calls NodeExpandVolume for a disk that has not grown yet.
func (n *node) growing(t *testing.T, c claim, bytes int64) <-chan error {
	done, ctx := make(chan error, 1), n.ctx(t)
	go func() {
		got, err := n.expand(ctx, c, bytes)
		if err == nil && got != bytes {
			err = fmt.Errorf("want %d bytes, got %d", bytes, got)
		}
		done <- err
	}()
	return done
}

// liveRaw uses a raw block volume, of which every byte belongs to the pod.
func (n *node) liveRaw(t *testing.T, bus string) {
	c := claim{id: newVolume()}
	n.plug(t, guest.Disk{Volume: c.id, Bus: bus, LUN: 1})
	n.use(t, c)
	read := "dd if=" + c.target() + " bs=1M count=8 iflag=direct 2>/dev/null | sha256sum"
	n.sh(t, "dd if=/dev/urandom of="+c.target()+" bs=1M count=8 conv=fsync,notrunc 2>/dev/null")
	before := n.sh(t, read)
	began := time.Now()
	grown := n.growing(t, c, 2*gib)
	must(t, "grow the disk", n.Grow(c.id, 2*gib))
	must(t, "expand", <-grown)
	took := time.Since(began)
	if got := n.sh(t, "blockdev --getsize64 "+c.target()); got != fmt.Sprint(2*gib) {
		t.Errorf("want a device of 2 GiB, got %s bytes", got)
	}
	if after := n.sh(t, read); after != before {
		t.Errorf("want the bytes that were written")
	}
	must(t, "release", n.release(n.ctx(t), c))
	n.unplug(t, c.id)
	n.plug(t, guest.Disk{Volume: c.id, Bus: bus, LUN: 1})
	n.use(t, c)
	if after := n.sh(t, read); after != before {
		t.Errorf("want the bytes that were written, after detach and attach")
	}
	must(t, "release", n.release(n.ctx(t), c))
	n.unplug(t, c.id)
	recordGrowth(t, n, bus, "raw block", "1 to 2 GiB, published", took)
}

// liveNVMe is live with an expansion while the volume is unplugged, because QEMU does not grow an NVMe disk in use.
func (n *node) liveNVMe(t *testing.T, _ string) {
	c := claim{newVolume(), "ext4"}
	n.plug(t, guest.Disk{Volume: c.id, Bus: "nvme"})
	n.use(t, c)
	sum := n.write(t, c)
	if err := n.Grow(c.id, 2*gib); err == nil {
		t.Error("QEMU grows NVMe disks now: test it")
	}
	_, err := n.expand(bounded(t), c, 2*gib)
	refused(t, "expand a disk that does not grow", err, []string{c.id}, codes.DeadlineExceeded)
	must(t, "release", n.release(n.ctx(t), c))
	n.unplug(t, c.id)
	must(t, "grow the disk's file", n.GrowUnplugged(c.id, 2*gib))
	n.plug(t, guest.Disk{Volume: c.id, Bus: "nvme"})
	n.use(t, c)
	began := time.Now()
	_, err = n.expand(n.ctx(t), c, 2*gib)
	must(t, "expand", err)
	took := time.Since(began)
	n.wantSize(t, c, 2*gib)
	n.wantData(t, c, sum)
	must(t, "release", n.release(n.ctx(t), c))
	n.unplug(t, c.id)
	recordGrowth(t, n, "nvme", "ext4", "1 to 2 GiB, grown while unplugged", took)
}

// write writes a file to a volume and returns its checksum.
func (n *node) write(t *testing.T, c claim) string {
	t.Helper()
	return n.sh(t, fmt.Sprintf("dd if=/dev/urandom of=%s/file bs=1M count=8 conv=fsync 2>/dev/null; sha256sum < %[1]s/file", c.target()))
}

func (n *node) wantData(t *testing.T, c claim, sum string) {
	t.Helper()
	if got := n.sh(t, "sha256sum < "+c.target()+"/file"); got != sum {
		t.Errorf("want the file as it was written, %s, got %s", sum, got)
	}
}

// wantSize wants a file system of about that size; its metadata takes a part.
func (n *node) wantSize(t *testing.T, c claim, bytes int64) {
	t.Helper()
	text := n.sh(t, "df -k "+c.target()+" | tail -n 1 | awk '{print $(NF-4)}'")
	got, err := strconv.ParseInt(text, 10, 64)
	must(t, "read what df says", err)
	if got<<10 < bytes*9/10 {
		t.Errorf("want a file system of about %d bytes, got %d KiB", bytes, got)
	}
}

// keepWriting writes to a volume until the test calls stop. If a write failed, stop fails the test.
func (n *node) keepWriting(t *testing.T, c claim) (stop func()) {
	t.Helper()
	script := fmt.Sprintf("trap 'echo wrote; exit 0' TERM; while dd if=/dev/zero of=%s/more bs=64k count=16 conv=fsync 2>/dev/null; do :; done; echo failed", c.target())
	log := "/run/writer-" + c.id
	pid, err := n.Start(agent.Command{Args: []string{"/busybox/sh", "-c", script}, Log: log})
	must(t, "start the writer", err)
	return func() {
		n.sh(t, fmt.Sprintf("kill %d; while kill -0 %[1]d 2>/dev/null; do usleep 50000; done", pid))
		if got := strings.TrimSpace(n.sh(t, "cat "+log)); got != "wrote" {
			t.Errorf("want every write to succeed, the writer says %q", got)
		}
	}
}
