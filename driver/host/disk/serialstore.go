package disk

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/host/singleflight"
)

// key tells a disk from another one that later has the same name.
type key struct {
	name, number string
	sequence     string // diskseq; empty before Linux 5.15, and then the other two may be used again
}

func (f *Finder) key(name string) key {
	return key{name, f.Attribute(name, "dev"), f.Attribute(name, "diskseq")}
}

// serialStore keeps the last serial that each disk reported. There are three ways to a serial. last asks no disk. read asks the
// disk. readNow asks a question of its own.
type serialStore struct {
	ask   func(key) reported // asks the disk; may block for as long as the disk does not answer
	reads singleflight.Group[key, Serial]

	mu      sync.Mutex // never held while a disk is read
	serials map[key]reported
}

type reported struct {
	Serial
	final bool      // valid for as long as the key is that of the disk
	asked time.Time // when the disk itself answered; zero if the serial costs no request, so that it is read each time
	// missed is why the last question gave no serial, although an earlier one did; empty if it gave one.
	missed string
}

type serialRead = singleflight.Call[Serial]

// last returns the last serial that a disk reported, and since when the disk has not answered.
func (s *serialStore) last(disk key) Serial {
	since, _ := s.reads.Unresponsive(disk)
	return s.lastSince(disk, since)
}

func (s *serialStore) lastSince(disk key, since time.Time) Serial {
	serial := s.get(disk).lastKnown()
	serial.Unresponsive = since
	return serial
}

// lastKnown is the last serial of a disk. It does not count while the disk does not report it.
func (r reported) lastKnown() Serial {
	if r.missed != "" {
		r.Refused = Refusal{Reason: r.missed, NoAnswer: true}
	}
	return r.Serial
}

// candidate returns the last serial, if a search may use it to find a disk. Verify asks that disk before it is used. aged is true
// if the disk may report another one by now.
func (s *serialStore) candidate(disk key, maxAge time.Duration) (serial Serial, aged, ok bool) {
	r := s.get(disk)
	ok = r.final || !r.asked.IsZero() && time.Since(r.asked) < maxAge
	return r.Serial, !r.final, ok
}

// read asks the disk, unless a question to it is in progress. It returns that question; fresh is true for a new one.
func (s *serialStore) read(disk key) (read *serialRead, fresh bool) {
	return s.reads.Start(disk, func() Serial {
		return s.put(disk, s.ask(disk))
	})
}

// readNow returns the answer to a question that was asked after the call began. It returns false and the last serial if ctx ended first.
func (s *serialStore) readNow(ctx context.Context, disk func() key) (Serial, bool) {
	for joined := false; ; joined = true { // a question that is joined in the second round began after the call
		disk := disk()
		read, fresh := s.read(disk)
		if !read.Wait(ctx) {
			return s.lastSince(disk, read.Started), false
		}
		if fresh || joined {
			return read.Value, true
		}
	}
}

func (s *serialStore) get(disk key) reported {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serials[disk]
}

// put stores an answer and returns what the disk says by it. An empty answer does not replace a final serial: virtio-blk also returns an empty one
// when the request failed (Linux, drivers/block/virtio_blk.c, serial_show). It is no answer then, since the disk of the key is the same.
func (s *serialStore) put(disk key, answer reported) Serial {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serials == nil {
		s.serials = map[key]reported{}
	}
	if earlier := s.serials[disk]; earlier.final && len(answer.Values) == 0 {
		earlier.missed = cmp.Or(answer.Refused.Reason, "the disk reported no serial this time")
		answer = earlier
	}
	s.serials[disk] = answer
	return answer.lastKnown()
}

// retain drops all other disks.
func (s *serialStore) retain(disks []key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.serials, func(disk key, _ reported) bool { return !slices.Contains(disks, disk) })
}

// lastSerial returns the last serial that a disk reported. It asks no disk.
func (f *Finder) lastSerial(name string) Serial { return f.serials.last(f.key(name)) }

// askSerial reads the serial of a disk. A missing file holds no serial. Nor does an unreadable one, unless a read of it asks the disk itself: QEMU's SCSI
// disks answer EINVAL to a read of wwid. Only the answer of a virtio-blk disk is final. That of a SCSI disk changes when its
// LUN is given to another volume. The other files cost nothing to read.
func (f *Finder) askSerial(disk key) reported {
	s := reported{Serial: Serial{Known: true}}
	if copies := f.copiedPages(disk.name); len(copies) > 0 {
		s.Refused = f.confirmLUN(disk, copies)
		s.asked = time.Now()
	}
	for _, file := range serialFiles {
		content, err := f.options.ReadFile(filepath.Join(f.options.SysRoot, "block", disk.name, file.path))
		if err != nil {
			if file.request && !errors.Is(err, fs.ErrNotExist) {
				s.Refused = Refusal{Reason: "its serial cannot be read: " + err.Error(), NoAnswer: true}
			}
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
	return s
}
