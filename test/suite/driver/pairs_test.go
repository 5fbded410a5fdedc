package driver_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

var (
	changesAVolume = []string{"DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume", "ControllerUnpublishVolume from every node", "ControllerExpandVolume", "ControllerModifyVolume"}
	createsAVolume = []string{"CreateVolume", "CreateVolume from a snapshot", "CreateVolume from a volume", "CreateVolume from a backup"}
)

// waitRules say which RPC must wait for which other one about the same object, and why. A pair without a rule begins at once. The caller of one
// that must wait gets Aborted at once, and calls again.
var waitRules = []struct {
	first, second []string
	whole         bool // for the whole first call; else only while its request is in flight
	why           string
}{
	{first: changesAVolume, second: changesAVolume, why: "the second would act on what it read before the request of the first; a detach would say that nothing is attached"},
	{first: createsAVolume, second: createsAVolume, whole: true, why: "two creates of one name make two volumes; only the same claim takes the name"},
	{first: []string{"CreateSnapshot"}, second: []string{"CreateSnapshot"}, whole: true, why: "as for volumes"},
	{first: []string{"CreateSnapshot as a backup"}, second: []string{"CreateSnapshot as a backup"}, whole: true, why: "as for volumes"},
	{first: []string{"DeleteSnapshot"}, second: []string{"DeleteSnapshot"}, whole: true, why: "the same call again learns nothing new"},
	{first: []string{"DeleteSnapshot of a backup"}, second: []string{"DeleteSnapshot of a backup"}, whole: true, why: "the same call again learns nothing new"},
}

func mustWait(first, second string, inFlight bool) bool {
	for _, r := range waitRules {
		if slices.Contains(r.first, first) && slices.Contains(r.second, second) {
			return r.whole || inFlight
		}
	}
	return false
}

// For every pair of RPCs: the first is stuck, with its request in flight or in its wait for the cloud, and the second comes.
func TestWhichRPCWaitsForWhich(t *testing.T) {
	for _, first := range controllerRPCs {
		if first.operation == "" {
			continue // it only reads
		}
		for _, inFlight := range []bool{true, false} {
			t.Run(first.name+map[bool]string{true: " in flight", false: " waiting"}[inFlight], func(t *testing.T) {
				fault := openstacksim.Fault{Operation: first.operation, Slow: true, Delay: time.Hour}
				if inFlight {
					points := waitingPoints(t, first)
					fault = points[slices.IndexFunc(points, func(p waitingPoint) bool { return p.fault.Method != "" && p.fault.Method != http.MethodGet })].fault
				}
				synctest.Test(t, func(t *testing.T) {
					sim := openstacksim.New(openstacksim.Default())
					d := startWith(t, sim, "--with-capacity")
					o := newObjects(t, d)
					if strings.HasPrefix(first.name, "ControllerUnpublish") {
						o.volume = o.attached
					} else {
						o.attached = o.volume
					}
					time.Sleep(time.Minute)
					fault.Times = 1
					sim.SetFault(fault)
					ctx, cancel := context.WithCancel(asSidecar(t))
					ended := make(chan struct{})
					go func() { defer close(ended); _ = first.call(ctx, d, o) }()
					time.Sleep(5 * time.Second)
					for _, second := range deleteLast(controllerRPCs) {
						short, stop := context.WithTimeout(t.Context(), 5*time.Second)
						message := status.Convert(second.call(short, d, o)).Message()
						stop()
						if kept, want := strings.Contains(message, "another call ("), mustWait(first.name, second.name, inFlight); kept != want {
							t.Errorf("%s: kept out %t, want %t: %s", second.name, kept, want, message)
						}
					}
					cancel()
					<-ended
					time.Sleep(3 * time.Minute) // the request that outlives its caller ends too
				})
			})
		}
	}
}

// deleteLast moves the RPCs that delete to the end: the others need the objects.
func deleteLast(rpcs []controllerRPC) []controllerRPC {
	sorted := slices.Clone(rpcs)
	slices.SortStableFunc(sorted, func(a, b controllerRPC) int {
		return strings.Count(a.name, "Delete") - strings.Count(b.name, "Delete")
	})
	return sorted
}
