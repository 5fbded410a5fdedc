package volume_test

import (
	"slices"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
	"github.com/google/go-cmp/cmp"
)

func TestEveryStatusOfCinderHasAMeaning(t *testing.T) {
	want := slices.Sorted(slices.Values(cloudtest.EveryStatus))
	if diff := cmp.Diff(want, volume.Statuses()); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

// Cinder takes a DELETE in these statuses and in no other (volume/api.py, delete).
func TestDeleteIsSentOnlyInStatusesInWhichCinderTakesIt(t *testing.T) {
	taken := []volume.Status{"available", "error", "error_restoring", "error_extending", "error_managing"}
	for _, status := range cloudtest.EveryStatus {
		if want, got := slices.Contains(taken, status), status.Meaning().Delete == volume.Proceed; want != got {
			t.Errorf("%s: want %v, got %v", status, want, got)
		}
	}
}

func TestNovaIsAskedToAttachOnlyWhatCinderReserves(t *testing.T) {
	for _, status := range cloudtest.EveryStatus {
		want := status == volume.Available
		if got := status.Meaning().Attach == volume.Proceed; want != got {
			t.Errorf("%s: want %v, got %v", status, want, got)
		}
	}
}
