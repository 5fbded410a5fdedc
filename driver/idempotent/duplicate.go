package idempotent

import (
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// Of several objects of one name the driver uses the oldest. It deletes a younger one only if no call has ever returned that, in this
// replica or another. This holds for two objects:
//   - one that the current call has created and has not returned yet;
//   - one that is younger by the creation times of Cinder, if those are right. A call returns an object only if a list, read after the
//     object was ready, shows no older one. The older one existed at that time, and the driver has not deleted it since.
//     It deletes only objects that Cinder failed to create, and deletes no younger one before the oldest is ready.
//
// If the clock of a Cinder API host is wrong, its creation times are wrong. Then an object that appeared later may seem older. So the
// metadata of each object has the time at which the driver sent the create, and a creation time counts only if both agree.
// The driver keeps every other duplicate and reports it.

// creation is when the driver sent the create of an object, and when Cinder created it.
type creation struct{ sent, created time.Time }

// clockTolerance is how far the clock of Cinder may be behind the clock of the driver. Times of Cinder have whole seconds, and clocks under
// NTP differ by less than one.
const clockTolerance = 2 * time.Second

// credible reports whether both times agree. Cinder may process a create late, but within createHoldOff.
func (c creation) credible() bool {
	took := c.created.Sub(c.sent)
	return !c.sent.IsZero() && took >= -clockTolerance && took <= createHoldOff
}

func (c creation) surelyAfter(older creation) bool {
	return c.credible() && older.credible() && c.created.After(older.created)
}

// FormatSent formats a time for the metadata key contract.MetadataSent.
func FormatSent(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (f Candidate) creation() creation { return creation{f.SentAt, f.CreatedAt} }

// ParseSent reads the time at which the driver sent a create from the metadata of the object. It returns zero if there is none.
func ParseSent(metadata map[string]string) time.Time {
	sent, _ := time.Parse(time.RFC3339, metadata[contract.MetadataSent])
	return sent
}
