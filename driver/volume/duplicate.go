package volume

import (
	"context"
	"log/slog"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// Of several objects of one name the oldest counts. A younger one can be removed only if no call has ever returned it, here or in
// another replica. That is so
//   - of one that the call at hand has created itself and not returned yet;
//   - of one that is younger by Cinder's creation times, if those are right: a call returns an object only if its list, read after
//     the object was ready, showed no older one, and the older one did exist then. It was not removed since: that happens only to an
//     object that Cinder could not make, and no younger one is removed before the oldest is ready.
//
// Creation times are wrong where the clock of a Cinder API host is: then an object may look older that appeared later, after the
// other one was returned. So each create carries the time at which the driver sent it, and creation times count only where both agree.
// Everything else stays, and is reported.

// creation is when an object was created, by the driver that asked for it and by Cinder.
type creation struct{ sent, created time.Time }

// clockTolerance is how far Cinder's clock may be behind the driver's: Cinder's times have whole seconds, and clocks that NTP keeps
// differ by less than one.
const clockTolerance = 2 * time.Second

// credible reports whether Cinder's time fits the driver's. A create may wait for long before it is sent, and be carried out late.
func (c creation) credible() bool {
	took := c.created.Sub(c.sent)
	return !c.sent.IsZero() && took >= -clockTolerance && took <= createHoldOff
}

func (c creation) surelyAfter(older creation) bool {
	return c.credible() && older.credible() && c.created.After(older.created)
}

// sentMark is a time in the form of contract.MetadataSent.
func sentMark(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// creation reads when v was created. Cinder replaces the metadata of a restored volume, so its description has the time too.
func (v Volume) creation() creation {
	if _, sent, restored := contract.ParseDescriptionOfRestored(v.Description); restored {
		return creation{sent, v.CreatedAt}
	}
	sent, _ := time.Parse(time.RFC3339, v.Metadata[contract.MetadataSent])
	return creation{sent, v.CreatedAt}
}

func (p Snapshot) creation() creation {
	sent, _ := time.Parse(time.RFC3339, p.Metadata[contract.MetadataSent])
	return creation{sent, p.CreatedAt}
}

// The reasons for which a duplicate stays.
const (
	staysForeign  = "it is attached, or this driver did not create it for this request"
	staysReturned = "a call may have returned it: the creation times do not show that it came later"
)

// duplicateReporter reports objects that have the name of another and that the driver does not delete.
type duplicateReporter struct {
	log   *slog.Logger
	count func(noun string) // nil counts nothing
}

// report logs and counts one duplicate: a noun ("volume"), its ID and name, the ID of the object that counts, and why the duplicate stays.
func (r duplicateReporter) report(ctx context.Context, noun, id, name, counts, reason string) {
	r.log.WarnContext(ctx, "a duplicate "+noun+" stays; if nothing uses it, delete it by hand", noun, id, "name", name, "in use instead", counts, "reason", reason)
	if r.count != nil {
		r.count(noun)
	}
}
