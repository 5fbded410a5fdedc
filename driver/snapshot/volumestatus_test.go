package snapshot

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func TestCreateOfAVolumeInUse(t *testing.T) {
	old := volume.Errorf(volume.Unimplemented, "no such microversion")
	for name, test := range map[string]struct {
		status volume.Status
		old    bool
		force  bool
		calls  []string
		kind   volume.Kind
	}{
		"available":                        {status: volume.Available, calls: []string{"CreateSnapshot"}},
		"available, by force":              {status: volume.Available, force: true, calls: []string{"CreateSnapshot"}},
		"in use":                           {status: volume.InUse, calls: []string{"CreateSnapshot in use"}},
		"in use, old cloud, without force": {status: volume.InUse, old: true, calls: []string{"CreateSnapshot in use"}, kind: volume.Conflict},
		"in use, old cloud, by force":      {status: volume.InUse, old: true, force: true, calls: []string{"CreateSnapshot in use", "CreateSnapshot by force"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := cloudtest.SourceVolume
				v.Status = test.status
				c := cloudtest.New(t, v)
				if test.old {
					c.Fail["CreateSnapshot in use"] = old
				}
				spec := snapshotSpec
				spec.Force = test.force
				_, err := snapshots(c).Create(cloudtest.Within(t, 60), spec)
				if test.kind != volume.Unknown {
					cloudtest.WantKind(t, err, test.kind, false)
					if !strings.Contains(err.Error(), "force-create") {
						t.Errorf("it does not say what to do: %v", err)
					}
				} else if err != nil {
					t.Error(err)
				}
				asked := slices.DeleteFunc(c.Calls, func(call string) bool { return !strings.HasPrefix(call, "CreateSnapshot") })
				if diff := cmp.Diff(test.calls, asked); diff != "" {
					t.Error("-want +got\n", diff)
				}
			})
		})
	}
}

// A snapshot or backup of a volume that still waits for its backup would have no data.
func TestNoSnapshotOfAVolumeThatWaitsForItsBackup(t *testing.T) {
	for _, spec := range []Spec{snapshotSpec, {Name: snapshotSpec.Name, Volume: snapshotSpec.Volume, Backup: &BackupSpec{}}} {
		synctest.Test(t, func(t *testing.T) {
			v := cloudtest.SourceVolume
			v.Metadata = map[string]string{contract.MetadataRestore: string(cloudtest.SnapshotID(1))}
			c := cloudtest.New(t, v)
			_, err := snapshots(c).Create(cloudtest.Within(t, 60), spec)
			if cloudtest.WantKind(t, err, volume.Busy, false); c.CountPrefix("Create") != 0 {
				t.Errorf("%v after %v", err, c.Calls)
			}
		})
	}
}

// Depending on the status of the volume, Create sends the request at once, after the status has changed, or never.
func TestCreateOfAVolumeInEveryStatus(t *testing.T) {
	for _, status := range cloudtest.EveryStatus {
		t.Run(string(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := cloudtest.SourceVolume
				v.Status = status
				c := cloudtest.New(t, v)
				_, err := snapshots(c).Create(cloudtest.Within(t, 60), snapshotSpec)
				switch {
				case status == volume.Available || status == volume.InUse:
					if err != nil {
						t.Error(err)
					}
					return
				case status.Meaning().Extend == volume.Wait:
					cloudtest.WantKind(t, err, volume.DeadlineExceeded, false)
				case status.Meaning().Extend == volume.BeingDeleted:
					cloudtest.WantKind(t, err, volume.NotFound, false)
				default:
					cloudtest.WantKind(t, err, volume.Conflict, false)
				}
				if c.Count("CreateSnapshot") != 0 {
					t.Error(c.Calls)
				}
			})
		})
	}
}

func TestCreateWaitsForAChangingVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := cloudtest.SourceVolume
		v.Status = "attaching"
		c := cloudtest.New(t, v)
		c.Later(v.ID, func(v *volume.Volume) { v.Status = volume.InUse })
		if _, err := snapshots(c).Create(cloudtest.Within(t, 60), snapshotSpec); err != nil || c.Count("CreateSnapshot in use") != 1 {
			t.Error(err, c.Calls)
		}
	})
}
