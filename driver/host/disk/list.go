package disk

import (
	"context"
	"log/slog"
	"math"
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
		if last, mayChange, ok := f.serials.candidate(keys[i], maxAge); ok {
			entries[i].Serial = last
			aged = aged || mayChange
			continue
		}
		reads[i], _ = f.serials.read(keys[i])
	}
	for i, read := range reads {
		switch {
		case read == nil:
		case read.WaitUntil(ctx, timeout):
			entries[i].Serial = read.Value
		default:
			entries[i].Serial = f.serials.lastSince(keys[i], read.Started)
			if ctx.Err() == nil {
				read.Reported.Do(func() { f.logUnresponsive(ctx, entries[i]) })
			}
		}
	}
	f.serials.retain(keys)
	return entries, aged, nil
}

func (f *Finder) logUnresponsive(ctx context.Context, e Entry) {
	f.options.Log.LogAttrs(ctx, slog.LevelWarn, "a disk does not report its serial; the driver does not use it for any volume until it answers; "+
		"its backend may be down", slog.String("disk", e.Name), slog.Any("last_serial", e.Serial.Values))
}
