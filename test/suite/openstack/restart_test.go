//go:build openstack && restart

package openstack

import (
	"crypto/rand"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/process"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// The test stops and restarts the services of the cloud while it creates, attaches, expands, detaches and deletes volumes. This disturbs other
// users of the bed. Run it with `make test-openstack CASE=restarts`.
func TestRestartsOfServicesUnderWayLoseNothing(t *testing.T) {
	x := newTenant(t, bed(t), zonesOfBed[0])
	d := x.startAnywhere(t)
	for _, service := range []string{"cinder-api", "nova-api", "cinder-volume", "nova-compute-az1"} {
		t.Run(service, func(t *testing.T) {
			all := make([]*lived, 4)
			var running sync.WaitGroup
			for i := range all {
				all[i] = &lived{id: "bed-" + rand.Text(), server: x.servers[0], begun: map[string]time.Time{}, end: map[string]time.Time{}, patient: true}
				running.Go(func() { all[i].run(t, d, make(chan struct{}, 1)) })
			}
			time.Sleep(2 * time.Second)
			x.restart(t, service)
			running.Wait()
			t.Log(table(all))
			if held := x.holds(t); len(held) > 0 {
				t.Errorf("left in the project: %v", held)
			}
		})
	}
}

// restart stops a service of the bed, and then starts all services that do not run.
func (x *tenant) restart(t *testing.T, name string) {
	t.Helper()
	testenv.Must(t, process.Terminate(filepath.Join(x.bed, "run", name+".pid"), time.Minute))
	if _, messages, code := run(t, []string{"OPENSTACK_BED=" + x.bed}, "./up.sh"); code != 0 {
		t.Fatalf("up.sh: %s", messages)
	}
}
