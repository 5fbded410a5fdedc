package host

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// flush writes out the file system mounted at path. umount(2) does that only for a file system's last mount, and another mount namespace
// may have one that nobody here sees. A disk that answers with errors stops nothing, since a dead one must be unstaged too; one that
// does not answer is given until shortly before ctx ends, and the mount stays: it could not be taken away under a call that is in it.
func (h *Host) flush(ctx context.Context, path string) error {
	ctx, cancel := beforeDeadline(ctx)
	defer cancel()
	q, _ := h.flushing.put(path, func() struct{} {
		if err := h.syncfs(path); err != nil {
			h.log.Warn("a file system could not be written out before it is unmounted; its disk may be dead, and what was written last is lost then",
				"path", path, "error", err)
		}
		return struct{}{}
	})
	select {
	case <-q.answered:
		return nil
	case <-ctx.Done():
		return ended(ctx, "the file system at %s is being written out since %s, so it is not unmounted yet; if that never ends, its disk is stuck",
			path, q.asked.Format(time.RFC3339))
	}
}

func syncfs(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Syncfs(fd) // tells of what could not be written from Linux 5.8 on
}
