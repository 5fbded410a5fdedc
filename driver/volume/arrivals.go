package volume

import (
	"context"
	"strings"
	"sync"
	"time"
)

// novaGoesOn is how long after an attach was sent it may still show for the first time: Nova gives the server's host a minute for a
// device, and then claims the volume in Cinder.
const novaGoesOn = 90 * time.Second

// arrivals are the attaches of this process that a proxy or a broken connection ended, while Nova may be at them. They only make a detach
// that finds nothing wait for what may come of them. The mutex is held for a look only.
type arrivals struct {
	mu    sync.Mutex
	until map[journey]time.Time
}

// journey is a volume's to a server; Cinder and Nova take ids in any case.
type journey struct{ volume, server string }

func journeyOf(id ID, server ServerID) journey {
	return journey{strings.ToLower(string(id)), strings.ToLower(string(server))}
}

// lost notes an attach that was sent at a time, and forgets those that have ended.
func (a *arrivals) lost(id ID, server ServerID, sent time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until == nil {
		a.until = map[journey]time.Time{}
	}
	for j, until := range a.until {
		if !time.Now().Before(until) {
			delete(a.until, j)
		}
	}
	a.until[journeyOf(id, server)] = sent.Add(novaGoesOn)
}

// heard forgets the attach of a volume to a server: it has come to pass.
func (a *arrivals) heard(id ID, server ServerID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.until, journeyOf(id, server))
}

// left is how long Nova may still be at an attach of a volume to a server.
func (a *arrivals) left(id ID, server ServerID) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Until(a.until[journeyOf(id, server)])
}

// servers are those that a volume may still come to.
func (a *arrivals) servers(id ID) (all []ServerID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for j, until := range a.until {
		if j.volume == journeyOf(id, "").volume && time.Now().Before(until) {
			all = append(all, ServerID(j.server))
		}
	}
	return all
}

// outlast waits until Nova can no longer be at an attach whose answer was lost, or a look at the volume is due again.
func (s *Volumes) outlast(ctx context.Context, seen sighting, left time.Duration) (Volume, error) {
	v, err := s.later(ctx, seen, min(left, lookAgain))
	if err != nil {
		return v, Errorf(KindOf(err), "the answer to an attach to server %s was lost, and for another %s Nova may be at it: %w", seen.server, left.Round(time.Second), err)
	}
	return v, nil
}
