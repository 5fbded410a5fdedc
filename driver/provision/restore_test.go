package provision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// withBackup is a cloud with a backup of a volume of another cluster, which is gone.
func withBackup(t *testing.T, b volume.Snapshot) *cloudtest.Cloud {
	t.Helper()
	v := cloudtest.SourceVolume
	v.Metadata = map[string]string{contract.MetadataCluster: "another", "theirs": "1"}
	c := cloudtest.New(t, v).WithBackups(b)
	c.Remove(v.ID)
	return c
}

func TestCreateFromABackup(t *testing.T) {
	for name, test := range map[string]struct {
		spec   CreateSpec
		status volume.Status
		cloud  func(*cloudtest.Cloud)
		size   volume.Size
		kind   volume.Kind // Unknown: it is made
	}{
		"is as large as the backup":      {size: volume.GiB(3)},
		"may be larger":                  {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(9)}}, size: volume.GiB(9)},
		"goes to any zone":               {spec: CreateSpec{Zones: []string{"az1", "az-2"}}, size: volume.GiB(3)},
		"that is smaller":                {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(2)}}, kind: volume.OutOfRange},
		"that is being made":             {status: volume.Creating, kind: volume.Busy},
		"that is being restored":         {status: "restoring", kind: volume.Busy},
		"that failed":                    {status: "error", kind: volume.Conflict},
		"that is being deleted":          {status: volume.Deleting, kind: volume.NotFound},
		"while backups cannot be read":   {cloud: func(c *cloudtest.Cloud) { c.Fail["Backup"] = volume.Errorf(volume.Unavailable, "500") }, kind: volume.Unavailable},
		"while snapshots cannot be read": {cloud: func(c *cloudtest.Cloud) { c.Fail["Snapshot"] = volume.Errorf(volume.Unavailable, "500") }, kind: volume.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := cloudtest.NewBackup(volume.Available)
				if test.status != "" {
					b.Status = test.status
				}
				c := withBackup(t, b)
				if test.cloud != nil {
					test.cloud(c)
				}
				spec := test.spec
				spec.Name, spec.Snapshot, spec.Metadata = "restored", cloudtest.SnapshotID(1), map[string]string{"mine": "1"}
				for range 2 { // the second finds the first's
					v, err := service(c).Create(cloudtest.Within(t, 60), spec)
					if test.kind != volume.Unknown {
						cloudtest.WantKind(t, err, test.kind, false)
						if c.Count("CreateVolume") != 0 {
							t.Error(c.Calls)
						}
						continue
					}
					if err != nil || v.BackupID != string(cloudtest.SnapshotID(1)) || v.SnapshotID != "" || v.Size != test.size || v.Zone != cmp.Or(first(spec.Zones), "az1") || c.Count("CreateVolume") != 1 {
						t.Errorf("got %v, %v", v, err)
					}
					now, _ := c.Read(v.ID)
					m := now.Metadata
					if m[contract.MetadataCluster] != "cluster" || m["mine"] != "1" || m["theirs"] != "1" || c.Count("AddMetadata") != 1 {
						t.Errorf("metadata %v after %v", m, c.Calls)
					}
				}
			})
		})
	}
}

// Each restore of a backup of a restore could add the metadata of another class. An object without bound stops every list of the project.
func TestRestoresOfRestoresDoNotAddUpTheirMetadata(t *testing.T) {
	large := func(generation string) map[string]string {
		metadata := map[string]string{contract.MetadataPVCName: generation}
		for n := range 100 {
			metadata[fmt.Sprintf("%s-%d", generation, n)] = strings.Repeat("x", 250)
		}
		return metadata
	}
	synctest.Test(t, func(t *testing.T) {
		v := cloudtest.SourceVolume
		v.Metadata = large("first")
		c := cloudtest.New(t, v).WithBackups(cloudtest.NewBackup(volume.Available))
		c.Remove(v.ID)
		v, err := service(c).Create(cloudtest.Within(t, 60), CreateSpec{Name: "restored", Snapshot: cloudtest.SnapshotID(1), Metadata: large("second")})
		if err != nil {
			t.Fatal(err)
		}
		now, _ := c.Read(v.ID)
		m := now.Metadata
		if err := contract.CheckMetadataSize(m); err != nil || m[contract.MetadataCluster] != "cluster" || m[contract.MetadataPVCName] != "second" || m["first-99"] == "" {
			t.Errorf("%d entries, %q: %v", len(m), m[contract.MetadataPVCName], err)
		}
	})
}

func TestCreateFromABackupNeedsItsMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withBackup(t, cloudtest.NewBackup(volume.Available))
		c.Fail["AddMetadata"] = volume.Errorf(volume.Unavailable, "down")
		spec := CreateSpec{Name: "restored", Snapshot: cloudtest.SnapshotID(1)}
		_, err := service(c).Create(cloudtest.Within(t, 60), spec)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		delete(c.Fail, "AddMetadata")
		if v, err := service(c).Create(cloudtest.Within(t, 60), spec); err != nil || c.Count("CreateVolume") != 1 {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestCreateDeletesAFailedRestore(t *testing.T) {
	for _, outcome := range []volume.Status{"error", "error_restoring"} {
		synctest.Test(t, func(t *testing.T) {
			c := withBackup(t, cloudtest.NewBackup(volume.Available))
			c.Sim.SetFault(openstacksim.Fault{Operation: map[volume.Status]openstacksim.Operation{"error": openstacksim.CreateVolume, "error_restoring": openstacksim.RestoreBackup}[outcome]})
			_, err := service(c).Create(cloudtest.Within(t, 60), CreateSpec{Name: "restored", Snapshot: cloudtest.SnapshotID(1)})
			if cloudtest.WantKind(t, err, volume.Failed, false); len(c.Volumes()) != 0 {
				t.Errorf("left: %v", c.Volumes())
			}
		})
	}
}

// While a volume restores, a later request of its name may come with a backup of another cluster.
func TestWhatCinderSaysAboutABackupIsReadWhereTheBackupMayBeRead(t *testing.T) {
	for refusal, about := range map[volume.Kind]string{volume.Unknown: string(cloudtest.SnapshotID(1)), volume.NotOwned: string(cloudtest.VolumeID(2))} {
		synctest.Test(t, func(t *testing.T) {
			v := cloudtest.OwnVolume(2, volume.Creating)
			v.Description = contract.DescriptionOfRestored(cloudtest.TestOwner.Token(v.Name), time.Now())
			c := cloudtest.New(t, v).WithBackups(cloudtest.NewBackup(volume.Available))
			c.Reason = "why"
			c.Later(v.ID, func(v *volume.Volume) { v.Status = "error_restoring" })
			if refusal != volume.Unknown {
				c.Fail["Backup"] = volume.Errorf(refusal, "of another cluster")
			}
			_, err := service(c).Create(cloudtest.Within(t, 60), CreateSpec{Name: v.Name, Snapshot: cloudtest.SnapshotID(1)})
			asked := slices.DeleteFunc(slices.Clone(c.Calls), func(call string) bool { return !strings.HasPrefix(call, "Failure") })
			if err == nil || len(asked) == 0 || slices.ContainsFunc(asked, func(call string) bool { return call != "Failure "+about }) {
				t.Errorf("got %v after %v", err, c.Calls)
			}
		})
	}
}

// During a restore a volume has the metadata of the volume that was backed up, which names no backup or another one.
func TestCreateComparesTheBackupAfterTheRestore(t *testing.T) {
	for meanwhile, test := range map[string]struct {
		becomes  string
		snapshot volume.SnapshotID
		kind     volume.Kind
	}{
		"":                              {becomes: string(cloudtest.SnapshotID(1)), snapshot: cloudtest.SnapshotID(1)},
		string(cloudtest.SnapshotID(2)): {becomes: string(cloudtest.SnapshotID(1)), snapshot: cloudtest.SnapshotID(1)},
		string(cloudtest.SnapshotID(1)): {becomes: string(cloudtest.SnapshotID(2)), snapshot: cloudtest.SnapshotID(1), kind: volume.Incompatible},
		string(cloudtest.SnapshotID(3)): {becomes: "", snapshot: cloudtest.SnapshotID(1), kind: volume.Incompatible},
		string(cloudtest.SnapshotID(4)): {becomes: string(cloudtest.SnapshotID(4)), snapshot: "", kind: volume.Incompatible},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := cloudtest.OwnVolume(2, volume.Creating)
			v.BackupID = meanwhile
			c := cloudtest.New(t, v)
			c.Later(v.ID, func(v *volume.Volume) { v.Status, v.BackupID = volume.Available, test.becomes })
			got, err := service(c).Create(cloudtest.Within(t, 60), CreateSpec{Name: v.Name, Snapshot: test.snapshot})
			if test.kind == volume.Unknown && (err != nil || got.ID != v.ID) || test.kind != volume.Unknown && !volume.Is(err, test.kind) {
				t.Errorf("%q, then %q: got %v, %v", meanwhile, test.becomes, got, err)
			}
		})
	}
}

// Two replicas restored one backup and both failed. The restore replaced the metadata of the younger copy, but not its description.
func TestCreateDeletesADuplicateRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		restored := func(n, second int) volume.Volume {
			return volume.Volume{
				ID: cloudtest.VolumeID(n), Name: "restored", Status: volume.Available, Size: volume.GiB(3), BackupID: string(cloudtest.SnapshotID(1)), CreatedAt: time.Now().Add(time.Duration(second) * time.Second),
				Description: contract.DescriptionOfRestored(cloudtest.TestOwner.Token("restored"), time.Now().Add(time.Duration(second)*time.Second)), Metadata: map[string]string{contract.MetadataCluster: "another"},
			}
		}
		young, attached, foreign := restored(3, 1), restored(4, 2), restored(5, 3)
		attached.Attachments = []volume.Attachment{{Server: cloudtest.ServerA}}
		foreign.Description = contract.Description
		c := cloudtest.New(t, restored(2, 0), young, attached, foreign).WithBackups(cloudtest.NewBackup(volume.Available))
		v, err := service(c).Create(cloudtest.Within(t, 60), CreateSpec{Name: "restored", Snapshot: cloudtest.SnapshotID(1)})
		now, _ := c.Read(cloudtest.VolumeID(2))
		if err != nil || v.ID != now.ID || now.Metadata[contract.MetadataCluster] != "cluster" {
			t.Errorf("got %v, %v", v, err)
		}
		if slices.Contains(c.Volumes(), cloudtest.VolumeID(3)) || len(c.Volumes()) != 3 {
			t.Errorf("left: %v", c.Volumes())
		}
	})
}
