package status

import (
	"slices"
	"sync"
	"time"
)

// usual is how long waits of each purpose lasted lately, so that nobody asks before it can have happened.
type usual struct {
	mu   sync.Mutex // held for a look only
	last map[string]*sample
}

type sample struct {
	took  []time.Duration
	noted time.Time // when the newest was
}

// Of the last `kept` waits of a purpose the shortest counts. The first question comes a tenth sooner, so that a cloud that has
// become faster is found out.
const (
	kept   = 16
	enough = 4
	sooner = 0.9
)

// lasted notes a wait that ended with what it waited for. Of waits at the same time the first to end counts, or those who end
// last, which are the longest, would be all that is kept.
func (u *usual) lasted(purpose string, begun time.Time) {
	if purpose == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[string]*sample{}
	}
	of := u.last[purpose]
	if of == nil {
		of = &sample{}
		u.last[purpose] = of
	}
	if begun.Before(of.noted) {
		return
	}
	of.noted = time.Now()
	of.took = append(of.took, of.noted.Sub(begun))
	of.took = of.took[max(0, len(of.took)-kept):]
}

// first is how long after its begin a wait of that purpose is first worth a question.
func (u *usual) first(purpose string) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.last[purpose]
	if of == nil || len(of.took) < enough {
		return eagerly
	}
	shortest := slices.Min(of.took)
	return min(lazily, max(eagerly, time.Duration(float64(shortest)*sooner)))
}
