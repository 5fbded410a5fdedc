// Package inflight tracks what is in progress in this process: which objects a call works on, and which requests outlive their callers.
//
// It only saves calls to the cloud. After a restart, or with a second replica, two calls may work on one object, and one of them finds it
// changing.
package inflight

import (
	"strings"
	"sync"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// locks let one call at a time work on a name. They save calls to the cloud, and bridge the time in which it does not show what it is
// at (errands); nothing else is wrong without them. Nobody waits for a lock, and the mutex is held for a look at the map only.
type Locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

// lock is on a name until all who share it have let go.
type lock struct {
	verb   string // what its first holder does
	shares int
}

// volumeLock is the name of a volume's lock. Cinder's database takes an id in any case, and answers with its own.
func VolumeKey(id volume.ID) string { return "volume " + strings.ToLower(string(id)) }

// take locks name, and gives what unlocks it. Busy when another call holds it.
func (l *Locks) Take(name, verb string) (func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, busy := l.held[name]; busy {
		return nil, volume.Errorf(volume.Busy, "another call is working on %s (%s); try again", name, other.verb).Op(verb)
	}
	return l.hold(name, verb), nil
}

// share locks name beside the caller, who has locked it: it is free once both have unlocked it.
func (l *Locks) Share(name, verb string) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold(name, verb)
}

// hold needs l.mu.
func (l *Locks) hold(name, verb string) func() {
	if l.held == nil {
		l.held = map[string]*lock{}
	}
	at := l.held[name]
	if at == nil {
		at = &lock{verb: verb}
		l.held[name] = at
	}
	at.shares++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if at.shares--; at.shares == 0 {
			delete(l.held, name)
		}
	}
}
