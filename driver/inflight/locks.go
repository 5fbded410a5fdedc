package inflight

import (
	"strings"
	"sync"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Locks let one call at a time work on an object. No call waits for a lock. The zero value is ready.
type Locks struct {
	mu   sync.Mutex // held for a look at the map only
	held map[string]*lock
}

// lock exists while somebody holds it, or while a Work remembers it.
type lock struct {
	verb    string // what its first holder does
	holders int
	works   int
	taken   uint64 // how often
}

// VolumeKey is the key of a volume: "volume ID". Cinder accepts IDs in upper and lower case.
func VolumeKey(id volume.ID) string { return "volume " + strings.ToLower(string(id)) }

// Take locks a key for a verb, such as "attach", and returns the function that unlocks it. The caller calls unlock once. Busy where
// another call holds the key.
func (l *Locks) Take(key, verb string) (unlock func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.take(key, verb)
}

// take is Take for a caller that holds l.mu.
func (l *Locks) take(key, verb string) (unlock func(), err error) {
	if other, ok := l.held[key]; ok && other.holders > 0 {
		return nil, volume.Errorf(volume.Busy, "another call (%s) is working on %s; retry later", other.verb, key).Op(verb)
	}
	return l.hold(key, verb), nil
}

// Share locks a key that the caller already holds a second time, for a request that may outlive the caller. The key is free once both
// have unlocked it.
func (l *Locks) Share(key, verb string) (unlock func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold(key, verb)
}

// of returns the lock of a key. The caller holds l.mu, and adds a holder or a work.
func (l *Locks) of(key string) *lock {
	if l.held == nil {
		l.held = map[string]*lock{}
	}
	k := l.held[key]
	if k == nil {
		k = &lock{}
		l.held[key] = k
	}
	return k
}

// hold adds a holder. The caller holds l.mu.
func (l *Locks) hold(key, verb string) (unlock func()) {
	k := l.of(key)
	if k.holders == 0 {
		k.verb = verb
		k.taken++
	}
	k.holders++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		k.holders--
		l.forget(key, k)
	}
}

// forget removes a lock that nobody needs. The caller holds l.mu.
func (l *Locks) forget(key string, k *lock) {
	if k.holders == 0 && k.works == 0 {
		delete(l.held, key)
	}
}
