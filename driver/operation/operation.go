// Package operation lists what the driver works on: each operation on an object from its first RPC until one succeeds. An on-call engineer
// reads there which volume hangs, in which step and since when.
//
// The list is in memory only. It serves the page /debug/operations, the metric of pending operations, and the log of slow RPCs. It is
// empty after a restart, and fills again with the retries of the sidecars.
package operation

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// ForgetAfter is the time after the last RPC when an operation is no longer listed: its caller has given it up. The longest pause of the
// sidecars is five minutes.
const ForgetAfter = 10 * time.Minute

// maxError is how many bytes of an error the list keeps.
const maxError = 1000

// mostListed bounds the memory of the list: 10,000 entries with the longest errors take about 15 MB. While it is full, further operations are
// served, but not listed.
const mostListed = 10000

// Key names an operation: the method of its RPCs, and their object, such as "volume X server Y".
type Key struct{ Method, Object string }

// Operation is one entry of the list.
type Operation struct {
	Method string    `json:"method"`
	Object string    `json:"object"`
	Since  time.Time `json:"since"`          // of the first RPC
	RPCs   int       `json:"rpcs"`           // so far, the one in progress included
	Step   string    `json:"step,omitempty"` // what the RPC in progress waits for; empty between two RPCs
	// StepSince is when Step began.
	StepSince *time.Time `json:"stepSince,omitempty"`
	State     string     `json:"state,omitempty"`    // what the driver read last of the object
	Requests  []string   `json:"requests,omitempty"` // OpenStack request IDs of the writes of the latest RPC
	Running   bool       `json:"running"`            // an RPC is in progress
	LastCode  string     `json:"lastCode,omitempty"` // gRPC code of the last RPC that ended
	LastError string     `json:"lastError,omitempty"`
	LastCause string     `json:"lastCause,omitempty"` // of LastError, which may be cut before its end
}

// List lists the operations of one driver. The zero value is ready.
type List struct {
	mu  sync.Mutex // never held across a call
	all map[Key]*entry
}

type entry struct {
	since, last                    time.Time
	rpcs, running                  int
	progress                       *volume.Progress // of the latest RPC
	lastCode, lastError, lastCause string
}

// Begin notes the start of an RPC of an operation. The returned function notes its end; an empty message means that the RPC succeeded, and
// with it the operation.
func (l *List) Begin(key Key, p *volume.Progress) (end func(code, message, cause string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[Key]*entry{}
	}
	now := time.Now()
	e := l.all[key]
	if e != nil && e.forgotten(now) { // a new operation of the same name
		delete(l.all, key)
		e = nil
	}
	if e == nil && len(l.all) >= mostListed {
		l.forget(now) // not for every RPC: it looks at every entry
	}
	if e == nil && len(l.all) >= mostListed {
		return func(string, string, string) {}
	}
	if e == nil {
		e = &entry{since: now}
		l.all[key] = e
	}
	e.rpcs++
	e.running++
	e.progress = p
	return func(code, message, cause string) { l.end(key, e, code, message, cause) }
}

func (l *List) end(key Key, e *entry, code, message, cause string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.running--
	e.last = time.Now()
	if message == "" {
		if l.all[key] == e {
			delete(l.all, key)
		}
		return
	}
	e.lastCode, e.lastCause, e.lastError = code, cause, strings.ToValidUTF8(message[:min(len(message), maxError)], "") // the cut may be inside a character
}

// forget drops what nobody has tried for ForgetAfter. The caller holds l.mu.
func (l *List) forget(now time.Time) {
	maps.DeleteFunc(l.all, func(_ Key, e *entry) bool { return e.forgotten(now) })
}

func (e *entry) forgotten(now time.Time) bool { return e.running <= 0 && now.Sub(e.last) > ForgetAfter }

// Pending returns the operations that have not succeeded yet, the oldest first.
func (l *List) Pending() []Operation {
	l.mu.Lock()
	l.forget(time.Now())
	list := make([]Operation, 0, len(l.all))
	for key, e := range l.all {
		list = append(list, e.operation(key))
	}
	l.mu.Unlock()
	slices.SortFunc(list, func(a, b Operation) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Method, b.Method), cmp.Compare(a.Object, b.Object))
	})
	return list
}

func (e *entry) operation(key Key) Operation {
	o := Operation{
		Method: key.Method, Object: key.Object, Since: e.since, RPCs: e.rpcs, Running: e.running > 0,
		State: e.progress.State(), Requests: e.progress.Requests(), LastCode: e.lastCode, LastError: e.lastError, LastCause: e.lastCause,
	}
	if step, waits := e.progress.Step(); waits && o.Running {
		o.Step, o.StepSince = step.What, &step.Since
	}
	return o
}
