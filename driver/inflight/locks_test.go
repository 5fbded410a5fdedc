package inflight

import (
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestAKeyIsLockedUntilItIsUnlocked(t *testing.T) {
	t.Parallel()
	var l Locks
	unlock, err := l.Take("volume 1", "attach")
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Take("volume 1", "delete")
	if want := "delete: another call (attach) is working on volume 1; retry later"; !volume.Is(err, volume.Busy) || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
	if other, err := l.Take("volume 2", "delete"); err != nil {
		t.Errorf("another key: %v", err)
	} else {
		other()
	}
	unlock()
	if unlock, err = l.Take("volume 1", "delete"); err != nil {
		t.Fatalf("after the unlock: %v", err)
	}
	if unlock(); len(l.held) != 0 {
		t.Errorf("still held: %v", l.held)
	}
}

func TestASharedKeyIsLockedUntilBothHaveUnlockedIt(t *testing.T) {
	t.Parallel()
	for name, callerFirst := range map[string]bool{"the caller first": true, "the request first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l Locks
			first, err := l.Take("volume 1", "attach")
			if err != nil {
				t.Fatal(err)
			}
			second := l.Share("volume 1", "attach")
			if !callerFirst {
				first, second = second, first
			}
			first()
			if _, err := l.Take("volume 1", "detach"); !volume.Is(err, volume.Busy) {
				t.Errorf("after one unlock: %v", err)
			}
			second()
			if _, err := l.Take("volume 1", "detach"); err != nil {
				t.Errorf("after both: %v", err)
			}
		})
	}
}

func TestVolumeKeysIgnoreCase(t *testing.T) {
	t.Parallel()
	lower, upper := VolumeKey("0000abcd-0000-4000-8000-000000000001"), VolumeKey("0000ABCD-0000-4000-8000-000000000001")
	if lower != upper || lower == VolumeKey("0000abcd-0000-4000-8000-000000000002") {
		t.Errorf("keys %q and %q", lower, upper)
	}
}
