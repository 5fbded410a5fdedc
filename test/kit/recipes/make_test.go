package recipes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// runMake runs make at the top of a source tree such that no recipe and no $(shell) runs anything: the shell is true.
func runMake(t *testing.T, top string, args ...string) string {
	t.Helper()
	for _, file := range makeFiles(t, top) { // opened, so that go test runs again after a change of one
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"-C", top, "--no-print-directory", "SHELL=true"}, args...)...)
	cmd.Env = append(cmd.Environ(), "MAKEFLAGS=", "MAKELEVEL=", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func makeFiles(t *testing.T, top string) []string {
	t.Helper()
	files := []string{filepath.Join(top, "Makefile")}
	for _, pattern := range []string{"tools/*.mk", "test/*/*.mk"} {
		found, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// targetsOf returns the targets that are no files, in make's order.
func targetsOf(t *testing.T, top string) []string {
	t.Helper()
	for l := range strings.Lines(runMake(t, top, "-pn")) {
		if phony, is := strings.CutPrefix(l, ".PHONY: "); is {
			return slices.DeleteFunc(strings.Fields(phony), func(name string) bool { return name == "FORCE" })
		}
	}
	t.Fatal("make has no .PHONY targets")
	return nil
}

// header is what --trace prints before a recipe: where the target stands, and why it is made.
var header = regexp.MustCompile(`^(\S+:\d+): (?:update )?target '([^']+)' (?:does not exist|due to: .*)$`)

// recipe returns the lines that make prints for targets and variables, each as the shell gets it.
func recipe(t *testing.T, top string, goals ...string) []line {
	t.Helper()
	var lines []line
	place, continues := "", false
	for text := range strings.Lines(runMake(t, top, append([]string{"-n", "-B", "--trace"}, goals...)...)) {
		text = strings.TrimSuffix(text, "\n")
		if found := header.FindStringSubmatch(text); found != nil {
			place, continues = fmt.Sprintf("%s: %s", found[1], found[2]), false
			continue
		}
		if continues {
			lines[len(lines)-1].text += "\n" + text
		} else {
			lines = append(lines, line{place, text})
		}
		continues = strings.HasSuffix(text, `\`)
	}
	return lines
}
