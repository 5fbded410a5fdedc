package inflight

import (
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestAWorkLearnsThatAnotherCallHeldTheLock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		between func(w *Work, l *Locks)
		changed bool
		busy    bool
	}{
		"nobody":               {between: func(*Work, *Locks) {}},
		"this call again":      {between: func(w *Work, _ *Locks) { _, _ = w.Lock(); w.Unlock() }},
		"another call":         {between: func(_ *Work, l *Locks) { unlock, _ := l.Take("volume 1", "detach"); unlock() }, changed: true},
		"another call, now":    {between: func(_ *Work, l *Locks) { _, _ = l.Take("volume 1", "detach") }, changed: true, busy: true},
		"a call for another":   {between: func(_ *Work, l *Locks) { _, _ = l.Take("volume 2", "detach") }},
		"another that waits":   {between: func(_ *Work, l *Locks) { l.Work("volume 1", "detach") }},
		"another that has end": {between: func(_ *Work, l *Locks) { l.Work("volume 1", "detach").End() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l Locks
			w := l.Work("volume 1", "attach")
			if changed, err := w.Lock(); changed || err != nil {
				t.Fatalf("the first lock: changed %t, %v", changed, err)
			}
			w.Unlock()
			test.between(w, &l)
			if changed, err := w.Lock(); changed != test.changed || volume.Is(err, volume.Busy) != test.busy {
				t.Errorf("changed %t, %v", changed, err)
			}
		})
	}
}

func TestTheLockOfAWorkIsHeldUntilItEndsOrItsRequest(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *Work, request func()){
		"the call first":    func(w *Work, request func()) { w.End(); request() },
		"the request first": func(w *Work, request func()) { request(); w.End() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l Locks
			w := l.Work("volume 1", "attach")
			if _, err := w.Lock(); err != nil {
				t.Fatal(err)
			}
			request := w.Hand()
			w.Unlock() // it holds nothing any more
			if _, err := l.Take("volume 1", "detach"); !volume.Is(err, volume.Busy) {
				t.Errorf("while the request is in flight: %v", err)
			}
			if end(w, request); len(l.held) != 0 {
				t.Errorf("still held: %v", l.held)
			}
		})
	}
}
