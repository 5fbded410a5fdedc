package idempotent

import (
	"context"
	"maps"
	"sync"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// made is when Cinder accepted the creates of this process, by the IDs of their objects, until every read shows them.
type made struct {
	mu sync.Mutex // never held across a call
	at map[string]volume.Written
}

func (m *made) put(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == nil {
		m.at = map[string]volume.Written{}
	}
	maps.DeleteFunc(m.at, func(_ string, w volume.Written) bool { return w.Shows() })
	m.at[id] = volume.JustWritten()
}

// hidden reports whether a read may not show an object yet.
func (m *made) hidden(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.at[id]
	return ok && !w.Shows()
}

// ReadForDelete is Read for a request to delete an object. A 404 ends such a request, so it must not come from before the create.
func (r *Resource[T]) ReadForDelete(ctx context.Context, id string) (T, error) {
	for {
		object, err := r.Read(ctx, id)
		if !volume.Is(err, volume.NotFound) || !r.made.hidden(id) {
			return object, err
		}
		if volume.Sleep(ctx, lagPause) != nil {
			return object, volume.Interrupted(ctx, "%s %s: the driver has just created it, and Cinder does not show it yet", r.Noun, id).Op("delete")
		}
	}
}
