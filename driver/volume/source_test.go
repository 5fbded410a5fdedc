package volume

import (
	"testing"
	"testing/synctest"
)

func TestAVolumeFromASnapshot(t *testing.T) {
	for name, test := range map[string]struct {
		wish  CreateSpec
		size  Size // 0: an error of that kind
		kind  Kind
		asked int // POSTs that it took
	}{
		"goes to the zone of the snapshot's volume": {wish: CreateSpec{Size: Range{Required: GiB(3)}}, size: GiB(3)},
		"with a label of that zone too":             {wish: CreateSpec{Size: Range{Required: GiB(3)}, Zones: []string{"az1", "az-2"}}, size: GiB(3)},
		"may be larger":                             {wish: CreateSpec{Size: Range{Required: GiB(9)}}, size: GiB(9)},
		"of any size has the snapshot's":            {wish: CreateSpec{}, size: GiB(3)},
		"into another zone is for elsewhere":        {wish: CreateSpec{Size: Range{Required: GiB(3)}, Zones: []string{"az1"}}, kind: NotHere, asked: 1},
		"that is smaller is out of range":           {wish: CreateSpec{Size: Range{Required: GiB(2)}}, kind: OutOfRange},
		"that must be smaller is out of range":      {wish: CreateSpec{Size: Range{Limit: GiB(2)}}, kind: OutOfRange},
		"that is not there":                         {wish: CreateSpec{Snapshot: sid(9)}, kind: NotFound},
		"that cannot be: no UUID":                   {wish: CreateSpec{Snapshot: "../types"}, kind: NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source).withSnapshots(pictureOfOurs(1, Available)).sameZoneOnly(source.Zone)
				w := test.wish
				w.Name = "restored"
				if w.Snapshot == "" {
					w.Snapshot = sid(1)
				}
				for n := range 2 { // the second finds the first's
					v, err := service(c).Create(within(t, 60), w)
					if test.size == 0 {
						wantKind(t, err, test.kind, false)
						if c.count("CreateVolume") != test.asked*(n+1) {
							t.Error(c.calls)
						}
						continue
					}
					if err != nil || v.Zone != source.Zone || v.SnapshotID != string(sid(1)) || v.Size != test.size || c.count("CreateVolume") != 1 {
						t.Errorf("got %v, %v", v, err)
					}
				}
			})
		})
	}
}

func TestASnapshotWhoseVolumeCannotBeReadDecidesNoZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud().withSnapshots(pictureOfOurs(1, Available))
		v, err := service(c).Create(within(t, 60), CreateSpec{Name: "restored", Snapshot: sid(1), Zones: []string{"az1"}})
		if err != nil || v.Zone != "az1" {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestASourceInEveryStatus(t *testing.T) {
	want := map[Step]Kind{Wait: Busy, BeingDeleted: NotFound, Refuse: Conflict}
	check := func(t *testing.T, c *fakeCloud, w CreateSpec, step Step) {
		w.Name = "made"
		synctest.Test(t, func(t *testing.T) {
			_, err := service(c).Create(within(t, 60), w)
			if step == Proceed {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantKind(t, err, want[step], false)
			if c.count("CreateVolume") != 0 {
				t.Error(c.calls)
			}
		})
	}
	for _, status := range everyStatus {
		v := source
		v.Status = status
		t.Run("volume "+string(status), func(t *testing.T) { check(t, newCloud(v), CreateSpec{Source: v.ID}, status.Meaning().Extend) })
	}
	for _, status := range everySnapshotStatus {
		t.Run("snapshot "+string(status), func(t *testing.T) {
			check(t, newCloud(source).withSnapshots(pictureOfOurs(1, status)), CreateSpec{Snapshot: sid(1)}, status.SnapshotMeaning().Source)
		})
	}
}

func TestANamedVolumeOfAnotherSourceIsIncompatible(t *testing.T) {
	fromSnapshot, clone := ofOurs(2, Available), ofOurs(2, Available)
	fromSnapshot.SnapshotID, clone.SourceID = string(sid(1)), id(1)
	for name, test := range map[string]struct {
		is   Volume
		wish CreateSpec
	}{
		"blank, a snapshot wished":      {ofOurs(2, Available), CreateSpec{Snapshot: sid(1)}},
		"of another snapshot":           {fromSnapshot, CreateSpec{Snapshot: sid(2)}},
		"of a snapshot, none wished":    {fromSnapshot, CreateSpec{}},
		"a clone, a snapshot wished":    {clone, CreateSpec{Snapshot: sid(1)}},
		"of a snapshot, a clone wished": {fromSnapshot, CreateSpec{Source: id(1)}},
	} {
		w := test.wish
		w.Name, w.Size = "pvc-1", Range{Required: GiB(1)}
		_, err := service(newCloud(test.is)).Create(t.Context(), w)
		if !Is(err, Incompatible) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
