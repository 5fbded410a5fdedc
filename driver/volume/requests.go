package volume

import (
	"context"
	"slices"
	"sync"
)

// Requests are OpenStack's ids of the requests that were sent to change something on behalf of one RPC: with them the cloud's
// operator finds the RPC's traces in the cloud's logs.
type Requests struct {
	mu  sync.Mutex
	ids []string
}

// mostRequests is how many ids are kept; an RPC that sends more repeats itself.
const mostRequests = 20

type requestsKey struct{}

// WithRequests gives a context whose changes of the cloud are noted in what it returns.
func WithRequests(ctx context.Context) (context.Context, *Requests) {
	r := &Requests{}
	return context.WithValue(ctx, requestsKey{}, r), r
}

// NoteRequest notes one id, where the context has a place for it.
func NoteRequest(ctx context.Context, id string) {
	r, ok := ctx.Value(requestsKey{}).(*Requests)
	if !ok || id == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) < mostRequests {
		r.ids = append(r.ids, id)
	}
}

// IDs are those noted so far, first to last.
func (r *Requests) IDs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ids)
}
