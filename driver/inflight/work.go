package inflight

// Work is one call about an object. It locks the object from the last read before a write until the answer to the write. It never holds the lock
// while it waits for the cloud, so another call begins at once. Only one goroutine uses a Work.
type Work struct {
	locks     *Locks
	key, verb string
	unlock    func() // nil while it does not hold the lock
	taken     uint64 // of the lock, when this Work held it last; zero before that
}

// Work begins the work of a call for a key. It holds no lock yet. The caller calls End once.
func (l *Locks) Work(key, verb string) *Work {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(key).works++
	return &Work{locks: l, key: key, verb: verb}
}

// Lock locks the object, unless this Work holds it already. Changed reports that another call has held the lock since this one did, so that what
// this one has read may be out of date. Busy where another call holds the lock now.
func (w *Work) Lock() (changed bool, err error) {
	if w.unlock != nil {
		return false, nil
	}
	w.locks.mu.Lock()
	defer w.locks.mu.Unlock()
	k := w.locks.of(w.key)
	changed = w.taken != 0 && k.taken != w.taken
	if w.unlock, err = w.locks.take(w.key, w.verb); err == nil {
		w.taken = k.taken
	}
	return changed, err
}

// Unlock ends the hold; without one it does nothing.
func (w *Work) Unlock() {
	if w.unlock != nil {
		w.Hand()()
	}
}

// Hand gives the hold to a request that may outlive the call, and returns the function that ends it.
func (w *Work) Hand() (unlock func()) {
	unlock, w.unlock = w.unlock, nil
	return unlock
}

// End ends the work, and its hold.
func (w *Work) End() {
	w.Unlock()
	w.locks.mu.Lock()
	defer w.locks.mu.Unlock()
	k := w.locks.of(w.key)
	k.works--
	w.locks.forget(w.key, k)
}
