package provision

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
	"github.com/google/go-cmp/cmp"
)

const fastID = "11111111-0000-4000-8000-000000000001"

// retypable is a cloud of two types with one volume of the type slow.
func retypable(t *testing.T, status volume.Status) *cloudtest.Cloud {
	t.Helper()
	return cloudtest.NewWith(t, func(config *openstacksim.Config) {
		config.VolumeTypes = []openstacksim.VolumeType{{ID: "11111111-0000-4000-8000-000000000002", Name: "slow"}, {ID: fastID, Name: "fast"}}
		config.DefaultVolumeType = "slow"
	}, volume.Volume{ID: cloudtest.VolumeID(1), Status: status, Size: volume.GiB(1), Type: "slow", Metadata: map[string]string{"team": "a", "other": "stays"}})
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
		"another type":                 {change: Change{Type: "fast"}, writes: []string{"Retype " + string(cloudtest.VolumeID(1)) + fastID + "false"}, want: volume.Volume{Type: "fast", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"another type by id, may move": {change: Change{Type: fastID, Migrate: true}, writes: []string{"Retype " + string(cloudtest.VolumeID(1)) + fastID + "true"}, want: volume.Volume{Type: "fast", Metadata: map[string]string{"team": "a", "other": "stays"}}},
		"metadata": {
			change: Change{Metadata: map[string]string{"team": "b", "new": ""}}, writes: []string{"AddMetadata " + string(cloudtest.VolumeID(1))},
			want: volume.Volume{Type: "slow", Metadata: map[string]string{"team": "b", "new": "", "other": "stays"}},
		},
		"a key to remove, and one that the volume lacks": {
			change: Change{Remove: []string{"missing", "team"}}, writes: []string{"RemoveMetadata " + string(cloudtest.VolumeID(1)) + "team"},
			want: volume.Volume{Type: "slow", Metadata: map[string]string{"other": "stays"}},
		},
		"type, metadata and removal": {
			change: Change{Type: "fast", Metadata: map[string]string{"new": "1"}, Remove: []string{"team"}},
			writes: []string{"Retype " + string(cloudtest.VolumeID(1)) + fastID + "false", "AddMetadata " + string(cloudtest.VolumeID(1)), "RemoveMetadata " + string(cloudtest.VolumeID(1)) + "team"},
			want:   volume.Volume{Type: "fast", Metadata: map[string]string{"new": "1", "other": "stays"}},
		},
		"both": {
			change: Change{Type: "fast", Metadata: map[string]string{"team": "b"}},
			writes: []string{"Retype " + string(cloudtest.VolumeID(1)) + fastID + "false", "AddMetadata " + string(cloudtest.VolumeID(1))},
			want:   volume.Volume{Type: "fast", Metadata: map[string]string{"team": "b", "other": "stays"}},
		},
	} {
		for _, status := range []volume.Status{volume.Available, volume.InUse} {
			synctest.Test(t, func(t *testing.T) {
				c := retypable(t, status)
				if err := service(c).Modify(cloudtest.Within(t, 60), cloudtest.VolumeID(1), test.change); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				var writes []string
				for _, call := range c.Calls {
					if strings.HasPrefix(call, "Retype") || strings.HasPrefix(call, "AddMetadata") || strings.HasPrefix(call, "RemoveMetadata") {
						writes = append(writes, call)
					}
				}
				if diff := cmp.Diff(test.writes, writes); diff != "" {
					t.Errorf("%s: writes (-want +got):\n%s", name, diff)
				}
				got, _ := c.Read(cloudtest.VolumeID(1))
				if diff := cmp.Diff(test.want, volume.Volume{Type: got.Type, Metadata: got.Metadata}); diff != "" || got.Status != status {
					t.Errorf("%s: status %s (-want +got):\n%s", name, got.Status, diff)
				}
			})
		}
	}
}

func TestModifyRemovesAKeyThatGoesMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(c *cloudtest.Cloud)
		kind      volume.Kind
	}{
		"the key": {func(c *cloudtest.Cloud) {
			c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { delete(v.Metadata, "team") })
		}, volume.Unknown},
		"the volume": {func(c *cloudtest.Cloud) { c.Remove(cloudtest.VolumeID(1)) }, volume.NotFound},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := retypable(t, volume.Available)
			c.Hook["RemoveMetadata"] = func() { test.meanwhile(c) }
			err := service(c).Modify(cloudtest.Within(t, 60), cloudtest.VolumeID(1), Change{Remove: []string{"team"}})
			if (err == nil) != (test.kind == volume.Unknown) || err != nil && !volume.Is(err, test.kind) || c.Count("RemoveMetadata") != 1 {
				t.Errorf("%s goes: %v after %v", name, err, c.Calls)
			}
		})
	}
}

func TestModifyReportsARetypeThatCinderDidNotCarryOut(t *testing.T) {
	for _, migrate := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := retypable(t, volume.Available)
			c.Reason = "no host is right"
			c.Sim.SetFault(openstacksim.Fault{Operation: openstacksim.RetypeVolume})
			err := service(c).Modify(cloudtest.Within(t, 60), cloudtest.VolumeID(1), Change{Type: "fast", Migrate: migrate, Metadata: map[string]string{"new": "1"}})
			kind := map[bool]volume.Kind{false: volume.InvalidArgument, true: volume.Failed}[migrate]
			cloudtest.WantKind(t, err, kind, false) // nothing was changed, so the answer may be final
			if !strings.Contains(err.Error(), "no host is right") || strings.Contains(err.Error(), "policy: on-demand") == migrate {
				t.Error(err)
			}
			if c.Count("AddMetadata") != 0 {
				t.Errorf("metadata of a change that failed: %v", c.Calls)
			}
		})
	}
}

// A volume in an error status is no success, whatever type it shows.
func TestModifyIsNotDoneInAnErrorStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := retypable(t, volume.Available)
		c.Sim.SetLatency(openstacksim.RetypeVolume, time.Hour)
		c.Hook["Retype"] = func() { c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status, v.Type = "error", "fast" }) }
		err := service(c).Modify(cloudtest.Within(t, 60), cloudtest.VolumeID(1), Change{Type: "fast"})
		cloudtest.WantKind(t, err, volume.Failed, true)
	})
}

func TestModifyWaitsForARetypeInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := retypable(t, "retyping")
		c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status, v.Type = volume.InUse, "fast" })
		if err := service(c).Modify(cloudtest.Within(t, 60), cloudtest.VolumeID(1), Change{Type: "fast"}); err != nil || c.Count("Retype") != 0 {
			t.Errorf("got %v after %v", err, c.Calls)
		}
	})
}

func numberedMetadata(n int, value string) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[strconv.Itoa(i)] = value
	}
	return m
}

func TestModifyRefuses(t *testing.T) {
	refused := volume.Errorf(volume.Conflict, "Retype needs volume to be in available or in-use state")
	for name, test := range map[string]struct {
		id     volume.ID
		change Change
		before func(c *cloudtest.Cloud)
		kind   volume.Kind
		sent   bool
		text   string
	}{
		"no volume":              {id: cloudtest.VolumeID(9), kind: volume.NotFound},
		"no volume's id":         {id: "vol", kind: volume.NotFound},
		"a volume that is going": {id: cloudtest.VolumeID(1), before: func(c *cloudtest.Cloud) { c.Put(cloudtest.OwnVolume(1, volume.Deleting)) }, kind: volume.NotFound, text: "being deleted"},
		"metadata without end": {id: cloudtest.VolumeID(1), change: Change{Metadata: map[string]string{"b": strings.Repeat("本", 255)}}, before: func(c *cloudtest.Cloud) {
			c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { maps.Copy(v.Metadata, numberedMetadata(21, strings.Repeat("本", 255))) })
		}, kind: volume.InvalidArgument, text: "bytes"},
		"values that grow": {id: cloudtest.VolumeID(1), change: Change{Metadata: numberedMetadata(22, strings.Repeat("本", 255))}, before: func(c *cloudtest.Cloud) {
			c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { maps.Copy(v.Metadata, numberedMetadata(22, "a")) })
		}, kind: volume.InvalidArgument, text: "bytes"},
		"an unknown type":           {id: cloudtest.VolumeID(1), change: Change{Type: "fsat"}, kind: volume.InvalidArgument, text: "did you mean fast?"},
		"types that cannot be read": {id: cloudtest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *cloudtest.Cloud) { c.Fail["Types"] = volume.Errorf(volume.Unavailable, "out") }, kind: volume.Unavailable},
		"Cinder refuses":            {id: cloudtest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *cloudtest.Cloud) { c.Fail["Retype"] = refused }, kind: volume.Conflict, text: "Retype needs"},
		"no quota":                  {id: cloudtest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *cloudtest.Cloud) { c.Fail["Retype"] = volume.Errorf(volume.Exhausted, "gigabytes_fast") }, kind: volume.Exhausted},
		"an answer that is lost":    {id: cloudtest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *cloudtest.Cloud) { c.Fail["Retype"] = volume.Errorf(volume.Unavailable, "lost").AfterWrite() }, kind: volume.Unavailable, sent: true},
		"it changed before Cinder did": {id: cloudtest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *cloudtest.Cloud) {
			c.Fail["Retype"] = refused
			c.Hook["Retype"] = func() { c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = "extending" }) }
		}, kind: volume.Busy, text: "extending"},
		"it has a snapshot that Cinder 24 cannot store": {id: cloudtest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *cloudtest.Cloud) {
			c.Cinder24 = true
			c.WithSnapshots(cloudtest.OwnSnapshot(1, volume.Available))
		}, kind: volume.Conflict, text: "snapshot " + string(cloudtest.SnapshotID(1)) + " with metadata"},
		"its snapshots cannot be read": {id: cloudtest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *cloudtest.Cloud) {
			c.Sim.SetFault(openstacksim.Fault{Path: "/volume/v3/*/snapshots/detail", Status: 403})
		}, kind: volume.PermissionDenied, text: "list snapshots"},
		"the release of Cinder cannot be read": {id: cloudtest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *cloudtest.Cloud) {
			c.WithSnapshots(cloudtest.OwnSnapshot(1, volume.Available))
			c.Fail["SnapshotStopsRetype"] = volume.Errorf(volume.Unavailable, "out")
		}, kind: volume.Unavailable, text: "modify"},
		"its snapshot goes meanwhile": {id: cloudtest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *cloudtest.Cloud) {
			c.WithSnapshots(cloudtest.OwnSnapshot(1, volume.Available))
			c.Fail["SnapshotStopsRetype"] = volume.NoSnapshot(cloudtest.SnapshotID(1))
		}, kind: volume.Busy, text: "gone meanwhile"},
		"it ends in an error": {id: cloudtest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *cloudtest.Cloud) {
			c.Sim.SetLatency(openstacksim.RetypeVolume, time.Hour)
			c.Hook["Retype"] = func() { c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = volume.ErrorStatus }) }
		}, kind: volume.Failed, sent: true, text: "status error"},
		"metadata after the type": {id: cloudtest.VolumeID(1), change: Change{Type: "fast", Metadata: map[string]string{"a": "b"}}, before: func(c *cloudtest.Cloud) { c.Fail["AddMetadata"] = volume.Errorf(volume.PermissionDenied, "no") }, kind: volume.PermissionDenied, sent: true},
		"removal alone":           {id: cloudtest.VolumeID(1), change: Change{Remove: []string{"team"}}, before: func(c *cloudtest.Cloud) { c.Fail["RemoveMetadata"] = volume.Errorf(volume.PermissionDenied, "no") }, kind: volume.PermissionDenied},
		"removal after metadata":  {id: cloudtest.VolumeID(1), change: Change{Metadata: map[string]string{"a": "b"}, Remove: []string{"team"}}, before: func(c *cloudtest.Cloud) { c.Fail["RemoveMetadata"] = volume.Errorf(volume.PermissionDenied, "no") }, kind: volume.PermissionDenied, sent: true},
		"metadata alone":          {id: cloudtest.VolumeID(1), change: Change{Metadata: map[string]string{"a": "b"}}, before: func(c *cloudtest.Cloud) { c.Fail["AddMetadata"] = volume.Errorf(volume.PermissionDenied, "no") }, kind: volume.PermissionDenied},
		"it goes while it is retyped": {id: cloudtest.VolumeID(1), change: Change{Type: "fast"}, before: func(c *cloudtest.Cloud) {
			c.Hook["Retype"] = func() { time.AfterFunc(500*time.Millisecond, func() { c.Remove(cloudtest.VolumeID(1)) }) }
		}, kind: volume.NotFound, sent: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := retypable(t, volume.Available)
				if test.before != nil {
					test.before(c)
				}
				err := service(c).Modify(cloudtest.Within(t, 60), test.id, test.change)
				cloudtest.WantKind(t, err, test.kind, test.sent)
				if !strings.Contains(err.Error(), test.text) {
					t.Error(err)
				}
			})
		})
	}
	for name, prepare := range map[string]func(c *cloudtest.Cloud){
		"a snapshot without metadata":           func(c *cloudtest.Cloud) { c.Cinder24 = true; c.WithSnapshots(bare(1)) },
		"a snapshot with metadata on Cinder 21": func(c *cloudtest.Cloud) { c.WithSnapshots(cloudtest.OwnSnapshot(1, volume.Available)) },
		"a snapshot of another volume": func(c *cloudtest.Cloud) {
			c.Cinder24 = true
			c.Put(cloudtest.OwnVolume(2, volume.Available))
			other := cloudtest.OwnSnapshot(1, volume.Available)
			other.Volume = cloudtest.VolumeID(2)
			c.WithSnapshots(other)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := retypable(t, volume.Available)
			prepare(c)
			if err := service(c).Modify(cloudtest.Within(t, 60), cloudtest.VolumeID(1), Change{Type: "fast"}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // someone else was faster: done
		c := retypable(t, volume.Available)
		c.Fail["Retype"] = refused
		c.Hook["Retype"] = func() { c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Type = "fast" }) }
		if err := service(c).Modify(cloudtest.Within(t, 60), cloudtest.VolumeID(1), Change{Type: "fast"}); err != nil {
			t.Error(err)
		}
	})
}

// bare is a snapshot that another program has made without metadata.
func bare(n int) volume.Snapshot {
	p := cloudtest.OwnSnapshot(n, volume.Available)
	p.Metadata = nil
	return p
}

func testModifyIn(t *testing.T, status volume.Status) {
	synctest.Test(t, func(t *testing.T) {
		c := retypable(t, status)
		err := service(c).Modify(cloudtest.Within(t, 60), cloudtest.VolumeID(1), Change{Type: "fast"})
		sent := c.Count("Retype") == 1
		wantByExtendStatus(t, status, err, sent)
	})
}

func TestModifyTwiceAtOnceIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := retypable(t, volume.Available)
		s := service(c)
		c.Hook["Retype"] = func() {
			cloudtest.WantKind(t, s.Modify(cloudtest.Within(t, 60), cloudtest.VolumeID(1), Change{Type: "fast"}), volume.Busy, false)
		}
		if err := s.Modify(cloudtest.Within(t, 60), cloudtest.VolumeID(1), Change{Type: "fast"}); err != nil || c.Count("Retype") != 1 {
			t.Errorf("got %v after %v", err, c.Calls)
		}
	})
}

func TestModifyInEveryStatus(t *testing.T) {
	for _, status := range cloudtest.EveryStatus {
		t.Run(string(status), func(t *testing.T) { testModifyIn(t, status) })
	}
}
