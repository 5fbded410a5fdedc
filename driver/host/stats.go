package host

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Usage is a capacity with its available and used parts, in bytes or inodes.
type Usage struct{ Total, Available, Used int64 }

// Stats is the usage of a volume. For a block volume only the total of Bytes is known.
type Stats struct {
	Block         bool
	Bytes, Inodes Usage
	Issues        []volume.HealthIssue // what reading the usage showed; also beside an error
}

// statsTimeout is how long the driver waits for a file system that does not answer. kubelet asks about every volume
// each minute.
const statsTimeout = 10 * time.Second

// Stats reads the usage of the volume mounted at path. Errors: NotFound if nothing is mounted there, so that the usage
// of the machine's own file system is never reported. Unavailable if the file system does not answer.
func (h *Host) Stats(ctx context.Context, path string) (Stats, error) {
	call, _ := h.stats.Start(filepath.Clean(path), func() statsResult {
		stats, err := h.readStats(path)
		return statsResult{stats, err}
	})
	switch {
	case call.WaitUntil(ctx, statsTimeout):
		return call.Value.stats, call.Value.err
	case ctx.Err() != nil:
		return Stats{}, volume.Interrupted(ctx, "read the usage of the volume at %s: it has not answered", path).Cause(cause.DiskSilent)
	}
	return Stats{}, volume.Errorf(volume.Unavailable, "read the usage of the volume at %s: it has not answered within %s since %s; its disk may be removed or down",
		path, statsTimeout, call.Started.Format(time.RFC3339)).Cause(cause.DiskSilent)
}

type statsResult struct {
	stats Stats
	err   error
}

// readStats may block for ever on a dead file system.
func (h *Host) readStats(path string) (Stats, error) {
	path, err := mount.ResolveVolume(path)
	if err != nil {
		return Stats{}, err
	}
	table, err := h.mounts.Table()
	if err != nil {
		return Stats{}, err
	}
	mounted, ok := table.At(path)
	if !ok {
		return Stats{}, volume.Errorf(volume.NotFound, "read the usage of the volume at %s: nothing is mounted there", path)
	}
	node := h.nodeBelow(mounted)
	unreadable := h.readDisk(context.Background(), node)
	if volume.Is(unreadable, volume.Unavailable) {
		return Stats{}, volume.Errorf(volume.Unavailable, "read the usage of the volume at %s: %w", path, unreadable).Cause(cause.DiskSilent)
	}
	stats, err := h.kernel.stat(path)
	name := strings.TrimPrefix(filepath.Base(node), ".") // of no disk: none
	stats.Issues = append(append(stats.Issues, h.readOnlyIssue(mounted, name)...), h.recordedErrors(name)...)
	if unreadable != nil {
		stats.Issues = append(stats.Issues, unreadableDisk(node, unreadable))
	}
	return stats, err
}

func statPath(path string) (Stats, error) {
	info, err := os.Stat(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return Stats{}, volume.Errorf(volume.NotFound, "%s does not exist", path)
	}
	if err != nil && mountutils.IsCorruptedMnt(err) {
		return Stats{}, volume.Errorf(volume.Failed, "the mount at %s has lost its disk; delete the pod, so that the volume is mounted again: %w", path, err).Cause(cause.MountLost)
	}
	if err != nil {
		return Stats{}, volume.Errorf(volume.Failed, "read the mount point of the volume: %w", err).Cause(cause.NodeSystem)
	}
	if info.Mode()&os.ModeDevice != 0 {
		return statBlock(path)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Stats{}, volume.Errorf(volume.Failed, "read the usage of the file system at %s: %w", path, err).Cause(cause.NodeSystem)
	}
	return Stats{
		Bytes: Usage{
			Total: int64(s.Blocks) * s.Bsize, Available: int64(s.Bavail) * s.Bsize, Used: int64(s.Blocks-s.Bfree) * s.Bsize,
		},
		Inodes: Usage{Total: int64(s.Files), Available: int64(s.Ffree), Used: int64(s.Files - s.Ffree)},
	}, nil
}

func statBlock(path string) (Stats, error) {
	d, err := disk.Open(path)
	if err != nil {
		return Stats{}, volume.Errorf(volume.Failed, "open the block volume: %w", err).Cause(cause.NodeSystem)
	}
	defer d.Close()
	size, err := d.Size()
	if err != nil {
		return Stats{}, volume.Errorf(volume.Failed, "read the size of the block volume at %s: %w", path, err).Cause(cause.NodeSystem)
	}
	return Stats{Block: true, Bytes: Usage{Total: int64(size)}}, nil
}
