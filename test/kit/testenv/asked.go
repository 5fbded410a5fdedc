package testenv

import (
	"slices"
	"sync"
)

// Asked are the requests that the server of a test has got, as texts. A request that its caller no longer waits for may still be in its handler,
// so reading and writing take turns.
type Asked struct {
	mu  sync.Mutex
	all []string
}

// Add notes a request, and returns how many there are now.
func (a *Asked) Add(request string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, request)
	return len(a.all)
}

// All are the requests so far.
func (a *Asked) All() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}
