package provision

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
)

func TestCreateFromABackup(t *testing.T) {
	for name, test := range map[string]struct {
		spec   CreateSpec
		status volume.Status
		cloud  func(*volumetest.Cloud)
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
		"while backups cannot be read":   {cloud: func(c *volumetest.Cloud) { c.Fail["Backup"] = volume.Errorf(volume.Unavailable, "500") }, kind: volume.Unavailable},
		"while snapshots cannot be read": {cloud: func(c *volumetest.Cloud) { c.Fail["Snapshot"] = volume.Errorf(volume.Unavailable, "500") }, kind: volume.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := volumetest.NewBackup(volume.Available)
				if test.status != "" {
					b.Status = test.status
				}
				c := volumetest.NewCloud().WithBackups(b) // the volume it is of is gone
				if test.cloud != nil {
					test.cloud(c)
				}
				spec := test.spec
				spec.Name, spec.Snapshot, spec.Metadata = "restored", volumetest.SnapshotID(1), map[string]string{"mine": "1"}
				for range 2 { // the second finds the first's
					v, err := service(c).Create(volumetest.Within(t, 60), spec)
					if test.kind != volume.Unknown {
						volumetest.WantKind(t, err, test.kind, false)
						if c.Count("CreateVolume") != 0 {
							t.Error(c.Calls)
						}
						continue
					}
					if err != nil || v.BackupID != string(volumetest.SnapshotID(1)) || v.SnapshotID != "" || v.Size != test.size || v.Zone != first(spec.Zones) || c.Count("CreateVolume") != 1 {
						t.Errorf("got %v, %v", v, err)
					}
					m := c.VolumesByID[v.ID].Metadata
					if m[contract.MetadataCluster] != "cluster" || m["mine"] != "1" || m["theirs"] != "1" || c.Count("AddMetadata") != 1 {
						t.Errorf("metadata %v after %v", m, c.Calls)
					}
				}
			})
		})
	}
}

func TestCreateFromABackupNeedsItsMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud().WithBackups(volumetest.NewBackup(volume.Available))
		c.Fail["AddMetadata"] = volume.Errorf(volume.Unavailable, "down")
		spec := CreateSpec{Name: "restored", Snapshot: volumetest.SnapshotID(1)}
		_, err := service(c).Create(volumetest.Within(t, 60), spec)
		volumetest.WantKind(t, err, volume.Unavailable, true)
		delete(c.Fail, "AddMetadata")
		if v, err := service(c).Create(volumetest.Within(t, 60), spec); err != nil || c.Count("CreateVolume") != 1 {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestCreateDeletesAFailedRestore(t *testing.T) {
	for _, outcome := range []volume.Status{"error", "error_restoring"} {
		synctest.Test(t, func(t *testing.T) {
			c := volumetest.NewCloud().WithBackups(volumetest.NewBackup(volume.Available))
			c.Outcome = outcome
			_, err := service(c).Create(volumetest.Within(t, 60), CreateSpec{Name: "restored", Snapshot: volumetest.SnapshotID(1)})
			if volumetest.WantKind(t, err, volume.Failed, false); len(c.VolumesByID) != 0 {
				t.Errorf("left: %v", c.VolumesByID)
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
		"":                               {becomes: string(volumetest.SnapshotID(1)), snapshot: volumetest.SnapshotID(1)},
		string(volumetest.SnapshotID(2)): {becomes: string(volumetest.SnapshotID(1)), snapshot: volumetest.SnapshotID(1)},
		string(volumetest.SnapshotID(1)): {becomes: string(volumetest.SnapshotID(2)), snapshot: volumetest.SnapshotID(1), kind: volume.Incompatible},
		string(volumetest.SnapshotID(3)): {becomes: "", snapshot: volumetest.SnapshotID(1), kind: volume.Incompatible},
		string(volumetest.SnapshotID(4)): {becomes: string(volumetest.SnapshotID(4)), snapshot: "", kind: volume.Incompatible},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := volumetest.OwnVolume(2, volume.Creating)
			v.BackupID = meanwhile
			c := volumetest.NewCloud(v)
			c.Later(v.ID, func(v *volume.Volume) { v.Status, v.BackupID = volume.Available, test.becomes })
			got, err := service(c).Create(volumetest.Within(t, 60), CreateSpec{Name: v.Name, Snapshot: test.snapshot})
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
				ID: volumetest.VolumeID(n), Name: "restored", Status: volume.Available, Size: volume.GiB(3), BackupID: string(volumetest.SnapshotID(1)), CreatedAt: time.Now().Add(time.Duration(second) * time.Second),
				Description: contract.DescriptionOfRestored(volumetest.TestOwner.Token("restored"), time.Now().Add(time.Duration(second)*time.Second)), Metadata: map[string]string{contract.MetadataCluster: "another"},
			}
		}
		young, attached, foreign := restored(3, 1), restored(4, 2), restored(5, 3)
		attached.Attachments = []volume.Attachment{{Server: volumetest.ServerA}}
		foreign.Description = contract.Description
		c := volumetest.NewCloud(restored(2, 0), young, attached, foreign).WithBackups(volumetest.NewBackup(volume.Available))
		v, err := service(c).Create(volumetest.Within(t, 60), CreateSpec{Name: "restored", Snapshot: volumetest.SnapshotID(1)})
		if err != nil || v.ID != volumetest.VolumeID(2) || c.VolumesByID[volumetest.VolumeID(2)].Metadata[contract.MetadataCluster] != "cluster" {
			t.Errorf("got %v, %v", v, err)
		}
		if _, left := c.VolumesByID[volumetest.VolumeID(3)]; left || len(c.VolumesByID) != 3 {
			t.Errorf("left: %v", c.VolumesByID)
		}
	})
}
