package mutants

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// fewest is how many rules of the product a quick test is known to hold. It only grows.
const fewest = 122

// Each mutant applies to the present code, and names its test. The command in cmd proves that the test fails.
func TestEveryMutantOfTheTableApplies(t *testing.T) {
	if n := len(All()); n < fewest {
		t.Errorf("there are %d mutants, fewer than the %d that there were", n, fewest)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range All() {
		if names[m.Name] || m.Rule == "" || m.CaughtBy.Package == "" || m.CaughtBy.Pattern == "" {
			t.Errorf("%s: want a name of its own, a rule, and the package and pattern of the test", m.Name)
		}
		names[m.Name] = true
		if _, err := regexp.Compile(m.CaughtBy.Pattern); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	for _, m := range slices.Concat(Rules, Histories) {
		if _, err := m.Changed(root); err != nil {
			t.Error(err)
		}
	}
}
