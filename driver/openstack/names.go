package openstack

import (
	"context"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Names finds volumes by name for many at the same time. Who asks while others are being answered waits for the next round, and a
// round of many is one listing of everything. An answer still was read after the question.
type Names struct {
	cloud nameReader

	mu      sync.Mutex // held for a look only
	waiting []*question
	asking  bool
	rows    int // volumes in the project, as far as is known
}

// nameReader is what Names reads the cloud through.
type nameReader interface {
	VolumesNamed(ctx context.Context, name string) ([]volume.Volume, error)
	Select(ctx context.Context, s volume.Selection) (page []volume.Volume, more bool, err error)
}

// question is one that has not been answered.
type question struct {
	ctx    context.Context
	name   string
	answer chan named // holds one
}

type named struct {
	volumes []volume.Volume
	err     error
}

const (
	namesPage = 1000        // Cinder's default osapi_max_limit
	patience  = time.Second // for a round: what hangs delays the next by this, and not by its timeout
	singly    = 30.0        // milliseconds that Cinder takes for a search by name, and as much for any listing (measured, Cinder 21)
	perRow    = 0.45        // and for each volume in one
)

// NewNames makes what finds the volumes of c by name.
func NewNames(c nameReader) *Names {
	return &Names{cloud: c, rows: namesPage} // it may be that many, until a listing tells
}

// VolumesNamed reads the volumes of that name; errors as Cloud's.
func (n *Names) VolumesNamed(ctx context.Context, name string) ([]volume.Volume, error) {
	if name == "" {
		return n.cloud.VolumesNamed(ctx, name)
	}
	q := &question{ctx: ctx, name: name, answer: make(chan named, 1)}
	n.mu.Lock()
	n.waiting = append(n.waiting, q)
	first := !n.asking
	n.asking = true
	n.mu.Unlock()
	if first {
		go n.rounds()
	}
	select {
	case a := <-q.answer:
		return a.volumes, a.err
	case <-ctx.Done():
		return nil, interrupted(ctx, request{verb: "find volume by name", object: "volume " + name})
	}
}

// rounds answers until nobody waits.
func (n *Names) rounds() {
	for {
		n.mu.Lock()
		round := n.waiting
		n.waiting = nil
		together := len(round) > 1 && float64(len(round))*singly > singly+perRow*float64(n.rows)
		n.asking = len(round) > 0
		n.mu.Unlock()
		if len(round) == 0 {
			return
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if !together || !n.list(round) {
				n.search(round)
			}
		}()
		tired := time.NewTimer(patience)
		select {
		case <-done:
		case <-tired.C:
		}
		tired.Stop()
	}
}

// search answers each question by itself.
func (n *Names) search(round []*question) {
	var all sync.WaitGroup
	for _, q := range round {
		all.Go(func() {
			volumes, err := n.cloud.VolumesNamed(q.ctx, q.name)
			q.answer <- named{volumes, err}
		})
	}
	all.Wait()
}

// list answers a round with one listing, unless that has further pages: a list that changes while it is walked may pass one over.
func (n *Names) list(round []*question) bool {
	ctx, cancel := untilAllLeave(round)
	defer cancel()
	page, more, err := n.cloud.Select(ctx, volume.Selection{Page: volume.Page{Limit: namesPage}})
	rows := len(page)
	if more {
		rows = 1 << 30
	}
	if err == nil {
		n.mu.Lock()
		n.rows = rows
		n.mu.Unlock()
	}
	if err == nil && more {
		return false
	}
	found := map[string][]volume.Volume{}
	for _, v := range page {
		found[v.Name] = append(found[v.Name], v)
	}
	for _, q := range round {
		q.answer <- named{found[q.name], err}
	}
	return true
}

// untilAllLeave is a context that lasts as long as anybody waits for the round.
func untilAllLeave(round []*question) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(round[0].ctx))
	var mu sync.Mutex
	left := len(round)
	var stops []func() bool
	for _, q := range round {
		stops = append(stops, context.AfterFunc(q.ctx, func() {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				cancel()
			}
		}))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
