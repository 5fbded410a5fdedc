package idempotent

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// createHoldOff is how long after a create request was sent Cinder may still carry it out although its answer was lost. A proxy in
// front of Cinder gives up long before Cinder's API does: the API waits for its database (MySQL's innodb_lock_wait_timeout is 50 s)
// and for its other services (oslo.messaging's rpc_response_timeout is 60 s).
const createHoldOff = 2 * time.Minute

// mostHoldOffs bounds the memory: about 300 bytes each. Entries live for two minutes, so only an outage during a rush fills it.
const mostHoldOffs = 10_000

// holdOffs remembers the creates whose answers were lost, so that the same create is not sent again while Cinder may still carry
// out the first. Keys say what is created: "volume pvc-1". The memory is this process's own: after a restart, or in another replica, the
// create is sent again if no object of the name shows yet, and a duplicate may result. The mutex is held for a look only.
type holdOffs struct {
	mu     sync.Mutex
	active map[string]holdOff
}

type holdOff struct {
	until time.Time
	cause string // why the outcome is unknown, for sentences
}

// begin starts the hold-off of a create whose answer was lost, and returns the error to answer with.
func (h *holdOffs) begin(what, name string, lost error) error {
	sent := volume.SentAt(lost)
	if sent.IsZero() {
		sent = time.Now() // the transport did not say: the later time is the safer one
	}
	entry := holdOff{until: sent.Add(createHoldOff), cause: causeOf(lost, name)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.active == nil {
		h.active = map[string]holdOff{}
	}
	for key, other := range h.active {
		if !time.Now().Before(other.until) {
			delete(h.active, key)
		}
	}
	if len(h.active) >= mostHoldOffs {
		delete(h.active, h.first())
	}
	h.active[what] = entry
	return entry.err(volume.KindOf(lost), what).Because(lost)
}

// first is the key of the hold-off that ends first. It needs h.mu.
func (h *holdOffs) first() (first string) {
	for key, entry := range h.active {
		if first == "" || entry.until.Before(h.active[first].until) {
			first = key
		}
	}
	return first
}

// check returns nil where a create may be sent, else a retryable error that says why not, and until when.
func (h *holdOffs) check(what string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	entry, held := h.active[what]
	if !held {
		return nil
	}
	if !time.Now().Before(entry.until) {
		delete(h.active, what)
		return nil
	}
	return entry.err(volume.Unavailable, what)
}

// end forgets a hold-off: what the create made has been found.
func (h *holdOffs) end(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.active, what)
}

func (e holdOff) err(kind volume.Kind, what string) *volume.Error {
	return volume.Errorf(kind, "create %s: outcome unknown (%s); the driver checks by name and retries the create after %s",
		what, e.cause, e.until.UTC().Format("15:04:05 MST")).AfterWrite()
}

// causeOf is the error's sentence without the object: the caller's sentence names it already.
func causeOf(err error, name string) string {
	text := err.Error()
	if _, after, named := strings.Cut(text, strconv.Quote(name)); named {
		if _, cause, ok := strings.Cut(after, ": "); ok {
			return cause
		}
	}
	return text
}
