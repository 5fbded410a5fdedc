package driver_test

import (
	"cmp"
	"net/http"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const database = "99999999-0000-4000-8000-000000000001"

// A kubelet may write the node ID of its CSINode. A compromised node names another server of the project there. The nodes have metadata or a tag.
func TestAServerWithoutTheRequiredMetadataGetsNoVolume(t *testing.T) {
	az1, _ := servers()
	for name, test := range map[string]struct {
		required, refused string
		tags              []string // of the node
		other             []string // of the other server
	}{
		"metadata":                    {required: "role=k8s-node"},
		"a tag":                       {required: "openshiftClusterID=a", tags: []string{"blue", "openshiftClusterID=a"}, other: []string{"openshiftClusterID=b", "a"}},
		"both":                        {required: "openshiftClusterID=a,role=k8s-node", tags: []string{"openshiftClusterID=a"}, other: []string{"openshiftClusterID=a"}, refused: "role=k8s-node"},
		"one of both kinds is enough": {required: "role=worker", tags: []string{"role=worker"}},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			sim.AddServer(openstacksim.Server{ID: database, Name: "database", Project: "demo", Zone: "az1", Metadata: map[string]string{"role": "database"}, Tags: test.other})
			sim.SetServerTags(az1, test.tags...)
			d := startWith(t, sim, "--server-metadata="+test.required)
			id := made(t, d)
			wantCode(t, publish(t, d, id, database), codes.PermissionDenied, "it has "+cmp.Or(test.refused, test.required)+" neither in its metadata nor as a tag")
			if n := sent(sim, http.MethodPost, "/os-volume_attachments"); n != 0 {
				t.Errorf("%d attach requests", n)
			}
			testenv.Check(t, publish(t, d, id, az1))
			testenv.Check(t, unpublish(t, d, id, az1))
		})
	}
}

// What holds on the way in holds on the way out: the disk of a database server is not the driver's to take. A server that is gone loses nothing.
func TestAServerWithoutTheRequiredMetadataKeepsItsVolumes(t *testing.T) {
	for name, test := range map[string]struct {
		node   string
		fault  openstacksim.Fault
		remove bool
		code   codes.Code
	}{
		"from the server":     {node: database, code: codes.PermissionDenied},
		"from every server":   {code: codes.PermissionDenied},
		"it cannot be read":   {node: database, fault: openstacksim.Fault{Method: http.MethodGet, Path: "/compute/v2.1/servers/*", Status: 500}, code: codes.Unavailable},
		"it is deleted":       {node: database, remove: true},
		"all and one is gone": {remove: true},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			sim.AddServer(openstacksim.Server{ID: database, Name: "database", Project: "demo", Zone: "az1", Metadata: map[string]string{"role": "database"}})
			id := made(t, startWith(t, sim))
			testenv.Must(t, publish(t, startWith(t, sim), id, database))
			if test.remove {
				sim.RemoveServer(database, false)
			}
			if test.fault.Path != "" {
				sim.SetFault(test.fault)
			}
			d := startWith(t, sim, "--server-metadata=role=k8s-node")
			sim.ResetRequests()
			err := unpublish(t, d, id, test.node)
			wantCode(t, err, test.code, "")
			if n := sent(sim, http.MethodDelete, "/os-volume_attachments/"); err != nil && n != 0 {
				t.Errorf("%d detach requests", n)
			}
		})
	}
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
