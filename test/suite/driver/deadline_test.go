package driver_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// Every RPC, at every place where it can wait: a request that is not answered, or work that does not end. It ends two seconds before its caller,
// who reads what it waited for and since when.
func TestACallerReadsWhatAnRPCWaitedFor(t *testing.T) {
	for _, rpc := range controllerRPCs {
		t.Run(rpc.name, func(t *testing.T) {
			for _, point := range waitingPoints(t, rpc) {
				story(t, point.name, func(t *testing.T) {
					sim := simulated()
					d := startWith(t, sim, "--with-capacity")
					o := newObjects(t, d)
					time.Sleep(time.Minute) // no reading is in the cache
					remove := sim.SetFault(point.fault)
					began := time.Now()
					err := rpc.call(asSidecar(t), d, o)
					took := time.Since(began).Round(100 * time.Millisecond)
					remove()
					if err == nil {
						return // it goes on without this request
					}
					message := status.Convert(err).Message()
					if took > 3*time.Minute-2*time.Second {
						t.Errorf("it ended after %v, and its caller waits for three minutes: %v", took, err)
					}
					if status.Code(err) == codes.DeadlineExceeded && !strings.Contains(message, " since ") || !regexp.MustCompile(`volume|snapshot|backup|server|Cinder|Nova`).MatchString(message) {
						t.Errorf("the caller reads nothing of what it waited for: %v", err)
					}
					if point.fault.Slow && status.Code(err) == codes.DeadlineExceeded && !strings.Contains(message, "req-") {
						t.Errorf("the caller reads no request ID: %v", err)
					}
				})
			}
		})
	}
}

type waitingPoint struct {
	name  string
	fault openstacksim.Fault
}

// waitingPoints are the requests that an RPC sends, and the work that it waits for.
func waitingPoints(t *testing.T, rpc controllerRPC) (all []waitingPoint) {
	t.Helper()
	paths := map[string]openstacksim.Fault{}
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim, "--with-capacity")
		o := newObjects(t, d)
		time.Sleep(time.Minute)
		sim.ResetRequests()
		if err := rpc.call(asSidecar(t), d, o); err != nil {
			t.Fatalf("without a fault: %v", err)
		}
		for _, r := range sim.Requests() {
			path := anID.ReplaceAllString(r.Path, "*")
			paths[r.Method+" "+path] = openstacksim.Fault{Method: r.Method, Path: path, Delay: time.Hour}
		}
	})
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		all = append(all, waitingPoint{name, paths[name]})
	}
	if rpc.operation != "" {
		all = append(all, waitingPoint{string(rpc.operation), openstacksim.Fault{Operation: rpc.operation, Slow: true, Delay: time.Hour}})
	}
	return all
}

var anID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}`)
