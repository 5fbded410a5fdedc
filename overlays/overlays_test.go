// Package overlays holds the generator's output for a recorded inventory, as examples to read: overlays/TARGET/FORMAT. The
// Kustomize ones point at manifests/ in this checkout, so that only what the cloud decided is in them.
package overlays_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/cli"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var update = flag.Bool("update", false, "write the examples anew")

// base is the path from a Kustomize example to the manifests of this checkout.
const base = "../../../manifests"

// version stands in the examples' plan.yaml; a released generator writes its own.
const version = "example"

var (
	targets = []string{"vanilla", "standalone", "hypershift"}
	formats = []string{"kustomize", "helm"}
)

// simulate logs in to the simulated cloud as `--simulated` does.
func simulate(ctx context.Context) (*cloud.Cloud, error) {
	config := openstacksim.Default()
	settings := cloud.Settings{
		Name: "simulated", AuthURL: "http://openstack.simulated/identity/v3", Region: config.Region,
		Username: "demo", UserDomainName: "Default", ProjectName: "demo", ProjectDomainName: "Default",
	}
	for _, u := range config.Users {
		if u.Name == settings.Username {
			settings.Password = cloud.Secret(u.Password)
		}
	}
	return cloud.Connect(ctx, settings, cloud.Options{Transport: memnet.Transport(openstacksim.New(config).Handler())})
}

func run(t *testing.T, args ...string) {
	t.Helper()
	var messages bytes.Buffer
	world := cli.World{
		Stdin: &bytes.Buffer{}, Stdout: &messages, Stderr: &messages, Env: func(string) string { return "" },
		Open: func(name string) (io.ReadCloser, error) { return os.Open(name) }, Version: version, Simulate: simulate,
	}
	if code := cli.Run(t.Context(), world, args); code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, messages.String())
	}
}

// config is the configuration of a target's examples: its own, if it has one.
func config(target string) string {
	const name = "distribution.yaml"
	if own := filepath.Join(target, name); exists(own) {
		return own
	}
	return name
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func generate(t *testing.T, target, format, dir string) {
	t.Helper()
	args := []string{
		"generate", "--inventory", "inventory.yaml", "--config", config(target), "--target", target, "--format", format, "--output-dir", dir,
	}
	if format == "kustomize" {
		args = append(args, "--base", base)
	}
	run(t, args...)
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inventory is recorded before the bundles are made from it.
func TestInventoryIsWhatTheSimulatedCloudOffers(t *testing.T) {
	if *update {
		if err := os.RemoveAll("inventory.yaml"); err != nil {
			t.Fatal(err)
		}
		run(t, "inspect", "--simulated", "--save", "inventory.yaml")
		return
	}
	dir := t.TempDir()
	run(t, "inspect", "--simulated", "--save", filepath.Join(dir, "inventory.yaml"))
	want := testfile.Text(t, "inventory.yaml")
	if diff := cmp.Diff(want, files(t, dir)["inventory.yaml"]); diff != "" {
		t.Errorf("overlays/inventory.yaml is stale; run `make update`:\n%s", diff)
	}
}

func TestExamplesAreWhatTheGeneratorWrites(t *testing.T) {
	for _, target := range targets {
		for _, format := range formats {
			example := filepath.Join(target, format)
			if *update {
				if err := os.RemoveAll(example); err != nil {
					t.Fatal(err)
				}
				generate(t, target, format, example)
				continue
			}
			dir := filepath.Join(t.TempDir(), target, format)
			generate(t, target, format, dir)
			if diff := cmp.Diff(files(t, example), files(t, dir)); diff != "" {
				t.Errorf("overlays/%s is stale; run `make update`:\n%s", filepath.ToSlash(example), diff)
			}
		}
	}
}

// The bundles that people read are what Helm installs with the same configuration.
func TestKustomizeAndHelmAgreeOnTheExamples(t *testing.T) {
	for _, target := range targets {
		if diff := cmp.Diff(build(t, target, "kustomize"), build(t, target, "helm")); diff != "" {
			t.Errorf("%s: the overlay is not what Helm installs (-kustomize +helm):\n%s", target, diff)
		}
	}
}

// build returns the objects of an example by plane, kind and name, without the two labels that only a chart sets.
func build(t *testing.T, target, format string) map[string]map[string]any {
	t.Helper()
	example := filepath.Join(target, format)
	dir, err := worktree.Open(example)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := dir.Read()
	if err != nil {
		t.Fatal(err)
	}
	outside, err := bundle.Base(verify.Chart, dir.Plan.Target)
	if err != nil {
		t.Fatal(err)
	}
	objects, findings, err := verify.BundleAt(example, outside.At(base+"/"+target), tree, dir.Plan.Target, dir.Plan.Format)
	if err != nil || len(findings) > 0 || len(objects) == 0 {
		t.Fatalf("%s: %d objects, %v, %v", example, len(objects), findings, err)
	}
	all := map[string]map[string]any{}
	for _, o := range objects {
		metadata, _ := o.Fields["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		for _, l := range verify.ChartLabels {
			delete(labels, l)
		}
		all[o.String()] = o.Fields
	}
	return all
}

func TestExamplesAreValidWhereTheyAre(t *testing.T) {
	for _, target := range targets {
		for _, format := range formats {
			args := []string{"validate", filepath.Join(target, format)}
			if format == "kustomize" {
				args = append(args, "--base", base)
			}
			run(t, args...)
		}
	}
}

// A person reads what a cloud changed before it is applied.
func TestThePatchesOfAnExampleAreShort(t *testing.T) {
	const most = 200
	for _, target := range targets {
		lines := 0
		for name, text := range files(t, filepath.Join(target, "kustomize")) {
			if filepath.Base(filepath.Dir(name)) == "patches" {
				lines += strings.Count(text, "\n")
			}
		}
		if lines == 0 || lines > most {
			t.Errorf("%s: want at most %d lines of patches, got %d", target, most, lines)
		}
	}
}
