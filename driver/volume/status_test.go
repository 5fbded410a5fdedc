package volume

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryStatusOfCinderHasAMeaning(t *testing.T) {
	want := slices.Sorted(slices.Values(everyStatus))
	if diff := cmp.Diff(want, Statuses()); diff != "" {
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
