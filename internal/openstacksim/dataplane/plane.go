//go:build linux

// Package dataplane gives the objects of a simulated cloud their bytes and its servers disks, on the kernel that runs it: volumes,
// snapshots and backups are sparse files, and an attached volume is a loop device that appears in a directory which looks like its
// server's /sys and /dev. It needs Linux 5.8 and root.
//
// Nothing of it outlives its process, killed or not, but what is still mounted or open elsewhere: the kernel takes a loop device
// away once its last user lets go. Files that a killed process left are removed by the next one of the same directory.
package dataplane

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// Plane is a data plane below one directory:
//
//	images/ID                                   the bytes of a volume, snapshot or backup
//	servers/by-name/NAME                        -> ../ID
//	servers/ID/sys/block/vdb/{serial,dev,size}  as virtio-blk shows them
//	servers/ID/dev/vdb                          -> /dev/loopN
//	servers/ID/by-id/virtio-SERIAL              -> /dev/loopN
//	servers/ID/config-drive/openstack/latest/meta_data.json
//
// A disk appears in sys/block last and complete, and leaves it first.
type Plane struct {
	dir     string
	options Options
	lock    *os.File

	mu      sync.Mutex
	servers map[string]*server
	disks   map[string]*disk // by volume
	late    error            // of what happened when nobody could be told
	closed  bool
}

var _ openstacksim.DataPlane = (*Plane)(nil)

// Options are what may be odd about disks. The zero value is a quick and honest cloud.
type Options struct {
	// Delay is how much later than Nova's word disks and new sizes appear.
	Delay time.Duration
	// Serial is what the disk of a volume says it is; empty: it has no serial. Nil is virtio-blk's: the id's first 20 characters.
	Serial func(volume string) string
	// Log hears of disks that could not be shown late; nobody when nil.
	Log *slog.Logger
}

// marker is the file that says whose directory it is. The process that uses the directory holds a lock on it.
const marker = ".openstack-sim-disks"

// New makes a data plane in dir, which is made if need be. It takes away what an earlier process left there and refuses a directory
// that holds other things or that another process uses.
func New(dir string, options Options) (*Plane, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := ours(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // as the kernel will write the names of backing files
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, marker), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("%s is used by another process: %w", dir, err)
	}
	p := &Plane{dir: dir, options: options, lock: lock, servers: map[string]*server{}, disks: map[string]*disk{}}
	if p.options.Log == nil {
		p.options.Log = slog.New(slog.DiscardHandler)
	}
	if err := errors.Join(clearLoops(p.image("")), p.wipe(), p.tryLoop()); err != nil {
		return nil, errors.Join(err, p.wipe(), lock.Close())
	}
	return p, nil
}

// ours refuses a directory that was not made for a data plane: everything in it would be removed.
func ours(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, marker)); err != nil {
		return fmt.Errorf("%s is not empty and is no earlier directory of disks; name another", dir)
	}
	return nil
}

// wipe removes every file but the lock.
func (p *Plane) wipe() error {
	return errors.Join(os.RemoveAll(filepath.Join(p.dir, "images")), os.RemoveAll(filepath.Join(p.dir, "servers")))
}

// tryLoop finds out at once whether this machine has loop devices for us.
func (p *Plane) tryLoop() error {
	const id = "try"
	if err := p.makeImage(id, "", 1<<20); err != nil {
		return err
	}
	l, err := openLoop(p.image(id))
	if err != nil {
		return err
	}
	return errors.Join(l.Close(), os.Remove(p.image(id)))
}

// Close takes every disk and file away. Its error tells of disks that are still in use: the kernel keeps those until they are let
// go; and of what went wrong when nobody could be told.
func (p *Plane) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	err := p.late
	for id := range p.servers {
		err = errors.Join(err, p.removeServer(id))
	}
	return errors.Join(err, awaitNoLoops(p.image(""), letGo), p.wipe(), p.lock.Close())
}

// letGo is how long others may take to let go of a disk that is gone: udev and blkid look at every disk for a moment.
const letGo = 2 * time.Second

// later does what a server's kernel does, after the delay if there is one. It needs p.mu, and do runs with it.
func (p *Plane) later(what string, do func() error) error {
	if p.options.Delay <= 0 {
		return do()
	}
	time.AfterFunc(p.options.Delay, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closed {
			return
		}
		if err := do(); err != nil {
			p.late = errors.Join(p.late, err)
			p.options.Log.Error("a disk could not be shown", "disk", what, "error", err)
		}
	})
	return nil
}
