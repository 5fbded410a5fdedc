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

// PastLag calls again while a 404 may come from before the create of an object. A 404 ends a request to delete, and Cinder reads its database for
// each call, also for a DELETE.
func (r *Resource[T]) PastLag(ctx context.Context, id string, call func() error) error {
	for {
		err := call()
		if !volume.Is(err, volume.NotFound) || !r.made.hidden(id) {
			return err
		}
		if volume.Sleep(ctx, lagPause) != nil {
			return volume.Interrupted(ctx, "%s %s: the driver has just created it, and Cinder does not show it yet", r.Noun, id).Op("delete")
		}
	}
}

// ReadForDelete is Read for a request to delete an object.
func (r *Resource[T]) ReadForDelete(ctx context.Context, id string) (object T, err error) {
	err = r.PastLag(ctx, id, func() error { object, err = r.Read(ctx, id); return err })
	return object, err
}
