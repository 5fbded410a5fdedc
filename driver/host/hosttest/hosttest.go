// Package hosttest has what the tests of the node role share.
package hosttest

import (
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// The volumes of most tests, and what virtio-blk keeps of their IDs.
const (
	Volume      volume.ID = "0a9f1b2c-3d4e-4f50-8a6b-7c8d9e0f1a2b"
	Serial      string    = "0a9f1b2c-3d4e-4f50-8"
	OtherVolume volume.ID = "b7e2d8c4-19f3-4a6e-9b21-5d1c0e7f3a44"
	OtherSerial string    = "b7e2d8c4-19f3-4a6e-9"
)

// Must fails the test at once if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// WantKind fails the test unless err is of that kind and contains all the words.
func WantKind(t testing.TB, err error, kind volume.Kind, words ...string) {
	t.Helper()
	if !volume.Is(err, kind) {
		t.Fatalf("want an error of kind %q, got %v (%s)", kind, err, volume.KindOf(err))
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("want %q in the error, got %q", w, err)
		}
	}
}
