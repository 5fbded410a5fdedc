package host

import (
	"strings"
	"testing"
)

func TestReadOnlyIsTheLastWord(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]bool{"": false, "noatime": false, "ro": true, "rw": false, "rw,ro": true, "ro,noatime,rw": false} {
		if got := readOnlyAtLast(strings.Split(options, ",")); got != want {
			t.Errorf("%q: want %t, got %t", options, want, got)
		}
	}
}
