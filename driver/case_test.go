package driver

import (
	"testing"
	"testing/synctest"
)

// Cinder's database takes a type's name in any case; the volume then tells it as it is.
func TestTypeNamesIgnoreCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		first := made(t, d, of("type", "STANDARD"))
		if again := made(t, d, of("type", "STANDARD")); again != first || len(listed(t, d)) != 1 {
			t.Errorf("made %s and then %s; there are %v", first, again, listed(t, d))
		}
	})
}
