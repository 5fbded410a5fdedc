//go:build openstack

package guests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

// The whole life of a volume, with hot plug: two guests on two computes, one volume, a snapshot, and a volume made from that.
func TestAVolumeLivesInGuests(t *testing.T) {
	r := newRegion(t)
	one, two := r.node(t, r.serverNamed(t, "node-az1")), r.node(t, r.serverNamed(t, "node-az2"))
	var c claim
	timed(t, "create", func() error { c = r.create(t, one, claim{fsType: "ext4"}, 1); return nil })
	one.use(t, c)
	sum := ""
	timed(t, "write 64 MiB and sync", func() error { sum = one.write(t, c, "before"); return nil })

	timed(t, "expand in use: controller", func() error { return r.expand(t, c, 2<<30) })
	timed(t, "expand in use: device", func() error { return one.awaitSize(t, c, 2<<30) })
	timed(t, "expand in use: file system", func() error { return one.expand(t, c, 2<<30) })
	if kib := one.sh(t, "df -k "+c.target()+" | awk 'END {print $2}'"); len(kib) < 7 || kib < "1900000" {
		t.Errorf("want a file system of 2 GiB, got %s KiB", kib)
	}
	one.wantData(t, c, "before", sum)

	var snapshot string
	timed(t, "snapshot in use", func() error { snapshot = r.snapshot(t, c); return nil })
	one.write(t, c, "after")

	var restored claim
	timed(t, "create from the snapshot", func() error {
		restored = r.create(t, one, claim{fsType: "ext4"}, 2, csitest.FromSnapshot(snapshot))
		return nil
	})
	two.use(t, restored)
	two.wantData(t, restored, "before", sum)
	if got := two.sh(t, "ls "+restored.target()); strings.Contains(got, "after") {
		t.Errorf("the snapshot has what was written after it: %s", got)
	}
	two.leave(t, restored)

	timed(t, "unpublish and unstage", func() error { return one.release(t, c) })
	timed(t, "detach", func() error { return one.detach(t, c) })
	timed(t, "attach to the second guest", func() error { return two.attach(t, c) })
	timed(t, "stage", func() error { return two.stage(t, c) })
	timed(t, "publish", func() error { return two.publish(t, c) })
	two.wantData(t, c, "before", sum)
	two.leave(t, c)
}

// A raw disk moves to another guest with its bytes, at both ends and between. To read every byte takes an emulated guest too long.
func TestARawDiskMovesWithItsBytes(t *testing.T) {
	r := newRegion(t)
	one, two := r.node(t, r.serverNamed(t, "node-az1")), r.node(t, r.serverNamed(t, "node-az2"))
	c := r.create(t, one, claim{}, 2)
	one.use(t, c)
	for _, mebibyte := range []int{0, 1023, 2047} {
		one.mark(t, c, mebibyte)
	}
	var sum string
	timed(t, "read the samples in the first guest", func() error { sum = one.sample(t, c, 2); return nil })
	one.leave(t, c)
	two.use(t, c)
	timed(t, "read the samples in the second guest", func() error {
		if got := two.sample(t, c, 2); got != sum {
			return fmt.Errorf("the bytes of the disk changed by the move: %s, then %s", sum, got)
		}
		return nil
	})
	two.mark(t, c, 1023)
	if got := two.sample(t, c, 2); got == sum {
		t.Error("want another checksum after a write, got the same")
	}
	two.leave(t, c)
}

// mark writes a random mebibyte to a raw volume.
func (n *node) mark(t *testing.T, c claim, at int) {
	t.Helper()
	n.sh(t, fmt.Sprintf("dd if=/dev/urandom bs=1M count=1 2>/dev/null | dd of=%s bs=1M seek=%d iflag=fullblock oflag=direct 2>/dev/null", c.target(), at))
}

// sample is the checksum of the first mebibyte of a raw volume, the last, and every 128th, around the cache of the guest.
func (n *node) sample(t *testing.T, c claim, gib int) string {
	t.Helper()
	return n.sh(t, fmt.Sprintf("for at in 0 $(seq 127 128 %d); do dd if=%s bs=1M skip=$at count=1 iflag=direct 2>/dev/null; done | md5sum", gib*1024-1, c.target()))
}

// device is the disk of a volume in the guest: the kernel shows the first 20 characters of the serial.
func (n *node) device(c claim) string {
	return n.try(fmt.Sprintf("cd /sys/block; for d in *; do case $(cat $d/serial 2>/dev/null) in %s) echo $d;; esac; done", c.id[:20]))
}

func (n *node) awaitDisk(t *testing.T, c claim) {
	t.Helper()
	eventually(t, "the guest has the disk", func() error {
		if n.device(c) == "" {
			return fmt.Errorf("the guest has no disk of volume %s", c.id)
		}
		return nil
	})
}

func (n *node) awaitSize(t *testing.T, c claim, want int64) error {
	t.Helper()
	eventually(t, "the disk has grown", func() error {
		if got := n.sh(t, "cat /sys/block/"+n.device(c)+"/size"); got != fmt.Sprint(want/512) {
			return fmt.Errorf("it has %s sectors", got)
		}
		return nil
	})
	return nil
}

// write writes a file of random bytes and returns its checksum.
func (n *node) write(t *testing.T, c claim, name string) string {
	t.Helper()
	file := c.target() + "/" + name
	return n.sh(t, fmt.Sprintf("dd if=/dev/urandom of=%s bs=1M count=64 2>/dev/null; sync; md5sum <%[1]s", file))
}

func (n *node) wantData(t *testing.T, c claim, name, want string) {
	t.Helper()
	if got := n.sh(t, "md5sum <"+c.target()+"/"+name); got != want {
		t.Errorf("volume %s: want the bytes of %s with checksum %s, got %s", c.id, name, want, got)
	}
}
