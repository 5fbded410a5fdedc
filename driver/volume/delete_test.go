package volume

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeleteReturnsOnceTheVolumeIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(ofOthers(1, Available)) // whatever its metadata: named means allowed
		if err := service(c).Delete(within(t, 60), id(1)); err != nil || len(c.volumes) != 0 {
			t.Errorf("got %v, left %v", err, c.volumes)
		}
	})
}

func TestDeletingWhatIsNotThereIsDone(t *testing.T) {
	for _, id := range []ID{id(1), "", "vol-1", "../types/x"} {
		c := newCloud()
		if err := service(c).Delete(t.Context(), id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		if !id.Exists() && len(c.calls) != 0 {
			t.Errorf("%q was put into %v", id, c.calls)
		}
	}
}

func TestAnAttachedVolumeIsNotDeletedAndItsServersAreNamed(t *testing.T) {
	c := newCloud(Volume{ID: id(1), Status: InUse, Attachments: []Attachment{{Server: serverA}, {Server: serverB}}})
	err := service(c).Delete(t.Context(), id(1))
	wantKind(t, err, Conflict, false)
	if !strings.Contains(err.Error(), string(serverA)) || !strings.Contains(err.Error(), string(serverB)) || c.count("DeleteVolume") != 0 {
		t.Errorf("got %v after %v", err, c.calls)
	}
}

func TestAVolumeWithSnapshotsStays(t *testing.T) {
	c := newCloud(ofOurs(1, Available))
	c.fail["DeleteVolume"] = Errorf(InvalidArgument, "Volume must not have snapshots").Request("req-7")
	err := service(c).Delete(t.Context(), id(1))
	wantKind(t, err, Conflict, false)
	if !strings.Contains(err.Error(), "snapshots") || !strings.Contains(err.Error(), "req-7") {
		t.Errorf("got %v", err)
	}
}

func TestADeletionThatFailsSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(ofOurs(1, Available))
		c.reason = "the backend is on fire"
		c.hook["DeleteVolume"] = func() {
			time.AfterFunc(500*time.Millisecond, func() { c.change(id(1), func(v *Volume) { v.Status = "error_deleting" }) })
		}
		err := service(c).Delete(within(t, 60), id(1))
		wantKind(t, err, Failed, true)
		if !strings.Contains(err.Error(), "on fire") {
			t.Errorf("got %v", err)
		}
	})
}

func TestAVolumeThatIsBeingDetachedIsDeletedAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(Volume{ID: id(1), Status: Detaching, Attachments: []Attachment{{Server: serverA}}})
		time.AfterFunc(5*time.Second, func() {
			c.change(id(1), func(v *Volume) { v.Status, v.Attachments = Available, nil })
		})
		if err := service(c).Delete(within(t, 60), id(1)); err != nil || len(c.volumes) != 0 {
			t.Errorf("got %v, left %v", err, c.volumes)
		}
	})
}

func testDeleteIn(t *testing.T, status Status) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(ofOurs(1, status))
		err := service(c).Delete(within(t, 60), id(1))
		sent := c.count("DeleteVolume") == 1
		switch status.Meaning().Delete {
		case Proceed:
			if err != nil || !sent {
				t.Errorf("got %v, sent %v", err, sent)
			}
		case Wait, BeingDeleted:
			wantKind(t, err, DeadlineExceeded, false)
		default:
			wantKind(t, err, Conflict, false)
		}
		if sent && status.Meaning().Delete != Proceed {
			t.Error("Cinder was asked")
		}
	})
}

func TestDeleteOfAVolumeThatAHostHasIsRefusedByTheNameOfTheHost(t *testing.T) {
	err := service(hostAttached()).Delete(t.Context(), id(1))
	wantKind(t, err, Conflict, false)
	if !strings.Contains(err.Error(), "host kvm-7") {
		t.Errorf("delete: %v", err)
	}
}

// What a deletion does with a volume in each status: the requests it sends, the end it comes to.
func TestDeleteInEveryStatus(t *testing.T) {
	for _, status := range everyStatus {
		t.Run(string(status), func(t *testing.T) { testDeleteIn(t, status) })
	}
}
