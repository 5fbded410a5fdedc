package volume

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Progress is what one RPC does at the moment: its steps, the state that it read last, and the OpenStack request IDs of its writes. With
// an ID the operator of the cloud finds the request in the logs. The domain packages note it in the context; package operation shows it.
type Progress struct {
	mu       sync.Mutex
	steps    []*ProgressStep
	cutShort *ProgressStep // the innermost step that the end of the context ended
	state    string
	requests []string
}

// ProgressStep is one thing that an RPC waits for, as the end of a sentence: "waiting for volume X to become available".
type ProgressStep struct {
	What  string
	Since time.Time
}

// mostRequests limits the number of IDs; an RPC that sends more requests only repeats itself.
const mostRequests = 20

type progressKey struct{}

// WithProgress returns a context for an RPC, and the Progress that the RPC notes in it.
func WithProgress(ctx context.Context) (context.Context, *Progress) {
	p := &Progress{}
	return context.WithValue(ctx, progressKey{}, p), p
}

// ProgressOf returns the Progress of a context; one that nobody reads, if the context is not of an RPC.
func ProgressOf(ctx context.Context) *Progress {
	if p, ok := ctx.Value(progressKey{}).(*Progress); ok {
		return p
	}
	return &Progress{}
}

// BeginStep notes what the RPC waits for from now on, until the caller calls end.
func BeginStep(ctx context.Context, what string) (end func()) {
	p := ProgressOf(ctx)
	s := &ProgressStep{What: what, Since: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps = append(p.steps, s)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.steps = slices.DeleteFunc(p.steps, func(other *ProgressStep) bool { return other == s })
		if ctx.Err() != nil && p.cutShort == nil {
			p.cutShort = s
		}
	}
}

// NoteState notes what the RPC read last about its object, such as "volume X is detaching".
func NoteState(ctx context.Context, state string) {
	p := ProgressOf(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = state
}

// NoteRequest adds one OpenStack request ID.
func NoteRequest(ctx context.Context, id string) {
	p := ProgressOf(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if id != "" && len(p.requests) < mostRequests {
		p.requests = append(p.requests, id)
	}
}

// Requests returns the IDs so far, in the order of the requests.
func (p *Progress) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Step returns what the RPC waits for; of several steps the one that began last, since it is part of the others. False where it waits for
// nothing.
func (p *Progress) Step() (ProgressStep, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.steps) == 0 {
		return ProgressStep{}, false
	}
	return *p.steps[len(p.steps)-1], true
}

// CutShort returns what the RPC waited for when its context ended. That is a step that the end of the context has ended, or else one that
// continues without the caller. False where the RPC waited for nothing.
func (p *Progress) CutShort() (ProgressStep, bool) {
	p.mu.Lock()
	cut := p.cutShort
	p.mu.Unlock()
	if cut != nil {
		return *cut, true
	}
	return p.Step()
}

// State returns what NoteState noted last.
func (p *Progress) State() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}
