package driver_test

import (
	"testing"
	"time"
)

// The leader election of a sidecar allows two replicas to act at once for a moment. Both return the same object, and there is no other.
func TestTwoReplicasThatActAtOnceCreateOneObject(t *testing.T) {
	volumes := func(t *testing.T, d *instance) int { return len(listed(t, d)) }
	snapshots := func(t *testing.T, d *instance) int { return len(shots(t, d)) }
	for name, test := range map[string]struct {
		create func(t *testing.T, d *instance, source, backup string) (id string, err error)
		count  func(t *testing.T, d *instance) int
	}{
		"volume": {func(t *testing.T, d *instance, _, _ string) (string, error) {
			v, err := d.CreateVolume(asSidecar(t), claim("pvc-2"))
			return v.GetVolume().GetVolumeId(), err
		}, volumes},
		"volume from a backup": {func(t *testing.T, d *instance, _, backup string) (string, error) {
			v, err := d.CreateVolume(asSidecar(t), claim("pvc-2", fromSnapshot(backup)))
			return v.GetVolume().GetVolumeId(), err
		}, volumes},
		"snapshot": {func(t *testing.T, d *instance, source, _ string) (string, error) {
			s, err := d.CreateSnapshot(asSidecar(t), snapshotRequest("snapshot-1", source))
			return s.GetSnapshot().GetSnapshotId(), err
		}, snapshots},
		"backup": {func(t *testing.T, d *instance, source, _ string) (string, error) {
			s, err := d.CreateSnapshot(asSidecar(t), archive("backup-2", source))
			return s.GetSnapshot().GetSnapshotId(), err
		}, snapshots},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			one, other := startWith(t, sim), startWith(t, sim)
			source := made(t, one)
			backup, ids := newBackup(t, one, "backup-1", source), make(chan string, 2)
			made(t, other) // which logs in, so that both requests arrive together
			before := test.count(t, one)
			for _, d := range []*instance{one, other} {
				go func() {
					for {
						if id, err := test.create(t, d, source, backup); err == nil {
							ids <- id
							return
						}
						time.Sleep(time.Second)
					}
				}()
			}
			first, second := <-ids, <-ids
			time.Sleep(time.Minute) // virtual: the deletion of the duplicate ends
			if n := test.count(t, one) - before; first != second || n != 1 {
				t.Errorf("got %s and %s; there are %d", first, second, n)
			}
		})
	}
}
