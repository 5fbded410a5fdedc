package driver_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// What upstream does not, no. 6.
func TestUnpublishDeletesTheAttachmentOfADeletedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := start(t, withPassword(t), memnet.Transport(sim.Handler()))
		az1, az2 := servers()
		id := made(t, d)
		testenv.Must(t, publish(t, d, id, az1))
		sim.RemoveServer(az1, true)
		testenv.Must(t, unpublish(t, d, id, az1))
		if n := sent(sim, http.MethodDelete, "/attachments/"); n != 1 {
			t.Errorf("%d deletions of records", n)
		}
		testenv.Check(t, publish(t, d, id, az2))
	})
}

func TestAnApplicationCredentialThatMayNotDeleteStaleAttachmentsNamesWhoCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		az1, _ := servers()
		id := made(t, d)
		testenv.Must(t, publish(t, d, id, az1))
		sim.RemoveServer(az1, true)
		wantCode(t, unpublish(t, d, id, az1), codes.Unavailable, "An administrator who logs in with a password can run: openstack --os-volume-api-version 3.27 volume attachment delete ")
	})
}

func TestAServerThatNovaDoesNotShowForAMomentKeepsItsVolume(t *testing.T) {
	for name, fault := range map[string]openstacksim.Fault{
		"Nova answers 500":   {Path: "/compute/v2.1/servers/**", Status: http.StatusInternalServerError},
		"Nova answers 403":   {Path: "/compute/v2.1/servers/**", Status: http.StatusForbidden},
		"Nova does not know": {Path: "/compute/v2.1/servers/**", Drop: true},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			d := start(t, withPassword(t), memnet.Transport(sim.Handler()))
			az1, _ := servers()
			id := made(t, d)
			testenv.Must(t, publish(t, d, id, az1))
			remove := sim.SetFault(fault)
			if err := unpublish(t, d, id, az1); err == nil || sent(sim, http.MethodDelete, "/attachments/") != 0 {
				t.Errorf("got %v", err)
			}
			remove()
			if err := unpublish(t, d, id, az1); err != nil || len(listed(t, d)[id]) != 0 {
				t.Error(err)
			}
		})
	}
}

// What upstream does not, no. 7.
func TestUnpublishWithoutANodeDetachesFromAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		az1, az2 := servers()
		id := made(t, d, multiattach)
		for _, server := range []string{az1, az2} {
			testenv.Must(t, publish(t, d, id, server))
		}
		for range 2 {
			if err := unpublish(t, d, id, ""); err != nil || len(listed(t, d)[id]) != 0 {
				t.Errorf("%v, at %v", err, listed(t, d)[id])
			}
		}
	})
}

// cinderclient (local-attach) and os-brick attach volumes to hosts that are no Nova servers.
func TestUnpublishFromEveryNodeLeavesAHostsAttachment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := start(t, withPassword(t), memnet.Transport(sim.Handler()))
		id := made(t, d)
		time.Sleep(time.Minute) // the driver does not know any more what it saw
		attachment := sim.AddAttachment(id, "", "attached")
		sim.ResetRequests()
		wantCode(t, unpublish(t, d, id, ""), codes.FailedPrecondition, attachment)
		if n := sent(sim, http.MethodDelete, "/attachments/"); n != 0 {
			t.Errorf("%d deletions of records: the export of a live host's disk is gone", n)
		}
		if nodes, ok := listed(t, d)[id]; !ok || len(nodes) != 0 {
			t.Errorf("the host is listed as a node: %q", nodes)
		}
	})
}

// abandoned is a driver whose publish at az1 has ended with its caller's deadline while Nova, which takes so long for it, is at it.
func abandoned(t *testing.T, takes time.Duration) (d *instance, id, az1 string) {
	t.Helper()
	sim := simulated()
	d = startWith(t, sim)
	sim.SetLatency(openstacksim.Reserve, takes)
	az1, _ = servers()
	id = made(t, d)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer})
	wantCode(t, err, codes.DeadlineExceeded, "")
	return d, id, az1
}

// The VolumeAttachment is deleted while Nova is at an attach that nobody waits for any more. Once unpublish says OK, that attach has no effect.
func TestUnpublishWaitsForTheEndOfAnAbandonedPublish(t *testing.T) {
	for _, from := range []string{"the node", "every node"} {
		story(t, from, func(t *testing.T) {
			d, id, az1 := abandoned(t, 20*time.Second)
			node, tries := az1, 0
			if from == "every node" {
				node = ""
			}
			for err := error(nil); ; time.Sleep(time.Second) {
				if err = unpublish(t, d, id, node); err == nil {
					break
				}
				if tries++; tries == 60 {
					t.Fatal(err)
				}
				wantCode(t, err, codes.Aborted, "retry later")
			}
			time.Sleep(time.Minute)
			if got := listed(t, d)[id]; len(got) != 0 || tries == 0 {
				t.Errorf("after %d tries unpublish was OK, and then it is at %v", tries, got)
			}
			_, az2 := servers()
			if err := publish(t, d, id, az2); err != nil {
				t.Errorf("elsewhere: %v", err)
			}
		})
	}
}

// A proxy gives up an attach, which Nova carries out later.
func TestUnpublishWaitsForAPublishWhoseAnswerWasLost(t *testing.T) {
	for _, from := range []string{"the node", "every node"} {
		story(t, from, func(t *testing.T) {
			sim, d := started(t)
			az1, az2 := servers()
			id := made(t, d)
			sim.SetFault(openstacksim.Fault{
				Method: http.MethodPost, Path: "/compute/**", Status: http.StatusGatewayTimeout, Late: 40 * time.Second, Times: 1,
			})
			wantCode(t, publish(t, d, id, az1), codes.Unavailable, "504")
			node := az1
			if from == "every node" {
				node = ""
			}
			testenv.Must(t, unpublish(t, d, id, node))
			time.Sleep(2 * time.Minute)
			if got := listed(t, d)[id]; len(got) != 0 || sent(sim, http.MethodDelete, "/os-volume_attachments/") != 1 {
				t.Errorf("unpublish was OK, and then it is at %v", got)
			}
			if err := publish(t, d, id, az2); err != nil {
				t.Errorf("elsewhere: %v", err)
			}
		})
	}
}

func TestUnpublishFromAServerThatCannotDetachVolumes(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*openstacksim.Sim, string)
		code  codes.Code
		text  string
	}{
		"suspended":        {func(s *openstacksim.Sim, id string) { s.SetServerStatus(id, "SUSPENDED", "") }, codes.Aborted, "vm_state suspended"},
		"migrating":        {func(s *openstacksim.Sim, id string) { s.SetServerStatus(id, "MIGRATING", "") }, codes.Aborted, "task_state migrating"},
		"on a host down":   {func(s *openstacksim.Sim, id string) { s.SetHostDown(id, true) }, codes.Aborted, "nova-compute is down on the host of the server"},
		"in a cell down":   {func(s *openstacksim.Sim, id string) { s.SetCellDown(id, true) }, codes.Unavailable, "HTTP 500"},
		"of unknown state": {func(s *openstacksim.Sim, id string) { s.SetServerStatus(id, "UNKNOWN", "") }, codes.Aborted, "vm_state unknown"},
	} {
		for memory, later := range map[string]time.Duration{"remembered": 0, "forgotten": time.Hour} {
			story(t, name+" and "+memory, func(t *testing.T) {
				sim, d := started(t)
				az1, _ := servers()
				id := made(t, d)
				testenv.Must(t, publish(t, d, id, az1))
				test.spoil(sim, az1)
				time.Sleep(later)
				wantCode(t, unpublish(t, d, id, az1), test.code, test.text)
				if v, _ := sim.VolumeState(id); len(v.Attachments) != 1 || v.Attachments[0].Status != "attached" || len(v.Disks) != 1 {
					t.Errorf("the volume is not attached any more: %+v", v)
				}
			})
		}
	}
}
