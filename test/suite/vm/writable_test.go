//go:build vm

package vm

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
)

// A backup hook has frozen the file system when the volume grows, and its pod ends before it thaws it. ext4 grows online only with CAP_SYS_RESOURCE,
// which the driver has here.
func TestGrowingAFrozenFileSystemEndsAndTheVolumeMoves(t *testing.T) {
	n := boot(t, guest.Machine{})
	n.startDriver(t, nil, "--with-topology=false")
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		c := claim{newVolume(), fsType}
		n.plug(t, guest.Disk{Volume: c.id, Bus: "virtio"})
		n.use(t, c)
		n.sh(t, "echo kept > "+c.target()+"/file; sync; busybox fsfreeze --freeze "+c.target())
		must(t, "grow the disk", n.Grow(c.id, 2*gib))
		_, err := n.expand(bounded(t), c, 2*gib)
		refused(t, fsType+": expand", err, []string{"frozen", c.staging()}, codes.Unavailable, codes.DeadlineExceeded)
		if tools := n.try("ps -o stat,args | grep -E 'resize2fs|growfs|btrfs fi' | grep -v grep || true"); tools != "" {
			t.Errorf("%s: want no program that waits in the kernel, got %s", fsType, tools)
		}
		must(t, fsType+": the pod is deleted", n.release(n.ctx(t), c))
		n.unplug(t, c.id)
		n.plug(t, guest.Disk{Volume: c.id, Bus: "virtio"}) // the volume moves
		n.use(t, c)
		if got := n.sh(t, "cat "+c.target()+"/file"); got != "kept" {
			t.Errorf("%s: want the file kept, got %q", fsType, got)
		}
		if _, err := n.expand(n.ctx(t), c, 2*gib); err != nil {
			t.Errorf("%s: expand: %v", fsType, err)
		}
		n.wantSize(t, c, 2*gib)
		must(t, "release", n.release(n.ctx(t), c))
		n.unplug(t, c.id)
		recordCase(t, n, "virtio", fsType+" is frozen while it grows, and its pod is deleted", "expand fails: frozen; unpublish and unstage succeed; the volume moves and grows")
	}
}

// Linux 6.12 shows neither ro nor emergency_ro in the mount table after an error of ext4: only a write tells.
func TestAnExt4ThatTheKernelGaveUpIsGivenToNoPod(t *testing.T) {
	n := boot(t, guest.Machine{})
	n.startDriver(t, nil, "--with-topology=false")
	c := claim{newVolume(), "ext4"}
	d := n.plug(t, guest.Disk{Volume: c.id, Bus: "virtio"})
	must(t, "stage", n.stage(n.ctx(t), c))
	n.sh(t, "echo trigger > /sys/fs/ext4/"+d.name+"/trigger_fs_error; sleep 1")
	shown := n.sh(t, "grep /dev/"+d.name+" /proc/self/mountinfo | sed 's/.* - //' | head -n 1")
	for what, err := range map[string]error{"stage": n.stage(n.ctx(t), c), "publish": n.publish(n.ctx(t), c)} {
		refused(t, what, err, []string{"takes no writes", "Stop the pods"}, codes.Unavailable)
	}
	must(t, "grow the disk", n.Grow(c.id, 2*gib))
	_, err := n.expand(n.ctx(t), c, 2*gib)
	refused(t, "expand", err, []string{"takes no writes"}, codes.Unavailable)
	must(t, "release", n.release(n.ctx(t), c))
	n.use(t, c) // fsck repairs it
	n.sh(t, "echo x > "+c.target()+"/file")
	_, err = n.expand(n.ctx(t), c, 2*gib)
	must(t, "expand", err)
	must(t, "release", n.release(n.ctx(t), c))
	recordCase(t, n, "virtio", "an ext4 with an error; the mount table shows "+shown, "no writer gets it; staged again it is checked and works")
}
