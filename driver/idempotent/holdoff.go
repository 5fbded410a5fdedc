package idempotent

import (
	"cmp"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// createHoldOff is how long after a create was sent Cinder may still process it although its answer was lost. A proxy in front of Cinder
// times out long before the Cinder API does. The API waits for its database (innodb_lock_wait_timeout of MySQL is 50 s) and for the
// other Cinder services (rpc_response_timeout of oslo.messaging is 60 s).
const createHoldOff = 2 * time.Minute

// answeredHoldOff replaces createHoldOff if Cinder answered, with success or with an error of its own. It does not process the create any more, and
// a list shows what it created, even if another database server of Cinder lags.
const answeredHoldOff = volume.Lag

// mostHoldOffs bounds the memory, at about 300 bytes each. Only an outage with more than 80 creates a second reaches it.
const mostHoldOffs = 10_000

// holdOffs are the creates with an unknown outcome. The driver does not send such a create again while Cinder may still process the first.
// After a restart, or in another replica, the driver sends it again if it finds no object of the name, and a duplicate may result.
type holdOffs struct {
	mu     sync.Mutex         // never held across a call
	active map[string]holdOff // by what is created: "volume pvc-1"
	most   int                // 0: mostHoldOffs
}

type holdOff struct {
	until time.Time
	cause string // why the outcome is unknown, for errors
	// accepted says that Cinder has answered with success. A list shows the object soon.
	accepted bool
}

// begin starts the hold-off of a create whose outcome is unknown. It returns the error for the caller, which wraps lost.
func (h *holdOffs) begin(what, name string, lost error) error {
	sent := volume.SentAt(lost)
	if sent.IsZero() {
		sent = time.Now() // the time of the request is unknown, and a later end is safer
	}
	entry := holdOff{until: sent.Add(createHoldOff), cause: causeOf(lost, name)}
	if volume.Answered(lost) {
		entry.until = time.Now().Add(answeredHoldOff)
	}
	return h.put(what, entry).err(volume.KindOf(lost), what).Because(lost)
}

// put keeps the hold-off that ends last, and returns it.
func (h *holdOffs) put(what string, entry holdOff) holdOff {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.active == nil {
		h.active = map[string]holdOff{}
	}
	maps.DeleteFunc(h.active, func(_ string, other holdOff) bool { return !time.Now().Before(other.until) })
	if len(h.active) >= cmp.Or(h.most, mostHoldOffs) {
		delete(h.active, h.first())
	}
	if before := h.active[what]; before.until.After(entry.until) {
		entry = before
	}
	h.active[what] = entry
	return entry
}

// accepted starts the hold-off of a create that Cinder has accepted.
func (h *holdOffs) accepted(what string) {
	h.put(what, holdOff{until: time.Now().Add(answeredHoldOff), cause: "Cinder has accepted it, and its list of the name does not show it yet", accepted: true})
}

// endAccepted ends a hold-off of accepted, and no other.
func (h *holdOffs) endAccepted(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.active[what].accepted {
		delete(h.active, what)
	}
}

// first is the key of the hold-off that ends first. The caller holds h.mu.
func (h *holdOffs) first() (first string) {
	for key, entry := range h.active {
		if first == "" || entry.until.Before(h.active[first].until) {
			first = key
		}
	}
	return first
}

// check returns nil if the driver may send a create. Otherwise it returns a retryable error that says why not, and until when.
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

// end ends a hold-off.
func (h *holdOffs) end(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.active, what)
}

func (e holdOff) err(kind volume.Kind, what string) *volume.Error {
	return volume.Errorf(kind, "create %s: outcome unknown (%s); the driver checks by name and retries the create after %s",
		what, e.cause, e.until.UTC().Format("15:04:05 MST")).Cause(cause.CreateOutcomeUnknown).AfterWrite()
}

// causeOf is the text of an error without its object, which the caller names.
func causeOf(err error, name string) string {
	text := err.Error()
	if _, after, named := strings.Cut(text, strconv.Quote(name)); named {
		if _, cause, ok := strings.Cut(after, ": "); ok {
			return cause
		}
	}
	return text
}
