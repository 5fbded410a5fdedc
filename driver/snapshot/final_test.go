package snapshot

import (
	"testing"
	"testing/synctest"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func TestCreateErrorsAreFinalOnlyWhereNothingExists(t *testing.T) {
	for kind := range volume.KindCount {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, cloudtest.SourceVolume)
			c.Fail["CreateSnapshot"] = volume.Errorf(kind, "no")
			_, err := snapshots(c).Create(cloudtest.Within(t, 60), snapshotSpec)
			cloudtest.WantKind(t, err, kind, false)
			c = cloudtest.New(t, cloudtest.SourceVolume)
			c.Fail["SnapshotsNamed"] = volume.Errorf(kind, "no")
			_, err = snapshots(c).Create(cloudtest.Within(t, 60), snapshotSpec)
			cloudtest.WantKind(t, err, kind, kind != volume.NotOwned) // with NotOwned it is read, and others have every object
			if c.Count("CreateSnapshot") != 0 {
				t.Errorf("%s: a snapshot was asked for", kind)
			}
		})
	}
}

func TestCreateIsNotFinalWhileAnotherSnapshotExistsOrMayAppear(t *testing.T) {
	for name, spec := range specs {
		call := map[bool]string{true: "CreateBackup", false: "CreateSnapshot"}[spec.Backup != nil]
		t.Run(name+" refused while another replica's is there", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.SourceVolume)
				c.Fail[call] = volume.Errorf(volume.Exhausted, "HTTP 413")
				c.Hook[call] = func() {
					c.PutSnapshot(spec.Backup != nil, cloudtest.OwnSnapshot(7, volume.Available))
				}
				_, err := snapshots(c).Create(cloudtest.Within(t, 60), spec)
				cloudtest.WantKind(t, err, volume.Exhausted, true)
				if p, err := snapshots(c).Create(cloudtest.Within(t, 60), spec); err != nil || p.ID != cloudtest.SnapshotID(7) {
					t.Errorf("the next try: got %v, %v", p, err)
				}
			})
		})
		t.Run(name+" failed while one of the same second is there", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.SourceVolume)
				c.PutSnapshot(spec.Backup != nil, cloudtest.OwnSnapshot(1, volume.ErrorStatus))
				c.PutSnapshot(spec.Backup != nil, cloudtest.OwnSnapshot(7, volume.Available))
				_, err := snapshots(c).Create(cloudtest.Within(t, 60), spec)
				cloudtest.WantKind(t, err, volume.Failed, true)
				if p, err := snapshots(c).Create(cloudtest.Within(t, 60), spec); err != nil || p.ID != cloudtest.SnapshotID(7) {
					t.Errorf("the next try: got %v, %v", p, err)
				}
			})
		})
		t.Run(name+" refused and its name cannot be read", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.SourceVolume)
				c.Fail[call] = volume.Errorf(volume.Exhausted, "HTTP 413")
				c.Hook[call] = func() {
					c.Fail["SnapshotsNamed"], c.Fail["BackupsNamed"] = volume.Errorf(volume.Unavailable, "HTTP 503"), volume.Errorf(volume.Unavailable, "HTTP 503")
				}
				_, err := snapshots(c).Create(cloudtest.Within(t, 60), spec)
				cloudtest.WantKind(t, err, volume.Exhausted, true)
			})
		})
	}
}

func TestCreateRefusesBeforeItSendsARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			spec Spec
			kind volume.Kind
		}{
			"no name":           {Spec{Volume: cloudtest.VolumeID(1)}, volume.InvalidArgument},
			"no such volume":    {Spec{Name: "s", Volume: cloudtest.VolumeID(9)}, volume.NotFound},
			"no UUID for an id": {Spec{Name: "s", Volume: "../types"}, volume.NotFound},
		} {
			c := cloudtest.New(t, cloudtest.SourceVolume)
			_, err := snapshots(c).Create(t.Context(), test.spec)
			if volume.KindOf(err) != test.kind || volume.MayHaveWritten(err) || c.Count("CreateSnapshot") != 0 {
				t.Errorf("%s: got %v after %v", name, err, c.Calls)
			}
		}
	})
}
