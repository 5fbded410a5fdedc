//go:build vm

package vm

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// scanHosts has the kernel look for new LUNs. It does not ask again those that it has.
const scanHosts = "for s in /sys/class/scsi_host/*/scan; do echo '- - -' > $s; done; sleep 1"

// On a controller without events the kernel notices nothing by itself.
func TestCasesOfASCSIControllerWithoutEvents(t *testing.T) {
	for _, kernel := range strings.Split(*kernels, ",") {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			n := boot(t, guest.Machine{Kernel: kernel, SCSI: true, Silent: true})
			n.startDriver(t, nil, "--with-topology=false")
			t.Run("a LUN that was given to another volume", n.lunOfAnotherVolume)
			t.Run("the new volume at such a LUN", n.newVolumeAtLUN)
			t.Run("a disk of size 0 that gets its size later", func(t *testing.T) { n.sizeComesLater(t, "scsi") })
			t.Run("a disk that the kernel shows too small", n.shownTooSmall)
		})
	}
}

// lunOfAnotherVolume attaches volume B at the LUN that A had, and A at the next one. The kernel hears of neither: its copy of the serial says that
// the first is A. A driver that believes the copy mounts the data of B for A.
func (n *node) lunOfAnotherVolume(t *testing.T) {
	a, b := claim{newVolume(), "ext4"}, claim{newVolume(), "ext4"}
	n.plugSilently(t, b, 3)
	n.use(t, b)
	n.sh(t, "echo data-of-B > "+b.target()+"/whose; sync")
	must(t, "release B", n.release(n.ctx(t), b))
	n.unplugSilently(t, b)
	n.plugSilently(t, a, 1)
	n.use(t, a)
	n.sh(t, "echo data-of-A > "+a.target()+"/whose; sync")
	must(t, "release A", n.release(n.ctx(t), a))

	n.unplug(t, a.id)
	must(t, "plug B at A's LUN", n.Plug(guest.Disk{Volume: b.id, Bus: "scsi", LUN: 1}))
	must(t, "plug A again", n.Plug(guest.Disk{Volume: a.id, Bus: "scsi", LUN: 2}))
	n.kernelSees(t, a)
	for _, c := range []struct {
		claim
		data string
	}{{a, "data-of-A"}, {b, "data-of-B"}} {
		n.use(t, c.claim)
		if got := n.sh(t, "cat "+c.target()+"/whose"); got != c.data {
			t.Errorf("want %s at the path of its volume, got %q", c.data, got)
		}
	}
	for _, c := range []claim{a, b} {
		must(t, "release", n.release(n.ctx(t), c))
		n.unplugSilently(t, c)
	}
	recordCase(t, n, "scsi", "the LUN of A given to B without an event", "each volume has its own data")
}

// newVolumeAtLUN has the disk of B, which the kernel calls A.
func (n *node) newVolumeAtLUN(t *testing.T) {
	a, b := claim{newVolume(), "ext4"}, claim{newVolume(), "ext4"}
	n.plugSilently(t, a, 1)
	must(t, "stage A", n.stage(n.ctx(t), a))
	must(t, "release A", n.release(n.ctx(t), a))
	n.unplug(t, a.id)
	must(t, "plug B at A's LUN", n.Plug(guest.Disk{Volume: b.id, Bus: "scsi", LUN: 1, Bytes: gib}))
	n.kernelSees(t, a)
	refused(t, "stage A, which is not here", n.stage(bounded(t), a), []string{a.id}, codes.DeadlineExceeded)
	must(t, "stage B", n.stage(bounded(t), b))
	must(t, "release B", n.release(n.ctx(t), b))
	n.unplugSilently(t, b)
	recordCase(t, n, "scsi", "B at a LUN that the kernel calls A", "B found and staged, A refused")
}

// shownTooSmall extends a disk and its file system, as a retype or a restore does, and the kernel keeps the size of its scan.
func (n *node) shownTooSmall(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			testenv.Value(exec.LookPath("mkfs." + fsType))(t)
			c := claim{newVolume(), fsType}
			n.plugSilently(t, c, 1)
			must(t, "grow the disk", n.Grow(c.id, 2*gib))
			testenv.Run(t, "mkfs."+fsType, "-q", n.FileOf(c.id))
			if sectors := n.sh(t, "cat /sys/block/sda/size"); sectors != fmt.Sprint(gib/512) {
				t.Fatalf("the trap is not set: the kernel shows %s sectors", sectors)
			}
			must(t, "stage", n.stage(n.ctx(t), c))
			must(t, "publish", n.publish(n.ctx(t), c))
			n.wantSize(t, c, 2*gib)
			must(t, "release", n.release(n.ctx(t), c))
			n.unplugSilently(t, c)
			recordCase(t, n, "scsi", fsType+" on a disk that the kernel shows too small", "rescanned and mounted")
		})
	}
}

// plugSilently plugs a disk and has the kernel look for it.
func (n *node) plugSilently(t *testing.T, c claim, lun int) {
	t.Helper()
	must(t, "plug", n.Plug(guest.Disk{Volume: c.id, Bus: "scsi", LUN: lun, Bytes: gib}))
	n.sh(t, scanHosts)
}

// unplugSilently unplugs a disk and has the kernel forget all SCSI disks, of which none is in use.
func (n *node) unplugSilently(t *testing.T, c claim) {
	t.Helper()
	n.unplug(t, c.id)
	n.sh(t, "for d in /sys/block/sd*; do [ ! -e $d ] || echo 1 > $d/device/delete; done")
}

// kernelSees wants a SCSI disk of which the kernel's copy of the serial is that of the volume.
func (n *node) kernelSees(t *testing.T, c claim) {
	t.Helper()
	if all := n.sh(t, "cat /sys/block/sd*/device/vpd_pg80 | tr -d '\\000'"); !strings.Contains(all, c.id) {
		t.Fatalf("the trap is not set: want the kernel to show %s, it shows %q", c.id, all)
	}
}

// recordCase records what a case of the matrix showed.
func recordCase(t *testing.T, n *node, bus, what, outcome string) {
	if !t.Failed() {
		record(t, "Cases", "Linux | machine | bus | case | outcome", n.kernel, n.Machine, bus, what, outcome)
	}
}
