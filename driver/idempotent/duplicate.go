package idempotent

import (
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

// FormatSent is a time in the form of contract.MetadataSent.
func FormatSent(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (f Facts) creation() creation { return creation{f.SentAt, f.CreatedAt} }

// ParseSent reads the time at which the driver sent a create from the metadata of what it made; zero where there is none.
func ParseSent(metadata map[string]string) time.Time {
	sent, err := time.Parse(time.RFC3339, metadata[contract.MetadataSent])
	if err != nil {
		return time.Time{}
	}
	return sent
}
