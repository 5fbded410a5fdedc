package errortable

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
)

// sequence has more than one failure. The last call could end with a final error, but another object of the same name exists or appears
// later.
type sequence struct {
	name    string
	prepare func(w *world)
	asks    func(w *world) sidecar
	makes   string // the kind of object: volumes, snapshots, backups
	// run runs the sequence and returns its last error.
	run  func(w *world, s sidecar) error
	want codes.Code
}

var pvc = provisioner(just(csitest.Claim("pvc")))

// POST of a volume, and of others.
const toVolumes = "/volume/v3/*/volumes"

var sequences = []sequence{
	{"the oldest failed, a younger is there", nothing, pvc, "volumes", func(w *world, s sidecar) error {
		lose(w, toVolumes, openstacksim.CreateVolume)
		if _, err := s.asked(w); status.Code(err) != codes.Unavailable {
			w.t.Fatalf("want a lost answer, got %v", err)
		}
		time.Sleep(2 * time.Second)
		repeated(w, toVolumes)
		time.Sleep(20 * time.Second)
		return csitest.Outcome(s.asked(w))
	}, codes.Aborted},
	{"its own failed, another replica's is there", nothing, pvc, "volumes", func(w *world, s sidecar) error {
		other := &world{t: w.t, ControllerClient: csi.NewControllerClient(inprocess.Start(w.t, w.sim))}
		for _, each := range []*world{w, other} { // both are logged in
			each.do("list", func(ctx context.Context) error {
				return csitest.Outcome(each.ListVolumes(ctx, &csi.ListVolumesRequest{}))
			})
		}
		w.sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Times: 1})
		ended := make(chan error, 1)
		go func() {
			time.Sleep(10 * time.Millisecond)
			_, err := pvc(other).asked(other)
			ended <- err
		}()
		_, err := s.asked(w)
		if err := <-ended; err != nil {
			w.t.Errorf("the other replica: %v", err)
		}
		return err
	}, codes.Aborted},
	{"volume held back after a create without an answer", nothing, pvc, "volumes", func(w *world, s sidecar) error { return gatewayTimeout(w, s, toVolumes) }, codes.Unavailable},
	{"snapshot held back after a create without an answer", (*world).prepared, snapshotter(snapshotOfPrepared), "snapshots", func(w *world, s sidecar) error {
		return gatewayTimeout(w, s, "/volume/v3/*/snapshots")
	}, codes.Unavailable},
	{"backup held back after a create without an answer", (*world).prepared, snapshotter(backupOfPrepared), "backups", func(w *world, s sidecar) error {
		return gatewayTimeout(w, s, "/volume/v3/*/backups")
	}, codes.Unavailable},
	{"no quota after a create that was refused for the moment", nothing, pvc, "volumes", func(w *world, s sidecar) error {
		w.sim.SetFault(openstacksim.Fault{
			Method: http.MethodPost, Path: toVolumes, Status: http.StatusBadRequest, Times: 1,
			Body: `{"badRequest":{"code":400,"message":"Invalid snapshot: Originating snapshot status must be one of available values"}}`,
		})
		if _, err := s.asked(w); status.Code(err) != codes.Aborted {
			w.t.Fatalf("want an error about a source that is changing, got %v", err)
		}
		w.sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: toVolumes, Status: http.StatusRequestEntityTooLarge, Times: 1})
		return csitest.Outcome(s.asked(w))
	}, codes.ResourceExhausted},
}

// lose drops the answer to the next create request, and makes the backend fail to create the object.
func lose(w *world, path string, op openstacksim.Operation) {
	w.sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: path, Drop: true, After: true, Times: 1})
	w.sim.SetFault(openstacksim.Fault{Operation: op, Times: 1})
}

// repeated sends the last create request again, as another replica would.
func repeated(w *world, path string) {
	w.t.Helper()
	body := ""
	for _, r := range w.sim.Requests() {
		if r.Method == http.MethodPost && r.Body != "" && lastSegment(r.Path) == lastSegment(path) {
			body = r.Body
		}
	}
	w.admin.Cinder(http.MethodPost, "/"+lastSegment(path), body)
}

// gatewayTimeout lets a proxy answer 504 to a create, which Cinder does later. It retries the call while Cinder may still do so. A second
// create would exceed the quota, because Cinder has reserved the quota for the first.
func gatewayTimeout(w *world, s sidecar, path string) error {
	w.sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: path, Status: http.StatusGatewayTimeout, Late: 30 * time.Second, Times: 1})
	w.sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: path, Status: http.StatusRequestEntityTooLarge, Times: 1})
	if _, err := s.asked(w); status.Code(err) != codes.Unavailable {
		w.t.Fatalf("want an error after a 504, got %v", err)
	}
	time.Sleep(time.Second)
	_, err := s.asked(w)
	if !strings.Contains(status.Convert(err).Message(), "outcome unknown") {
		w.t.Errorf("the error does not say why: %v", err)
	}
	return err
}

// Each sequence runs twice: with a sidecar whose claim is deleted at the last answer, and with one that retries.
func TestNoErrorIsFinalWhileAnotherObjectExistsOrMayAppear(t *testing.T) {
	for _, sequence := range sequences {
		for _, abandoned := range []bool{true, false} {
			name := sequence.name + map[bool]string{true: ", and the owner is deleted", false: ", and the owner stays"}[abandoned]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					w := newWorld(t)
					sequence.prepare(w)
					s := sequence.asks(w)
					err := sequence.run(w, s)
					if status.Code(err) != sequence.want {
						t.Errorf("want %s, got %v", sequence.want, err)
					}
					if abandoned {
						s.abandoned(w, err)
					} else {
						s.insisted(w, sequence.makes, 0)
					}
					w.cleared()
				})
			})
		}
	}
}

// asked makes one call with the deadline of the sidecar.
func (s sidecar) asked(w *world) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), deadline)
	defer cancel()
	id, _, err := s.make(ctx)
	return id, err
}

func lastSegment(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
