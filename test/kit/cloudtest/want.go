package cloudtest

import (
	"context"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Within returns a context that ends after that many virtual seconds.
func Within(t testing.TB, seconds int) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// WantKind fails the test unless err has that kind and is marked AfterWrite or not.
func WantKind(t testing.TB, err error, want volume.Kind, afterWrite bool) {
	t.Helper()
	if err == nil || volume.KindOf(err) != want || volume.MayHaveWritten(err) != afterWrite {
		t.Fatalf("want an error of kind %q, after write: %v; got %v, kind %q, after write: %v", want, afterWrite, err, volume.KindOf(err), volume.MayHaveWritten(err))
	}
}

// WantStep fails the test unless the outcome of a request is that of the step which the volume status means for it.
func WantStep(t testing.TB, step volume.Step, err error, sent bool) {
	t.Helper()
	switch step {
	case volume.Proceed:
		if err != nil || !sent {
			t.Errorf("got %v, sent %v", err, sent)
		}
	case volume.Wait:
		WantKind(t, err, volume.DeadlineExceeded, false)
	case volume.BeingDeleted:
		WantKind(t, err, volume.NotFound, false)
	default:
		WantKind(t, err, volume.Conflict, false)
	}
}

// EveryStatus is every volume status of Cinder 21: VolumeStatus.ALL of objects/fields.py, and two more of volume/api.py.
var EveryStatus = []volume.Status{
	"creating", "available", "deleting", "error", "error_deleting", "error_managing", "managing", "attaching", "in-use",
	"detaching", "maintenance", "restoring-backup", "error_restoring", "reserved", "awaiting-transfer", "backing-up",
	"error_backing-up", "error_extending", "downloading", "uploading", "retyping", "extending",
	"unmanaging", "error_managing_deleting",
}

// EverySnapshotStatus is every snapshot status of Cinder 21 (objects/fields.py, SnapshotStatus.ALL).
var EverySnapshotStatus = []volume.Status{
	"error", "available", "creating", "deleting", "deleted", "updating", "error_deleting", "unmanaging", "backing-up", "restoring",
}
