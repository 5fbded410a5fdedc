package volume

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// every status that Cinder 21 gives a volume: objects/fields.py VolumeStatus.ALL, and the two that volume/api.py sets besides.
var everyStatus = []Status{
	"creating", "available", "deleting", "error", "error_deleting", "error_managing", "managing", "attaching", "in-use",
	"detaching", "maintenance", "restoring-backup", "error_restoring", "reserved", "awaiting-transfer", "backing-up",
	"error_backing-up", "error_extending", "downloading", "uploading", "retyping", "extending",
	"unmanaging", "error_managing_deleting",
}

func TestEveryStatusOfCinderHasAMeaning(t *testing.T) {
	want := slices.Sorted(slices.Values(everyStatus))
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(statuses))); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

// Cinder takes a DELETE in these statuses and in no other (volume/api.py, delete).
func TestDeleteIsSentOnlyInStatusesInWhichCinderTakesIt(t *testing.T) {
	taken := []Status{"available", "error", "error_restoring", "error_extending", "error_managing"}
	for _, status := range everyStatus {
		if want, got := slices.Contains(taken, status), status.Meaning().Delete == Proceed; want != got {
			t.Errorf("%s: want %v, got %v", status, want, got)
		}
	}
}

func TestNovaIsAskedToAttachOnlyWhatCinderReserves(t *testing.T) {
	for _, status := range everyStatus {
		want := status == Available
		if got := status.Meaning().Attach == Proceed; want != got {
			t.Errorf("%s: want %v, got %v", status, want, got)
		}
	}
}

// What each operation does with a volume in each status that does not change by itself: the requests it sends, the end it comes to.
func TestEveryOperationInEveryStatus(t *testing.T) {
	for _, status := range everyStatus {
		t.Run(string(status), func(t *testing.T) {
			t.Run("create", func(t *testing.T) { testCreateIn(t, status) })
			t.Run("attach", func(t *testing.T) { testAttachIn(t, status) })
			t.Run("delete", func(t *testing.T) { testDeleteIn(t, status) })
			t.Run("expand", func(t *testing.T) { testExpandIn(t, status) })
			t.Run("modify", func(t *testing.T) { testModifyIn(t, status) })
		})
	}
}
