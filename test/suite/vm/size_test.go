//go:build vm

package vm

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// sizeComesLater plugs a disk without a size, as a hypervisor shows one that it has not opened yet.
func (n *node) sizeComesLater(t *testing.T, bus string) {
	c := claim{newVolume(), "ext4"}
	d := guest.Disk{Volume: c.id, Bus: bus, LUN: 1, Empty: true}
	if n.Machine.Silent {
		must(t, "plug", n.Plug(d))
		n.sh(t, scanHosts)
	} else {
		n.plug(t, d)
	}
	refused(t, "stage a disk of size 0", n.stage(bounded(t), c), []string{"size of 0"}, codes.Unavailable)
	must(t, "give the disk its size", n.Grow(c.id, gib))
	n.eventually(t, "stage", func() error { return n.stage(n.ctx(t), c) })
	must(t, "publish", n.publish(n.ctx(t), c))
	n.wantSize(t, c, gib)
	must(t, "release", n.release(n.ctx(t), c))
	n.unplug(t, c.id)
	if n.Machine.Silent {
		n.sh(t, "echo 1 > /sys/block/sda/device/delete")
	}
	recordCase(t, n, bus, "disk of size 0 that gets its size later", "Unavailable, then staged")
}

// eventually calls again and again what Kubernetes retries.
func (n *node) eventually(t *testing.T, what string, call func() error) {
	t.Helper()
	testenv.Eventually(t, time.Minute, time.Second, what, call)
}
