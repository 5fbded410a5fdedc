package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// statusServer keeps what is written into ConfigMaps, by the path of the request.
type statusServer struct {
	written map[string]map[string]string
	deny    bool
}

func (s *statusServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if s.deny || r.Method != http.MethodPatch || r.Header.Get("Content-Type") != "application/apply-patch+yaml" {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"message": "configmaps is forbidden"}`)
		return
	}
	var object struct{ Data map[string]string }
	if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.written[r.URL.Path+"?"+r.URL.RawQuery] = object.Data
	_, _ = io.WriteString(w, "{}")
}

// checked is a bed with a saved plan, and the command that compares with it.
func checked(t *testing.T) (*bed, *statusServer, []string) {
	t.Helper()
	b := newBed(t)
	api := &statusServer{written: map[string]map[string]string{}}
	b.api = api
	b.Now = func() time.Time { return time.Date(2026, 11, 24, 6, 0, 0, 0, time.UTC) }
	saved := b.file(t, "plan.yaml", b.ok(t, "plan", "--os-cloud", "sim-demo", "--target", "vanilla", "-o", "yaml"))
	return b, api, []string{"plan", "--os-cloud", "sim-demo", "--check", saved, "--status-configmap", "storage/result"}
}

const statusPath = "/api/v1/namespaces/storage/configmaps/result?fieldManager=cinder-csi-drift-check&force=true"

func TestTheResultOfADriftCheckIsWrittenIntoTheConfigMap(t *testing.T) {
	b, api, args := checked(t)
	for _, test := range []struct {
		name, result, exit, differences, err string
		before                               func()
		code                                 int
	}{
		{name: "in sync", result: "in-sync", exit: "0", before: func() {}},
		{name: "drift", result: "drift", exit: "2", code: Different, differences: "cloud: volume type \"archive\" is new: StorageClass archive is added\n", before: func() {
			b.sim.AddVolumeType(openstacksim.VolumeType{Name: "archive"})
		}},
		{name: "outage", result: "failed", exit: "1", code: Failure, err: "HTTP 503", before: func() {
			b.sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/volume/v3/*/types", Status: http.StatusServiceUnavailable})
		}},
	} {
		test.before()
		if _, stderr, code := b.run(t, args...); code != test.code || strings.Contains(stderr, "status-configmap") {
			t.Errorf("%s: want exit %d and no word about the ConfigMap, got %d: %s", test.name, test.code, code, stderr)
		}
		got := api.written[statusPath]
		if !strings.Contains(got["error"], test.err) || (got["error"] == "") != (test.err == "") {
			t.Errorf("%s: want an error with %q, got %q", test.name, test.err, got["error"])
		}
		var objects []bundle.Object
		if err := json.Unmarshal([]byte(got["relatedObjects"]), &objects); err != nil || len(objects) < 20 {
			t.Errorf("%s: want the objects of the bundle, got %v, %s", test.name, err, got["relatedObjects"])
		}
		if !strings.HasPrefix(got["planChecksum"], "sha256:") {
			t.Errorf("%s: want a checksum, got %q", test.name, got["planChecksum"])
		}
		delete(got, "error")
		delete(got, "relatedObjects")
		delete(got, "planChecksum")
		want := map[string]string{"result": test.result, "exitCode": test.exit, "checkedAt": "2026-11-24T06:00:00Z", "generator": "v0-test", "bundleGenerator": "v0-test"}
		if test.differences != "" {
			want["differences"] = test.differences
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestAResultThatCannotBeWrittenDoesNotChangeTheExitCode(t *testing.T) {
	b, api, args := checked(t)
	api.deny = true
	for _, want := range []int{OK, Different} {
		if want == Different {
			b.sim.AddVolumeType(openstacksim.VolumeType{Name: "archive"})
		}
		_, stderr, code := b.run(t, args...)
		if code != want || !strings.Contains(stderr, "Warning: --status-configmap storage/result: the result was not written") || !strings.Contains(stderr, "HTTP 403 configmaps is forbidden") {
			t.Errorf("want exit %d and a warning with the reason, got %d: %s", want, code, stderr)
		}
	}
	b.api = nil
	if _, stderr, code := b.run(t, args...); code != Different || !strings.Contains(stderr, "the result was not written") {
		t.Errorf("want exit 2 and a warning without a cluster, got %d: %s", code, stderr)
	}
}

func TestAFailureBeforeThePlanIsReadIsWrittenToo(t *testing.T) {
	b, api, args := checked(t)
	args[4] = b.file(t, "broken.yaml", "kind: Plan\napiVersion: generator.cinder-csi.io/v9\n")
	_, _, code := b.run(t, args...)
	if got := api.written[statusPath]; code == OK || got["result"] != "failed" || got["error"] == "" || got["relatedObjects"] != "" {
		t.Errorf("want a failed result with an error and no objects, got exit %d, %v", code, got)
	}
	args[4] = filepath.Join(b.dir, "none.yaml")
	delete(api.written, statusPath)
	if _, _, code := b.run(t, args...); api.written[statusPath]["result"] != "failed" {
		t.Errorf("want a failed result, got exit %d, %v", code, api.written)
	}
}

func TestTheNameOfAStatusConfigMapIsChecked(t *testing.T) {
	b, api, args := checked(t)
	for name, why := range map[string]string{"/x": "want NAMESPACE/NAME", "x/": "want NAMESPACE/NAME", "a/b/c": "want NAMESPACE/NAME"} {
		args[len(args)-1] = name
		if _, stderr, code := b.run(t, args...); code != Usage || !strings.Contains(stderr, why) {
			t.Errorf("%s: want exit 64 and %q, got %d: %s", name, why, code, stderr)
		}
	}
	if _, stderr, code := b.run(t, "plan", "--simulated", "--target", "vanilla", "--status-configmap", "x"); code != Usage || !strings.Contains(stderr, "--status-configmap is for --check") {
		t.Errorf("want exit 64, got %d: %s", code, stderr)
	}
	args[len(args)-1] = "result"
	b.ok(t, args...)
	if _, there := api.written["/api/v1/namespaces/default/configmaps/result?fieldManager=cinder-csi-drift-check&force=true"]; !there {
		t.Errorf("want the namespace of the context, got %v", api.written)
	}
}

func TestTheDifferencesOfAStatusAreBoundedAndHaveNoSecret(t *testing.T) {
	var s driftStatus
	for range statusLines + 5 {
		s.changes = append(s.changes, v1alpha1.Change{Message: "config: proxy is http://admin:hunter2@proxy.example now " + strings.Repeat("é", statusLine)})
	}
	data, err := s.data(&World{Version: "v1"}, &exit{code: Different})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(data["differences"]), "\n")
	if len(lines) != statusLines+1 || lines[statusLines] != "and 5 more; the log of the pod has all of them" || strings.Contains(data["differences"], "hunter2") {
		t.Errorf("want 100 lines without the password and the number of the rest, got %d: %.300s", len(lines), data["differences"])
	}
	if long := lines[0]; len(long) > statusLine || !strings.HasSuffix(long, "é ...") {
		t.Errorf("want a line that is cut between two letters, got %d bytes: %s", len(long), long)
	}
}
