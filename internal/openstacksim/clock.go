package openstacksim

import "time"

// clock is the clock of a Cinder host: how far it is ahead of the right time.
type clock time.Duration

// now is the time of the host as Cinder stores it, in whole seconds.
func (c clock) now() time.Time { return now().Add(time.Duration(c)) }

func (c clock) exact() time.Time { return time.Now().UTC().Add(time.Duration(c)) }

// SetClockSkew sets the clock of one of two Cinder hosts ahead, or behind if d is negative. From then on, every second new object
// belongs to that host and gets its times from it.
func (s *Sim) SetClockSkew(d time.Duration) { assign(s, &s.ahead, d) }

// hostClock returns the clock of the host of a new object. The caller holds s.mu.
func (s *Sim) hostClock() clock {
	s.objects++
	if s.objects%2 == 0 {
		return clock(s.ahead)
	}
	return 0
}
