//go:build vm

package vm

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/test/bed/vm/agent"
	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

// frozen has a backup hook that freezes the file system, and a pod that ends before it thaws it.
func (n *node) frozen(t *testing.T, bus string) {
	for _, fsType := range []string{"ext4", "xfs"} {
		c := claim{newVolume(), fsType}
		d := n.plug(t, guest.Disk{Volume: c.id, Bus: bus, LUN: 1})
		n.use(t, c)
		sum := n.write(t, c)
		n.sh(t, "fsfreeze --freeze "+c.target())
		must(t, "release", n.release(n.ctx(t), c))
		n.notInUse(t, d)
		n.use(t, c)
		n.wantData(t, c, sum)
		n.write(t, c)
		must(t, "release", n.release(n.ctx(t), c))
		n.unplug(t, c.id)
	}
	recordCase(t, n, bus, "file system frozen in a pod that ends", "thawed and released, data as written")
}

// notInUse wants a disk that nothing mounts: mkfs opens it exclusively, and -n makes nothing.
func (n *node) notInUse(t *testing.T, d device) {
	t.Helper()
	n.sh(t, "mkfs.ext4 -n -F -q /dev/"+d.name+" >/dev/null")
}

// loopDevice has a loop device that outlives the pod that made it of a file.
func (n *node) loopDevice(t *testing.T, bus string) {
	c := claim{newVolume(), "ext4"}
	n.plug(t, guest.Disk{Volume: c.id, Bus: bus, LUN: 1})
	n.use(t, c)
	loop := n.sh(t, "dd if=/dev/zero of="+c.target()+"/image bs=1M count=1 2>/dev/null; [ -e /dev/loop0 ] || mknod /dev/loop0 b 7 0; unshare -m losetup /dev/loop0 "+c.target()+"/image; echo loop0")
	refused(t, "release", n.release(n.ctx(t), c), []string{"loop", "image"}, codes.Aborted, codes.Unknown, codes.FailedPrecondition)
	n.sh(t, "losetup -d /dev/"+loop)
	must(t, "release", n.release(n.ctx(t), c))
	n.unplug(t, c.id)
	recordCase(t, n, bus, "loop device on a file of the volume", "the error names the loop device and its file; released when it is detached")
}

// dirtyJournal mounts the copy of a disk that was written to at that moment.
func (n *node) dirtyJournal(t *testing.T, bus string) {
	c, clone := claim{newVolume(), "ext4"}, claim{newVolume(), "ext4"}
	n.plug(t, guest.Disk{Volume: c.id, Bus: bus, LUN: 1})
	n.use(t, c)
	sum := n.write(t, c)
	stop := n.keepWriting(t, c)
	n.sh(t, "until [ -s "+c.target()+"/more ]; do usleep 50000; done")
	must(t, "copy the disk", n.Snapshot(c.id, clone.id))
	stop()
	d := n.plug(t, guest.Disk{Volume: clone.id, Bus: bus, LUN: 2})
	if state := n.sh(t, "dumpe2fs -h /dev/"+d.name+" 2>/dev/null | grep features"); !strings.Contains(state, "needs_recovery") {
		t.Fatalf("the trap is not set: want a journal to recover, got %q", state)
	}
	must(t, "stage", n.stageFromSource(n.ctx(t), clone))
	must(t, "publish", n.publish(n.ctx(t), clone))
	n.wantData(t, clone, sum)
	n.write(t, clone)
	for _, c := range []claim{c, clone} {
		must(t, "release", n.release(n.ctx(t), c))
		n.unplug(t, c.id)
	}
	recordCase(t, n, bus, "ext4 with a dirty journal from a snapshot", "recovered and mounted beside its original, data as written")
}

// stageFromSource stages a volume that CreateVolume made from a snapshot.
func (n *node) stageFromSource(ctx context.Context, c claim) error {
	return csitest.Outcome(n.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: c.id, StagingTargetPath: c.staging(), VolumeCapability: c.capability(), VolumeContext: map[string]string{contract.ContextResizeRequired: "true"},
	}))
}

func (n *node) cloneOfXFS(t *testing.T, bus string) {
	n.clone(t, bus, "xfs", true)
	recordCase(t, n, bus, "xfs clone beside its original", "both mounted, each with its own data")
}

// cloneOfBtrfs wants a refusal where the kernel mounts no UUID twice. It would mount the original again.
func (n *node) cloneOfBtrfs(t *testing.T, bus string) {
	var major, minor int
	_, err := fmt.Sscanf(n.kernel, "%d.%d", &major, &minor)
	must(t, "read the version of the kernel", err)
	both := major > 6 || major == 6 && minor >= 7
	n.clone(t, bus, "btrfs", both)
	outcome := "both mounted, each with its own data"
	if !both {
		outcome = "the clone is refused, with the reason"
	}
	recordCase(t, n, bus, "btrfs clone beside its original", outcome)
}

func (n *node) clone(t *testing.T, bus, fsType string, both bool) {
	c, clone := claim{newVolume(), fsType}, claim{newVolume(), fsType}
	n.plug(t, guest.Disk{Volume: c.id, Bus: bus, LUN: 1})
	n.use(t, c)
	sum := n.write(t, c)
	n.sh(t, "sync")
	must(t, "copy the disk", n.Snapshot(c.id, clone.id))
	n.plug(t, guest.Disk{Volume: clone.id, Bus: bus, LUN: 2})
	n.sh(t, "echo original > "+c.target()+"/whose")
	err := n.stageFromSource(n.ctx(t), clone)
	if both {
		must(t, "stage the clone", err)
		must(t, "publish the clone", n.publish(n.ctx(t), clone))
		n.wantData(t, clone, sum)
		n.sh(t, "[ ! -e "+clone.target()+"/whose ]")
	} else {
		refused(t, "stage the clone", err, []string{"same UUID"}, codes.FailedPrecondition, codes.Internal, codes.Aborted)
	}
	n.wantData(t, c, sum)
	for _, c := range []claim{clone, c} {
		must(t, "release", n.release(n.ctx(t), c))
		n.unplug(t, c.id)
	}
}

// otherReader has a process of the server that keeps the disk open, as LVM and multipathd do. The kernel writes out a block device when its last
// user closes it, so the bytes of the pod would stay in memory.
func (n *node) otherReader(t *testing.T, bus string) {
	const written = 1 << 20
	c := claim{id: newVolume()}
	d := n.plug(t, guest.Disk{Volume: c.id, Bus: bus, LUN: 1})
	n.use(t, c)
	reader, err := n.Start(agent.Command{Args: []string{"/busybox/sh", "-c", "exec sleep 600 < /dev/" + d.name}, Log: "/run/reader"})
	must(t, "start a reader", err)
	n.sh(t, "tr '\\0' x < /dev/zero | dd of="+c.target()+" bs=64k count=16 iflag=fullblock conv=notrunc 2>/dev/null")
	must(t, "release", n.release(n.ctx(t), c))
	f, err := os.Open(n.FileOf(c.id))
	must(t, "open the disk's file", err)
	defer f.Close()
	content := make([]byte, written)
	_, err = io.ReadFull(f, content)
	must(t, "read the disk's file", err)
	if got := strings.Count(string(content), "x"); got != written {
		t.Errorf("want all %d bytes on the disk after the unstage, got %d", written, got)
	}
	n.sh(t, fmt.Sprintf("kill %d", reader))
	n.unplug(t, c.id)
	recordCase(t, n, bus, "raw block volume with another reader open", "every byte is on the disk after the unstage")
}
