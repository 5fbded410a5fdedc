package driver_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

func TestReadinessRevealsNoAddressAndNoUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := start(t, []byte(strings.Replace(string(sim.CloudConf(inprocess.URL)), "sim-appcred-secret", "wrong", 1)), memnet.Transport(sim.Handler()))
		for range 3 {
			body, code := d.Get(t, "/readyz")
			if code != http.StatusServiceUnavailable || !strings.Contains(string(body), "log") {
				t.Errorf("%d %q", code, body)
			}
			for _, secret := range []string{"cloud.test", "http", "credential", "user", "project"} {
				if strings.Contains(string(body), secret) {
					t.Errorf("the answer tells of %q: %q", secret, body)
				}
			}
			time.Sleep(time.Minute)
		}
		if log := d.Log.String(); strings.Count(log, "not ready: the driver cannot use a cloud") != 1 || !strings.Contains(log, "cloud.test") {
			t.Errorf("want the reason once in\n%s", log)
		}
	})
}

func TestAnIdleHTTPConnectionIsClosed(t *testing.T) {
	const request = "GET /healthz HTTP/1.1\r\nHost: driver\r\n"
	for name, writes := range map[string][]string{ // one every nine seconds
		"nothing":               nil,
		"a byte of a header":    strings.Split(request+"X: "+strings.Repeat("x", 1000), ""),
		"a request and silence": {request + "\r\n"},
		"a request each time":   slices.Repeat([]string{request + "\r\n"}, 100),
	} {
		synctest.Test(t, func(t *testing.T) {
			d := startWith(t, simulated())
			conn := testenv.Value(d.Web.Dial(t.Context()))(t)
			defer conn.Close()
			begin := time.Now()
			written := make(chan struct{})
			go func() {
				defer close(written)
				for _, text := range writes {
					if _, err := io.WriteString(conn, text); err != nil {
						return
					}
					time.Sleep(9 * time.Second)
				}
			}()
			_, _ = io.Copy(io.Discard, conn)
			if took := time.Since(begin); took > 11*time.Second {
				t.Errorf("%s: the connection was kept for %v", name, took)
			}
			<-written
		})
	}
}

// A client that asks for a page and does not read the answer holds it for ten seconds.
func TestAnAnswerThatNobodyReadsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		conn := testenv.Value(d.Web.Dial(t.Context()))(t)
		defer conn.Close()
		testenv.Value(io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: driver\r\n\r\n"))(t)
		time.Sleep(11 * time.Second)
		if _, err := io.WriteString(conn, "x"); err == nil {
			t.Error("the connection is still open")
		}
	})
}

func TestANodeCallsOnlyTheMetadataService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := start(t, nil, memnet.Transport(sim.Handler()), "--provide-controller-service=false", "--metadata-url="+inprocess.URL+"/metadata/node-az2",
			"--additional-topology=topology.kubernetes.io/region=R", "--sys-root="+t.TempDir(), "--dev-root="+t.TempDir())
		got := must[*csi.NodeGetInfoResponse](t)(d.NodeGetInfo(asSidecar(t), &csi.NodeGetInfoRequest{}))
		_, az2 := servers()
		want := map[string]string{"topology.cinder.csi.openstack.org/zone": "az2", "topology.kubernetes.io/region": "R"}
		if diff := cmp.Diff(want, got.GetAccessibleTopology().GetSegments()); diff != "" || got.GetNodeId() != az2 {
			t.Errorf("node %s, -want +got\n%s", got.GetNodeId(), diff)
		}
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
		wantCode(t, err, codes.Unimplemented, "")
	})
}

// The readiness of a node pod is its NodeGetInfo, so a rollout of a driver that kubelet cannot register stops. Later failures do not take it away.
func TestANodeIsReadyOnceItsMetadataAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &switched{down: true, next: memnet.Transport(simulated().Handler())}
		d := start(t, nil, wire, "--provide-controller-service=false", "--sys-root="+t.TempDir(), "--dev-root="+t.TempDir())
		for _, step := range []struct {
			down bool
			want int
		}{{true, http.StatusServiceUnavailable}, {false, http.StatusOK}, {true, http.StatusOK}} {
			wire.set(step.down)
			if page, code := d.Get(t, "/startupz"); code != step.want {
				t.Errorf("metadata service down %t: want %d, got %d: %s", step.down, step.want, code, page)
			}
		}
	})
}
