package volume

import (
	"slices"
	"sync"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// orders are the orders of this process whose answers were lost, by the name that was wished for. What came of one was told to nobody.
// They only help to tidy up: without them, after a restart, a duplicate of the same second stays. The mutex is held for a look only.
type orders struct {
	mu       sync.Mutex
	attempts map[string][]string
	names    []string // oldest first
}

const ordersKept = 1000 // names

func (o *orders) lost(name, attempt string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.attempts == nil {
		o.attempts = map[string][]string{}
	}
	if _, known := o.attempts[name]; !known {
		if o.names = append(o.names, name); len(o.names) > ordersKept {
			delete(o.attempts, o.names[0])
			o.names = o.names[1:]
		}
	}
	o.attempts[name] = append(o.attempts[name], attempt)
}

// unheard reports whether v came of an order whose answer was lost.
func (o *orders) unheard(v Volume) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	attempt := v.Metadata[contract.MetadataAttempt]
	return attempt != "" && slices.Contains(o.attempts[v.Name], attempt)
}

// heard forgets the order of which v came.
func (o *orders) heard(v Volume) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.attempts[v.Name]) == 0 {
		return
	}
	o.attempts[v.Name] = slices.DeleteFunc(o.attempts[v.Name], func(a string) bool { return a == v.Metadata[contract.MetadataAttempt] })
}
