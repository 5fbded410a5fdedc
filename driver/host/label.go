package host

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// hearing is how long a disk has to say its serial. virtio-blk asks the disk itself, as a request in its queue (Linux,
// virtblk_get_id), so a disk whose backend hangs says nothing for ever; a healthy one says it in less than a millisecond.
const hearing = 2 * time.Second

// label is what a disk says of itself.
type label struct {
	serials []string
	whole   string    // of serials, the one that is known to be whole; then only that one counts
	heard   bool      // whether the disk ever said it
	silent  time.Time // since when it has not answered; what it said before is above. Zero when it has
}

// isOf reports whether the disk is, or was when it answered last, that of volume id, and by which serial. One that tells a whole serial
// beside a cut one is held to the whole one.
func (l label) isOf(id volume.ID) (serial string, ok bool) {
	if l.whole != "" {
		return l.whole, l.whole == string(id)
	}
	i := slices.IndexFunc(l.serials, func(s string) bool { return isSerialOf(s, id) })
	if i < 0 {
		return "", false
	}
	return l.serials[i], true
}

// isVolume reports whether the disk is a volume, by what it says or said last.
func (l label) isVolume() bool { return slices.ContainsFunc(l.serials, isVolumeSerial) }

// taken reports whether a volume takes a place of this machine by the disk. One that never said anything is a volume, unless the machine
// runs from it: disks without a serial have no backend that could hang without the machine.
func (l label) taken(runs bool) bool {
	return l.isVolume() || !l.heard && !runs
}

// String is for messages.
func (l label) String() string {
	said := fmt.Sprintf("serial %q", strings.Join(l.serials, " "))
	switch {
	case l.silent.IsZero():
		return said
	case l.heard:
		return said + " before, no answer since " + l.silent.Format(time.RFC3339)
	}
	return "no answer since " + l.silent.Format(time.RFC3339)
}

// identifier tells one disk from another that has its name later.
type identifier struct {
	name, number string
	sequence     string // empty before Linux 5.15; then the two before may come again
}

func (h *Host) identify(name string) identifier {
	return identifier{name, h.attribute(name, "dev"), h.attribute(name, "diskseq")}
}

// labels is what disks said last.
type labels struct {
	mu   sync.Mutex // never held while a disk is asked
	said map[identifier]written
}

// written is a label that was read.
type written struct {
	label
	lasts bool // need not be asked again while the identifier is the disk's
}

// put writes down what a disk says. Nothing is no news of one that has a serial: virtio-blk says so too when the request has failed.
func (l *labels) put(disk identifier, w written) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.said == nil {
		l.said = map[identifier]written{}
	}
	if len(w.serials) > 0 || !l.said[disk].lasts {
		l.said[disk] = w
	}
}

func (l *labels) get(disk identifier) written {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said[disk]
}

// keep forgets all disks but those.
func (l *labels) keep(disks []identifier) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for disk := range l.said {
		if !slices.Contains(disks, disk) {
			delete(l.said, disk)
		}
	}
}

// readLabel asks a disk, and writes down what it says. A missing or unreadable file is no serial: QEMU's SCSI disks answer EINVAL to a
// read of wwid. Only the answer to a request lasts: the other files are the kernel's memory, free to read, and that of a SCSI disk
// changes when its LUN is given to another volume.
func (h *Host) readLabel(disk identifier) label {
	w := written{label: label{heard: true}}
	for _, f := range serialFiles {
		content, err := h.readFile(filepath.Join(h.sys, "block", disk.name, f.path))
		if err != nil {
			continue
		}
		s := f.parse(content)
		if s == "" {
			continue
		}
		if f.whole {
			w.whole = s
		}
		if !slices.Contains(w.serials, s) {
			w.serials = append(w.serials, s)
		}
		w.lasts = w.lasts || f.request && disk.sequence != ""
	}
	h.labels.put(disk, w)
	return w.label
}

// hear lists the disks of this machine, and gives what each says of itself. They are asked all at once; one that does not answer in
// time is silent, keeps nobody waiting a second time, and is asked by nobody else until it has answered.
func (h *Host) hear(ctx context.Context) (names []string, said map[string]label, err error) {
	names, err = h.diskNames()
	if err != nil {
		return nil, nil, err
	}
	patient := hearing
	if deadline, ok := ctx.Deadline(); ok { // which leaves a caller in a hurry time for a disk that answers
		patient = min(patient, time.Until(deadline)/2)
	}
	disks := make([]identifier, 0, len(names))
	said = make(map[string]label, len(names))
	asked := map[identifier]*question[label]{}
	for _, name := range names {
		disk := h.identify(name)
		disks = append(disks, disk)
		if w := h.labels.get(disk); w.lasts {
			said[name] = w.label
			continue
		}
		asked[disk], _ = h.listening.put(disk, func() label { return h.readLabel(disk) })
	}
	for disk, q := range asked {
		if q.await(ctx, patient) {
			said[disk.name] = q.answer
			continue
		}
		said[disk.name] = h.unheard(disk, q.asked)
		if ctx.Err() == nil {
			q.told.Do(func() { h.tellSilent(ctx, disk.name, said[disk.name]) })
		}
	}
	h.labels.keep(disks)
	return names, said, nil
}

func (h *Host) tellSilent(ctx context.Context, name string, l label) {
	h.log.LogAttrs(ctx, slog.LevelWarn, "a disk does not say its serial; until it does, no volume is looked for on it: its backend may hang",
		slog.String("disk", name), slog.Any("said_before", l.serials))
}

func (h *Host) unheard(disk identifier, since time.Time) label {
	l := h.labels.get(disk).label
	l.silent = since
	return l
}

// recall gives what a disk said last, and asks nobody.
func (h *Host) recall(name string) label {
	disk := h.identify(name)
	if since, silent := h.listening.silent(disk); silent {
		return h.unheard(disk, since)
	}
	return h.labels.get(disk).label
}

// hearAgain asks one disk, and gives an answer that was read after the call; false when none came before ctx ended.
func (h *Host) hearAgain(ctx context.Context, name string) (label, bool) {
	for joined := false; ; joined = true { // a question of the second round was asked after the call, by whomever
		disk := h.identify(name)
		asked, fresh := h.listening.put(disk, func() label { return h.readLabel(disk) })
		select {
		case <-asked.answered:
		case <-ctx.Done():
			asked.late.Store(true)
			return h.unheard(disk, asked.asked), false
		}
		if fresh || joined {
			return asked.answer, true
		}
	}
}
