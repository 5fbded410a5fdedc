package host

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Events wakes those who wait for a disk, so that they need not wait for the next look at sysfs.
type Events interface {
	// Subscribe gives a channel that holds a token whenever a disk may have come or changed since the last one was taken, until ctx
	// ends. Who is told looks for himself: an event is no promise, and one that was lost counts as one.
	Subscribe(ctx context.Context) (<-chan struct{}, error)
}

// EventsOf gives the events of the machine whose sysfs and device nodes are at those places: the kernel's, or for a tree that
// someone exported what happens to its files.
func EventsOf(sysRoot, devRoot string) Events {
	if filepath.Clean(or(sysRoot, "/sys")) == "/sys" {
		return kernelEvents{}
	}
	return treeEvents{sys: sysRoot, dev: or(devRoot, "/dev")}
}

// kernelEvents listens to the kernel's uevents, for the time of one wait. udevd is neither needed nor disturbed.
type kernelEvents struct{}

// kernelGroup is the multicast group of the kernel's own uevents; group 2 has udevd's.
const kernelGroup = 1

func (kernelEvents) Subscribe(ctx context.Context) (<-chan struct{}, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "open a socket for the kernel's events: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: kernelGroup}); err != nil {
		_ = unix.Close(fd)
		return nil, volume.Errorf(volume.Failed, "listen to the kernel's events: %w", err)
	}
	return follow(ctx, os.NewFile(uintptr(fd), "uevents"), func(message []byte) bool {
		e, ok := parseUevent(message)
		return ok && e.aboutDisks()
	}), nil
}

// follow reads messages until ctx ends, and leaves a token for those worth a look. f is closed at the end.
func follow(ctx context.Context, f *os.File, worth func(message []byte) bool) <-chan struct{} {
	tokens := make(chan struct{}, 1)
	release := context.AfterFunc(ctx, func() { _ = f.Close() })
	go func() {
		defer release()
		receive(f.Read, worth, func() {
			select {
			case tokens <- struct{}{}:
			default: // one is waiting to be taken already
			}
		})
	}()
	return tokens
}

// messageSize is more than a uevent can have: 2048 bytes of variables and a path.
const messageSize = 16 << 10

// receive wakes for every message worth it and for messages that the kernel says were lost, until read fails otherwise.
func receive(read func([]byte) (int, error), worth func([]byte) bool, wake func()) {
	buffer := make([]byte, messageSize)
	for {
		n, err := read(buffer)
		switch {
		case err == nil && worth(buffer[:n]), errors.Is(err, syscall.ENOBUFS):
			wake()
		case err == nil, errors.Is(err, syscall.EINTR):
		default:
			return
		}
	}
}

// treeEvents watches the files of an exported tree.
type treeEvents struct{ sys, dev string }

func (e treeEvents) Subscribe(ctx context.Context) (<-chan struct{}, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "watch %s: %w", e.sys, err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	e.watch(f)
	return follow(ctx, f, func([]byte) bool {
		e.watch(f) // before the look: what comes into a new directory later is told then
		return true
	}), nil
}

// watch adds whatever directories there are now; those that are watched already stay so. It does nothing once f is closed, when the
// descriptor may be another file's.
func (e treeEvents) watch(f *os.File) {
	disks, _ := filepath.Glob(filepath.Join(e.sys, "block", "*"))
	inotify, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = inotify.Control(func(fd uintptr) {
		for _, dir := range append(disks, filepath.Join(e.sys, "block"), e.dev) {
			_, _ = unix.InotifyAddWatch(int(fd), dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE|unix.IN_ATTRIB) // gone again, if it fails
		}
	})
}

// watchDisks subscribes for the time of a wait. Without events the wait still ends: sysfs is looked at on a timer too.
func (h *Host) watchDisks(ctx context.Context) <-chan struct{} {
	if h.events == nil {
		return nil
	}
	tokens, err := h.events.Subscribe(ctx)
	if err != nil {
		h.deaf.Do(func() {
			h.log.LogAttrs(ctx, slog.LevelWarn, "no events of disks: they are looked for once a second", slog.Any("error", err))
		})
		return nil
	}
	return tokens
}
