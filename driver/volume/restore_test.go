package volume

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

func TestAVolumeFromABackup(t *testing.T) {
	for name, test := range map[string]struct {
		wish   CreateSpec
		status Status
		cloud  func(*fakeCloud)
		size   Size
		kind   Kind // Unknown: it is made
	}{
		"is as large as the backup":    {size: GiB(3)},
		"may be larger":                {wish: CreateSpec{Size: Range{Required: GiB(9)}}, size: GiB(9)},
		"goes to any zone":             {wish: CreateSpec{Zones: []string{"az1", "az-2"}}, size: GiB(3)},
		"that is smaller":              {wish: CreateSpec{Size: Range{Required: GiB(2)}}, kind: OutOfRange},
		"that is being made":           {status: Creating, kind: Busy},
		"that is being restored":       {status: "restoring", kind: Busy},
		"that failed":                  {status: "error", kind: Conflict},
		"that goes":                    {status: Deleting, kind: NotFound},
		"while backups are not told":   {cloud: func(c *fakeCloud) { c.fail["Backup"] = Errorf(Unavailable, "500") }, kind: Unavailable},
		"while snapshots are not told": {cloud: func(c *fakeCloud) { c.fail["Snapshot"] = Errorf(Unavailable, "500") }, kind: Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := archived(Available)
				if test.status != "" {
					b.Status = test.status
				}
				c := newCloud().withBackups(b) // the volume it is of is gone
				if test.cloud != nil {
					test.cloud(c)
				}
				w := test.wish
				w.Name, w.Snapshot, w.Metadata = "restored", sid(1), map[string]string{"mine": "1"}
				for range 2 { // the second finds the first's
					v, err := service(c).Create(within(t, 60), w)
					if test.kind != Unknown {
						wantKind(t, err, test.kind, false)
						if c.count("CreateVolume") != 0 {
							t.Error(c.calls)
						}
						continue
					}
					if err != nil || v.BackupID != string(sid(1)) || v.SnapshotID != "" || v.Size != test.size || v.Zone != first(w.Zones) || c.count("CreateVolume") != 1 {
						t.Errorf("got %v, %v", v, err)
					}
					m := c.volumes[v.ID].Metadata
					if m[contract.MetadataCluster] != "cluster" || m["mine"] != "1" || m["theirs"] != "1" || c.count("AddMetadata") != 1 {
						t.Errorf("metadata %v after %v", m, c.calls)
					}
				}
			})
		})
	}
}

func TestARestoredVolumeThatCannotBeLabelledIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud().withBackups(archived(Available))
		c.fail["AddMetadata"] = Errorf(Unavailable, "down")
		w := CreateSpec{Name: "restored", Snapshot: sid(1)}
		_, err := service(c).Create(within(t, 60), w)
		wantKind(t, err, Unavailable, true)
		delete(c.fail, "AddMetadata")
		if v, err := service(c).Create(within(t, 60), w); err != nil || c.count("CreateVolume") != 1 {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestAFailedRestoreLeavesNothing(t *testing.T) {
	for _, outcome := range []Status{"error", "error_restoring"} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud().withBackups(archived(Available))
			c.outcome = outcome
			_, err := service(c).Create(within(t, 60), CreateSpec{Name: "restored", Snapshot: sid(1)})
			if wantKind(t, err, Failed, false); len(c.volumes) != 0 {
				t.Errorf("left: %v", c.volumes)
			}
		})
	}
}

// For a moment a volume that is restored has the metadata of the volume that was backed up: none, or another backup's.
func TestAVolumeThatIsBeingRestoredIsJudgedOnceItIsThere(t *testing.T) {
	for meanwhile, test := range map[string]struct {
		becomes string
		wish    SnapshotID
		kind    Kind
	}{
		"":             {becomes: string(sid(1)), wish: sid(1)},
		string(sid(2)): {becomes: string(sid(1)), wish: sid(1)},
		string(sid(1)): {becomes: string(sid(2)), wish: sid(1), kind: Incompatible},
		string(sid(3)): {becomes: "", wish: sid(1), kind: Incompatible},
		string(sid(4)): {becomes: string(sid(4)), wish: "", kind: Incompatible},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := ofOurs(2, Creating)
			v.BackupID = meanwhile
			c := newCloud(v)
			c.later(v.ID, func(v *Volume) { v.Status, v.BackupID = Available, test.becomes })
			got, err := service(c).Create(within(t, 60), CreateSpec{Name: v.Name, Snapshot: test.wish})
			if test.kind == Unknown && (err != nil || got.ID != v.ID) || test.kind != Unknown && !Is(err, test.kind) {
				t.Errorf("%q, then %q: got %v, %v", meanwhile, test.becomes, got, err)
			}
		})
	}
}

// Two replicas restored one backup and both gave up: the younger copy has lost our metadata to the restore, but not its description.
func TestAnAbandonedCopyOfARestoreIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		restored := func(n, second int) Volume {
			return Volume{
				ID: id(n), Name: "restored", Status: Available, Size: GiB(3), BackupID: string(sid(1)), CreatedAt: time.Now().Add(time.Duration(second) * time.Second),
				Description: contract.DescriptionOfRestored(testOwner.Token("restored"), time.Now().Add(time.Duration(second)*time.Second)), Metadata: map[string]string{contract.MetadataCluster: "another"},
			}
		}
		young, attached, foreign := restored(3, 1), restored(4, 2), restored(5, 3)
		attached.Attachments = []Attachment{{Server: serverA}}
		foreign.Description = contract.Description
		c := newCloud(restored(2, 0), young, attached, foreign).withBackups(archived(Available))
		v, err := service(c).Create(within(t, 60), CreateSpec{Name: "restored", Snapshot: sid(1)})
		if err != nil || v.ID != id(2) || c.volumes[id(2)].Metadata[contract.MetadataCluster] != "cluster" {
			t.Errorf("got %v, %v", v, err)
		}
		if _, left := c.volumes[id(3)]; left || len(c.volumes) != 3 {
			t.Errorf("left: %v", c.volumes)
		}
	})
}
