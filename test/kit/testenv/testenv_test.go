package testenv

import (
	"os"
	"strings"
	"testing"
)

// skipper records the reason of a skip, or that the test failed.
type skipper struct {
	testing.TB
	said string
}

func (s *skipper) Helper()                       {}
func (s *skipper) Skip(args ...any)              { s.says(args[0].(string)) }
func (s *skipper) Skipf(format string, _ ...any) { s.says("skip " + format) }
func (s *skipper) Fatalf(string, ...any)         { s.says("fail") }

// says keeps what ends the test: this one goes on after it.
func (s *skipper) says(what string) {
	if s.said == "" {
		s.said = what
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	all := os.Geteuid() == 0 && !testing.Short()
	root, tool, there := &skipper{}, &skipper{}, &skipper{}
	NeedRoot(root)
	if got := strings.HasPrefix(root.said, NeedsRoot); got == all {
		t.Errorf("root and not -short is %t, and NeedRoot says %q", all, root.said)
	}
	NeedTools(tool, "no-such-program", "no-such-package")
	if got := tool.said == "fail"; got != all {
		t.Errorf("root and not -short is %t, and NeedTools says %q for a missing program", all, tool.said)
	}
	if NeedTools(there, "go", "golang"); there.said != "" {
		t.Errorf("NeedTools says %q for a program that is there", there.said)
	}
}
