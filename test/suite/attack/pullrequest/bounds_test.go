package pullrequest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/cli"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// typed is the inventory of the overlays with n volume types, whose names have the begin.
func typed(t *testing.T, n int, begin string) string {
	t.Helper()
	text := testfile.Text(t, "../../../../overlays/inventory.yaml")
	before, rest, _ := strings.Cut(text, "volumeTypes:\n  state: known\n  value:\n")
	_, after, _ := strings.Cut(rest, "defaultVolumeType:\n")
	var b strings.Builder
	b.WriteString(before + "volumeTypes:\n  state: known\n  value:\n")
	for i := range n {
		fmt.Fprintf(&b, "    - {id: %08d-c7bf-4158-82e6-270067d93aa6, name: %s%d, public: true, multiattach: false, replication: false}\n", i, begin, i)
	}
	b.WriteString("defaultVolumeType:\n" + after)
	path := filepath.Join(t.TempDir(), "inventory.yaml")
	testfile.Write(t, path, b.String(), 0o644)
	return path
}

// repeated is n items of a list or a mapping, each with a number in place of %d.
func repeated(n int, item string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, item, i)
	}
	return b.String()
}

// Names of a configuration are compared with those of a cloud, so the time grows with the product of their numbers and their lengths.
func TestNamesWithoutEndAreComparedInTimeAndMemory(t *testing.T) {
	long := strings.Repeat("ab", 120)
	few := "../../../../overlays/inventory.yaml"
	many := typed(t, 400, strings.Repeat("ab", 100))
	const classes = "spec:\n  storageClasses:\n"
	for name, tc := range map[string]struct {
		inventory, config string
		code              int
		says              string
	}{
		"unknown keys":              {few, "spec:\n" + repeated(5_000, "  "+long+"%d: 1\n"), cli.Usage, "unknown key"},
		"keys without end":          {few, "spec:\n" + repeated(1_000, "  "+strings.Repeat("x", 1_000)+"%d: 1\n"), cli.Usage, "has more than 320 letters"},
		"overrides of nothing":      {many, classes + "    overrides:\n" + repeated(4_000, "      "+long+"%d: {fsType: xfs}\n"), cli.OK, "changes nothing"},
		"overrides without end":     {many, classes + "    overrides:\n" + repeated(1_000, "      "+strings.Repeat("x", 1_000)+"%d: {fsType: xfs}\n"), cli.Usage, "has more than 320 letters"},
		"patterns without end":      {many, classes + "    exclude:\n" + repeated(1_000, "      - "+strings.Repeat("x", 1_000)+"%d\n"), cli.Usage, "has more than 255 letters"},
		"patterns that try all":     {many, classes + "    exclude:\n" + repeated(2_000, "      - "+strings.Repeat("a*b*", 60)+"%d\n"), cli.Usage, "too many for the 400 volume types"},
		"classes of nothing":        {many, classes + "    extra:\n" + repeated(2_000, "      - {name: c%d, type: "+long+"}\n"), cli.OK, "is left out"},
		"zones of nothing":          {many, "spec:\n  topology:\n    zoneMap:\n" + repeated(5_000, "      "+long+"%d: "+long+"\n"), cli.OK, "lists no compute zone"},
		"types without end":         {typed(t, v1alpha1.MostTypes+1, "t"), "spec: {}\n", cli.Usage, "volumeTypes.value: has more than 5000 items"},
		"types of another kind":     {typed(t, 30_000, "t"), "spec: {}\n", cli.Usage, "volumeTypes.value: has more than 5000 items"},
		"values instead of objects": {few, "spec:\n  storageClasses: " + strings.Repeat(long, 4_000) + "\n", cli.Usage, "want an object"},
	} {
		t.Run(name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "d.yaml")
			testfile.Write(t, config, tc.config, 0o644)
			bounded(t, func() {
				_, stderr, code := pipeline(t, "plan", "--target", "vanilla", "--inventory", tc.inventory, "--config", config)
				if code != tc.code || !strings.Contains(stderr, tc.says) || code == cli.Usage && len(stderr) > 16_384 {
					t.Errorf("want exit %d with %q, got %d: %.500s", tc.code, tc.says, code, stderr)
				}
				if hints := strings.Count(stderr, "did you mean"); hints > 20 {
					t.Errorf("got %d hints", hints)
				}
			})
		})
	}
}

// What a run writes, the next one can read: otherwise the guard would be blind.
func TestGenerateWritesNoPlanThatItCannotReadAgain(t *testing.T) {
	config := filepath.Join(t.TempDir(), "d.yaml")
	text := "spec:\n  storageClasses:\n    overrides:\n" + repeated(4_900, "      o%d: {fsType: xfs}\n") + "    include: ['*'," + repeated(1_990, "i%d,") + "]\n    exclude: [" + repeated(1_990, "e%d,") + "]\n"
	testfile.Write(t, config, text, 0o644)
	dir := filepath.Join(t.TempDir(), "out")
	_, stderr, code := pipeline(t, "generate", "--inventory", "../../../../overlays/inventory.yaml", "--config", config, "--target", "vanilla", "--format", "helm", "--output-dir", dir)
	_, err := os.Stat(filepath.Join(dir, worktree.PlanFile))
	if _, message, _ := strings.Cut(stderr, "Error: "); code != cli.Usage || !strings.Contains(message, "no later run could read the bundle") || err == nil {
		t.Errorf("want exit 64 and no plan.yaml, got %d: %.500s", code, message)
	}
}
