package rusage

import (
	"strings"
	"testing"
	"time"
)

func TestACommandHasALimit(t *testing.T) {
	for _, tc := range []struct {
		used used
		want string
	}{
		{used{1 << 30, time.Minute}, ""},
		{used{2 << 30, 5 * time.Minute}, ""},
		{used{2<<30 + 1, 0}, "2048 MiB of memory"},
		{used{0, 5*time.Minute + 1}, "5m0s of a processor"},
	} {
		if got := tc.used.exceeded(); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%v: want %q, got %q", tc.used, tc.want, got)
		}
	}
	if u := usage(); u.memory < 1<<20 || u.memory > mostMemory || u.processor <= 0 {
		t.Errorf("got %v", u)
	}
}
