//go:build openstack

package openstack

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// partialFault breaks one kind of request of the real cloud, while everything else works.
type partialFault struct {
	name string
	// meddle answers a request itself and reports true, or leaves it to the cloud.
	meddle func(w http.ResponseWriter, r *http.Request) bool
}

func listsVolumes(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/volumes/detail")
}

// partialFaults returns the faults of one run; each counts for itself.
func partialFaults() []partialFault {
	var created atomic.Bool
	return []partialFault{
		{"healthy", func(http.ResponseWriter, *http.Request) bool { return false }},
		{"504 after 3 s on listings of all volumes", func(w http.ResponseWriter, r *http.Request) bool {
			if !listsVolumes(r) || r.URL.Query().Has("name") {
				return false
			}
			select {
			case <-time.After(3 * time.Second):
			case <-r.Context().Done():
			}
			w.WriteHeader(http.StatusGatewayTimeout)
			return true
		}},
		{"the filters of listings refused", func(w http.ResponseWriter, r *http.Request) bool {
			for _, filter := range []string{"name", "updated_at", "status"} {
				if listsVolumes(r) && r.URL.Query().Has(filter) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusBadRequest)
					fmt.Fprintf(w, `{"badRequest":{"code":400,"message":"Invalid filters %s are found in query options."}}`, filter)
					return true
				}
			}
			return false
		}},
		{"one 503 on a create", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/volumes") || created.Swap(true) {
				return false
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}},
	}
}

// One kind of request fails for as long as volumes are created, attached, expanded in use, detached and deleted, all at once. Each volume
// lives through all of it. The test prints the times beside those of the healthy run, and does not check them: they depend on the machine.
func TestPartialFaultsDelayNoVolumeForLong(t *testing.T) {
	for _, fault := range partialFaults() {
		t.Run(fault.name, func(t *testing.T) {
			x := newTenant(t, bed(t), zonesOfBed...)
			var broken atomic.Int64
			f := x.newFront(t, func(pass http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if fault.meddle(w, r) {
						broken.Add(1)
						return
					}
					pass.ServeHTTP(w, r)
				})
			})
			d := x.startAnywhere(t, f.args...)
			places := map[string]chan struct{}{}
			for _, s := range x.servers {
				places[s.id] = make(chan struct{}, disks)
			}
			all, begun := make([]*lived, *volumes), time.Now()
			var running sync.WaitGroup
			for i := range all {
				at := x.servers[i%len(x.servers)]
				all[i] = &lived{id: "bed-" + rand.Text(), server: at, begun: map[string]time.Time{}, end: map[string]time.Time{}}
				running.Go(func() { all[i].run(t, d, places[at.id]) })
			}
			running.Wait()
			wall, calls := time.Since(begun), f.taken()
			t.Logf("%s: %d volumes in %.1f s, %.1f calls a volume, %d of them broken\n%s", fault.name, len(all), wall.Seconds(),
				float64(len(calls))/float64(len(all)), broken.Load(), table(all))
			if fault.name != "healthy" && broken.Load() == 0 && !strings.Contains(fault.name, "504") {
				t.Error("the driver sent no request that the fault breaks")
			}
			if left := x.holds(t); len(left) > 0 {
				t.Errorf("left in the project: %v", left)
			}
		})
	}
}
