package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// runAsCommand makes this test binary the command, so that a test can give it an environment of its own.
const runAsCommand = "CINDER_CSI_TEST_RUN_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(runAsCommand) == "" {
		os.Exit(m.Run())
	}
	w := World{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Getenv, Version: "v0-test", ReadOnly: true,
		Open: func(name string) (io.ReadCloser, error) { return os.Open(name) },
	}
	os.Exit(Run(context.Background(), w, os.Args[1:]))
}

// shuffler shuffles every array of every JSON reply.
type shuffler struct {
	next   http.RoundTripper
	random *rand.Rand
}

func (s shuffler) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var body any
	if json.Unmarshal(content, &body) == nil {
		s.shuffle(body)
		if content, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
	resp.Header.Del("Content-Length")
	return resp, nil
}

func (s shuffler) shuffle(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			s.shuffle(value)
		}
	case []any:
		for _, value := range v {
			s.shuffle(value)
		}
		s.random.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
	}
}

func TestAnyOrderAndPageSizeOfTheCloudsRepliesGivesTheSameBytes(t *testing.T) {
	testenv.NotShort(t)
	cloud := func(pageSize int) *bed {
		config := openstacksim.Default()
		config.PageSize = pageSize
		b := newBed(t)
		b.sim = openstacksim.New(config)
		for i := range 12 {
			b.sim.AddVolumeType(openstacksim.VolumeType{ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Name: fmt.Sprintf("type-%d", i*7%12)})
		}
		return b
	}
	written := func(b *bed) map[string]string {
		dir := filepath.Join(b.dir, "out")
		b.ok(t, generation("vanilla", "helm", dir)...)
		return files(t, dir)
	}
	want := written(cloud(1000))
	for _, size := range []int{1, 2, 3, 5, 7, 11, 13, 100, 999} {
		if diff := cmp.Diff(want, written(cloud(size))); diff != "" {
			t.Errorf("pages of %d (-pages of 1000 +got):\n%s", size, diff)
		}
	}
	for seed := range uint64(10) {
		b := cloud(1000)
		b.wrap = func(next http.RoundTripper) http.RoundTripper { return shuffler{next, rand.New(rand.NewPCG(seed, 1))} }
		if diff := cmp.Diff(want, written(b)); diff != "" {
			t.Errorf("shuffled with seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

func TestAnotherLocalAliasOfTheCloudGivesTheSameBytes(t *testing.T) {
	b := newBed(t)
	clouds := strings.Replace(string(b.sim.CloudsYAML(address)), "  sim-demo:\n", "  my-own-name:\n", 1)
	b.env["OS_CLIENT_CONFIG_FILE"] = b.file(t, "other.yaml", clouds)
	other := generation("vanilla", "helm", filepath.Join(b.dir, "other"))
	other[2] = "my-own-name"
	b.ok(t, other...)
	b.env["OS_CLIENT_CONFIG_FILE"] = filepath.Join(b.dir, "clouds.yaml")
	b.ok(t, generation("vanilla", "helm", filepath.Join(b.dir, "out"))...)
	if diff := cmp.Diff(files(t, filepath.Join(b.dir, "out")), files(t, filepath.Join(b.dir, "other"))); diff != "" {
		t.Errorf("(-sim-demo +my-own-name):\n%s", diff)
	}
}

func TestTheEnvironmentAndTheOutputPathDoNotReachTheBundle(t *testing.T) {
	testenv.NotShort(t)
	b := newBed(t)
	inventory := b.file(t, "inventory.yaml", b.ok(t, "inspect", "--os-cloud", "sim-demo", "-o", "yaml"))
	environments := [][]string{
		{"TZ=UTC", "LANG=C", "GOMAXPROCS=1"},
		{"TZ=Asia/Kathmandu", "LANG=tr_TR.UTF-8", "LC_ALL=tr_TR.UTF-8", "GOMAXPROCS=8", "USER=somebody", "HOSTNAME=elsewhere", "HOME=/nowhere", "COLUMNS=40"},
	}
	for _, format := range formats {
		var want map[string]string
		for i, env := range environments {
			dir := filepath.Join(b.dir, fmt.Sprintf("%s/%d/deeper", format, i))
			cmd := exec.CommandContext(t.Context(), os.Args[0], "generate", "--inventory", inventory, "--target", "vanilla", "--format", format, "--output-dir", dir)
			cmd.Env = append(env, runAsCommand+"=1", "TMPDIR="+b.dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", env, err, out)
			}
			got := files(t, dir)
			if want == nil {
				want = got
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s with %s (-want +got):\n%s", format, env, diff)
			}
		}
	}
}

// A map's order shows after a few runs; with -full, there are a thousand.
func TestAThousandRunsGiveTheSameBytes(t *testing.T) {
	testenv.NotShort(t)
	b := newBed(t)
	saved := b.ok(t, "inspect", "--os-cloud", "sim-demo", "-o", "yaml")
	run := func(random *rand.Rand, format v1alpha1.Format) string {
		inventory, err := v1alpha1.DecodeInventory("saved", []byte(saved))
		if err != nil {
			t.Fatal(err)
		}
		shuffle(random, inventory.VolumeTypes.Value)
		shuffle(random, inventory.Zones.Compute.Value)
		shuffle(random, inventory.Zones.Volume.Value)
		r, err := plan.Decide(inventory, v1alpha1.Distribution{}, v1alpha1.HostedControlPlane, format, "v0-test")
		if err != nil {
			t.Fatal(err)
		}
		tree, err := bundle.Render(r, verify.Chart, bundle.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := v1alpha1.YAML(r.Document(nil))
		if err != nil {
			t.Fatal(err)
		}
		tree["plan.yaml"] = text
		return fmt.Sprint(worktree.Files(tree)) // paths and hashes
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	random := rand.New(rand.NewPCG(1, 2))
	for format, runs := range map[v1alpha1.Format]int{v1alpha1.Kustomize: 10, v1alpha1.Helm: 40} { // a Helm bundle is the faster one
		if testenv.Full() {
			runs *= 20
		}
		want := run(random, format)
		for i := range runs {
			runtime.GOMAXPROCS(1 + i%2*7)
			if run(random, format) != want {
				t.Fatalf("%s: run %d differs", format, i)
			}
		}
	}
}

func shuffle[T any](random *rand.Rand, list []T) {
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}
