// Package mutants lists mutants of the product: each breaks one rule, and names the test that must see it. The command in cmd applies them.
package mutants

import (
	"slices"

	"github.com/cinder-csi/cinder-csi/test/kit/mutant"
)

func edit(pkg, old, changed string) mutant.Edit {
	return mutant.Edit{Package: pkg, Old: old, New: changed}
}

func test(pkg, pattern string) mutant.Test { return mutant.Test{Package: pkg, Pattern: pattern} }

// All are the mutants that a test of one package catches.
func All() []mutant.Mutant {
	return slices.DeleteFunc(slices.Concat(Rules, Histories), func(m mutant.Mutant) bool { return m.CaughtBy == (mutant.Test{}) })
}
