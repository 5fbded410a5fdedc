package driver_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// requestsThatName are the requests by which one can reach a volume, a snapshot or a backup whose ID one knows.
func requestsThatName(t *testing.T, d *instance, id, snapshot, backup string) map[string]func() error {
	t.Helper()
	az1, _ := servers()
	from := func(id string) func() error {
		return func() error {
			_, err := d.CreateVolume(asSidecar(t), claim("pvc-restored-"+id, fromSnapshot(id)))
			return err
		}
	}
	remove := func(id string) func() error {
		return func() error {
			_, err := d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: id})
			return err
		}
	}
	return map[string]func() error{
		"attach": func() error { return publish(t, d, id, az1) },
		"snapshot": func() error {
			_, err := d.CreateSnapshot(asSidecar(t), snapshotRequest("snapshot-of-it", id))
			return err
		},
		"backup": func() error {
			_, err := d.CreateSnapshot(asSidecar(t), archive("backup-of-it", id))
			return err
		},
		"expand": func() error {
			_, err := d.ControllerExpandVolume(asSidecar(t), larger(id, 2<<30, 0))
			return err
		},
		"modify": func() error {
			_, err := d.ControllerModifyVolume(asSidecar(t), changed(id, map[string]string{"metadata.team": "evil"}))
			return err
		},
		"clone": func() error {
			_, err := d.CreateVolume(asSidecar(t), claim("pvc-clone", func(r *csi.CreateVolumeRequest) {
				r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id}}}
			}))
			return err
		},
		"restore the snapshot": from(snapshot), "restore the backup": from(backup),
		"delete the snapshot": remove(snapshot), "delete the backup": remove(backup),
		"delete": func() error {
			_, err := d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})
			return err
		},
	}
}

// The administrator of a hosted cluster writes PersistentVolumes there, and the driver acts with the credentials of the operator.
func TestAProtectingDriverLeavesTheObjectsOfAnotherClusterAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		one := startWith(t, sim, "--cluster=one")
		id := made(t, one)
		snapshot := ready(t, one, snapshotRequest("snapshot-1", id)).GetSnapshotId()
		backup := newBackup(t, one, "backup-1", id)
		two := startWith(t, sim, "--cluster=two", "--protect-other-clusters")
		sim.ResetRequests()
		for name, call := range requestsThatName(t, two, id, snapshot, backup) {
			t.Log(name)
			wantCode(t, call(), codes.PermissionDenied, `cluster "one", and this driver serves cluster "two"`)
		}
		for _, r := range sim.Requests() {
			if r.Method != http.MethodGet && !strings.Contains(r.Path, "/identity/") {
				t.Errorf("the driver sent %s %s", r.Method, r.Path)
			}
		}
		az1, _ := servers()
		if err := publish(t, one, id, az1); err != nil {
			t.Fatal(err)
		}
		if err := unpublish(t, two, id, az1); err != nil { // a detach harms no data, and may have to free a node
			t.Error(err)
		}
	})
}

func TestAProtectingDriverServesItsOwnVolumesAndThoseWithoutAMark(t *testing.T) {
	for name, mark := range map[string]func(*openstacksim.VolumeState){
		"its own":        func(*openstacksim.VolumeState) {},
		"without a mark": func(v *openstacksim.VolumeState) { v.Metadata = nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				d := startWith(t, sim, "--cluster=one", "--protect-other-clusters")
				id := made(t, d)
				snapshot := ready(t, d, snapshotRequest("snapshot-1", id)).GetSnapshotId()
				state, _ := sim.VolumeState(id)
				mark(&state)
				if err := sim.PutVolume(state); err != nil {
					t.Fatal(err)
				}
				all := requestsThatName(t, d, id, snapshot, newBackup(t, d, "backup-1", id))
				for _, name := range []string{"restore the snapshot", "restore the backup", "modify", "clone", "expand"} {
					if err := all[name](); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		})
	}
}

// Named means allowed by default: the volumes of a cluster that was renamed, or replaced by a new one.
func TestADriverThatDoesNotProtectServesTheVolumesOfAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		id := made(t, startWith(t, sim, "--cluster=one"))
		two := startWith(t, sim, "--cluster=two")
		if _, err := two.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
			t.Error(err)
		}
	})
}

// A kubelet may write the node ID of its CSINode. A compromised node names another server of the project there.
func TestAServerWithoutTheRequiredMetadataGetsNoVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.AddServer(openstacksim.Server{ID: "99999999-0000-4000-8000-000000000001", Name: "database", Project: "demo", Zone: "az1", Metadata: map[string]string{"role": "database"}})
		d := startWith(t, sim, "--server-metadata=role=k8s-node")
		id := made(t, d)
		wantCode(t, publish(t, d, id, "99999999-0000-4000-8000-000000000001"), codes.PermissionDenied, `role="database" instead of "k8s-node"`)
		if n := sent(sim, http.MethodPost, "/os-volume_attachments"); n != 0 {
			t.Errorf("%d attach requests", n)
		}
		az1, _ := servers()
		if err := publish(t, d, id, az1); err != nil {
			t.Error(err)
		}
	})
}

func TestMetadataOfTheClusterAndOfTheClassReachEveryObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim, "--volume-metadata=cost-centre=42", "--volume-metadata=team=storage", "--strict")
		id := made(t, d, of("metadata.team", "shop"))
		snapshot := snapshotRequest("snapshot-1", id)
		snapshot.Parameters = map[string]string{"metadata.retention": "30d"}
		ready(t, d, snapshot)
		newBackup(t, d, "backup-1", id, "metadata.retention", "90d")
		v, _ := sim.VolumeState(id)
		want := func(what string, has map[string]string, key, value string) {
			t.Helper()
			if has[key] != value {
				t.Errorf("%s: want %s=%s, got %v", what, key, value, has)
			}
		}
		want("volume", v.Metadata, "cost-centre", "42")
		want("volume", v.Metadata, "team", "shop") // the class is the nearer one
		for _, p := range sim.SnapshotStates() {
			want(p.Name, p.Metadata, "cost-centre", "42")
			want(p.Name, p.Metadata, "team", "storage")
			want(p.Name, p.Metadata, "retention", map[string]string{"snapshot-1": "30d", "backup-1": "90d"}[p.Name])
		}
		snapshot = snapshotRequest("snapshot-2", id)
		for _, key := range []string{"cinder.csi.openstack.org/cluster", "cinder.csi.openstack.org/temporary", "csi.storage.k8s.io/volumesnapshot/name", "type"} {
			snapshot.Parameters = map[string]string{"metadata." + key: "x"}
			_, err := d.CreateSnapshot(asSidecar(t), snapshot)
			wantCode(t, err, codes.InvalidArgument, "only the driver itself writes the key")
		}
	})
}
