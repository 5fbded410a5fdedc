package driver_test

import (
	"cmp"
	"context"
	"net/http"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// laggingOperation is one RPC whose effect the reads show late.
type laggingOperation struct {
	name    string
	prepare func(t *testing.T, d *instance, id string) string // returns what the call names beside the volume
	call    func(ctx context.Context, t *testing.T, d *instance, id, other string) error
}

var laggingOperations = []laggingOperation{
	{"create", nil, func(ctx context.Context, _ *testing.T, d *instance, _, _ string) error {
		return outcome(d.CreateVolume(ctx, claim("pvc-2")))
	}},
	{"clone", nil, func(ctx context.Context, _ *testing.T, d *instance, id, _ string) error {
		return outcome(d.CreateVolume(ctx, claim("pvc-2", fromVolume(id))))
	}},
	{"attach", nil, func(_ context.Context, t *testing.T, d *instance, id, _ string) error {
		az1, _ := servers()
		return publish(t, d, id, az1)
	}},
	{"detach", attachedFirst, func(_ context.Context, t *testing.T, d *instance, id, _ string) error {
		az1, _ := servers()
		return unpublish(t, d, id, az1)
	}},
	{"move", attachedFirst, func(_ context.Context, t *testing.T, d *instance, id, _ string) error {
		az1, az2 := servers()
		if err := unpublish(t, d, id, az1); err != nil {
			return err
		}
		return publish(t, d, id, az2)
	}},
	{"expand", nil, func(ctx context.Context, _ *testing.T, d *instance, id, _ string) error {
		return outcome(d.ControllerExpandVolume(ctx, larger(id, 2<<30, 0)))
	}},
	{"expand in use", attachedFirst, func(ctx context.Context, _ *testing.T, d *instance, id, _ string) error {
		return outcome(d.ControllerExpandVolume(ctx, larger(id, 2<<30, 0)))
	}},
	{"retype", nil, func(ctx context.Context, _ *testing.T, d *instance, id, _ string) error {
		return outcome(d.ControllerModifyVolume(ctx, changed(id, map[string]string{"type": "__DEFAULT__"})))
	}},
	{"retype with a move", nil, func(ctx context.Context, _ *testing.T, d *instance, id, _ string) error {
		return outcome(d.ControllerModifyVolume(ctx, changed(id, map[string]string{"type": "fast", "policy": "on-demand"})))
	}},
	{"delete", nil, func(ctx context.Context, _ *testing.T, d *instance, id, _ string) error {
		return outcome(d.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id}))
	}},
	{"snapshot", nil, func(ctx context.Context, _ *testing.T, d *instance, id, _ string) error {
		return outcome(d.CreateSnapshot(ctx, snapshotRequest("snapshot-1", id)))
	}},
	{"delete a snapshot", func(t *testing.T, d *instance, id string) string {
		return ready(t, d, snapshotRequest("snapshot-1", id)).GetSnapshotId()
	}, func(ctx context.Context, _ *testing.T, d *instance, _, snapshot string) error {
		return outcome(d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: snapshot}))
	}},
	{"backup", nil, func(ctx context.Context, _ *testing.T, d *instance, id, _ string) error {
		return outcome(d.CreateSnapshot(ctx, archive("backup-1", id)))
	}},
	{"delete a backup", backedUpFirst, func(ctx context.Context, _ *testing.T, d *instance, _, backup string) error {
		return outcome(d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: backup}))
	}},
	{"restore a backup", backedUpFirst, func(ctx context.Context, _ *testing.T, d *instance, _, backup string) error {
		return outcome(d.CreateVolume(ctx, claim("pvc-2", fromSnapshot(backup))))
	}},
}

func attachedFirst(t *testing.T, d *instance, id string) string {
	az1, _ := servers()
	testenv.Must(t, publish(t, d, id, az1))
	return ""
}

func backedUpFirst(t *testing.T, d *instance, id string) string {
	return newBackup(t, d, "backup-1", id)
}

// repeated calls as the sidecars do: again after an error, first after one second, then after twice the time. It returns how long that took.
func repeated(call func() error) (took time.Duration, calls int, last error) {
	began := time.Now()
	for pause := time.Second; ; pause = min(2*pause, 5*time.Minute) {
		calls++
		if last = call(); last == nil || time.Since(began) > 2*time.Hour {
			return time.Since(began), calls, last
		}
		time.Sleep(pause)
	}
}

// A lag costs time at most: there is no final code, nothing counts as failed, and there is no second object.
func TestALagOfTheDatabaseIsNoOutcome(t *testing.T) {
	for _, op := range laggingOperations {
		for _, lag := range []time.Duration{0, 400 * time.Millisecond, 2 * time.Second, 2800 * time.Millisecond} {
			story(t, op.name+" with a lag of "+lag.String(), func(t *testing.T) {
				sim := simulated()
				sim.SetAllLatency(3 * time.Second)
				sim.SetLatency(openstacksim.Answer, 20*time.Millisecond)
				d := startWith(t, sim)
				id, other := made(t, d), ""
				if op.prepare != nil {
					other = op.prepare(t, d, id)
				}
				time.Sleep(time.Minute)
				sim.SetLag(lag)
				sim.ResetRequests()
				err := op.call(asSidecar(t), t, d, id, other)
				if err != nil && !(op.name == "backup" && slices.Contains(retryable, status.Code(err))) { // a backup takes several calls without a lag too
					t.Errorf("%s: %s", status.Code(err), status.Convert(err).Message())
				}
				time.Sleep(time.Second)
				if _, calls, err := repeated(func() error { return op.call(asSidecar(t), t, d, id, other) }); err != nil {
					t.Errorf("after %d more calls: %v", calls, err)
				}
				created := map[string]int{}
				for _, r := range sim.Requests() {
					if noun := path.Base(r.Path); r.Method == http.MethodPost && slices.Contains([]string{"volumes", "snapshots", "backups"}, noun) {
						if created[noun]++; created[noun] > 1 {
							t.Errorf("%d requests for new %s", created[noun], noun)
						}
					}
				}
			})
		}
	}
}

// The first zone is full. Only a message of Cinder says so, and it may show later than the status.
func TestALateOrHiddenMessageDoesNotMakeAFullZoneFinal(t *testing.T) {
	for name, spoil := range map[string]func(sim *openstacksim.Sim){
		"at once":         func(*openstacksim.Sim) {},
		"in a fast cloud": func(sim *openstacksim.Sim) { sim.SetAllLatency(20 * time.Millisecond) },
		"late":            func(sim *openstacksim.Sim) { sim.SetMessageLag(400 * time.Millisecond) },
		"later":           func(sim *openstacksim.Sim) { sim.SetMessageLag(2500 * time.Millisecond) },
		"with a replica":  func(sim *openstacksim.Sim) { sim.SetLag(2500 * time.Millisecond) },
		"hidden": func(sim *openstacksim.Sim) {
			sim.SetFault(openstacksim.Fault{Path: "/volume/v3/*/messages", Status: http.StatusForbidden})
		},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			sim.SetLatency(openstacksim.Answer, 20*time.Millisecond)
			d := startWith(t, sim)
			sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Full: true, Times: 1})
			spoil(sim)
			if v, err := d.CreateVolume(asSidecar(t), claim("pvc-1", wanted("az1", "az2"))); err != nil {
				t.Error(err)
			} else if zone := v.GetVolume().GetAccessibleTopology()[0].GetSegments()[zoneKey]; zone != "az2" {
				t.Errorf("in zone %s", zone)
			}
		})
	}
}

// The first call ends before any read shows its object. The next call must not create another.
func TestACallThatEndsBeforeItsObjectShowsMakesNoSecondOne(t *testing.T) {
	for _, op := range laggingOperations {
		if !slices.Contains([]string{"create", "clone", "snapshot", "restore a backup"}, op.name) {
			continue
		}
		story(t, op.name, func(t *testing.T) {
			sim := simulated()
			sim.SetLatency(openstacksim.Answer, 20*time.Millisecond)
			d := startWith(t, sim)
			id, other := made(t, d), ""
			if op.prepare != nil {
				other = op.prepare(t, d, id)
			}
			time.Sleep(time.Minute)
			sim.SetLag(2500 * time.Millisecond)
			sim.ResetRequests()
			ctx, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer leave()
			if err := op.call(ctx, t, d, id, other); !slices.Contains(retryable, status.Code(err)) {
				t.Error(err)
			}
			if _, _, err := repeated(func() error { return op.call(asSidecar(t), t, d, id, other) }); err != nil {
				t.Error(err)
			}
			for _, noun := range []string{"volumes", "snapshots"} {
				n := 0
				for _, r := range sim.Requests() {
					if r.Method == http.MethodPost && path.Base(r.Path) == noun {
						n++
					}
				}
				if n > 1 {
					t.Errorf("%d requests for new %s", n, noun)
				}
			}
		})
	}
}

// missing is the 404 that a database server gives which lags.
func missing(method string, skip, times int) openstacksim.Fault {
	return openstacksim.Fault{Method: method, Status: http.StatusNotFound, Body: `{"itemNotFound": {"code": 404, "message": "It could not be found."}}`, Skip: skip, Times: times}
}

// laggingDeletes are the places of a delete where a 404 can come from a database server that lags.
var laggingDeletes = map[string]struct {
	only   string // the kind of objects that has the place; empty means all
	busy   bool   // the delete waits first
	faults []openstacksim.Fault
}{
	"each request":         {faults: []openstacksim.Fault{missing("", 0, 2)}},
	"the read":             {faults: []openstacksim.Fault{missing("GET", 0, 2)}},
	"the DELETE":           {faults: []openstacksim.Fault{missing("DELETE", 0, 2)}},
	"the wait":             {busy: true, faults: []openstacksim.Fault{missing("GET", 1, 1)}},
	"the read after a 400": {faults: []openstacksim.Fault{{Method: "DELETE", Status: http.StatusBadRequest, Times: 2}, missing("GET", 1, 1)}},
	"the DELETE of what may not be read": {only: "backups", faults: []openstacksim.Fault{
		missing("DELETE", 0, 1), {Method: "GET", Status: http.StatusForbidden}, {Method: "GET", Path: "/volume/v3/*/backups/detail", Status: http.StatusForbidden},
	}},
}

// The server that answered the reads of the create is not always the one that answers the delete, which may lag. Its 404 does not end the delete.
func TestWhatTheDriverHasJustCreatedIsNotGone(t *testing.T) {
	removeSnapshot := func(t *testing.T, d *instance, id string) error {
		return outcome(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: id}))
	}
	for noun, test := range map[string]struct {
		create func(t *testing.T, d *instance, source string) string
		remove func(t *testing.T, d *instance, id string) error
		busy   string // the status in which a delete waits
	}{
		"volumes": {func(t *testing.T, d *instance, _ string) string {
			return must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-2"))).GetVolume().GetVolumeId()
		}, func(t *testing.T, d *instance, id string) error {
			return outcome(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id}))
		}, "detaching"},
		"snapshots": {func(t *testing.T, d *instance, source string) string {
			return ready(t, d, snapshotRequest("snapshot-1", source)).GetSnapshotId()
		}, removeSnapshot, "backing-up"},
		"backups": {func(t *testing.T, d *instance, source string) string { return newBackup(t, d, "backup-1", source) }, removeSnapshot, "restoring"},
	} {
		for place, lag := range laggingDeletes {
			if lag.only != "" && lag.only != noun {
				continue
			}
			story(t, noun+" at "+place, func(t *testing.T) {
				sim := simulated()
				sim.SetAllLatency(10 * time.Millisecond)
				d := startWith(t, sim)
				id := test.create(t, d, made(t, d))
				visible := func() bool {
					_, volume := sim.VolumeState(id)
					_, snapshot := sim.SnapshotState(id)
					return volume || snapshot
				}
				if !visible() {
					t.Fatal("nothing was created")
				}
				if lag.busy {
					sim.ResetStatus(id, test.busy)
					time.AfterFunc(2*time.Second, func() { sim.ResetStatus(id, "available") })
				}
				for _, f := range lag.faults {
					f.Path = cmp.Or(f.Path, "/volume/v3/*/"+noun+"/"+id)
					sim.SetFault(f)
				}
				if _, calls, err := repeated(func() error { return test.remove(t, d, id) }); err != nil || visible() {
					t.Errorf("after %d calls: %v, and it is there: %t", calls, err, visible())
				}
			})
		}
	}
}
