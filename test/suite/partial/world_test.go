package partial

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const (
	gib      = 1 << 30
	zoneKey  = "topology.cinder.csi.openstack.org/zone"
	deadline = 3 * time.Minute // that of the sidecars
)

// world is a cloud behind a breaker, a driver, and the objects of the calls in flight.
type world struct {
	t       *testing.T
	sim     *openstacksim.Sim
	breaker *breaker
	csi.ControllerClient
	log      *inprocess.Log
	admin    *inprocess.Admin
	az1, az2 string   // servers
	volumes  []string // one a call
	objects  []string // snapshots or backups, one a call
}

// newWorld starts a cloud and a driver for n calls in flight. An answer of the cloud takes as long as on the real bed, and an operation a
// second.
func newWorld(t *testing.T, n int) *world {
	t.Helper()
	config := openstacksim.Default()
	sim := openstacksim.New(config)
	for _, resource := range []string{"volumes", "gigabytes", "snapshots", "backups", "backup_gigabytes"} {
		sim.SetQuota("demo", resource, -1)
	}
	sim.SetAllLatency(time.Second)
	sim.SetLatency(openstacksim.Answer, 50*time.Millisecond)
	w := &world{
		t: t, sim: sim, breaker: &breaker{next: memnet.Transport(sim.Handler())}, admin: inprocess.NewAdmin(t, sim),
		az1: config.Servers[0].ID, az2: config.Servers[1].ID, volumes: make([]string, n), objects: make([]string, n),
	}
	path := filepath.Join(t.TempDir(), "cloud.conf")
	testfile.Write(t, path, sim.CloudConf(inprocess.URL), 0o600)
	ctx, stop := context.WithCancel(t.Context())
	d, ended, err := inprocess.Launch(ctx, inprocess.Options{
		CloudConf: path, Transport: w.breaker, Rand: func() float64 { return 0.5 }, Args: []string{"--with-capacity"},
	})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = d.Close()
		if err := <-ended; err != nil {
			t.Errorf("the driver ended with %v", err)
		}
	})
	w.ControllerClient, w.log = csi.NewControllerClient(d), d.Log
	return w
}

// each makes one call for each object at the same moment, and returns the errors and the time of the last answer.
func (w *world) each(call func(ctx context.Context, i int) error) ([]error, time.Duration) {
	begun, errs := time.Now(), make([]error, len(w.volumes))
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(w.t.Context(), deadline)
			defer cancel()
			errs[i] = call(ctx, i)
		})
	}
	all.Wait()
	return errs, time.Since(begun)
}

// prepare makes one call for each object. Each must succeed.
func (w *world) prepare(what string, call func(ctx context.Context, i int) error) {
	w.t.Helper()
	errs, _ := w.each(call)
	for _, err := range errs {
		if err != nil {
			w.t.Fatalf("prepare %s: %v", what, err)
		}
	}
}

func volumeName(i int) string { return fmt.Sprintf("pvc-%02d", i) }

// made creates a volume for each call.
func (w *world) made() {
	w.t.Helper()
	w.prepare("volumes", func(ctx context.Context, i int) error {
		answer, err := w.CreateVolume(ctx, csitest.Claim("made-"+volumeName(i), csitest.Wanted("az1")))
		w.volumes[i] = answer.GetVolume().GetVolumeId()
		return err
	})
}

// labelled creates volumes with metadata.
func (w *world) labelled() {
	w.t.Helper()
	w.made()
	w.prepare("metadata", func(ctx context.Context, i int) error {
		return csitest.Outcome(w.ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{VolumeId: w.volumes[i], MutableParameters: map[string]string{"metadata.team": "a"}}))
	})
}

// madeMultiattach creates volumes that two servers may have at once.
func (w *world) madeMultiattach() {
	w.t.Helper()
	w.prepare("multiattach volumes", func(ctx context.Context, i int) error {
		answer, err := w.CreateVolume(ctx, csitest.Claim("made-"+volumeName(i), csitest.Wanted("az1"), csitest.Multiattach))
		w.volumes[i] = answer.GetVolume().GetVolumeId()
		return err
	})
}

func (w *world) attached() {
	w.t.Helper()
	w.made()
	w.prepare("attachments", func(ctx context.Context, i int) error { return w.publish(ctx, i, csitest.Mounted("")) })
}

func (w *world) snapshotsMade() {
	w.t.Helper()
	w.made()
	w.prepare("snapshots", func(ctx context.Context, i int) error {
		answer, err := w.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "made-" + volumeName(i), SourceVolumeId: w.volumes[i]})
		w.objects[i] = answer.GetSnapshot().GetSnapshotId()
		return err
	})
}

func (w *world) backupsMade() {
	w.t.Helper()
	w.made()
	for i, id := range w.volumes {
		w.objects[i] = w.admin.Backup(id)
	}
	time.Sleep(time.Minute)
}

func (w *world) publish(ctx context.Context, i int, as *csi.VolumeCapability) error {
	return csitest.Outcome(w.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: w.volumes[i], NodeId: w.az1, VolumeCapability: as}))
}

// doubled returns the names that more than one object of a kind has.
func (w *world) doubled() (names []string) {
	w.t.Helper()
	for _, objects := range []string{"volumes", "snapshots", "backups"} {
		var page map[string]json.RawMessage
		if err := json.Unmarshal(w.admin.Cinder(http.MethodGet, "/"+objects+"/detail", ""), &page); err != nil {
			w.t.Fatal(err)
		}
		var all []struct{ Name string }
		if err := json.Unmarshal(page[objects], &all); err != nil {
			w.t.Fatal(err)
		}
		count := map[string]int{}
		for _, object := range all {
			if count[object.Name]++; object.Name != "" && count[object.Name] == 2 {
				names = append(names, object.Name)
			}
		}
	}
	return names
}
