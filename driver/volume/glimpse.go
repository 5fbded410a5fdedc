package volume

import (
	"sync"
	"time"
)

// glimpses are what the last call for a volume saw at its end, a moment ago: an attach follows a create and a delete follows a detach
// within a second or two. They save the look before a request that the cloud itself refuses where it no longer fits; after a refusal
// the cloud is looked at as ever, and nothing is answered from a glimpse. A look may be older when its request is sent, which waits
// for its turn at the server. The mutex is held for a look only.
type glimpses struct {
	mu   sync.Mutex
	seen map[ID]glimpse
}

type glimpse struct {
	volume Volume
	until  time.Time
}

const glimpseLasts = 5 * time.Second

// note keeps what was seen, and forgets what is too old.
func (g *glimpses) note(v Volume) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen == nil {
		g.seen = map[ID]glimpse{}
	}
	for id, old := range g.seen {
		if now.After(old.until) {
			delete(g.seen, id)
		}
	}
	g.seen[v.ID] = glimpse{v, now.Add(glimpseLasts)}
}

// take gives what was seen a moment ago, once.
func (g *glimpses) take(id ID) (Volume, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	last, ok := g.seen[id]
	delete(g.seen, id)
	return last.volume, ok && time.Now().Before(last.until)
}

// seenFree is the volume as it was a moment ago, if nobody had it then and nothing was going on with it.
func (s *Volumes) seenFree(id ID) (Volume, bool) {
	v, ok := s.glimpses.take(id)
	return v, ok && v.Status == Available && len(v.Attachments) == 0
}
