//go:build linux

// Package dataplane holds the bytes of the objects of a simulated cloud and the disks of its servers, in the kernel of this
// machine. Volumes, snapshots and backups are sparse files. An attached volume is a loop device in a directory that looks like
// /sys and /dev of its server. The package needs Linux 5.8 and root.
//
// When the process ends, even by a signal, only devices that are mounted or open elsewhere remain. The kernel removes such a loop
// device after its last use. The next process with the same directory removes files that a killed process left.
package dataplane

import (
	"cmp"
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
	late    error            // of delayed work, which has no caller
	closed  bool
}

var _ openstacksim.DataPlane = (*Plane)(nil)

// Options change the behaviour of disks. With the zero value, disks appear at once and have the right serial.
type Options struct {
	// Delay is the time between the reply of Nova and the disk or its new size.
	Delay time.Duration
	// Serial is the serial of the disk of a volume; "" means none. Nil means that of virtio-blk: the first 20 characters of the
	// ID.
	Serial func(volume string) string
	// Log reports disks that could not appear after the delay; nil reports nothing.
	Log *slog.Logger
}

// marker is the file that marks a directory of this package. The process that uses the directory holds a lock on it.
const marker = ".openstack-sim-disks"

// New makes a data plane in dir and creates dir if it is missing. It removes what an earlier process left. It refuses a directory
// with other files, and one that another process uses.
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
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // the kernel shows backing files by their resolved names
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
	p.options.Log = cmp.Or(p.options.Log, slog.New(slog.DiscardHandler))
	if err := errors.Join(clearLoops(p.image("")), p.wipe(), p.tryLoop()); err != nil {
		return nil, errors.Join(err, p.wipe(), lock.Close())
	}
	return p, nil
}

// ours refuses a directory of another origin, because New removes everything in it.
func ours(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, marker)); err != nil {
		return fmt.Errorf("%s is not empty and was not made by a data plane; use another directory", dir)
	}
	return nil
}

// wipe removes every file but the lock.
func (p *Plane) wipe() error {
	return errors.Join(os.RemoveAll(filepath.Join(p.dir, "images")), os.RemoveAll(filepath.Join(p.dir, "servers")))
}

// tryLoop checks at once whether this machine has loop devices.
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

// Close removes every disk and file. Its error names disks that are still in use, which the kernel keeps until then. It also has
// the errors of delayed work.
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
	return errors.Join(err, awaitNoLoops(p.image(""), releaseTimeout), p.wipe(), p.lock.Close())
}

// releaseTimeout is how long other programs may keep a removed disk open: udev and blkid read every disk for a moment.
const releaseTimeout = 2 * time.Second

// later runs do after the delay, as the kernel of a server would. The caller holds p.mu, and so does do.
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
			p.options.Log.Error("a disk cannot appear", "disk", what, "error", err)
		}
	})
	return nil
}
