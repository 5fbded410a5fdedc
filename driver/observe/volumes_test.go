package observe_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// observed returns a reader of the volumes of c, and its log.
func observed(c *cloudtest.Cloud) (observe.Volumes, *strings.Builder) {
	log := &strings.Builder{}
	return observe.Volumes{Cloud: c, Waiter: c, Log: slog.New(slog.NewTextHandler(log, nil))}, log
}

func TestGetSendsNoRequestForAnInvalidID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		o, _ := observed(c)
		_, err := o.Get(t.Context(), "not-a-uuid")
		if cloudtest.WantKind(t, err, volume.NotFound, false); len(c.Calls) != 0 {
			t.Errorf("sent %v", c.Calls)
		}
		if v, err := o.Get(t.Context(), cloudtest.VolumeID(1)); err != nil || v.ID != cloudtest.VolumeID(1) {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestAwaitSaysWhatItWaitedForWhenTheCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := observed(cloudtest.New(t, cloudtest.OwnVolume(1, volume.Creating)))
		_, err := o.Await(cloudtest.Within(t, 5), cloudtest.VolumeID(1), "become available", func(v volume.Volume, _ bool) (bool, error) {
			return v.Status == volume.Available, nil
		})
		cloudtest.WantKind(t, err, volume.DeadlineExceeded, false)
		if text := err.Error(); !strings.HasPrefix(text, "waited for the volume to become available: ") || !strings.Contains(text, "its status is creating") {
			t.Error(text)
		}
	})
}

func TestAwaitDeletedEndsWith404OrErrorDeleting(t *testing.T) {
	for status, want := range map[volume.Status]volume.Kind{volume.Deleting: volume.Unknown, "error_deleting": volume.Failed} {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
			c.Reason = "disk full"
			if err := c.DeleteVolume(t.Context(), cloudtest.VolumeID(1)); err != nil {
				t.Fatal(err)
			}
			c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = status })
			o, _ := observed(c)
			err := o.AwaitDeleted(cloudtest.Within(t, 60), cloudtest.VolumeID(1))
			if want == volume.Unknown {
				if err != nil || len(c.Remaining()) != 0 {
					t.Errorf("%v, left %v", err, c.Remaining())
				}
				return
			}
			if cloudtest.WantKind(t, err, want, false); !strings.Contains(err.Error(), string(cloudtest.VolumeID(1))+": disk full; it stays in status error_deleting") {
				t.Error(err)
			}
		})
	}
}

func TestFailureReasonIsTheEndOfAClause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		o, log := observed(c)
		if got := o.FailureReason(t.Context(), cloudtest.VolumeID(1)); got != "" {
			t.Errorf("without a message: %q", got)
		}
		c.Reason = "no space"
		if got := o.FailureReason(t.Context(), cloudtest.VolumeID(1)); got != ": no space" || log.Len() != 0 {
			t.Errorf("got %q, log %s", got, log)
		}
		c.Fail["Failure"] = volume.Errorf(volume.PermissionDenied, "HTTP 403")
		if got := o.FailureReason(t.Context(), cloudtest.VolumeID(1)); got != "" || !strings.Contains(log.String(), "HTTP 403") {
			t.Errorf("got %q, log %s", got, log)
		}
	})
}

func TestASnapshotHandleNamesASnapshotOrABackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.SourceVolume)
		c.PutSnapshot(false, cloudtest.OwnSnapshot(1, volume.Available))
		c.PutSnapshot(true, cloudtest.OwnSnapshot(2, volume.Available))
		for n, backup := range map[int]bool{1: false, 2: true} {
			if s, err := observe.SnapshotOrBackup(t.Context(), c, cloudtest.SnapshotID(n)); err != nil || s.ID != cloudtest.SnapshotID(n) || s.Backup != backup {
				t.Errorf("%d: %v, %v", n, s, err)
			}
		}
		_, err := observe.SnapshotOrBackup(t.Context(), c, cloudtest.SnapshotID(3))
		cloudtest.WantKind(t, err, volume.NotFound, false)
		c.Fail["Snapshot"] = volume.Errorf(volume.Unavailable, "HTTP 503")
		if _, err := observe.SnapshotOrBackup(t.Context(), c, cloudtest.SnapshotID(2)); !volume.Is(err, volume.Unavailable) {
			t.Errorf("an error is no proof that there is no snapshot: %v", err)
		}
	})
}

func TestSettledWaitsUntilTheStatusAllowsOrForbidsTheOperation(t *testing.T) {
	for name, test := range map[string]struct {
		status volume.Status
		later  func(c *cloudtest.Cloud)
		want   volume.Kind // Unknown means no error
	}{
		"settled": {status: volume.Available},
		"settles": {status: volume.Creating, later: func(c *cloudtest.Cloud) {
			c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = volume.Available })
		}},
		"disappears": {status: volume.Creating, later: func(c *cloudtest.Cloud) { c.Remove(cloudtest.VolumeID(1)) }, want: volume.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := cloudtest.OwnVolume(1, test.status)
				c := cloudtest.New(t, v)
				if test.later != nil {
					time.AfterFunc(time.Second, func() { test.later(c) })
				}
				o, _ := observed(c)
				got, err := o.Settled(cloudtest.Within(t, 60), v, "become deletable", observe.ForDelete)
				switch {
				case test.want != volume.Unknown:
					cloudtest.WantKind(t, err, test.want, false)
				case err != nil || got.Status != volume.Available:
					t.Errorf("got %s, %v", got.Status, err)
				}
			})
		})
	}
}
