package attach

import (
	"context"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"strings"
	"sync"
	"time"
)

// novaGoesOn is how long after an attach or detach was sent Nova may still carry it out although its answer was lost: Nova gives the
// server's host a minute for a device, and then claims the volume in Cinder.
const novaGoesOn = 90 * time.Second

// unconfirmed are the attaches, or the detaches, of this process whose answers were lost. A detach waits until no lost attach can be
// carried out after it; an attach is not sent while a lost detach may still take the volume away from the same server again. After a
// restart, or in another replica, nothing of this is known. The mutex is held for a look only.
type unconfirmed struct {
	mu    sync.Mutex
	pairs map[pair]lostRequest
}

// pair is a volume and a server; Cinder and Nova accept IDs in upper and lower case.
type pair struct{ volume, server string }

func pairOf(id volume.ID, server volume.ServerID) pair {
	return pair{strings.ToLower(string(id)), strings.ToLower(string(server))}
}

type lostRequest struct {
	until  time.Time
	resent bool // so what is seen next may be the other's doing
}

// lost notes a request that was sent at a time, and forgets those that are over.
func (u *unconfirmed) lost(id volume.ID, server volume.ServerID, sent time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pairs == nil {
		u.pairs = map[pair]lostRequest{}
	}
	for p, request := range u.pairs {
		if !time.Now().Before(request.until) {
			delete(u.pairs, p)
		}
	}
	_, again := u.pairs[pairOf(id, server)]
	u.pairs[pairOf(id, server)] = lostRequest{sent.Add(novaGoesOn), again}
}

// resends notes that the same request is sent once more.
func (u *unconfirmed) resends(id volume.ID, server volume.ServerID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if request, ok := u.pairs[pairOf(id, server)]; ok {
		request.resent = true
		u.pairs[pairOf(id, server)] = request
	}
}

// confirmed notes that what was asked for is done. That was the lost request, unless the same was sent once more: then the lost one may
// still be carried out.
func (u *unconfirmed) confirmed(id volume.ID, server volume.ServerID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.pairs[pairOf(id, server)].resent {
		delete(u.pairs, pairOf(id, server))
	}
}

// left is how long Nova may still carry out a lost request.
func (u *unconfirmed) left(id volume.ID, server volume.ServerID) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Until(u.pairs[pairOf(id, server)].until)
}

// servers are those of the lost requests about a volume.
func (u *unconfirmed) servers(id volume.ID) (all []volume.ServerID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for p, request := range u.pairs {
		if p.volume == pairOf(id, "").volume && time.Now().Before(request.until) {
			all = append(all, volume.ServerID(p.server))
		}
	}
	return all
}

// outlast waits until Nova can no longer carry out a lost attach, or until the volume must be looked at again.
func (s *Service) outlast(ctx context.Context, seen observation, left time.Duration) (volume.Volume, error) {
	v, err := s.readAfter(ctx, seen, min(left, recheckInterval))
	if err != nil {
		return v, volume.Errorf(volume.KindOf(err), "the answer to an attach to server %s was lost, and Nova may still carry it out for %s: %w", seen.server, left.Round(time.Second), err)
	}
	return v, nil
}

// heldOff returns a retryable error while a lost detach may still take the volume away from the server.
func (s *Service) heldOff(id volume.ID, server volume.ServerID) error {
	if left := s.lostDetaches.left(id, server); left > 0 {
		return volume.Errorf(volume.Busy, "volume %s: the answer to a detach from server %s was lost, and Nova may still carry it out until %s; the driver attaches the volume there after that",
			id, server, time.Now().Add(left).UTC().Format("15:04:05 MST")).Op("attach")
	}
	return nil
}
