package volume

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// A younger volume goes only where the times show that no call can have returned it; else it stays and is reported.
func TestAYoungerVolumeThatACallMayHaveReturnedStaysAndIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		old, young func(v *Volume) // how they differ from volumes that are created as they are sent, ten seconds apart
		stays      bool
	}{
		"younger":                              {},
		"younger by a late answer":             {young: func(v *Volume) { v.CreatedAt = v.CreatedAt.Add(90 * time.Second) }},
		"of the same second":                   {young: func(v *Volume) { *v = createdAt(*v, v.CreatedAt.Add(-10*time.Second)) }, stays: true},
		"created by a host ten minutes ahead":  {young: func(v *Volume) { v.CreatedAt = v.CreatedAt.Add(10 * time.Minute) }, stays: true},
		"the old by a host ten minutes behind": {old: func(v *Volume) { v.CreatedAt = v.CreatedAt.Add(-10 * time.Minute) }, stays: true},
		"without the time of sending":          {young: func(v *Volume) { delete(v.Metadata, contract.MetadataSent) }, stays: true},
		"with what an earlier version wrote":   {young: func(v *Volume) { v.Metadata[contract.MetadataSent] = "MFRGGZDFMZTWQ2LK" }, stays: true},
		"attached":                             {young: func(v *Volume) { v.Status, v.Attachments = InUse, []Attachment{{Server: serverA}} }, stays: true},
		"of another cluster":                   {young: func(v *Volume) { v.Metadata[contract.MetadataCluster] = "another" }, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old, young := createdAt(ofOurs(9, Available), time.Now()), createdAt(ofOurs(10, Available), time.Now().Add(10*time.Second))
				if test.old != nil {
					test.old(&old)
				}
				if test.young != nil {
					test.young(&young)
				}
				c := newCloud(old, young)
				s, reports, log := counted(c)
				v, err := s.volumes.Create(within(t, 60), volumeSpec)
				if err != nil || v.ID != old.ID {
					t.Fatalf("got %v, %v", v, err)
				}
				want, left := []string{}, 1
				if test.stays {
					want, left = []string{"volume"}, 2
				}
				if diff := cmp.Diff(want, *reports); diff != "" || len(c.volumes) != left {
					t.Errorf("left %v, reports -want +got\n%s", c.left(), diff)
				}
				if test.stays && (!strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "volume="+string(young.ID))) {
					t.Errorf("the log does not tell of it: %s", log)
				}
			})
		})
	}
}

func TestADuplicateThatCinderDoesNotDeleteIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(createdAt(ofOurs(1, Available), time.Now()), createdAt(ofOurs(2, Available), time.Now().Add(time.Second)))
		c.fail["DeleteVolume"] = Errorf(Conflict, "Volume still has 1 dependent snapshots")
		s, reports, log := counted(c)
		if v, err := s.volumes.Create(within(t, 60), volumeSpec); err != nil || v.ID != id(1) {
			t.Errorf("got %v, %v", v, err)
		}
		if len(*reports) != 1 || !strings.Contains(log.String(), "dependent snapshots") {
			t.Errorf("reports %v, log %s", *reports, log)
		}
	})
}

func TestAYoungerSnapshotThatACallMayHaveReturnedStaysAndIsReported(t *testing.T) {
	for name, w := range map[string]SnapshotSpec{"snapshot": snapshotSpec, "backup": backupSpec} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				begin := time.Now()
				ahead := snapshotCreatedAt(pictureOfOurs(2, Available), begin)
				ahead.CreatedAt = begin.Add(10 * time.Minute)
				c.kept(w.Backup != nil)[sid(1)] = new(snapshotCreatedAt(pictureOfOurs(1, Available), begin))
				c.kept(w.Backup != nil)[sid(2)] = &ahead
				c.kept(w.Backup != nil)[sid(3)] = new(snapshotCreatedAt(pictureOfOurs(3, Available), begin.Add(time.Second)))
				its, reports, _ := counted(c)
				p, err := its.snapshots.Create(within(t, 60), w)
				if err != nil || p.ID != sid(1) {
					t.Fatalf("got %v, %v", p, err)
				}
				if diff := cmp.Diff([]string{name}, *reports); diff != "" || len(c.kept(w.Backup != nil)) != 2 || c.kept(w.Backup != nil)[sid(2)] == nil {
					t.Errorf("left %v, reports -want +got\n%s", c.left(), diff)
				}
			})
		})
	}
}

// Two replicas create within a second, and the answer to one is lost: which of the two was returned, nobody knows.
func TestOfTwoOfTheSameSecondNoneIsRemovedAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := both(c).volumes
		c.late = map[string]time.Duration{"CreateVolume": 0}
		_, err := s.Create(within(t, 60), volumeSpec)
		wantKind(t, err, Unavailable, true)
		c.put(createdAt(ofOurs(1, Available), time.Now()))
		synctest.Wait()
		for range 2 {
			v, err := s.Create(within(t, 60), volumeSpec)
			if err != nil || v.ID != id(1) || len(c.volumes) != 2 {
				t.Errorf("got %s, %v; left %v", v.ID, err, c.left())
			}
		}
	})
}
