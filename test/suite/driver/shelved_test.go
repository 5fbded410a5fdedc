package driver_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// Nova detaches from a shelved server at microversion 2.20 and answers 409 below. People shelve workers to save cost, and the pods of such
// a worker must be able to move. Nova offloads a shelved server at once by default: then Cinder shows its volumes as reserved.
func TestAVolumeMovesAwayFromAShelvedServer(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		later  time.Duration
		hidden bool
	}{
		"shelved":                              {"SHELVED", 0, false},
		"offloaded":                            {"SHELVED_OFFLOADED", 0, false},
		"offloaded and the driver forgot":      {"SHELVED_OFFLOADED", time.Hour, false},
		"offloaded and attachments are hidden": {"SHELVED_OFFLOADED", time.Hour, true},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			if test.hidden {
				sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/volume/v3/*/attachments", Status: http.StatusForbidden})
			}
			d := startWith(t, sim)
			az1, az2 := servers()
			id := made(t, d)
			testenv.Must(t, publish(t, d, id, az1))
			sim.SetServerStatus(az1, test.status, "")
			time.Sleep(test.later)
			began := time.Now()
			testenv.Must(t, unpublish(t, d, id, az1))
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("the detach took %v", took)
			}
			testenv.Check(t, publish(t, d, id, az2))
		})
	}
}

// external-attacher attaches again what ListVolumes does not show as attached. While the server has no host, the answer comes at once.
func TestAnAttachToAnOffloadedServerThatHasTheVolumeSaysWhyItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		az1, _ := servers()
		id := made(t, d)
		testenv.Must(t, publish(t, d, id, az1))
		sim.SetServerStatus(az1, "SHELVED_OFFLOADED", "")
		time.Sleep(time.Hour)
		began := time.Now()
		wantCode(t, publish(t, d, id, az1), codes.FailedPrecondition, "once somebody unshelves it")
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the answer took %v", took)
		}
		sim.SetServerStatus(az1, "ACTIVE", "")
		testenv.Check(t, publish(t, d, id, az1))
	})
}

// Each refusal says why. None is InvalidArgument, since a later attach of the same volume may succeed.
func TestAMultiattachVolumeDoesNotGoToAnOffloadedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		az1, _ := servers()
		id := made(t, d, multiattach)
		sim.SetServerStatus(az1, "SHELVED_OFFLOADED", "")
		wantCode(t, publish(t, d, id, az1), codes.FailedPrecondition, "not supported for shelved-offloaded instances")
	})
}
