package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/inspect"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answering answers the requests of one call with a status and a body, and lets all others through. Lists of types are without extra specs, as those of some
// releases are. So the specs of each type are a request of their own.
func answering(call cloud.Call, status int, body string) func(http.RoundTripper) http.RoundTripper {
	root := map[string]string{"compute": "/compute/v2.1", "block-storage": "/volume/v3"}[call.Service]
	path := regexp.MustCompile(`\\{[a-z]+\\}`).ReplaceAllString(regexp.QuoteMeta(call.Path), "[^/]+")
	matches := regexp.MustCompile("^" + root + "(/[0-9a-f]{32})?" + path + "$")
	return func(way http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if status != 0 && matches.MatchString(r.URL.Path) {
				w := httptest.NewRecorder()
				w.WriteHeader(status)
				_, _ = w.WriteString(body)
				return w.Result(), nil
			}
			resp, err := way.RoundTrip(r)
			if err == nil && strings.HasSuffix(r.URL.Path, "/types") {
				resp.Body = withoutSpecs(resp.Body)
				resp.ContentLength = -1
				resp.Header.Del("Content-Length")
			}
			return resp, err
		})
	}
}

func withoutSpecs(body io.ReadCloser) io.ReadCloser {
	defer body.Close()
	var list map[string]any
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		panic(err)
	}
	types, _ := list["volume_types"].([]any)
	for _, t := range types {
		delete(t.(map[string]any), "extra_specs")
	}
	text, _ := json.Marshal(list)
	return io.NopCloser(bytes.NewReader(text))
}

// everyFact is a configuration in which each fact decides something.
const everyFact = `apiVersion: generator.cinder-csi.io/v1alpha1
kind: Distribution
metadata: {name: depot}
spec:
  kubernetesVersion: "1.34"
  storageClasses: {extra: [{name: keep, reclaimPolicy: Retain}]}
  attributesClasses: {quick: {type: ssd}}
  networkPolicy: {enabled: true}
  driftCheck: {schedule: "0 * * * *"}
  images:
    driver: {registry: registry.example.com, repository: cinder-csi/cinder-csi-driver, tag: v0.1.0}
    generator: {registry: registry.example.com, repository: cinder-csi/cinder-csi-generator, tag: v0.1.0}
`

// rightsBed is a bed whose cloud has a fact of each kind, and the arguments of generate.
func rightsBed(t *testing.T) (*bed, []string) {
	t.Helper()
	b := newBed(t)
	b.sim.AddVolumeType(openstacksim.VolumeType{ID: typeID, Name: typeName, ExtraSpecs: map[string]string{"RESKEY:availability_zones": "az2"}})
	b.sim.AddVolumeType(openstacksim.VolumeType{ID: otherID, Name: "elsewhere", ExtraSpecs: map[string]string{"RESKEY:availability_zones": "az9"}})
	b.wrap = answering(cloud.Call{}, 0, "")
	return b, generation("vanilla", "helm", filepath.Join(b.dir, "out"), "--config", b.file(t, "d.yaml", everyFact))
}

// What a credential may not read, and what the cloud does not answer, is no fact of the cloud. It changes no byte and is no drift.
func TestARequestThatIsDeniedOrFailsDecidesNothing(t *testing.T) {
	b, args := rightsBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, args...)
	before := files(t, dir)
	job := b.file(t, "job.yaml", driftCheckPlan(t, before))
	plain := b.wrap
	answers := []struct {
		status int
		body   string
	}{{http.StatusForbidden, ""}, {http.StatusUnauthorized, ""}, {http.StatusInternalServerError, ""}, {http.StatusOK, ""}, {http.StatusOK, "{}"}}
	if testing.Short() {
		answers = answers[:1]
	}
	runs := 0
	for _, call := range inspect.Calls {
		for _, answer := range answers {
			name := call.Service + " " + call.Path + " " + strconv.Itoa(answer.status) + " " + strconv.Quote(answer.body)
			b.wrap = answering(call, answer.status, answer.body)
			for _, command := range [][]string{append(args, "--check"), args, {"plan", "--os-cloud", "sim-demo", "--check", job}} {
				stdout, stderr, code := b.run(t, command...)
				if runs++; code != OK && code != Failure {
					t.Errorf("%s: %s: want exit %d or %d, got %d: %s%s", name, command[0], OK, Failure, code, stdout, stderr)
				}
				if denied := answer.status == http.StatusForbidden; denied && code == Failure && !strings.Contains(stderr, "the access rule is") {
					t.Errorf("%s: %s: want the access rule named, got %s", name, command[0], stderr)
				}
			}
			if diff := cmp.Diff(before, files(t, dir)); diff != "" {
				t.Errorf("%s: generate changed the bundle (-before +after):\n%s", name, diff)
			}
			b.wrap = plain
		}
	}
	t.Logf("%d runs", runs)
}

// driftCheckPlan is the plan in the ConfigMap of the drift check.
func driftCheckPlan(t *testing.T, bundle map[string]string) string {
	t.Helper()
	_, rest, found := strings.Cut(bundle["values.yaml"], "plan: |")
	if !found {
		t.Fatal("values.yaml has no plan for the drift check")
	}
	var text strings.Builder
	for line := range strings.Lines(rest[strings.IndexByte(rest, '\n')+1:]) {
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "    ") {
			break
		}
		text.WriteString(strings.TrimPrefix(line, "    "))
	}
	return text.String()
}

// Two people with two credentials never undo each other's bundle. The one who may read more changes it once, and names what could not be read before.
func TestABundleOfALesserCredentialChangesOnce(t *testing.T) {
	for i, call := range inspect.Calls {
		if testing.Short() && i%4 != 3 { // of the four, types/default and backups decide something
			continue
		}
		b, args := rightsBed(t)
		dir := filepath.Join(b.dir, "out")
		rich, poor := b.wrap, answering(call, http.StatusForbidden, "")
		b.wrap = poor
		if _, _, code := b.run(t, args...); code == Failure {
			continue // zones and types
		}
		if _, stderr, code := b.run(t, append(args, "--check")...); code != OK {
			t.Errorf("%s %s: the same credential again: exit %d: %s", call.Service, call.Path, code, stderr)
		}
		b.wrap = rich
		if stdout, stderr, code := b.run(t, append(args, "--check")...); code != OK && (code != Different || strings.Contains(stdout, "from denied")) {
			t.Errorf("%s %s: a credential with the right: exit %d: %s%s", call.Service, call.Path, code, stdout, stderr)
		}
		if _, stderr, code := b.run(t, append(args, "--accept", "class-removed,class-immutable")...); code != OK { // of a type in a zone without nodes, and of the default type
			t.Errorf("%s %s: generate with the right: exit %d: %s", call.Service, call.Path, code, stderr)
		}
		second := files(t, dir)
		for turn := range 2 {
			b.wrap = []func(http.RoundTripper) http.RoundTripper{poor, rich}[turn]
			if stdout, stderr, code := b.run(t, append(args, "--check")...); code != OK {
				t.Errorf("%s %s: turn %d: exit %d: %s%s", call.Service, call.Path, turn, code, stdout, stderr)
			}
			b.ok(t, args...)
		}
		if diff := cmp.Diff(second, files(t, dir)); diff != "" {
			t.Errorf("%s %s: the two credentials change the bundle in turns (-second +then):\n%s", call.Service, call.Path, diff)
		}
	}
}
