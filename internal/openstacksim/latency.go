package openstacksim

import (
	"sort"
	"time"
)

// Operation is work that the cloud does after a reply, or during it (Answer, Reserve).
type Operation string

// The operations whose time can be set and that a Fault can make fail.
const (
	Answer         Operation = "answer"  // every HTTP reply
	Reserve        Operation = "reserve" // Nova asks the compute host for a device before it replies to an attach
	CreateVolume   Operation = "create-volume"
	DeleteVolume   Operation = "delete-volume"
	ExtendVolume   Operation = "extend-volume"
	RetypeVolume   Operation = "retype-volume"
	CreateSnapshot Operation = "create-snapshot"
	DeleteSnapshot Operation = "delete-snapshot"
	CreateBackup   Operation = "create-backup"
	DeleteBackup   Operation = "delete-backup"
	RestoreBackup  Operation = "restore-backup" // after the create of the volume, or into one that exists
	Attach         Operation = "attach"         // from reserved to in-use
	Detach         Operation = "detach"         // from detaching until Nova has no record either
)

// Operations are all operations.
var Operations = []Operation{
	Answer, Reserve, CreateVolume, DeleteVolume, ExtendVolume, RetypeVolume, CreateSnapshot, DeleteSnapshot, CreateBackup, DeleteBackup, RestoreBackup, Attach, Detach,
}

func defaultLatency() map[Operation]time.Duration {
	return map[Operation]time.Duration{
		Reserve: 20 * time.Millisecond, CreateVolume: 40 * time.Millisecond, DeleteVolume: 30 * time.Millisecond,
		ExtendVolume: 20 * time.Millisecond, RetypeVolume: 40 * time.Millisecond,
		CreateSnapshot: 30 * time.Millisecond, DeleteSnapshot: 20 * time.Millisecond,
		CreateBackup: 900 * time.Millisecond, DeleteBackup: 50 * time.Millisecond, RestoreBackup: 800 * time.Millisecond,
		Attach: 40 * time.Millisecond, Detach: 30 * time.Millisecond,
	}
}

// SetLatency sets how long an operation takes from now on. Operations in progress keep their time.
func (s *Sim) SetLatency(op Operation, d time.Duration) {
	defer s.lock()()
	s.latency[op] = d
}

// SetAllLatency sets the same time for every operation. With 0, the reply that starts an operation shows its effect.
func (s *Sim) SetAllLatency(d time.Duration) {
	defer s.lock()()
	for _, op := range Operations {
		s.latency[op] = d
	}
}

// event is a change of state at a time.
type event struct {
	at  time.Time
	seq int
	do  func()
}

// after runs do once d has passed, or at once if d is not positive. The caller holds s.mu, and so does do.
func (s *Sim) after(d time.Duration, do func()) {
	if d <= 0 {
		do()
		return
	}
	s.sequence++
	e := event{time.Now().Add(d), s.sequence, do}
	i := sort.Search(len(s.events), func(i int) bool { return s.events[i].at.After(e.at) })
	s.events = append(s.events[:i], append([]event{e}, s.events[i:]...)...)
	time.AfterFunc(d, func() {
		defer s.lock()()
		s.applyDue()
	})
}

// FinishOperations ends all work that the cloud still does after its replies, as if its time had come.
func (s *Sim) FinishOperations() {
	defer s.lock()()
	for i := range s.events {
		s.events[i].at = time.Now()
	}
	s.applyDue()
}

// applyDue applies every event whose time has come, in order. So no reply shows an outdated state. The caller holds s.mu.
func (s *Sim) applyDue() {
	for len(s.events) > 0 && !s.events[0].at.After(time.Now()) {
		e := s.events[0]
		s.events = s.events[1:]
		s.remember()
		e.do()
	}
}
