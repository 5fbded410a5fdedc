package observe

import (
	"maps"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Recent is a short-lived cache of volumes as the last call read them. An attach follows a create, and a delete follows a detach, within a
// second or two; so may an expansion follow an attach. The cache saves the read before such a request, because the cloud refuses the request if the volume has changed. The
// driver then reads the volume as usual. No call is answered from the cache.
//
// Fifty volumes at once on a real cloud take 10.6 to 10.8 calls a volume with the cache, and 13.3 to 13.7 without it. The figures are from
// make measure WHAT=openstack with Cinder 21 and Nova 26, 2026-11.
//
// A restart empties the cache. The zero value is ready.
type Recent struct {
	mu       sync.Mutex // never held across a call
	readings map[volume.ID]reading
}

type reading struct {
	volume volume.Volume
	until  time.Time
}

// recentAge is how long a call may use a reading. The request itself may be sent later, after its turn in the queue of the server.
const recentAge = 5 * time.Second

// Put stores v, and removes readings that are too old. No call that takes a reading asks for the metadata, of which a cloud may show much.
func (r *Recent) Put(v volume.Volume) {
	now := time.Now()
	v.Metadata = nil
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readings == nil {
		r.readings = map[volume.ID]reading{}
	}
	maps.DeleteFunc(r.readings, func(_ volume.ID, old reading) bool { return now.After(old.until) })
	r.readings[v.ID] = reading{v, now.Add(recentAge)}
}

// Take returns the reading of a volume, if there is one, and removes it: each is used once.
func (r *Recent) Take(id volume.ID) (volume.Volume, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.readings[id]
	delete(r.readings, id)
	return last.volume, ok && time.Now().Before(last.until)
}

// TakeAvailable is Take for a volume that was available and not attached.
func (r *Recent) TakeAvailable(id volume.ID) (volume.Volume, bool) {
	v, ok := r.Take(id)
	return v, ok && v.Status == volume.Available && len(v.Attachments) == 0
}
