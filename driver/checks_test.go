package driver

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/internal/testenv"
)

func TestCreateVolumeRetriedWhileTheFirstVolumeIsInErrorIsNotOK(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim)
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Times: 1})
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := d.CreateVolume(impatient, claim("pvc-1"))
		wantCode(t, err, codes.DeadlineExceeded, "")
		time.Sleep(time.Minute) // virtual: the volume went to error, and nobody looked
		failed := listed(t, d)
		if len(failed) != 1 {
			t.Fatalf("want the failed volume, got %v", failed)
		}
		_, err = d.CreateVolume(asSidecar(t), claim("pvc-1"))
		wantCode(t, err, codes.FailedPrecondition, "the driver deleted it")
		if left := listed(t, d); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		if _, same := failed[made(t, d)]; same {
			t.Error("the failed volume is given out")
		}
	})
}

func TestAMissingSnapshotIsNotNotFoundWhileBackupsCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim)
		_, handle := servers() // a UUID that is neither a snapshot's nor a backup's
		remove := sim.SetFault(openstacksim.Fault{Path: "/volume/v3/*/backups/*", Status: http.StatusInternalServerError})
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1", fromSnapshot(handle)))
		wantCode(t, err, codes.Unavailable, handle)
		_, err = d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{SnapshotId: handle})
		wantCode(t, err, codes.Unavailable, handle)
		_, err = d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: handle})
		wantCode(t, err, codes.Unavailable, handle)
		remove()
		_, err = d.CreateVolume(asSidecar(t), claim("pvc-1", fromSnapshot(handle)))
		wantCode(t, err, codes.NotFound, handle)
	})
}

func TestDeleteVolumeWithSnapshotsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		id := made(t, d)
		shot := ready(t, d, snapshotRequest("snapshot-1", id)).GetSnapshotId()
		_, err := d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})
		wantCode(t, err, codes.FailedPrecondition, "snapshots")
		if _, there := listed(t, d)[id]; !there || !shots(t, d)[shot] {
			t.Errorf("want the volume and its snapshot, got %v and %v", listed(t, d), shots(t, d))
		}
		must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: shot}))
		must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id}))
	})
}

func TestA404RightAfterARenewedLoginIsNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim)
		id := made(t, d)
		must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id}))
		for name, call := range map[string]func() error{
			"delete": func() error {
				_, err := d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})
				return err
			},
			"unpublish": func() error { az1, _ := servers(); return unpublish(t, d, id, az1) },
		} {
			sim.ResetRequests()
			sim.SetFault(openstacksim.Fault{Path: "/volume/v3/*/volumes/" + id, Status: http.StatusUnauthorized, Times: 1})
			if err := call(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if n := sent(sim, http.MethodPost, "/auth/tokens"); n != 1 {
				t.Errorf("%s: %d logins", name, n)
			}
		}
	})
}

func TestAnExpiredContextStopsPollingWithinATenthOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetAllLatency(time.Hour)
		sim.SetLatency(openstacksim.Answer, 50*time.Millisecond)
		d := startWith(t, sim)
		const patience = 20 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		began := time.Now()
		_, err := d.CreateVolume(ctx, claim("pvc-1"))
		if late := time.Since(began) - patience; status.Code(err) != codes.DeadlineExceeded || late > 100*time.Millisecond {
			t.Errorf("got %v, %v late", err, late)
		}
		time.Sleep(100 * time.Millisecond)
		asked := sim.RequestCount()
		if time.Sleep(time.Minute); asked == 0 || sim.RequestCount() != asked {
			t.Errorf("%d requests, and %d after the call had ended", asked, sim.RequestCount()-asked)
		}
	})
}

func TestAnUnknownConfigurationKeyIsAnErrorForAStrictDriver(t *testing.T) {
	conf := append(openstacksim.New(openstacksim.Default()).CloudConf(cloudURL), "[BlockStorage]\nnode-volume-attach-limits=9\n"...)
	ended, stop := context.WithCancel(t.Context())
	stop()
	for strict, args := range map[bool][]string{true: {"--strict"}, false: nil} {
		log := &testenv.Log{}
		err := Run(ended, configure(t, conf, args...), Dependencies{Stderr: log, Listener: memnet.Listen(), Transport: memnet.Transport(http.NotFoundHandler()), Env: noEnv})
		said := log.String()
		if err != nil {
			said += err.Error()
		}
		if (err != nil) != strict || strings.Count(said, "did you mean node-volume-attach-limit?") != 1 {
			t.Errorf("strict %v: %v\n%s", strict, err, log)
		}
	}
}

func TestListSnapshotsOfAVolumeInPagesAndByID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim)
		id, other := made(t, d), made(t, d, func(r *csi.CreateVolumeRequest) { r.Name = "pvc-2" })
		ready(t, d, snapshotRequest("another", other))
		for _, name := range []string{"a", "b", "c"} {
			ready(t, d, snapshotRequest(name, id))
		}
		seen, request := map[string]bool{}, &csi.ListSnapshotsRequest{SourceVolumeId: id, MaxEntries: 2}
		var pages []int
		for more := true; more; more = request.GetStartingToken() != "" {
			page := must[*csi.ListSnapshotsResponse](t)(d.ListSnapshots(asSidecar(t), request))
			for _, e := range page.GetEntries() {
				seen[e.GetSnapshot().GetSnapshotId()] = e.GetSnapshot().GetSourceVolumeId() == id
			}
			pages, request.StartingToken = append(pages, len(page.GetEntries())), page.GetNextToken()
		}
		if len(seen) != 3 || slices.Max(pages) != 2 || slices.Contains(pages[:len(pages)-1], 0) {
			t.Errorf("pages of %v, snapshots %v", pages, seen)
		}
		for snapshot, its := range seen {
			if !its {
				t.Errorf("%s is of another volume", snapshot)
			}
		}

		sim.SetLatency(openstacksim.CreateSnapshot, time.Hour)
		shot := begunSnapshot(t, d, snapshotRequest("slow", id), codes.DeadlineExceeded, "")
		if there, done := readiness(t, d, shot); !there || done {
			t.Errorf("while it is made: listed %v, ready %v", there, done)
		}
		time.Sleep(time.Hour)
		if there, done := readiness(t, d, shot); !there || !done {
			t.Errorf("once it is made: listed %v, ready %v", there, done)
		}
	})
}

func TestListWithAnInvalidTokenIsAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		gone, _ := servers() // a UUID that nothing in Cinder has, as upstream's token of a volume that is gone
		for _, token := range []string{"x", gone, gone + ":moon", gone + ",soon", "../" + gone} {
			for name, list := range map[string]func() error{
				"ListVolumes": func() error {
					_, err := d.ListVolumes(asSidecar(t), &csi.ListVolumesRequest{StartingToken: token})
					return err
				},
				"ListSnapshots": func() error {
					_, err := d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{StartingToken: token})
					return err
				},
				"ControllerListVolumeHealth": func() error {
					_, err := d.ControllerListVolumeHealth(asSidecar(t), &csi.ControllerListVolumeHealthRequest{StartingToken: token})
					return err
				},
			} {
				if err := list(); status.Code(err) != codes.Aborted {
					t.Errorf("%s with %q: want Aborted, got %v", name, token, err)
				}
			}
		}
	})
}
