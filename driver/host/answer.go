package host

import (
	"context"
	"path/filepath"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// readTimeout is how long a disk has to answer a read. It leaves the callers, which have statsTimeout, time for the rest.
const readTimeout = 8 * time.Second

// readDisk asks a disk whether its backend answers. QEMU answers for the serial by itself, and the kernel for the usage of a file system. A disk
// with requests in flight answers when it completes one. From any other disk, it reads a page that the kernel does not have in memory.
//
// Error: Unavailable if the disk does not answer. Any other is the error with which it answered. A node "" is no disk.
func (h *Host) readDisk(ctx context.Context, node string) error {
	if node == "" {
		return nil
	}
	defer volume.BeginStep(ctx, "reading disk "+node)()
	call, _ := h.reads.Start(node, func() error {
		if h.disks.AwaitProgress(filepath.Base(node)) {
			return nil
		}
		return h.kernel.read(node)
	})
	if !call.WaitUntil(ctx, readTimeout) {
		return volume.Errorf(volume.Unavailable, "disk %s has completed no request since %s; its backend may be down", node, call.Started.Format(time.RFC3339)).Cause(cause.DiskSilent)
	}
	return call.Value
}

// answers is nil if the disk answers a read, or fails one. A call that reads or writes a disk that does not answer may never end. what names the
// operation in the error.
func (h *Host) answers(ctx context.Context, what string, d *disk.Disk) error {
	err := h.readDisk(ctx, d.Path)
	switch {
	case !volume.Is(err, volume.Unavailable):
		return nil
	case ctx.Err() != nil:
		return volume.Interrupted(ctx, "%s: %v. The driver has written nothing to it", what, err).Cause(cause.DiskSilent)
	}
	return volume.Errorf(volume.Unavailable, "%s: %w. The driver has written nothing to it, and tries again when kubelet "+
		"retries. Repair the backend (%s)", what, err, pages.StorageDoesNotAnswer).Cause(cause.DiskSilent)
}

// nodeBelow is the device node of the disk that a mount is on; empty if there is none.
func (h *Host) nodeBelow(e mount.Entry) string {
	if node := h.boundNode(e); node != "" {
		return node
	}
	return h.disks.NodeOf(e.On)
}

// boundNode is the device node of the disk of a published block volume; empty if the mount is none. It asks no file system that is mounted as
// a whole, because that may not answer.
func (h *Host) boundNode(e mount.Entry) string {
	if e.Root == "/" {
		return ""
	}
	return h.disks.NodeOf(func(number disk.Number) bool { return disk.IsNode(e.Path, number) })
}
