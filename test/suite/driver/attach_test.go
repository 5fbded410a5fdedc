package driver_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// What upstream does not, no. 4.
func TestPublishWhenAttachedElsewhereIsFailedPreconditionAndSendsNothingToNova(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		az1, az2 := servers()
		id := made(t, d)
		testenv.Must(t, publish(t, d, id, az1))
		sim.ResetRequests()
		wantCode(t, publish(t, d, id, az2), codes.FailedPrecondition, az1)
		if n := sent(sim, http.MethodPost, "/servers/"); n != 0 {
			t.Errorf("%d writes to Nova", n)
		}
	})
}

// What upstream does not, no. 5: an attach failed and Cinder could not be reached, so Cinder still has the volume reserved.
func TestPublishOfAReservedVolumeRecovers(t *testing.T) {
	for name, does := range map[string]func(t *testing.T, d *instance, id, node string) error{"publish": publish, "unpublish": unpublish} {
		story(t, name, func(t *testing.T) {
			sim, d := started(t)
			az1, _ := servers()
			id := made(t, d)
			time.Sleep(time.Minute) // the driver does not know any more what it saw
			sim.AddAttachment(id, az1, "reserved")
			began := time.Now()
			err := does(t, d, id, az1)
			want := map[string][]string{"publish": {az1}}[name]
			if got := listed(t, d)[id]; err != nil || !slices.Equal(want, got) || time.Since(began) < 10*time.Second {
				t.Errorf("want it at %v, got %v, %v", want, got, err)
			}
			if n := sent(sim, http.MethodDelete, "/attachments/"); n != 1 {
				t.Errorf("%d deletions of records", n)
			}
		})
	}
}

func TestAnAttachThatFailsOnTheHostIsReportedAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d, ctx := startWith(t, sim), asSidecar(t)
		az1, _ := servers()
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1"))).GetVolume().GetVolumeId()
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.Attach, Times: 1})
		publish := &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer}
		began := time.Now()
		_, err := d.ControllerPublishVolume(ctx, publish)
		wantCode(t, err, codes.Aborted, "nova-compute")
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it took %v to notice", took)
		}
		must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(ctx, publish))
	})
}

func TestAnAttachOfAMultiattachVolumeThatFailsOnTheHostIsReportedAndRetried(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			sim, d := started(t)
			az1, az2 := servers()
			id := made(t, d, multiattach)
			testenv.Must(t, publish(t, d, id, az1))
			if hidden { // a policy shows attachments to nobody: Nova tells
				sim.SetFault(openstacksim.Fault{Path: "/volume/v3/*/attachments", Status: http.StatusForbidden})
			}
			sim.SetFault(openstacksim.Fault{Operation: openstacksim.Attach, Times: 1})
			began := time.Now()
			wantCode(t, publish(t, d, id, az2), codes.Aborted, "nova-compute")
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("hidden %v: it took %v to notice", hidden, took)
			}
			testenv.Check(t, publish(t, d, id, az2))
		})
	}
}

func TestPublishToAServerThatCannotAttachVolumes(t *testing.T) {
	for name, test := range map[string]struct {
		status, task string
		code         codes.Code
		text         string
	}{
		"in error":         {"ERROR", "", codes.FailedPrecondition, "vm_state error"},
		"being rebooted":   {"ACTIVE", "rebooting", codes.Aborted, "task_state rebooting"},
		"shelved":          {"SHELVED_OFFLOADED", "", codes.OK, ""}, // from 2.20 on; the server has the disk once it is unshelved
		"switched off":     {"SHUTOFF", "", codes.OK, ""},
		"without any slot": {"ACTIVE", "", codes.ResourceExhausted, "maximum allowed number of disk devices (26)"},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			sim.SetAllLatency(time.Second)
			d := startWith(t, sim)
			az1, _ := servers()
			if name == "without any slot" {
				var all sync.WaitGroup
				for n := range 25 {
					all.Go(func() {
						v, err := d.CreateVolume(asSidecar(t), claim(fmt.Sprint("pvc-", n)))
						for pause := time.Second; err == nil; pause *= 2 { // as external-attacher, for which the queue of a server is too short here
							if err = publish(t, d, v.GetVolume().GetVolumeId(), az1); status.Code(err) != codes.Aborted {
								break
							}
							time.Sleep(pause)
							err = nil
						}
						if err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
			}
			v := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("one-more")))
			sim.SetServerStatus(az1, test.status, test.task)
			wantCode(t, publish(t, d, v.GetVolume().GetVolumeId(), az1), test.code, test.text)
		})
	}
}

// Nova serialises the attaches of a server. Eight at once there, and one on another server, which waits for none of them.
func TestABusyServerDelaysNoOtherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetLatency(openstacksim.Reserve, 20*time.Second)
		d := startWith(t, sim)
		az1, az2 := servers()
		var ids []string
		for n := range 9 {
			ids = append(ids, must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim(fmt.Sprint("pvc-", n)))).GetVolume().GetVolumeId())
		}
		began := time.Now()
		var all sync.WaitGroup
		for _, id := range ids[:8] {
			all.Go(func() {
				for publish(t, d, id, az1) != nil { // a turn that does not come in time is queued for again
				}
			})
		}
		synctest.Wait()
		if err := publish(t, d, ids[8], az2); err != nil || time.Since(began) > 45*time.Second {
			t.Errorf("the other server's: %v after %v", err, time.Since(began))
		}
		all.Wait()
		if got := listed(t, d); len(got) != 9 || slices.ContainsFunc(ids, func(id string) bool { return len(got[id]) != 1 }) {
			t.Errorf("attached: %v", got)
		}
	})
}
