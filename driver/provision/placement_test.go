package provision

import (
	"testing"
	"testing/synctest"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func TestCreateFromASnapshot(t *testing.T) {
	for name, test := range map[string]struct {
		spec  CreateSpec
		size  volume.Size // 0: an error of that kind
		kind  volume.Kind
		asked int // POSTs that it took
	}{
		"goes to the zone of the snapshot's volume": {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(3)}}, size: volume.GiB(3)},
		"with a label of that zone too":             {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(3)}, Zones: []string{"az1", "az-2"}}, size: volume.GiB(3)},
		"may be larger":                             {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(9)}}, size: volume.GiB(9)},
		"of any size has the snapshot's":            {spec: CreateSpec{}, size: volume.GiB(3)},
		"into another zone":                         {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(3)}, Zones: []string{"az1"}}, kind: volume.NotInZone, asked: 1},
		"that is smaller":                           {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(2)}}, kind: volume.OutOfRange},
		"that must be smaller":                      {spec: CreateSpec{Size: volume.Range{Limit: volume.GiB(2)}}, kind: volume.OutOfRange},
		"that does not exist":                       {spec: CreateSpec{Snapshot: cloudtest.SnapshotID(9)}, kind: volume.NotFound},
		"whose ID is no UUID":                       {spec: CreateSpec{Snapshot: "../types"}, kind: volume.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.NewWith(t, zoned("az1", "az 2"), sourceVolume()).WithSnapshots(cloudtest.OwnSnapshot(1, volume.Available))
				spec := test.spec
				spec.Name = "restored"
				if spec.Snapshot == "" {
					spec.Snapshot = cloudtest.SnapshotID(1)
				}
				for n := range 2 { // the second finds the first's
					v, err := service(c).Create(cloudtest.Within(t, 60), spec)
					if test.size == 0 {
						cloudtest.WantKind(t, err, test.kind, false)
						if c.Count("CreateVolume") != test.asked*(n+1) {
							t.Error(c.Calls)
						}
						continue
					}
					if err != nil || v.Zone != sourceVolume().Zone || v.SnapshotID != string(cloudtest.SnapshotID(1)) || v.Size != test.size || c.Count("CreateVolume") != 1 {
						t.Errorf("got %v, %v", v, err)
					}
				}
			})
		})
	}
}

func TestCreateFromASnapshotWithoutVolumeUsesTheTopology(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(cloudtest.OwnSnapshot(1, volume.Available))
		c.Fail["Volume"] = volume.NoVolume(cloudtest.SourceVolume.ID)
		v, err := service(c).Create(cloudtest.Within(t, 60), CreateSpec{Name: "restored", Snapshot: cloudtest.SnapshotID(1), Zones: []string{"az1"}})
		if err != nil || v.Zone != "az1" {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestCreateFromASourceInEveryStatus(t *testing.T) {
	want := map[volume.Step]volume.Kind{volume.Wait: volume.Busy, volume.BeingDeleted: volume.NotFound, volume.Refuse: volume.Conflict}
	check := func(t *testing.T, v volume.Volume, snapshots []volume.Snapshot, spec CreateSpec, step volume.Step) {
		spec.Name = "made"
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, v).WithSnapshots(snapshots...)
			_, err := service(c).Create(cloudtest.Within(t, 60), spec)
			if step == volume.Proceed {
				if err != nil {
					t.Error(err)
				}
				return
			}
			cloudtest.WantKind(t, err, want[step], false)
			if c.Count("CreateVolume") != 0 {
				t.Error(c.Calls)
			}
		})
	}
	for _, status := range cloudtest.EveryStatus {
		v := cloudtest.SourceVolume
		v.Status = status
		t.Run("volume "+string(status), func(t *testing.T) {
			check(t, v, nil, CreateSpec{Source: v.ID}, status.Meaning().Extend)
		})
	}
	for _, status := range cloudtest.EverySnapshotStatus {
		t.Run("snapshot "+string(status), func(t *testing.T) {
			check(t, cloudtest.SourceVolume, []volume.Snapshot{cloudtest.OwnSnapshot(1, status)}, CreateSpec{Snapshot: cloudtest.SnapshotID(1)}, status.SnapshotMeaning().Source)
		})
	}
}

func TestCreateWithAVolumeOfAnotherSourceIsIncompatible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fromSnapshot, clone := cloudtest.OwnVolume(2, volume.Available), cloudtest.OwnVolume(2, volume.Available)
		fromSnapshot.SnapshotID, clone.SourceID = string(cloudtest.SnapshotID(1)), cloudtest.VolumeID(1)
		for name, test := range map[string]struct {
			is   volume.Volume
			spec CreateSpec
		}{
			"empty instead of restored":  {cloudtest.OwnVolume(2, volume.Available), CreateSpec{Snapshot: cloudtest.SnapshotID(1)}},
			"of another snapshot":        {fromSnapshot, CreateSpec{Snapshot: cloudtest.SnapshotID(2)}},
			"restored instead of empty":  {fromSnapshot, CreateSpec{}},
			"cloned instead of restored": {clone, CreateSpec{Snapshot: cloudtest.SnapshotID(1)}},
			"restored instead of cloned": {fromSnapshot, CreateSpec{Source: cloudtest.VolumeID(1)}},
		} {
			spec := test.spec
			spec.Name, spec.Size = "pvc-1", volume.Range{Required: volume.GiB(1)}
			_, err := service(cloudtest.New(t, test.is)).Create(t.Context(), spec)
			if !volume.Is(err, volume.Incompatible) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}
