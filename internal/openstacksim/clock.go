package openstacksim

import "time"

// clock is the clock of one of Cinder's hosts: how far it is ahead of the right time.
type clock time.Duration

// now is the host's time as Cinder stores it, in whole seconds.
func (c clock) now() time.Time { return now().Add(time.Duration(c)) }

func (c clock) exact() time.Time { return time.Now().UTC().Add(time.Duration(c)) }

// SetClockSkew makes the clock of one of Cinder's two hosts run ahead, or behind if d is negative. Every second object that is made
// from then on belongs to that host, which stamps its times.
func (s *Sim) SetClockSkew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = d
}

// hostClock gives a new object its host. It needs s.mu.
func (s *Sim) hostClock() clock {
	s.objects++
	if s.objects%2 == 0 {
		return clock(s.ahead)
	}
	return 0
}
