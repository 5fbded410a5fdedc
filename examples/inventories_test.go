package examples

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/cli"
	"github.com/cinder-csi/cinder-csi/generator/inspect"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim/cloudfile"
)

var update = flag.Bool("update", false, "read the simulated clouds again")

// Rendering makes much garbage and keeps little: with the runtime's 100, a third of the processor time goes into collecting it.
func init() { debug.SetGCPercent(400) }

// inventories names the files of inventories/, and says which are those of simulated clouds in clouds/.
var inventories = map[string]struct{ simulated bool }{
	"two-zones": {}, "one-zone": {}, "sites": {simulated: true}, "legacy": {simulated: true},
}

// generator runs the generator and returns what it prints.
func generator(t *testing.T, args ...string) string {
	t.Helper()
	var out, messages bytes.Buffer
	world := cli.World{
		Stdin: &bytes.Buffer{}, Stdout: &out, Stderr: &messages, Version: "test", ReadOnly: true, Env: func(string) string { return "" },
		Open: func(name string) (io.ReadCloser, error) { return os.Open(name) },
	}
	if code := cli.Run(t.Context(), world, args); code != cli.OK {
		t.Fatalf("%v: exit %d: %s", args, code, messages.String())
	}
	return out.String()
}

func TestEveryInventoryMakesABundle(t *testing.T) {
	for name := range inventories {
		file := filepath.Join("inventories", name+".yaml")
		for _, target := range []string{"vanilla", "standalone", "hypershift"} {
			t.Run(name+" "+target, func(t *testing.T) {
				t.Parallel()
				if plan := generator(t, "plan", "--inventory", file, "--target", target, "-o", "yaml"); !strings.Contains(plan, "kind: Plan") {
					t.Errorf("want a plan, got %s", plan)
				}
				for _, format := range []string{"kustomize", "helm"} {
					dir := filepath.Join(t.TempDir(), format)
					generator(t, "generate", "--inventory", file, "--target", target, "--format", format, "--output-dir", dir) // it verifies the bundle
					if !testing.Short() {
						generator(t, "validate", dir)
					}
				}
			})
		}
	}
}

// TestInventoriesOfSimulatedCloudsAreWhatInspectReads as a member of the project demo.
func TestInventoriesOfSimulatedCloudsAreWhatInspectReads(t *testing.T) {
	for name, kind := range inventories {
		if !kind.simulated {
			continue
		}
		t.Run(name, func(t *testing.T) {
			got := simulated(t, filepath.Join("clouds", name+".yaml"))
			file := filepath.Join("inventories", name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s differs; go test ./examples -update writes it (-want +got):\n%s", file, diff)
			}
		})
	}
}

// simulated is the inventory of a cloud that a file describes.
func simulated(t *testing.T, file string) []byte {
	t.Helper()
	const address = "http://openstack.simulated"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	shaped, err := cloudfile.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	sim := shaped.New()
	clouds := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(clouds, sim.CloudsYAML(address), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := cloud.FromSource(cloud.Source{CloudName: "sim-demo", CloudsFile: clouds, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cloud.Connect(t.Context(), settings, cloud.Options{Transport: memnet.Transport(sim.Handler())})
	if err != nil {
		t.Fatal(err)
	}
	inv, err := inspect.Inspect(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	inv.Simulated = true
	document, err := v1alpha1.YAML(inv)
	if err != nil {
		t.Fatal(err)
	}
	return document
}
