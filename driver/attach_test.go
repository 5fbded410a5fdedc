package driver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// shared is a raw block volume for many nodes.
var shared = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
}

func multiattach(r *csi.CreateVolumeRequest) {
	r.VolumeCapabilities, r.Parameters = []*csi.VolumeCapability{shared}, map[string]string{"type": "multiattach"}
}

func made(t *testing.T, d *instance, change ...func(*csi.CreateVolumeRequest)) string {
	t.Helper()
	return must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", change...))).GetVolume().GetVolumeId()
}

func publish(t *testing.T, d *instance, id, node string) error {
	t.Helper()
	_, err := d.ControllerPublishVolume(asSidecar(t), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: writer})
	return err
}

func unpublish(t *testing.T, d *instance, id, node string) error {
	t.Helper()
	_, err := d.ControllerUnpublishVolume(asSidecar(t), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: node})
	return err
}

// sent is how many requests of a method went to a path that has all of some parts.
func sent(sim *openstacksim.Sim, method string, parts ...string) int {
	n := 0
	for _, r := range sim.Requests() {
		if r.Method == method && !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(r.Path, part) }) {
			n++
		}
	}
	return n
}

// withPassword is a cloud.conf of the project's member: Cinder deletes more for a password than for an application credential.
func withPassword(t *testing.T) []byte {
	t.Helper()
	config := openstacksim.Default()
	for _, u := range config.Users {
		if u.Name == "demo" {
			return fmt.Appendf(nil, "[Global]\nauth-url = %s/identity/v3\nregion = %s\nusername = %s\npassword = %s\ntenant-name = demo\nuser-domain-name = Default\ntenant-domain-name = Default\n",
				cloudURL, config.Region, u.Name, u.Password)
		}
	}
	t.Fatal("the simulation has no user demo")
	return nil
}

// What upstream does not, no. 4.
func TestPublishWhenAttachedElsewhereIsFailedPreconditionAndSendsNothingToNova(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim)
		az1, az2 := servers()
		id := made(t, d)
		if err := publish(t, d, id, az1); err != nil {
			t.Fatal(err)
		}
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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				d := startWith(t, sim)
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
		})
	}
}

// What upstream does not, no. 6.
func TestUnpublishDeletesTheAttachmentOfADeletedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := start(t, withPassword(t), memnet.Transport(sim.Handler()))
		az1, az2 := servers()
		id := made(t, d)
		if err := publish(t, d, id, az1); err != nil {
			t.Fatal(err)
		}
		sim.RemoveServer(az1, true)
		if err := unpublish(t, d, id, az1); err != nil {
			t.Fatal(err)
		}
		if n := sent(sim, http.MethodDelete, "/attachments/"); n != 1 {
			t.Errorf("%d deletions of records", n)
		}
		if err := publish(t, d, id, az2); err != nil {
			t.Error(err)
		}
	})
}

func TestAnApplicationCredentialThatMayNotDeleteStaleAttachmentsNamesWhoCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim)
		az1, _ := servers()
		id := made(t, d)
		if err := publish(t, d, id, az1); err != nil {
			t.Fatal(err)
		}
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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				d := start(t, withPassword(t), memnet.Transport(sim.Handler()))
				az1, _ := servers()
				id := made(t, d)
				if err := publish(t, d, id, az1); err != nil {
					t.Fatal(err)
				}
				remove := sim.SetFault(fault)
				if err := unpublish(t, d, id, az1); err == nil || sent(sim, http.MethodDelete, "/attachments/") != 0 {
					t.Errorf("got %v", err)
				}
				remove()
				if err := unpublish(t, d, id, az1); err != nil || len(listed(t, d)[id]) != 0 {
					t.Error(err)
				}
			})
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
			if err := publish(t, d, id, server); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := unpublish(t, d, id, ""); err != nil || len(listed(t, d)[id]) != 0 {
				t.Errorf("%v, at %v", err, listed(t, d)[id])
			}
		}
	})
}

func TestAnAttachOfAMultiattachVolumeThatFailsOnTheHostIsReportedAndRetried(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			sim := simulated()
			d := startWith(t, sim)
			az1, az2 := servers()
			id := made(t, d, multiattach)
			if err := publish(t, d, id, az1); err != nil {
				t.Fatal(err)
			}
			if hidden { // a policy shows attachments to nobody: Nova tells
				sim.SetFault(openstacksim.Fault{Path: "/volume/v3/*/attachments", Status: http.StatusForbidden})
			}
			sim.SetFault(openstacksim.Fault{Operation: openstacksim.Attach, Times: 1})
			began := time.Now()
			wantCode(t, publish(t, d, id, az2), codes.Aborted, "nova-compute")
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("hidden %v: it took %v to notice", hidden, took)
			}
			if err := publish(t, d, id, az2); err != nil {
				t.Error(err)
			}
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
		"shelved":          {"SHELVED_OFFLOADED", "", codes.OK, ""}, // Nova takes it, for when it is unshelved
		"switched off":     {"SHUTOFF", "", codes.OK, ""},
		"without any slot": {"ACTIVE", "", codes.ResourceExhausted, "maximum allowed number of disk devices (26)"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
		t.Run(from, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
		})
	}
}

func TestTheDriverWaitsForNovaBeforeItEndsForALimitedTime(t *testing.T) {
	for takes, want := range map[time.Duration]time.Duration{7 * time.Second: 2 * time.Second, time.Minute: drainTime} {
		synctest.Test(t, func(t *testing.T) {
			d, _, _ := abandoned(t, takes)
			stopped := time.Now()
			d.stop()
			if err := <-d.ended; err != nil || time.Since(stopped).Round(time.Second) != want {
				t.Errorf("%v: the driver ended with %v after %v, want %v", takes, err, time.Since(stopped), want)
			}
			time.Sleep(2 * time.Minute) // by then the request has ended
		})
	}
}

// A proxy gives up an attach, which Nova carries out later.
func TestUnpublishWaitsForAPublishWhoseAnswerWasLost(t *testing.T) {
	for _, from := range []string{"the node", "every node"} {
		t.Run(from, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				d := startWith(t, sim)
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
				if err := unpublish(t, d, id, node); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				if got := listed(t, d)[id]; len(got) != 0 || sent(sim, http.MethodDelete, "/os-volume_attachments/") != 1 {
					t.Errorf("unpublish was OK, and then it is at %v", got)
				}
				if err := publish(t, d, id, az2); err != nil {
					t.Errorf("elsewhere: %v", err)
				}
			})
		})
	}
}
