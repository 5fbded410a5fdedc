package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Usage is a total and what is left of it, in bytes or inodes.
type Usage struct{ Total, Available, Used int64 }

// Stats is how full a volume is. Of a block volume only the total bytes are known.
type Stats struct {
	Block         bool
	Bytes, Inodes Usage
}

// statLimit ends the wait for a file system that does not answer; kubelet asks about every volume each minute.
const statLimit = 10 * time.Second

// Stats reads how full the volume mounted at path is. Errors: NotFound when nothing is mounted there, so that the numbers of the
// file system around it are never taken for the volume's; Unavailable when it does not answer.
func (h *Host) Stats(ctx context.Context, path string) (Stats, error) {
	q, _ := h.asking.put(filepath.Clean(path), func() stated {
		stats, err := h.ask(path)
		return stated{stats, err}
	})
	switch {
	case q.await(ctx, statLimit):
		return q.answer.stats, q.answer.err
	case ctx.Err() != nil:
		return Stats{}, ended(ctx, "the volume at %s has not answered", path)
	}
	return Stats{}, volume.Errorf(volume.Unavailable, "the volume at %s has not answered within %s, asked at %s; its disk may be gone or stuck",
		path, statLimit, q.asked.Format(time.RFC3339))
}

// stated is what a file system answers.
type stated struct {
	stats Stats
	err   error
}

// ask may wait for a dead file system for ever.
func (h *Host) ask(path string) (Stats, error) {
	path, err := resolveUsed(path)
	if err != nil {
		return Stats{}, err
	}
	table, err := h.mounts()
	if err != nil {
		return Stats{}, err
	}
	if _, ok := table.At(path); !ok {
		return Stats{}, volume.Errorf(volume.NotFound, "nothing is mounted at %s", path)
	}
	return h.stat(path)
}

func statPath(path string) (Stats, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Stats{}, volume.Errorf(volume.NotFound, "%s does not exist", path)
	}
	if err != nil && mount.IsCorruptedMnt(err) {
		return Stats{}, volume.Errorf(volume.Failed, "the mount at %s has lost its disk; delete the pod so that it is mounted anew: %w", path, err)
	}
	if err != nil {
		return Stats{}, volume.Errorf(volume.Failed, "look at the volume: %w", err)
	}
	if info.Mode()&os.ModeDevice != 0 {
		return statBlock(path)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Stats{}, volume.Errorf(volume.Failed, "ask the file system at %s how full it is: %w", path, err)
	}
	return Stats{
		Bytes: Usage{
			Total: int64(s.Blocks) * s.Bsize, Available: int64(s.Bavail) * s.Bsize, Used: int64(s.Blocks-s.Bfree) * s.Bsize,
		},
		Inodes: Usage{Total: int64(s.Files), Available: int64(s.Ffree), Used: int64(s.Files - s.Ffree)},
	}, nil
}

func statBlock(path string) (Stats, error) {
	d, err := openBlockDevice(path)
	if err != nil {
		return Stats{}, volume.Errorf(volume.Failed, "open the block volume: %w", err)
	}
	defer d.Close()
	size, err := d.Size()
	if err != nil {
		return Stats{}, volume.Errorf(volume.Failed, "ask %s for its size: %w", path, err)
	}
	return Stats{Block: true, Bytes: Usage{Total: int64(size)}}, nil
}
