package disk

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// serialTimeout is how long a disk has to report its serial. A read of the serial of a virtio-blk disk is a request in
// the queue of the disk (Linux, virtblk_get_id). A disk whose backend is down never answers it. A healthy disk answers
// in less than a millisecond.
const serialTimeout = 2 * time.Second

// key tells a disk from another one that later has the same name.
type key struct {
	name, number string
	sequence     string // diskseq; empty before Linux 5.15, and then the other two may be used again
}

func (f *Finder) key(name string) key {
	return key{name, f.Attribute(name, "dev"), f.Attribute(name, "diskseq")}
}

// serialCache keeps the last serial that each disk reported.
type serialCache struct {
	mu      sync.Mutex // never held while a disk is read
	serials map[key]cachedSerial
}

type cachedSerial struct {
	Serial
	final bool // valid for as long as the key is that of the disk
}

// put stores a serial. An empty answer does not replace a final serial: virtio-blk also returns an empty one when the
// request failed.
func (c *serialCache) put(disk key, s cachedSerial) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serials == nil {
		c.serials = map[key]cachedSerial{}
	}
	if len(s.Values) > 0 || !c.serials[disk].final {
		c.serials[disk] = s
	}
}

func (c *serialCache) get(disk key) cachedSerial {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.serials[disk]
}

// retain drops all other disks.
func (c *serialCache) retain(disks []key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for disk := range c.serials {
		if !slices.Contains(disks, disk) {
			delete(c.serials, disk)
		}
	}
}

// readSerial reads the serial of a disk from sysfs and stores it. A missing or unreadable file holds no serial: QEMU's
// SCSI disks answer EINVAL to a read of wwid. Only the answer to a request is final. The other files cost nothing to
// read, and that of a SCSI disk changes when its LUN is mapped to another volume.
func (f *Finder) readSerial(disk key) Serial {
	s := cachedSerial{Serial: Serial{Known: true}}
	for _, file := range serialFiles {
		content, err := f.readFile(filepath.Join(f.sys, "block", disk.name, file.path))
		if err != nil {
			continue
		}
		value := file.parse(content)
		if value == "" {
			continue
		}
		if file.whole {
			s.Whole = value
		}
		if !slices.Contains(s.Values, value) {
			s.Values = append(s.Values, value)
		}
		s.final = s.final || file.request && disk.sequence != ""
	}
	f.cache.put(disk, s)
	return s.Serial
}

// Entry is a disk of this machine with the serial that it reports.
type Entry struct {
	Name   string // in sysfs: vdb
	Serial Serial
}

// List lists the disks of this machine with their serials. It reads all serials at once. A disk that does not answer in
// time is unresponsive. Later calls neither wait for it nor read it until it has answered.
func (f *Finder) List(ctx context.Context) ([]Entry, error) {
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	timeout := serialTimeout
	if deadline, ok := ctx.Deadline(); ok { // leave a caller with little time the time for a disk that answers
		timeout = min(timeout, time.Until(deadline)/2)
	}
	entries, keys := make([]Entry, len(names)), make([]key, len(names))
	reads := make([]*serialRead, len(names))
	for i, name := range names {
		entries[i].Name, keys[i] = name, f.key(name)
		if cached := f.cache.get(keys[i]); cached.final {
			entries[i].Serial = cached.Serial
			continue
		}
		reads[i], _ = f.startRead(keys[i])
	}
	for i, read := range reads {
		switch {
		case read == nil:
		case read.WaitUntil(ctx, timeout):
			entries[i].Serial = read.Value
		default:
			entries[i].Serial = f.lastSerial(keys[i], read.Started)
			if ctx.Err() == nil {
				read.Reported.Do(func() { f.logUnresponsive(ctx, entries[i]) })
			}
		}
	}
	f.cache.retain(keys)
	return entries, nil
}

func (f *Finder) startRead(disk key) (read *serialRead, fresh bool) {
	return f.reads.Start(disk, func() Serial { return f.readSerial(disk) })
}

func (f *Finder) logUnresponsive(ctx context.Context, e Entry) {
	f.log.LogAttrs(ctx, slog.LevelWarn, "a disk does not report its serial; the driver does not use it for any volume until it answers; its backend may be down",
		slog.String("disk", e.Name), slog.Any("last_serial", e.Serial.Values))
}

func (f *Finder) lastSerial(disk key, since time.Time) Serial {
	s := f.cache.get(disk).Serial
	s.Unresponsive = since
	return s
}

// cached returns the last serial that a disk reported. It reads no disk.
func (f *Finder) cached(name string) Serial {
	disk := f.key(name)
	if since, unresponsive := f.reads.Unresponsive(disk); unresponsive {
		return f.lastSerial(disk, since)
	}
	return f.cache.get(disk).Serial
}

// readSerialNow returns a serial that was read after the call began; false if ctx ended first.
func (f *Finder) readSerialNow(ctx context.Context, name string) (Serial, bool) {
	for joined := false; ; joined = true { // a read that is joined in the second round began after the call
		disk := f.key(name)
		read, fresh := f.startRead(disk)
		if !read.Wait(ctx) {
			return f.lastSerial(disk, read.Started), false
		}
		if fresh || joined {
			return read.Value, true
		}
	}
}
