package diagnosis_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
)

// recoverOnly recovers these volumes and snapshots alone.
func recoverOnly(volumes []diagnosis.RecoverableVolume, snapshots ...diagnosis.RecoverableSnapshot) diagnosis.Recovery {
	return diagnosis.Recover(diagnosis.Remains{Volumes: volumes, Snapshots: snapshots}, options)
}

func notesOf(r diagnosis.Recovery) string {
	var all []string
	for _, o := range r.Objects {
		all = append(all, o.Notes...)
	}
	return strings.Join(all, "\n")
}

// The node refuses an fsType that it does not know, so such a PersistentVolume would never be mounted.
func TestARecoveredVolumeNamesNoFileSystemThatTheDriverDoesNotMount(t *testing.T) {
	for fs, want := range map[string]string{"xfs": "xfs", "zfs": "", "": ""} {
		r := recoverOnly([]diagnosis.RecoverableVolume{lostVolume(1, madeFor("shop", "data", "pvc-1", modeKey, "Filesystem", fsKey, fs))})
		if got := volumesOf(t, printed(t, r))[id(1)].Spec.CSI.FSType; got != want {
			t.Errorf("file system %q: want fsType %q, got %q", fs, want, got)
		}
		if noted := strings.Contains(notesOf(r), `file system "zfs"`); noted != (fs == "zfs") {
			t.Errorf("file system %q: got notes %q", fs, notesOf(r))
		}
	}
}

func TestARecoveredRawVolumeHasNoFileSystem(t *testing.T) {
	r := recoverOnly([]diagnosis.RecoverableVolume{lostVolume(1, madeFor("shop", "raw", "pvc-1", modeKey, "Block", fsKey, "ext4"))})
	v := volumesOf(t, printed(t, r))[id(1)]
	if v.Spec.CSI.FSType != "" || string(*v.Spec.VolumeMode) != "Block" {
		t.Errorf("want a raw volume without fsType, got %+v of mode %s", v.Spec.CSI, *v.Spec.VolumeMode)
	}
}

// Two clusters restored from one backup can both make a volume of one name.
func TestTwoVolumesOfOneNameBecomeTwoPersistentVolumes(t *testing.T) {
	r := recoverOnly([]diagnosis.RecoverableVolume{
		lostVolume(1, madeFor("shop", "data", "pvc-1", modeKey, "Filesystem")), lostVolume(2, madeFor("shop", "other", "pvc-1", modeKey, "Filesystem")),
	})
	all := volumesOf(t, printed(t, r))
	if all[id(1)].Name != "recovered-"+id(1) || all[id(2)].Name != "recovered-"+id(2) || !strings.Contains(notesOf(r), `another volume has the name "pvc-1" too`) {
		t.Errorf("got %q and %q: %s", all[id(1)].Name, all[id(2)].Name, notesOf(r))
	}
	if r.FillIns() != 0 {
		t.Errorf("nobody must decide, got %d", r.FillIns())
	}
}

func TestTwoVolumesOfOneClaimWaitForAPerson(t *testing.T) {
	r := recoverOnly([]diagnosis.RecoverableVolume{
		lostVolume(1, madeFor("shop", "data", "pvc-1", modeKey, "Filesystem")), lostVolume(2, madeFor("shop", "data", "pvc-2", modeKey, "Filesystem")),
	})
	all := volumesOf(t, printed(t, r))
	if all[id(1)].Name != diagnosis.FillIn || all[id(2)].Name != diagnosis.FillIn || r.FillIns() != 2 {
		t.Errorf("want no valid names, got %q and %q", all[id(1)].Name, all[id(2)].Name)
	}
	for _, want := range []string{"2 volumes are of claim shop/data", id(1), id(2), "pvc-1", "pvc-2"} {
		if !strings.Contains(notesOf(r), want) {
			t.Errorf("%q is not in %s", want, notesOf(r))
		}
	}
}

func snapshotFor(n int, content string) diagnosis.RecoverableSnapshot {
	return lostSnapshot(n, 1, "available", map[string]string{
		contract.MetadataSnapshotNamespace: "shop", contract.MetadataSnapshotName: "monday", contract.MetadataSnapshotContentName: content,
	})
}

func TestTwoSnapshotsOfOneVolumeSnapshotWaitForAPerson(t *testing.T) {
	r := recoverOnly(nil, snapshotFor(20, "content-20"), snapshotFor(21, "content-21"))
	if r.FillIns() != 2 || strings.Count(printed(t, r), "name: "+diagnosis.FillIn) < 2 {
		t.Errorf("want that a person must decide, got %d: %s", r.FillIns(), printed(t, r))
	}
	for _, want := range []string{"2 objects are of VolumeSnapshot shop/monday", "content-20", "content-21"} {
		if !strings.Contains(notesOf(r), want) {
			t.Errorf("%q is not in %s", want, notesOf(r))
		}
	}
}

func TestTwoContentsOfOneNameBecomeTwo(t *testing.T) {
	other := snapshotFor(21, "content")
	other.Metadata[contract.MetadataSnapshotName] = "tuesday"
	text := printed(t, recoverOnly(nil, snapshotFor(20, "content"), other))
	for _, n := range []int{20, 21} {
		if strings.Count(text, "name: recovered-"+id(n)+"\n") != 1 {
			t.Errorf("want a content with a name of its own for %s: %s", id(n), text)
		}
	}
}

func TestARecoveryForADriverWithoutTopologyNamesNoZone(t *testing.T) {
	volumes := []diagnosis.RecoverableVolume{lostVolume(1, madeFor("shop", "data", "pvc-1", modeKey, "Filesystem"))}
	for _, anyZone := range []bool{false, true} {
		o := options
		o.AnyZone = anyZone
		r := diagnosis.Recover(diagnosis.Remains{Volumes: volumes}, o)
		affinity := volumesOf(t, printed(t, r))[id(1)].Spec.NodeAffinity
		if (affinity == nil) != anyZone {
			t.Errorf("without topology %t: got affinity %+v", anyZone, affinity)
		}
		if anyZone && slices.ContainsFunc(r.Objects[0].Notes, func(note string) bool { return strings.Contains(note, "zone") }) {
			t.Errorf("want no note of a zone, got %q", r.Objects[0].Notes)
		}
	}
}

// After a restore of etcd only the orphans are recovered: the other volumes have their PersistentVolumes.
func TestOnlyTheNamedObjectsAreRecovered(t *testing.T) {
	o := options
	o.IDs = []string{strings.ToUpper(id(8)), id(20)}
	r := diagnosis.Recover(blue(), o)
	var got []string
	for _, object := range r.Objects {
		got = append(got, object.ID)
	}
	if want := []string{id(8), id(20)}; !slices.Equal(got, want) || len(r.LeftOut) > 0 {
		t.Errorf("want %q, got %q, left out %v", want, got, r.LeftOut)
	}
	if !strings.Contains(notesOf(r), id(9)) {
		t.Errorf("want a note that volume %s is of the same claim, got %s", id(9), notesOf(r))
	}
}
