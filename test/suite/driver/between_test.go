package driver_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// between is a driver on a cloud that saves an operation in two steps. The simulation saves it in one, so show turns each volume of an answer into
// what a reader sees between the steps.
func between(t *testing.T, sim *openstacksim.Sim, show func(v map[string]any)) *instance {
	t.Helper()
	return start(t, sim.CloudConf(inprocess.URL), edited{memnet.Transport(sim.Handler()), func(req *http.Request, body []byte) []byte {
		var answer map[string]any
		if req.Method != http.MethodGet || json.Unmarshal(body, &answer) != nil {
			return body
		}
		if v, ok := answer["volume"].(map[string]any); ok {
			show(v)
		}
		list, _ := answer["volumes"].([]any)
		for _, v := range list {
			show(v.(map[string]any))
		}
		body, err := json.Marshal(answer)
		if err != nil {
			t.Error(err)
		}
		return body
	}})
}

// Cinder saves an attachment as attached before it saves the volume as in use (complete in api/v3/attachments.py). Until then an attach is not done.
func TestAnAttachIsDoneWhenTheVolumeIsInUse(t *testing.T) {
	az1, _ := servers()
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := between(t, sim, func(v map[string]any) {
			if v["status"] == "attaching" {
				v["attachments"] = []any{map[string]any{"server_id": az1, "attachment_id": "0000a77a-0000-4000-8000-000000000001", "volume_id": v["id"], "device": "/dev/vdb"}}
			}
		})
		id := made(t, d)
		testenv.Check(t, publish(t, d, id, az1))
		if v, _ := sim.VolumeState(id); v.Status != "in-use" {
			t.Errorf("the volume is %s", v.Status)
		}
	})
}

// Cinder sets a volume to extending, then checks the quota and sets it back (extend in volume/api.py). Who reads in between waits, and goes on.
func TestAVolumeThatIsExtendingForAMomentEndsNoRPC(t *testing.T) {
	az1, _ := servers()
	for name, call := range map[string]func(t *testing.T, d *instance, id string) error{
		"attach": func(t *testing.T, d *instance, id string) error { return publish(t, d, id, az1) },
		"expand": func(t *testing.T, d *instance, id string) error {
			return outcome(d.ControllerExpandVolume(asSidecar(t), larger(id, 2<<30, 0)))
		},
		"snapshot": func(t *testing.T, d *instance, id string) error {
			return outcome(d.CreateSnapshot(asSidecar(t), snapshotRequest("snapshot-1", id)))
		},
		"delete": func(t *testing.T, d *instance, id string) error {
			return outcome(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id}))
		},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			var until time.Time
			d := between(t, sim, func(v map[string]any) {
				if v["status"] == "available" && time.Now().Before(until) {
					v["status"] = "extending"
				}
			})
			id := made(t, d)
			time.Sleep(time.Minute) // the driver forgets what it has read
			until = time.Now().Add(2 * time.Second)
			testenv.Check(t, call(t, d, id))
		})
	}
}

// Nova forgets a server first, and then ends its attachments one after the other (_shutdown_instance in compute/manager.py). The driver leaves them to Nova.
func TestAServerThatGoesKeepsItsAttachmentsForAMoment(t *testing.T) {
	az1, az2 := servers()
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		id := made(t, d)
		testenv.Must(t, publish(t, d, id, az1))
		time.Sleep(time.Minute)
		sim.RemoveServer(az1, true)
		go func() {
			time.Sleep(8 * time.Second)
			sim.Unplug(id, az1)
		}()
		testenv.Check(t, unpublish(t, d, id, az1))
		if v, _ := sim.VolumeState(id); v.Status != "available" {
			t.Errorf("the volume is %s", v.Status)
		}
		if n := sent(sim, http.MethodDelete, "/attachments/"); n != 0 {
			t.Errorf("%d attachments deleted", n)
		}
		testenv.Check(t, publish(t, d, id, az2))
	})
}
