package disk

import (
	"context"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"time"
)

// serialTimeout is how long a disk has to report its serial. A read of the serial of a virtio-blk disk is a request in
// the queue of the disk (Linux, virtblk_get_id). A disk whose queue is full because its backend hangs never answers it.
// A healthy disk answers in less than a millisecond.
const serialTimeout = 2 * time.Second

// A LUN may be given to another volume without an event, so the serial of a SCSI disk has an age. One older than
// listAge is read again for a list. A search uses one of any age to find a candidate, and asks the candidate before it
// is used. It asks the other SCSI disks only if it finds no candidate or several.
const (
	listAge = 2 * time.Second
	anyAge  = time.Duration(math.MaxInt64)
)

// Entry is a disk of this machine with the serial that it reports.
type Entry struct {
	Name   string // in sysfs: vdb
	Serial Serial
	// Remote is true if the hypervisor did not provide the disk; see Finder.FromHypervisor. The driver then does not read
	// its serial, which says nothing.
	Remote bool
}

// List lists the disks of this machine with their serials. It reads all serials at once. A disk that does not answer in
// time is unresponsive. Later calls neither wait for it nor read it until it has answered.
func (f *Finder) List(ctx context.Context) ([]Entry, error) {
	entries, _, err := f.list(ctx, listAge)
	return entries, err
}

// list is List with the age up to which the serial of a SCSI disk counts. aged is true if one was older than listAge.
func (f *Finder) list(ctx context.Context, maxAge time.Duration) (entries []Entry, aged bool, err error) {
	names, err := f.names()
	if err != nil {
		return nil, false, err
	}
	timeout := serialTimeout
	if deadline, ok := ctx.Deadline(); ok { // leave a caller with little time the time for a disk that answers
		timeout = min(timeout, time.Until(deadline)/2)
	}
	entries = make([]Entry, len(names))
	keys := make([]key, len(names))
	reads := make([]*serialRead, len(names))
	for i, name := range names {
		entries[i].Name, keys[i] = name, f.key(name)
		if entries[i].Remote = !f.FromHypervisor(name); entries[i].Remote {
			entries[i].Serial.Known = true
			continue
		}
		if cached := f.cache.get(keys[i]); cached.valid(maxAge) {
			entries[i].Serial = cached.Serial
			aged = aged || !cached.final
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
	return entries, aged, nil
}

func (f *Finder) startRead(disk key) (read *serialRead, fresh bool) {
	return f.reads.Start(disk, func() Serial { return f.readSerial(disk) })
}

// readSerial reads the serial of a disk and stores it. A missing or unreadable file holds no serial: QEMU's SCSI disks
// answer EINVAL to a read of wwid. Only the answer of a virtio-blk disk is final. That of a SCSI disk changes when its
// LUN is given to another volume. The other files cost nothing to read.
func (f *Finder) readSerial(disk key) Serial {
	s := cachedSerial{Serial: Serial{Known: true}}
	if copies := f.copiedPages(disk.name); len(copies) > 0 {
		s.Refused = f.confirmLUN(disk, copies)
		s.asked = time.Now()
	}
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
