package driver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// The answers of proxies without a route to the service, of firewalls, and of gateways: no JSON of the service, and no request ID.
const (
	ingressPage = "default backend - 404"
	nginxPage   = "<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n<center><h1>404 Not Found</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
)

// retryable are the codes after which every caller repeats its call.
var retryable = []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted}

// rpcs calls every RPC of the controller that changes something: for a volume at the first server, and a free one.
func rpcs(t *testing.T, d *instance, id, free, snapshot, backup string) map[string]func() error {
	az1, _ := servers()
	remove := func(id string) func() error {
		return func() error {
			return outcome(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: id}))
		}
	}
	return map[string]func() error{
		"create":          func() error { _, err := d.CreateVolume(asSidecar(t), claim("pvc-2")); return err },
		"attach":          func() error { return publish(t, d, free, az1) },
		"detach":          func() error { return unpublish(t, d, id, az1) },
		"detach from all": func() error { return unpublish(t, d, id, "") },
		"expand":          func() error { _, err := d.ControllerExpandVolume(asSidecar(t), larger(id, 2<<30, 0)); return err },
		"modify": func() error {
			return outcome(d.ControllerModifyVolume(asSidecar(t), changed(id, map[string]string{"type": "__DEFAULT__"})))
		},
		"snapshot":            func() error { _, err := d.CreateSnapshot(asSidecar(t), snapshotRequest("snapshot-2", id)); return err },
		"backup":              func() error { _, err := d.CreateSnapshot(asSidecar(t), archive("backup-2", id)); return err },
		"delete the snapshot": remove(snapshot),
		"delete the backup":   remove(backup),
		"delete the volume":   func() error { return outcome(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})) },
	}
}

func TestTheAnswerOfAProxyEndsNoRPC(t *testing.T) {
	az1, _ := servers()
	for _, service := range []string{"/volume/**", "/compute/**"} {
		for _, page := range []string{ingressPage, nginxPage} {
			for _, code := range []int{400, 401, 403, 404, 405, 409, 413, 429, 501} {
				story(t, fmt.Sprintf("%s %d %.7s", service, code, page), func(t *testing.T) {
					sim, d := started(t)
					id := made(t, d)
					backup := newBackup(t, d, "backup-1", id)
					snapshot := ready(t, d, snapshotRequest("snapshot-1", id)).GetSnapshotId()
					testenv.Must(t, publish(t, d, id, az1))
					free := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-free"))).GetVolume().GetVolumeId()
					time.Sleep(time.Minute)
					sim.SetFault(openstacksim.Fault{Path: service, Status: code, Body: page})
					for what, call := range rpcs(t, d, id, free, snapshot, backup) {
						if service == "/compute/**" && what != "attach" && !strings.HasPrefix(what, "detach") {
							continue
						}
						if err := call(); !slices.Contains(retryable, status.Code(err)) {
							t.Errorf("%s: %v", what, err)
						}
					}
				})
			}
		}
	}
}

// A 404 before Nova looks like a deleted server. Cinder of before May 2023, as of Victoria, deletes the attachment of a disk in use.
func TestTheAnswerOfAProxyIsNotTheEndOfAServer(t *testing.T) {
	for name, minor := range map[string]string{"Victoria": "3.62", "Zed": ""} {
		// The proxy may lose its route for everything, or only for requests that name a server.
		for _, path := range []string{"/compute/**", "/compute/v2.1/servers/**"} {
			story(t, name+path, func(t *testing.T) {
				config := openstacksim.Default()
				config.VolumeMicroversion = minor
				sim := openstacksim.New(config)
				d := start(t, withPassword(t), memnet.Transport(sim.Handler()))
				id := made(t, d)
				az1, az2 := servers()
				testenv.Must(t, publish(t, d, id, az1))
				time.Sleep(time.Minute)
				sim.SetFault(openstacksim.Fault{Path: path, Status: http.StatusNotFound, Body: ingressPage})
				if err := unpublish(t, d, id, az1); err == nil || strings.Contains(err.Error(), "attachment delete") {
					t.Errorf("the detach, while nobody can ask Nova: %v", err)
				}
				sim.ClearFaults()
				_ = publish(t, d, id, az2)
				if v, _ := sim.VolumeState(id); len(v.Disks) > 1 {
					t.Errorf("one disk, which is not multiattach, in two servers: %v", v.Disks)
				}
			})
		}
	}
}

// The answer may even look like one of Nova. The driver deletes an attachment only if Nova answers something else than 404 too.
func TestOnlyANovaThatAnswersEndsAnAttachment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := openstacksim.New(openstacksim.Default())
		d := start(t, withPassword(t), memnet.Transport(sim.Handler()))
		id := made(t, d)
		az1, _ := servers()
		testenv.Must(t, publish(t, d, id, az1))
		sim.SetFault(openstacksim.Fault{Path: "/compute/**", Status: http.StatusNotFound, Body: `{"itemNotFound": {"code": 404, "message": "gone"}}`})
		wantCode(t, unpublish(t, d, id, az1), codes.Unavailable, "no route leads to the service")
		if n := sent(sim, http.MethodDelete, "/attachments/"); n != 0 {
			t.Errorf("%d attachments deleted", n)
		}
	})
}
