package provision

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
	"github.com/google/go-cmp/cmp"
)

const fastID = "11111111-0000-4000-8000-000000000001"

// retypable is a cloud of two types with one volume of the type slow.
func retypable(status volume.Status) *volumetest.Cloud {
	c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: status, Type: "slow", Metadata: map[string]string{"team": "a", "other": "stays"}})
	c.VolumeTypes = []volume.Type{{ID: "11111111-0000-4000-8000-000000000002", Name: "slow"}, {ID: fastID, Name: "fast"}}
	return c
}

func TestModifyWritesOnlyWhatDiffers(t *testing.T) {
	for name, test := range map[string]struct {
		change Change
		writes []string
		want   volume.Volume
	}{
		"nothing":                      {want: volume.Volume{Type: "slow", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"all as it is":                 {change: Change{Type: "slow", Metadata: map[string]string{"team": "a"}}, want: volume.Volume{Type: "slow", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"its type in other letters":    {change: Change{Type: "SLOW"}, want: volume.Volume{Type: "slow", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"its type by id":               {change: Change{Type: "11111111-0000-4000-8000-000000000002"}, want: volume.Volume{Type: "slow", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"another type":                 {change: Change{Type: "fast"}, writes: []string{"Retype " + string(volumetest.VolumeID(1)) + fastID + "false"}, want: volume.Volume{Type: "fast", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"another type by id, may move": {change: Change{Type: fastID, Migrate: true}, writes: []string{"Retype " + string(volumetest.VolumeID(1)) + fastID + "true"}, want: volume.Volume{Type: "fast", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"metadata": {
			change: Change{Metadata: map[string]string{"team": "b", "new": ""}}, writes: []string{"AddMetadata " + string(volumetest.VolumeID(1))},
			want: volume.Volume{Type: "slow", Metadata: map[string]string{"team": "b", "new": "", "other": "stays"}},
		},
		"both": {
			change: Change{Type: "fast", Metadata: map[string]string{"team": "b"}},
			writes: []string{"Retype " + string(volumetest.VolumeID(1)) + fastID + "false", "AddMetadata " + string(volumetest.VolumeID(1))},
			want:   volume.Volume{Type: "fast", Metadata: map[string]string{"team": "b", "other": "stays"}},
		},
	} {
		for _, status := range []volume.Status{volume.Available, volume.InUse} {
			synctest.Test(t, func(t *testing.T) {
				c := retypable(status)
				if err := service(c).Modify(volumetest.Within(t, 60), volumetest.VolumeID(1), test.change); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				var writes []string
				for _, call := range c.Calls {
					if strings.HasPrefix(call, "Retype") || strings.HasPrefix(call, "AddMetadata") {
						writes = append(writes, call)
					}
				}
				if diff := cmp.Diff(test.writes, writes); diff != "" {
					t.Errorf("%s: writes (-want +got):\n%s", name, diff)
				}
				got, _ := c.Read(volumetest.VolumeID(1))
				if diff := cmp.Diff(test.want, volume.Volume{Type: got.Type, Metadata: got.Metadata}); diff != "" || got.Status != status {
					t.Errorf("%s: status %s (-want +got):\n%s", name, got.Status, diff)
				}
			})
		}
	}
}

func TestModifyReportsARetypeThatCinderDidNotCarryOut(t *testing.T) {
	for _, migrate := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := retypable(volume.Available)
			c.Stubborn, c.Reason = true, "no host is right"
			err := service(c).Modify(volumetest.Within(t, 60), volumetest.VolumeID(1), Change{Type: "fast", Migrate: migrate, Metadata: map[string]string{"new": "1"}})
			kind := map[bool]volume.Kind{false: volume.InvalidArgument, true: volume.Failed}[migrate]
			volumetest.WantKind(t, err, kind, false) // nothing was changed, so the answer may be final
			if !strings.Contains(err.Error(), "no host is right") || strings.Contains(err.Error(), "policy: on-demand") == migrate {
				t.Error(err)
			}
			if c.Count("AddMetadata") != 0 {
				t.Errorf("metadata of a change that failed: %v", c.Calls)
			}
		})
	}
}

func TestModifyWaitsForARetypeInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := retypable("retyping")
		c.Later(volumetest.VolumeID(1), func(v *volume.Volume) { v.Status, v.Type = volume.InUse, "fast" })
		if err := service(c).Modify(volumetest.Within(t, 60), volumetest.VolumeID(1), Change{Type: "fast"}); err != nil || c.Count("Retype") != 0 {
			t.Errorf("got %v after %v", err, c.Calls)
		}
	})
}

func TestModifyRefuses(t *testing.T) {
	refused := volume.Errorf(volume.Conflict, "Retype needs volume to be in available or in-use state")
	for name, test := range map[string]struct {
		id     volume.ID
		change Change
		before func(c *volumetest.Cloud)
		kind   volume.Kind
		sent   bool
		text   string
	}{
		"no volume":                 {id: volumetest.VolumeID(9), kind: volume.NotFound},
		"no volume's id":            {id: "vol", kind: volume.NotFound},
		"a volume that is going":    {id: volumetest.VolumeID(1), before: func(c *volumetest.Cloud) { c.VolumesByID[volumetest.VolumeID(1)].Status = volume.Deleting }, kind: volume.NotFound, text: "being deleted"},
		"an unknown type":           {id: volumetest.VolumeID(1), change: Change{Type: "fsat"}, kind: volume.InvalidArgument, text: "did you mean fast?"},
		"types that cannot be read": {id: volumetest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *volumetest.Cloud) { c.Fail["Types"] = volume.Errorf(volume.Unavailable, "out") }, kind: volume.Unavailable},
		"Cinder refuses":            {id: volumetest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *volumetest.Cloud) { c.Fail["Retype"] = refused }, kind: volume.Conflict, text: "Retype needs"},
		"no quota":                  {id: volumetest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *volumetest.Cloud) { c.Fail["Retype"] = volume.Errorf(volume.Exhausted, "gigabytes_fast") }, kind: volume.Exhausted},
		"an answer that is lost":    {id: volumetest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *volumetest.Cloud) { c.Fail["Retype"] = volume.Errorf(volume.Unavailable, "lost").AfterWrite() }, kind: volume.Unavailable, sent: true},
		"it changed before Cinder did": {id: volumetest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *volumetest.Cloud) {
			c.Fail["Retype"] = refused
			c.Hook["Retype"] = func() { c.Change(volumetest.VolumeID(1), func(v *volume.Volume) { v.Status = "extending" }) }
		}, kind: volume.Busy, text: "extending"},
		"it ends in an error":         {id: volumetest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *volumetest.Cloud) { c.Outcome = volume.ErrorStatus }, kind: volume.Failed, sent: true, text: "status error"},
		"metadata after the type":     {id: volumetest.VolumeID(1), change: Change{Type: "fast", Metadata: map[string]string{"a": "b"}}, before: func(c *volumetest.Cloud) { c.Fail["AddMetadata"] = volume.Errorf(volume.PermissionDenied, "no") }, kind: volume.PermissionDenied, sent: true},
		"metadata alone":              {id: volumetest.VolumeID(1), change: Change{Metadata: map[string]string{"a": "b"}}, before: func(c *volumetest.Cloud) { c.Fail["AddMetadata"] = volume.Errorf(volume.PermissionDenied, "no") }, kind: volume.PermissionDenied},
		"it goes while it is retyped": {id: volumetest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *volumetest.Cloud) { c.Hook["Retype"] = func() { c.Remove(volumetest.VolumeID(1)) } }, kind: volume.NotFound, sent: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := retypable(volume.Available)
				if test.before != nil {
					test.before(c)
				}
				err := service(c).Modify(volumetest.Within(t, 60), test.id, test.change)
				volumetest.WantKind(t, err, test.kind, test.sent)
				if !strings.Contains(err.Error(), test.text) {
					t.Error(err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // someone else was faster: done
		c := retypable(volume.Available)
		c.Fail["Retype"] = refused
		c.Hook["Retype"] = func() { c.Change(volumetest.VolumeID(1), func(v *volume.Volume) { v.Type = "fast" }) }
		if err := service(c).Modify(volumetest.Within(t, 60), volumetest.VolumeID(1), Change{Type: "fast"}); err != nil {
			t.Error(err)
		}
	})
}

func testModifyIn(t *testing.T, status volume.Status) {
	synctest.Test(t, func(t *testing.T) {
		c := retypable(status)
		err := service(c).Modify(volumetest.Within(t, 60), volumetest.VolumeID(1), Change{Type: "fast"})
		sent := c.Count("Retype") == 1
		wantByExtendStatus(t, status, err, sent)
	})
}

func TestModifyTwiceAtOnceIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := retypable(volume.Available)
		s := service(c)
		c.Hook["Retype"] = func() {
			volumetest.WantKind(t, s.Modify(volumetest.Within(t, 60), volumetest.VolumeID(1), Change{Type: "fast"}), volume.Busy, false)
		}
		if err := s.Modify(volumetest.Within(t, 60), volumetest.VolumeID(1), Change{Type: "fast"}); err != nil || c.Count("Retype") != 1 {
			t.Errorf("got %v after %v", err, c.Calls)
		}
	})
}

func TestModifyInEveryStatus(t *testing.T) {
	for _, status := range volumetest.EveryStatus {
		t.Run(string(status), func(t *testing.T) { testModifyIn(t, status) })
	}
}
