package driver_test

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// byName are the creates that find what another cluster created: two clusters that come from one copy of etcd have the same names. With
// controllerRPCs they are every way in which a request names an object.
var byName = []controllerRPC{
	{"CreateVolume of that name", func(ctx context.Context, d *instance, _ objects) error {
		return outcome(d.CreateVolume(ctx, claim("pvc-volume")))
	}, ""},
	{"CreateSnapshot of that name", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.CreateSnapshot(ctx, snapshotRequest("snapshot-of-source", o.source)))
	}, ""},
	{"CreateSnapshot as a backup of that name", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.CreateSnapshot(ctx, archive("backup-of-source", o.source)))
	}, ""},
	{"CreateVolume with a hint of that name", func(ctx context.Context, d *instance, _ objects) error {
		return outcome(d.CreateVolume(ctx, claim("pvc-new", of("scheduler-hints", `{"same_host": "pvc-volume"}`))))
	}, ""},
}

// byID are further reads of one object.
var byID = []controllerRPC{
	{"CreateVolume with a hint", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.CreateVolume(ctx, claim("pvc-new", of("scheduler-hints", `{"same_host": "`+o.volume+`"}`))))
	}, ""},
	{"GetSnapshot of a backup", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: o.backup}))
	}, ""},
	{"ListSnapshots of a snapshot", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: o.snapshot}))
	}, ""},
	{"ListSnapshots of a backup", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: o.backup}))
	}, ""},
}

// namesNothing are the RPCs that name no object of another cluster. ListVolumes and its like have a test of their own.
var namesNothing = []string{"CreateVolume", "GetCapacity", "ListVolumes", "ListSnapshots", "ControllerListVolumeHealth"}

func aboutSnapshots(rpc controllerRPC) bool {
	name := strings.ToLower(rpc.name)
	return strings.Contains(name, "deletesnapshot") || strings.Contains(name, "getsnapshot") || strings.Contains(name, "listsnapshots") ||
		strings.Contains(name, "from a snapshot") || strings.Contains(name, "from a backup")
}

// unmark removes the metadata of volumes or of snapshots and backups, as if a person had created them.
func unmark(t *testing.T, sim *openstacksim.Sim, volumes, snapshots bool) {
	t.Helper()
	rewrite(t, sim, func(v *openstacksim.VolumeState) {
		if volumes {
			v.Metadata = nil
		}
	}, func(p *openstacksim.SnapshotState) {
		if snapshots {
			p.Metadata = nil
		}
	})
}

func rewrite(t *testing.T, sim *openstacksim.Sim, volume func(*openstacksim.VolumeState), snapshot func(*openstacksim.SnapshotState)) {
	t.Helper()
	for _, v := range sim.VolumeStates() {
		volume(&v)
		testenv.Must(t, sim.PutVolume(v))
	}
	for _, p := range sim.SnapshotStates() {
		snapshot(&p)
		testenv.Must(t, sim.PutSnapshot(p))
	}
}

// belonging is what the driver of a cluster can know about objects that cluster one created.
type belonging struct {
	name    string
	cluster string // of the driver; two unless it is set
	args    []string
	prepare func(t *testing.T, sim *openstacksim.Sim, o objects)
	// later changes whose the objects are, while an RPC waits. Without it nothing changes.
	later func(t *testing.T, sim *openstacksim.Sim, o objects)
	// refused are the protections with which the driver leaves the objects alone.
	refused []string
	only    func(rpc controllerRPC) bool // nil means every RPC
	// failsAnyway says that a driver without the flag cannot do everything either: a list lags, or a volume is in use.
	failsAnyway bool
}

// unmarkedOn attaches the volumes to a server with these tags, and removes the marks of everything.
func unmarkedOn(t *testing.T, sim *openstacksim.Sim, o objects, tags ...string) {
	t.Helper()
	for _, id := range []string{o.volume, o.source} {
		testenv.Must(t, publish(t, startWith(t, sim), id, o.az1))
	}
	unmark(t, sim, true, true)
	sim.SetServerTags(o.az1, tags...)
}

// marked gives the objects the mark of a cluster.
func marked(t *testing.T, sim *openstacksim.Sim, cluster string) {
	t.Helper()
	metadata := map[string]string{contract.MetadataCluster: cluster}
	rewrite(t, sim, func(v *openstacksim.VolumeState) { v.Metadata = metadata }, func(p *openstacksim.SnapshotState) { p.Metadata = metadata })
}

// inStatus sets the status of the volumes, and of the snapshots and backups.
func inStatus(sim *openstacksim.Sim, o objects, volumes, snapshots string) {
	for _, id := range []string{o.volume, o.source, o.attached} {
		sim.ResetStatus(id, volumes)
	}
	for _, id := range []string{o.snapshot, o.backup} {
		sim.ResetStatus(id, snapshots)
	}
}

// waits reports whether an RPC waits for an object that it names. A create from a source does not: a retry comes.
func (rpc controllerRPC) waits() bool {
	return rpc.operation != "" && !strings.Contains(rpc.name, "CreateVolume")
}

const off, protect, strict = "--protect-other-clusters=false", "--protect-other-clusters", "--protect-other-clusters=strict"

var belongings = []belonging{
	{name: "mine", cluster: "one"},
	{name: "theirs", refused: []string{protect, strict}},
	{name: "unmarked", refused: []string{strict}, prepare: func(t *testing.T, sim *openstacksim.Sim, _ objects) { unmark(t, sim, true, true) }},
	{
		name: "unmarked of a marked volume", refused: []string{protect, strict},
		prepare: func(t *testing.T, sim *openstacksim.Sim, _ objects) { unmark(t, sim, false, true) },
	},
	{
		name: "unmarked of my volume", cluster: "one",
		prepare: func(t *testing.T, sim *openstacksim.Sim, _ objects) { unmark(t, sim, false, true) },
	},
	{
		name: "on an excluded server", args: []string{"--server-metadata=role=of-cluster-two"}, failsAnyway: true, refused: []string{protect, strict},
		prepare: func(t *testing.T, sim *openstacksim.Sim, o objects) { unmarkedOn(t, sim, o) },
	},
	{
		name: "on an excluded server that is shelved", args: []string{"--server-metadata=role=of-cluster-two"}, failsAnyway: true, refused: []string{protect, strict},
		prepare: func(t *testing.T, sim *openstacksim.Sim, o objects) {
			unmarkedOn(t, sim, o)
			sim.SetServerStatus(o.az1, "SHELVED_OFFLOADED", "")
		},
	},
	{
		name: "on a server with another tag", args: []string{"--server-metadata=openshiftClusterID=two"}, failsAnyway: true, refused: []string{protect, strict},
		prepare: func(t *testing.T, sim *openstacksim.Sim, o objects) {
			unmarkedOn(t, sim, o, "openshiftClusterID=one", "two")
		},
	},
	{
		name: "on a server with my tag", args: []string{"--server-metadata=openshiftClusterID=two"}, failsAnyway: true, refused: []string{strict},
		prepare: func(t *testing.T, sim *openstacksim.Sim, o objects) {
			unmarkedOn(t, sim, o, "blue", "openshiftClusterID=two")
		},
	},
	{
		name: "missing in the list", failsAnyway: true, refused: []string{protect, strict}, only: func(rpc controllerRPC) bool { return !slices.ContainsFunc(byName, rpc.is) },
		prepare: func(_ *testing.T, sim *openstacksim.Sim, _ objects) {
			for _, noun := range []string{"volumes", "snapshots", "backups"} {
				sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/volume/v3/*/" + noun + "/detail", Status: http.StatusOK, Body: `{"` + noun + `": []}`})
			}
		},
	},
	{
		name: "no name", refused: []string{protect, strict}, only: func(rpc controllerRPC) bool { return !slices.ContainsFunc(byName, rpc.is) },
		prepare: func(t *testing.T, sim *openstacksim.Sim, _ objects) {
			rewrite(t, sim, func(v *openstacksim.VolumeState) { v.Name = "" }, func(p *openstacksim.SnapshotState) { p.Name = "" })
		},
	},
	{
		name: "mine until another cluster marks it", refused: []string{protect, strict}, only: controllerRPC.waits, failsAnyway: true,
		prepare: func(t *testing.T, sim *openstacksim.Sim, o objects) {
			marked(t, sim, "two")
			inStatus(sim, o, "uploading", "backing-up")
		},
		later: func(t *testing.T, sim *openstacksim.Sim, o objects) {
			marked(t, sim, "one")
			inStatus(sim, o, "available", "available")
			sim.ResetStatus(o.attached, "in-use")
		},
	},
	{
		name: "mine until the server is excluded", args: []string{"--server-metadata=role=of-cluster-two"}, failsAnyway: true,
		refused: []string{protect, strict}, only: controllerRPC.waits,
		prepare: func(t *testing.T, sim *openstacksim.Sim, o objects) {
			unmarkedOn(t, sim, o, "role=of-cluster-two")
			inStatus(sim, o, "uploading", "backing-up")
		},
		later: func(_ *testing.T, sim *openstacksim.Sim, o objects) {
			sim.SetServerTags(o.az1)
			inStatus(sim, o, "in-use", "available")
		},
	},
}

func (rpc controllerRPC) is(other controllerRPC) bool { return rpc.name == other.name }

// The administrator of a hosted cluster writes PersistentVolumes, VolumeSnapshotContents and VolumeAttachments there, and the driver acts with
// the credentials of the operator. The rows are every way to name an object, everything that a driver can know about it, and every protection. A
// protecting driver sends no write for what is not its cluster's, and tells nothing about it. A driver without the flag acts on what a request names.
func TestWhoseAnObjectIsDecidesEveryRPC(t *testing.T) {
	for _, has := range belongings {
		for _, protection := range []string{off, protect, strict} {
			var together, alone []controllerRPC // what changes nothing can share one cloud
			for _, rpc := range slices.Concat(controllerRPCs, byName, byID) {
				switch {
				case slices.Contains(namesNothing, rpc.name), has.only != nil && !has.only(rpc):
				case has.later == nil && (has.refuses(protection, rpc) || rpc.reads()):
					together = append(together, rpc)
				default:
					alone = append(alone, []controllerRPC{rpc}...)
				}
			}
			name := has.name + " " + strings.TrimLeft(protection, "-")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { has.decide(t, protection, together) })
			})
			for _, rpc := range alone {
				t.Run(name+" "+rpc.name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { has.decide(t, protection, []controllerRPC{rpc}) })
				})
			}
		}
	}
}

// othersMark is what a refusal says about a mark. A strict driver does not name the other cluster: an administrator of a guest reads the message.
func othersMark(protection string) string {
	if protection == strict {
		return "carries the mark of another cluster"
	}
	return `cluster "one", and this driver serves cluster "two"`
}

// refuses reports whether the driver leaves the object alone that the RPC names.
func (has belonging) refuses(protection string, rpc controllerRPC) bool {
	if has.name == "unmarked of a marked volume" && !aboutSnapshots(rpc) {
		return protection != off // the volume itself has the mark
	}
	return slices.Contains(has.refused, protection)
}

func (rpc controllerRPC) reads() bool {
	return strings.Contains(rpc.name, "Get") || strings.Contains(rpc.name, "List") || strings.Contains(rpc.name, "Validate")
}

func (has belonging) decide(t *testing.T, protection string, rpcs []controllerRPC) {
	sim := simulated()
	o := newObjects(t, startWith(t, sim, "--cluster=one"))
	d := has.start(t, sim, o, protection)
	sim.ResetRequests()
	if has.later != nil {
		time.AfterFunc(20*time.Second, func() { has.later(t, sim, o) })
	}
	for _, rpc := range rpcs {
		err := rpc.call(asSidecar(t), d, o)
		switch refused := has.refuses(protection, rpc); {
		case refused && (status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "--protect-other-clusters")):
			t.Errorf("%s: want a refusal, got %v", rpc.name, err)
		case refused && protection == strict && strings.Contains(err.Error(), `"one"`):
			t.Errorf("%s: the refusal names the other cluster: %v", rpc.name, err)
		case !refused && err != nil && (!has.failsAnyway || strings.Contains(err.Error(), "--protect-other-clusters")):
			t.Errorf("%s: %v", rpc.name, err)
		}
		if has.refuses(protection, rpc) {
			wantNoWrites(t, sim)
		}
	}
}

// Cinder shows only complete attachments with a volume. Nova makes an empty one while it rebuilds a server, and a failed attach or detach leaves
// another. Only an available volume has none.
func TestAnAttachmentThatIsNotShownDecidesInEveryStatus(t *testing.T) {
	for _, status := range volume.Statuses() {
		if status == volume.Available {
			continue
		}
		has := belonging{
			args: []string{"--server-metadata=role=of-cluster-two"}, refused: []string{protect},
			prepare: func(t *testing.T, sim *openstacksim.Sim, o objects) {
				unmarkedOn(t, sim, o)
				for _, id := range []string{o.volume, o.source, o.attached} {
					testenv.Must(t, sim.SetAttachmentStatus(id, o.az1, "reserved"))
				}
				inStatus(sim, o, string(status), "available")
			},
		}
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				has.decide(t, protect, slices.DeleteFunc(slices.Concat(controllerRPCs, byName, byID), func(rpc controllerRPC) bool { return slices.Contains(namesNothing, rpc.name) }))
			})
		})
	}
}

// start prepares the objects, and starts the driver that gets requests for them.
func (has belonging) start(t *testing.T, sim *openstacksim.Sim, o objects, protection string) *instance {
	t.Helper()
	if has.prepare != nil {
		has.prepare(t, sim, o)
	}
	return startWith(t, sim, append(slices.Clone(has.args), protection, "--with-capacity", "--cluster="+cmp.Or(has.cluster, "two"))...)
}

func wantNoWrites(t *testing.T, sim *openstacksim.Sim) {
	t.Helper()
	for _, r := range sim.Requests() {
		if r.Method != http.MethodGet && !strings.Contains(r.Path, "/identity/") {
			t.Errorf("the driver sent %s %s", r.Method, r.Path)
		}
	}
}

// What the cloud does not let the driver read may be another cluster's. A delete of a backup is the one request that could be sent all the same.
func TestWhatCannotBeReadIsNotChanged(t *testing.T) {
	for _, protection := range []string{protect, strict} {
		for _, rpc := range slices.Concat(controllerRPCs, byID) {
			if slices.Contains(namesNothing, rpc.name) {
				continue
			}
			t.Run(strings.TrimLeft(protection, "-")+" "+rpc.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					sim := simulated()
					o := newObjects(t, startWith(t, sim, "--cluster=one"))
					d := startWith(t, sim, "--cluster=two", protection)
					backups := "backups/" + o.backup
					if rpc.name == "DeleteSnapshot of a backup" { // the list is asked too
						backups = "backups/**"
					}
					for _, path := range []string{"volumes/" + o.volume, "volumes/" + o.attached, "snapshots/" + o.snapshot, backups} {
						sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/volume/v3/*/" + path, Status: http.StatusForbidden})
					}
					sim.ResetRequests()
					wantCode(t, rpc.call(asSidecar(t), d, o), codes.PermissionDenied, "")
					wantNoWrites(t, sim)
				})
			})
		}
	}
}

// The list of the backups of a volume is not asked whose it is: Cinder bases backups on those of everybody. So the driver asks before it refuses
// a second backup and names the first.
func TestARefusalNamesNoBackupOfAnotherCluster(t *testing.T) {
	for _, protection := range []string{protect, strict} {
		synctest.Test(t, func(t *testing.T) {
			sim := simulated()
			sim.SetCephBackups(true)
			one := startWith(t, sim, "--cluster=one")
			id := made(t, one)
			backup := newBackup(t, one, "backup-1", id)
			d := startWith(t, sim, "--cluster=two", protection)
			sim.ResetRequests()
			err := outcome(d.CreateSnapshot(asSidecar(t), archive("backup-2", id)))
			wantCode(t, err, codes.PermissionDenied, othersMark(protection))
			if strings.Contains(err.Error(), backup) {
				t.Errorf("%s: the refusal names the backup: %v", protection, err)
			}
			wantNoWrites(t, sim)
		})
	}
}

// An unmarked snapshot is its volume's, and an unmarked volume may be that of a server. Where the driver may not read those, it does not know.
func TestWhoseAnObjectIsStaysUnknownWhereTheDriverMayNotRead(t *testing.T) {
	for name, test := range map[string]struct {
		path    string
		call    func(t *testing.T, d *instance, o objects) error
		code    codes.Code
		with    int
		shelved bool // the server that has the volume
	}{
		"the volume of a snapshot": {path: "/volume/v3/*/volumes/*", with: 403, code: codes.PermissionDenied, call: func(t *testing.T, d *instance, o objects) error {
			return outcome(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: o.snapshot}))
		}},
		"the volume of a backup, for now": {path: "/volume/v3/*/volumes/*", with: 500, code: codes.Unavailable, call: func(t *testing.T, d *instance, o objects) error {
			return outcome(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: o.backup}))
		}},
		"the attachments of a volume": {path: "/volume/v3/*/attachments", with: 403, shelved: true, code: codes.PermissionDenied, call: func(t *testing.T, d *instance, o objects) error {
			return outcome(d.ControllerGetVolume(asSidecar(t), &csi.ControllerGetVolumeRequest{VolumeId: o.attached}))
		}},
		"the attachments of a volume, which the cloud hides": {path: "/volume/v3/*/attachments", with: 404, shelved: true, code: codes.PermissionDenied, call: func(t *testing.T, d *instance, o objects) error {
			return outcome(d.ControllerGetVolume(asSidecar(t), &csi.ControllerGetVolumeRequest{VolumeId: o.attached}))
		}},
		"the server of a volume": {path: "/compute/v2.1/servers/*", with: 403, code: codes.PermissionDenied, call: func(t *testing.T, d *instance, o objects) error {
			return outcome(d.ControllerExpandVolume(asSidecar(t), larger(o.attached, 2<<30, 0)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				o := newObjects(t, startWith(t, sim, "--cluster=one"))
				unmark(t, sim, true, true)
				if test.shelved {
					sim.SetServerStatus(o.az1, "SHELVED_OFFLOADED", "")
				}
				d := startWith(t, sim, "--cluster=one", protect, "--server-metadata=role=of-cluster-two")
				sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: test.path, Status: test.with})
				sim.ResetRequests()
				wantCode(t, test.call(t, d, o), test.code, "")
				wantNoWrites(t, sim)
			})
		})
	}
}

// Lists show what the driver serves. external-attacher takes a volume that is missing in ListVolumes for detached, so the list has the volumes
// without a mark too.
func TestListsLeaveOutWhatBelongsToAnotherCluster(t *testing.T) {
	for _, has := range belongings {
		for _, protection := range []string{off, protect, strict} {
			for _, limit := range []int32{0, 1} {
				if has.name == "missing in the list" || has.later != nil {
					continue
				}
				t.Run(has.name+" "+strings.TrimLeft(protection, "-")+" in pages of "+strconv.Itoa(int(limit)), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						sim := simulated()
						o := newObjects(t, startWith(t, sim, "--cluster=one"))
						d := has.start(t, sim, o, protection)
						marked := !strings.Contains(has.name, "unmarked") && len(has.args) == 0 || has.name == "unmarked of a marked volume"
						hidden := protection != off && marked && has.cluster == ""
						if got, want := listedVolumes(t, d, limit), []string{o.attached, o.source, o.volume}; !hidden && !containsAll(got, want) || hidden && len(got) != 0 {
							t.Errorf("hidden is %t, and ListVolumes has %v", hidden, got)
						}
						hidden = slices.Contains(has.refused, protection)
						if got, want := listedSnapshots(t, d, limit), []string{o.snapshot, o.backup}; !hidden && !containsAll(got, want) || hidden && len(got) != 0 {
							t.Errorf("hidden is %t, and ListSnapshots has %v", hidden, got)
						}
					})
				})
			}
		}
	}
}

func containsAll(got, want []string) bool {
	return !slices.ContainsFunc(want, func(id string) bool { return !slices.Contains(got, id) })
}

func listedVolumes(t *testing.T, d *instance, limit int32) (ids []string) {
	t.Helper()
	for token := ""; ; {
		r := must[*csi.ListVolumesResponse](t)(d.ListVolumes(asSidecar(t), &csi.ListVolumesRequest{MaxEntries: limit, StartingToken: token}))
		for _, entry := range r.GetEntries() {
			ids = append(ids, entry.GetVolume().GetVolumeId())
		}
		if token = r.GetNextToken(); token == "" {
			return ids
		}
	}
}

func listedSnapshots(t *testing.T, d *instance, limit int32) (ids []string) {
	t.Helper()
	for token := ""; ; {
		r := must[*csi.ListSnapshotsResponse](t)(d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{MaxEntries: limit, StartingToken: token}))
		for _, entry := range r.GetEntries() {
			ids = append(ids, entry.GetSnapshot().GetSnapshotId())
		}
		if token = r.GetNextToken(); token == "" {
			return ids
		}
	}
}

// Two clusters that come from one copy of etcd have claims of the same UIDs in one project. Each keeps what it created, also if neither sees the
// object of the other before it creates its own.
func TestTwoClustersWithTheSameUIDsKeepTheirVolumesApart(t *testing.T) {
	for _, protection := range []string{protect, strict} {
		t.Run(strings.TrimLeft(protection, "-"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				one, two := startWith(t, sim, "--cluster=one", protection), startWith(t, sim, "--cluster=two", protection)
				source := made(t, one)
				backup := newBackup(t, one, "backup-1", source)
				rewrite(t, sim, func(*openstacksim.VolumeState) {}, func(p *openstacksim.SnapshotState) {
					if p.ID == backup { // both may use it: each has its own
						p.Metadata = nil
					}
				})
				restored := must[*csi.CreateVolumeResponse](t)(one.CreateVolume(asSidecar(t), claim("pvc-restored", fromSnapshot(backup)))).GetVolume().GetVolumeId()
				before, _ := sim.VolumeState(restored)

				_, err := two.CreateVolume(asSidecar(t), claim("pvc-restored", fromSnapshot(backup)))
				wantCode(t, err, codes.PermissionDenied, "")
				_, err = two.CreateVolume(asSidecar(t), claim("pvc-1"))
				wantCode(t, err, codes.PermissionDenied, othersMark(protection))
				after, _ := sim.VolumeState(restored)
				if !maps.Equal(before.Metadata, after.Metadata) || after.Metadata[contract.MetadataCluster] != "one" {
					t.Errorf("the metadata was %v, and is %v", before.Metadata, after.Metadata)
				}

				// Both create at once: the lists of both were empty.
				ids := make(chan string, 2)
				for _, d := range []*instance{one, two} {
					go func() {
						r, err := d.CreateVolume(asSidecar(t), claim("pvc-both"))
						if err != nil {
							t.Error(err)
						}
						ids <- r.GetVolume().GetVolumeId()
					}()
				}
				if a, b := <-ids, <-ids; a == b {
					t.Errorf("both have volume %s", a)
				}
				time.Sleep(time.Minute)
				for _, d := range []*instance{one, two} { // and each finds its own again
					r := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-both")))
					testenv.Check(t, publish(t, d, r.GetVolume().GetVolumeId(), openstacksim.Default().Servers[0].ID))
				}
			})
		})
	}
}

// Without the flag too, a create that finds a restored volume of another cluster does not write its own mark over the other.
func TestTheMarkOfAnotherClusterIsNotReplaced(t *testing.T) {
	for _, protection := range []string{off, protect, strict} {
		t.Run(strings.TrimLeft(protection, "-"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				one := startWith(t, sim, "--cluster=one", protection)
				backup := newBackup(t, one, "backup-1", made(t, one))
				id := must[*csi.CreateVolumeResponse](t)(one.CreateVolume(asSidecar(t), claim("pvc-restored", fromSnapshot(backup)))).GetVolume().GetVolumeId()
				two := startWith(t, sim, "--cluster=two", protection)
				_, err := two.CreateVolume(asSidecar(t), claim("pvc-restored", fromSnapshot(backup)))
				if protection != off {
					wantCode(t, err, codes.PermissionDenied, othersMark(protection))
				}
				if v, _ := sim.VolumeState(id); v.Metadata[contract.MetadataCluster] != "one" {
					t.Errorf("the mark is %q now", v.Metadata[contract.MetadataCluster])
				}
			})
		})
	}
}

// While Cinder restores a backup of another cluster, and until the driver has written its own metadata, the volume has that cluster's mark. It
// belongs to the cluster that restores it all the same.
func TestARestoredVolumeBelongsToTheClusterThatRestoresIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		one := startWith(t, sim, "--cluster=one")
		backup := newBackup(t, one, "backup-1", made(t, one))
		rewrite(t, sim, func(*openstacksim.VolumeState) {}, func(p *openstacksim.SnapshotState) { p.Metadata = map[string]string{contract.MetadataCluster: "two"} }) // given to cluster two
		two := startWith(t, sim, "--cluster=two", strict)
		sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: "/volume/v3/*/volumes/*/metadata", Status: http.StatusServiceUnavailable, Times: 20})
		ctx, cancel := context.WithTimeout(asSidecar(t), time.Minute)
		defer cancel()
		_, err := two.CreateVolume(ctx, claim("pvc-restored", fromSnapshot(backup)))
		if err == nil {
			t.Fatal("the metadata was written")
		}
		i := slices.IndexFunc(sim.VolumeStates(), func(v openstacksim.VolumeState) bool { return v.Name == "pvc-restored" })
		unfinished := sim.VolumeStates()[i]
		if unfinished.Metadata[contract.MetadataCluster] != "one" {
			t.Fatalf("the restore brought %v", unfinished.Metadata)
		}
		wantCode(t, outcome(startWith(t, sim, "--cluster=one", protect).ControllerGetVolume(asSidecar(t), &csi.ControllerGetVolumeRequest{VolumeId: unfinished.ID})), codes.PermissionDenied, "another cluster")
		sim.ClearFaults()
		r := must[*csi.CreateVolumeResponse](t)(two.CreateVolume(asSidecar(t), claim("pvc-restored", fromSnapshot(backup))))
		if v, _ := sim.VolumeState(r.GetVolume().GetVolumeId()); v.ID != unfinished.ID || v.Metadata[contract.MetadataCluster] != "two" {
			t.Errorf("got volume %s with %v instead of %s", v.ID, v.Metadata, unfinished.ID)
		}
	})
}

// A snapshot of another cluster may have the name of a backup, as where both clusters come from one copy of etcd. It is no temporary snapshot of the backup.
func TestAForeignSnapshotWithTheNameOfABackupIsNotInItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		one, two := startWith(t, sim, "--cluster=one", protect), startWith(t, sim, "--cluster=two", protect)
		id := made(t, one)
		backup := newBackup(t, one, "backup-1", id)
		foreign := ready(t, two, snapshotRequest("backup-2", made(t, two, func(r *csi.CreateVolumeRequest) { r.Name = "pvc-2" }))).GetSnapshotId()
		rewrite(t, sim, func(*openstacksim.VolumeState) {}, func(p *openstacksim.SnapshotState) {
			if p.ID == foreign {
				p.Name = "backup-1"
			}
		})
		if again := newBackup(t, one, "backup-1", id); again != backup {
			t.Errorf("the repeated call made another backup, %s instead of %s", again, backup)
		}
		testenv.Check(t, outcome(one.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: backup})))
		if _, found := sim.SnapshotState(backup); found {
			t.Error("the backup is still there")
		}
		if _, found := sim.SnapshotState(foreign); !found {
			t.Error("the snapshot of the other cluster is gone")
		}
	})
}

// The same name the other way round: a snapshot is asked for, and only another cluster has a backup of that name. Nothing is sent, so the refusal is final.
func TestAForeignBackupWithTheNameOfASnapshotIsRefusedFinally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		one, two := startWith(t, sim, "--cluster=one", protect), startWith(t, sim, "--cluster=two", protect)
		newBackup(t, two, "backup-1", made(t, two, func(r *csi.CreateVolumeRequest) { r.Name = "pvc-2" }))
		id := made(t, one)
		sim.ResetRequests()
		_, err := one.CreateSnapshot(asSidecar(t), snapshotRequest("backup-1", id))
		wantCode(t, err, codes.PermissionDenied, "")
		wantNoWrites(t, sim)
	})
}

// A strict driver serves a static volume after the command that its error prints.
func TestTheErrorOfAStrictDriverPrintsTheCommandThatTakesAVolumeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		id := made(t, startWith(t, sim))
		unmark(t, sim, true, true)
		d := startWith(t, sim, "--cluster=two", strict)
		az1, _ := servers()
		err := publish(t, d, id, az1)
		wantCode(t, err, codes.PermissionDenied, "openstack volume set --property cinder.csi.openstack.org/cluster=two "+id)
		rewrite(t, sim, func(v *openstacksim.VolumeState) {
			v.Metadata = map[string]string{"cinder.csi.openstack.org/cluster": "two"}
		}, func(*openstacksim.SnapshotState) {})
		testenv.Check(t, publish(t, d, id, az1))
	})
}

// plainLife is what a volume goes through, from its create to its end.
func plainLife(t *testing.T, d *instance) {
	t.Helper()
	az1, _ := servers()
	id := made(t, d)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	check(publish(t, d, id, az1))
	snapshot := ready(t, d, snapshotRequest("snapshot-1", id)).GetSnapshotId()
	backup := newBackup(t, d, "backup-1", id)
	for _, source := range []string{snapshot, backup} {
		r := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-of-"+source, fromSnapshot(source))))
		check(outcome(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: r.GetVolume().GetVolumeId()})))
	}
	check(outcome(d.ControllerExpandVolume(asSidecar(t), larger(id, 2<<30, 0))))
	check(unpublish(t, d, id, az1))
	check(outcome(d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{SnapshotId: snapshot})))
	check(outcome(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: backup})))
	check(outcome(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: snapshot})))
	check(outcome(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})))
}

// Marks are in what the driver reads anyway. So a driver that protects other clusters sends as many requests for its own objects as any other.
func TestAProtectionCostsNoRequestInAPlainLife(t *testing.T) {
	for _, protection := range []string{off, protect, strict} {
		t.Run(strings.TrimLeft(protection, "-"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				d := startWith(t, sim, "--cluster=one", protection)
				sim.ResetRequests()
				plainLife(t, d)
				const most = 511 // most of them wait for the slow cloud
				n := len(sim.Requests())
				t.Logf("measured: %d requests", n)
				if n > most {
					t.Errorf("%d requests, want at most %d", n, most)
				}
			})
		})
	}
}
