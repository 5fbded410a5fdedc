package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

var update = flag.Bool("update", false, "write what the commands print into testdata")

// Rendering makes much garbage and keeps little: with the runtime's 100, a third of the processor time goes into collecting it.
func init() { debug.SetGCPercent(400) }

// bed is a world around one simulated cloud.
type bed struct {
	World
	sim    *openstacksim.Sim
	env    map[string]string
	dir    string
	served atomic.Int64 // requests to the simulated cloud
	stdin  *bytes.Buffer
	wrap   func(http.RoundTripper) http.RoundTripper // of the way to the cloud; nil: as it is
	api    http.Handler                              // of the cluster; nil: there is no kubeconfig
}

// unreachable is a network that reaches nothing.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

const address = "http://openstack.simulated"

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{sim: openstacksim.New(openstacksim.Default()), env: map[string]string{}, dir: t.TempDir(), stdin: &bytes.Buffer{}}
	clouds := b.file(t, "clouds.yaml", string(b.sim.CloudsYAML(address)))
	b.env["OS_CLIENT_CONFIG_FILE"] = clouds
	b.World = World{
		Stdin:    b.stdin,
		Env:      func(name string) string { return b.env[name] },
		Open:     func(name string) (io.ReadCloser, error) { return os.Open(name) },
		Version:  "v0-test",
		ReadOnly: true,
		Kubernetes: func(s cluster.Source) (*cluster.Cluster, error) {
			if b.api == nil {
				return nil, cluster.ErrNoKubeconfig
			}
			server := httptest.NewServer(b.api)
			t.Cleanup(server.Close)
			base, err := url.Parse(server.URL)
			return cluster.New(s.Context, base, server.Client()), err
		},
		Registry: unreachable{},
		Retry:    func(next http.RoundTripper) http.RoundTripper { return next }, // inspect tests the pauses, in virtual time
		Verify:   verifyOnce,
		Connect: func(ctx context.Context, s cloud.Settings, o cloud.Options) (*cloud.Cloud, error) {
			o.Transport = b
			return cloud.Connect(ctx, s, o)
		},
		Simulate: func(ctx context.Context) (*cloud.Cloud, error) {
			s, err := cloud.FromSource(cloud.Source{CloudName: "sim-demo", CloudsFile: clouds, Env: func(string) string { return "" }})
			if err != nil {
				return nil, err
			}
			return cloud.Connect(ctx, s, cloud.Options{Transport: b})
		},
	}
	return b
}

// verification is what a Verifier returns.
type verification struct {
	objects  []verify.Object
	findings []verify.Finding
	err      error
}

var verifications sync.Map // of bundles without a base: a function that returns the verification, by the hash of the bundle

// verifyOnce verifies the same bundle once for all tests of this package, which takes most of their time. The objects are copies.
func verifyOnce(dir string, base, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]verify.Object, []verify.Finding, error) {
	if base != nil {
		return verify.BundleAt(dir, base, tree, target, format)
	}
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		fmt.Fprintf(hash, "%q %q\n", name, tree[name])
	}
	kept, _ := verifications.LoadOrStore(fmt.Sprintf("%s %s %x", target, format, hash.Sum(nil)), sync.OnceValue(func() verification {
		objects, findings, err := verify.BundleAt(dir, base, tree, target, format)
		return verification{objects, findings, err}
	}))
	v := kept.(func() verification)()
	objects := slices.Clone(v.objects)
	for i, o := range objects {
		objects[i].Fields = runtime.DeepCopyJSON(o.Fields)
	}
	return objects, slices.Clone(v.findings), v.err
}

func (b *bed) RoundTrip(r *http.Request) (*http.Response, error) {
	b.served.Add(1)
	way := memnet.Transport(b.sim.Handler())
	if b.wrap != nil {
		return b.wrap(way).RoundTrip(r)
	}
	return way.RoundTrip(r)
}

// file writes a file of the test's directory and gives its path.
func (b *bed) file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs one command line.
func (b *bed) run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, messages bytes.Buffer
	w := b.World
	w.Stdout, w.Stderr = &out, &messages
	code = Run(t.Context(), w, args)
	return out.String(), messages.String(), code
}

// ok runs a command line that must succeed and gives its stdout.
func (b *bed) ok(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := b.run(t, args...)
	if code != OK {
		t.Fatalf("%s: exit %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; if that is right, run with -update (-want +got):\n%s", name, diff)
	}
}

// files is a directory's files with their contents.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	var walk func(string)
	walk = func(at string) {
		entries, err := os.ReadDir(filepath.Join(dir, at))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := filepath.Join(at, e.Name())
			if e.IsDir() {
				walk(name)
				continue
			}
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.ToSlash(name)] = string(content)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		walk(".")
	}
	return all
}
