package cli

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// randomInventory is the cloud of a bed with other types, zones and default type, as a file.
func randomInventory(t *testing.T, b *bed, base string, r *rand.Rand, name string) string {
	t.Helper()
	inv, err := v1alpha1.DecodeInventory("inventory", []byte(base))
	if err != nil {
		t.Fatal(err)
	}
	types := slices.Clone(inv.VolumeTypes.Value)
	for i := range types {
		if other := r.IntN(len(types)); r.IntN(3) == 0 {
			types[i].ID, types[other].ID = types[other].ID, types[i].ID
		}
		if r.IntN(3) == 0 {
			types[i].Zones = []string{"az1"}
		}
	}
	inv.VolumeTypes.Value = types[r.IntN(2):]
	inv.DefaultVolumeType.Value = types[r.IntN(len(types))].Name
	if r.IntN(3) == 0 {
		inv.Zones.Volume.Value = inv.Zones.Volume.Value[:1]
	}
	text, err := v1alpha1.YAML(inv)
	if err != nil {
		t.Fatal(err)
	}
	return b.file(t, name, string(text))
}

// Both drift checks see the same decisions, and a bundle that is written is no drift for either. Warnings and settings are no decisions.
func TestBothDriftChecksAgree(t *testing.T) {
	testenv.NotShort(t)
	b := newBed(t)
	b.Verify = func(string, map[string][]byte, map[string][]byte, v1alpha1.Target, v1alpha1.Format) ([]verify.Object, []verify.Finding, error) {
		return nil, nil, nil // what is compared here is no matter of kustomize or Helm
	}
	base := b.ok(t, "inspect", "--simulated", "-o", "yaml")
	pairs := 40
	if testing.Short() {
		pairs = 8
	}
	for seed := range uint64(pairs) {
		r := rand.New(rand.NewPCG(seed, 1))
		before, after := randomInventory(t, b, base, r, "before.yaml"), randomInventory(t, b, base, r, "after.yaml")
		dir := filepath.Join(b.dir, fmt.Sprint(seed))
		b.ok(t, "generate", "--inventory", before, "--target", "vanilla", "--format", "helm", "--output-dir", dir)
		for _, inventory := range []string{before, after} {
			files, _, checked := b.run(t, "generate", "--inventory", inventory, "--check", "--output-dir", dir)
			decisions, _, planned := b.run(t, "plan", "--inventory", inventory, "--check", filepath.Join(dir, "plan.yaml"))
			if (checked == Different) != (files != "") || inventory == before && checked != OK {
				t.Errorf("seed %d: exit %d of generate --check with the lines:\n%s", seed, checked, files)
			}
			if planned == Different {
				if diff := cmp.Diff(files, decisions); diff != "" || checked != Different {
					t.Errorf("seed %d: exit %d of generate --check; lines (-generate +plan):\n%s", seed, checked, diff)
				}
				continue
			}
			for line := range strings.Lines(files) {
				if !strings.Contains(line, "warning") {
					t.Errorf("seed %d: plan --check says that the decisions are the same, and generate --check: %s", seed, line)
				}
			}
		}
	}
}
