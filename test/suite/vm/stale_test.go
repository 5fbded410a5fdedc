//go:build vm

package vm

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

func TestAnotherVolumeUnderTheSameNameIsRefused(t *testing.T) {
	t.Parallel()
	n := boot(t, guest.Machine{})
	n.startDriver(t, nil, "--with-topology=false")
	n.staleNames(t, "virtio")
}

func TestOnOtherMachinesAnotherVolumeUnderTheSameNameIsRefused(t *testing.T) {
	for _, c := range []struct {
		machine guest.Machine
		bus     string
	}{
		{guest.Machine{SCSI: true}, "scsi"}, // with no disk at number 0
		{guest.Machine{Bus: "scsi"}, "scsi"},
		{guest.Machine{}, "nvme"},
		{guest.Machine{Type: "q35", Ports: 2}, "virtio"},
		{guest.Machine{Udev: true}, "virtio"},
	} {
		t.Run(c.machine.String()+" "+c.bus, func(t *testing.T) {
			t.Parallel()
			n := boot(t, c.machine)
			n.startDriver(t, nil, "--with-topology=false")
			n.staleNames(t, c.bus)
		})
	}
}

// staleNames reproduces a case in which the links that upstream uses are wrong. Volume A is removed, and volume B gets its device name, number
// and slot.
func (n *node) staleNames(t *testing.T, bus string) {
	t.Run("after it was unplugged", func(t *testing.T) { n.unplugged(t, bus) })
	t.Run("pulled out while mounted", func(t *testing.T) { n.pulledOut(t, bus) })
	if bus == "virtio" {
		t.Run("two ids that begin alike", n.alike)
	}
}

// unplugged removes A in the normal way. B has a file system that somebody else made.
func (n *node) unplugged(t *testing.T, bus string) {
	a, b := claim{newVolume(), "ext4"}, newVolume()
	was := n.plug(t, guest.Disk{Volume: a.id, Bus: bus, LUN: 1})
	n.use(t, a)
	link := "kept-" + a.id[:20]
	n.sh(t, fmt.Sprintf("mkdir -p /dev/disk/by-id; ln -s ../../%s /dev/disk/by-id/%s; echo A > %s/whose", was.name, link, a.target()))
	must(t, "release A", n.release(n.ctx(t), a))
	n.unplug(t, a.id)

	before := n.prepare(t, b)
	if is := n.plug(t, guest.Disk{Volume: b, Bus: bus, LUN: 1}); is != was {
		t.Fatalf("the trap is not set: A was %v and B is %v", was, is)
	}
	words := []string{a.id, was.name, link}
	refused(t, "stage A while B has its name", n.stage(bounded(t), a), words, codes.DeadlineExceeded)
	refused(t, "publish A as a block device", n.publish(bounded(t), claim{id: a.id}), words, codes.DeadlineExceeded, codes.NotFound)
	refused(t, "publish A, which is not staged", n.publish(bounded(t), a), []string{a.id}, codes.FailedPrecondition, codes.NotFound)
	_, err := n.expand(bounded(t), a, gib)
	refused(t, "expand A", err, words, codes.NotFound, codes.DeadlineExceeded)
	must(t, "unstaging A, which is not here, is done already", n.release(n.ctx(t), a))
	n.unplug(t, b)
	if after := n.checksum(t, b); after != before {
		t.Errorf("something wrote to B's disk")
	}

	n.plug(t, guest.Disk{Volume: a.id, Bus: bus, LUN: 1})
	n.use(t, a)
	if got := n.sh(t, "cat "+a.target()+"/whose"); got != "A" {
		t.Errorf("want A's file as it was, got %q", got)
	}
	must(t, "release A", n.release(n.ctx(t), a))
	n.unplug(t, a.id)
	n.sh(t, "rm /dev/disk/by-id/"+link)
	record(t, "Volume A asked for while B has its name and number", "machine | bus | A's and B's name and number | outcome",
		n.Machine, bus, was.name+" "+was.number, "refused by stage, publish and expand; B's bytes the same; A's file there when A came back")
}

// pulledOut removes A as a forced detach does: the mount of A stays, without a disk.
func (n *node) pulledOut(t *testing.T, bus string) {
	a, b := claim{newVolume(), "ext4"}, claim{newVolume(), "ext4"}
	n.plug(t, guest.Disk{Volume: a.id, Bus: bus, LUN: 1})
	n.use(t, a)
	n.unplug(t, a.id)
	n.plug(t, guest.Disk{Volume: b.id, Bus: bus, LUN: 1})
	must(t, "stage B", n.stage(n.ctx(t), b))
	refused(t, "stage A again", n.stage(bounded(t), a), []string{a.id}, codes.DeadlineExceeded)
	must(t, "release A", n.release(n.ctx(t), a))
	if left := n.try("grep " + a.id + " /proc/mounts"); !strings.Contains(left, "exit code 1") {
		t.Errorf("want no mount of A left, got %s", left)
	}
	must(t, "release B", n.release(n.ctx(t), b))
	n.unplug(t, b.id)
}

// alike has two volumes whose IDs begin with the same 20 characters, which is all that a virtio disk shows.
func (n *node) alike(t *testing.T) {
	one := claim{newVolume(), "ext4"}
	other := claim{one.id[:24] + newVolume()[24:], "ext4"}
	n.plug(t, guest.Disk{Volume: one.id, Bus: "virtio"})
	must(t, "stage while there is one", n.stage(n.ctx(t), one))
	must(t, "release", n.release(n.ctx(t), one))
	n.plug(t, guest.Disk{Volume: other.id, Bus: "virtio"})
	for _, c := range []claim{one, other} {
		refused(t, "stage one of two", n.stage(n.ctx(t), c), []string{"2 disks", c.id}, codes.FailedPrecondition, codes.Aborted, codes.Internal)
	}
	n.unplug(t, one.id)
	n.unplug(t, other.id)
}

// bounded is the context of calls that fail after a wait. It is long enough for the driver's own answer, which comes after nine tenths of the
// deadline.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// prepare makes a file system on the disk of a volume, outside the guest, and returns the checksum of the disk.
func (n *node) prepare(t *testing.T, volume string) string {
	t.Helper()
	file := n.FileOf(volume)
	must(t, "make the disk's file", os.WriteFile(file, nil, 0o600))
	must(t, "make the disk's file", os.Truncate(file, 64<<20))
	testenv.Run(t, "mkfs.ext4", "-q", file)
	return n.checksum(t, volume)
}

// checksum is the checksum of the disk of a volume, read outside the guest.
func (n *node) checksum(t *testing.T, volume string) string {
	t.Helper()
	content, err := os.ReadFile(n.FileOf(volume))
	must(t, "read the disk's file", err)
	return fmt.Sprintf("%x", sha256.Sum256(content))
}
