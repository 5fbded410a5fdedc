package volume

import "sync"

// locks lets one call at a time work on a name. They only save calls to the cloud: nothing is wrong without them. Nobody waits
// for a lock, and the mutex is held for a look at the map only.
type locks struct {
	mu   sync.Mutex
	held map[string]string // name -> what its holder does
}

// take locks name, and gives what unlocks it. Busy when another call holds it.
func (l *locks) take(name, verb string) (func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, busy := l.held[name]; busy {
		return nil, Errorf(Busy, "another call is working on %s (%s); try again", name, other).Op(verb)
	}
	if l.held == nil {
		l.held = map[string]string{}
	}
	l.held[name] = verb
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, name)
	}, nil
}
