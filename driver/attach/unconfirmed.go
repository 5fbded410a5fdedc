package attach

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// unconfirmedFor is how long after an attach or detach was sent it may still show although its answer was lost. Nova gives the compute host
// one minute for the device, and then updates the volume in Cinder. Until Lag later, a read may not show that yet.
const unconfirmedFor = 90*time.Second + volume.Lag

// unconfirmedRequests are the attaches, or the detaches, of this process whose answers were lost. A detach waits until no such attach can
// complete after it. An attach waits until no such detach can remove the volume from the same server again.
type unconfirmedRequests struct {
	mu      sync.Mutex // never held across a call
	pending map[target]unconfirmedRequest
}

// target is a volume and a server in lower case: Cinder and Nova accept IDs in any case.
type target struct{ volume, server string }

func targetOf(id volume.ID, server volume.ServerID) target {
	return target{strings.ToLower(string(id)), strings.ToLower(string(server))}
}

type unconfirmedRequest struct {
	until  time.Time
	resent bool // the same request was sent again, so either of the two may cause the next change
}

// add records a request whose answer was lost, and removes those that can no longer complete.
func (u *unconfirmedRequests) add(id volume.ID, server volume.ServerID, sent time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pending == nil {
		u.pending = map[target]unconfirmedRequest{}
	}
	maps.DeleteFunc(u.pending, func(_ target, r unconfirmedRequest) bool { return !time.Now().Before(r.until) })
	_, resent := u.pending[targetOf(id, server)]
	u.pending[targetOf(id, server)] = unconfirmedRequest{sent.Add(unconfirmedFor), resent}
}

// resend records that the same request is sent again.
func (u *unconfirmedRequests) resend(id volume.ID, server volume.ServerID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r, ok := u.pending[targetOf(id, server)]; ok {
		r.resent = true
		u.pending[targetOf(id, server)] = r
	}
}

// confirm records that Cinder and Nova show the requested state. That completes the request, unless it was sent again: then one of the two
// may still complete.
func (u *unconfirmedRequests) confirm(id volume.ID, server volume.ServerID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.pending[targetOf(id, server)].resent {
		delete(u.pending, targetOf(id, server))
	}
}

// remaining is how long Nova may still complete a request; zero or less where there is none.
func (u *unconfirmedRequests) remaining(id volume.ID, server volume.ServerID) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Until(u.pending[targetOf(id, server)].until)
}

// servers are those of the requests for a volume that may still complete.
func (u *unconfirmedRequests) servers(id volume.ID) (all []volume.ServerID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for t, r := range u.pending {
		if t.volume == targetOf(id, "").volume && time.Now().Before(r.until) {
			all = append(all, volume.ServerID(t.server))
		}
	}
	return all
}

// awaitUnconfirmedAttach waits until Nova can no longer complete an attach whose answer was lost, or until the next observation is due.
func (s *Service) awaitUnconfirmedAttach(ctx context.Context, seen observation, left time.Duration) (volume.Volume, error) {
	until := time.Now().Add(left)
	v, err := s.readAfter(ctx, seen, min(left, recheckInterval))
	if err != nil {
		return v, volume.Errorf(volume.KindOf(err), "outcome of an earlier attach to server %s unknown; Nova may still complete it until %s: %w", seen.server, clockTime(until), err)
	}
	return v, nil
}

// checkUnconfirmedDetach returns a retryable error while Nova may still complete a detach of the volume from the server.
func (s *Service) checkUnconfirmedDetach(id volume.ID, server volume.ServerID) error {
	if left := s.unconfirmedDetaches.remaining(id, server); left > 0 {
		return volume.Errorf(volume.Busy, "volume %s: outcome of an earlier detach from server %s unknown. Nova may still complete it until %s; the driver attaches the volume there after that",
			id, server, clockTime(time.Now().Add(left)))
	}
	return nil
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05 MST") }
