package volume

import (
	"context"
	"slices"
	"sync"
)

// Requests collects the OpenStack request IDs of the writes of one RPC. With an ID the operator of the cloud finds the request in the logs.
type Requests struct {
	mu  sync.Mutex
	ids []string
}

// mostRequests limits the number of IDs; an RPC that sends more requests only repeats itself.
const mostRequests = 20

type requestsKey struct{}

// WithRequests returns a context for an RPC, and the Requests that collect the IDs of its writes.
func WithRequests(ctx context.Context) (context.Context, *Requests) {
	r := &Requests{}
	return context.WithValue(ctx, requestsKey{}, r), r
}

// NoteRequest adds one ID to the Requests of the context, if it has some.
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

// IDs returns the IDs so far, in the order of the requests.
func (r *Requests) IDs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ids)
}
