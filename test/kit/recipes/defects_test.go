package recipes

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// aMakefile has a target for each way to run nothing, and one without a defect.
const aMakefile = `
SHELL := bash
NAME ?= two
.PHONY: good process tag alternative package subtest fuzz list variable hidden
good:
	go test -tags a ./p -run "^TestA$$/$(NAME)" -timeout 1m
	go run ./kit/gate -- -run 'TestPlain|TestA/one' -tags a ./...
	cd p && for f in FuzzF; do go test -run '^$$' -fuzz "^$${f}\$$"; done
process:
	go test -tags a ./p -run "^TestA$$$$/"
tag:
	go test ./p -run '^TestA$$'
alternative:
	go test ./p -run 'TestPlain|TestPlane'
package:
	go run ./kit/gate -- ./q/...
subtest:
	go test -tags a -run TestA/three ./p
fuzz:
	go test ./p -fuzz FuzzG
list:
	go test $$(go list ./q/... | grep -v /x)
variable:
	go test -tags a ./p -run TestA/$(NAME)
hidden:
	if go test ./p; then
`

func TestEachWayToRunNothingIsFound(t *testing.T) {
	top := t.TempDir()
	for name, text := range map[string]string{
		"Makefile":       aMakefile,
		"p/p_test.go":    "package p\nimport \"testing\"\nfunc TestPlain(t *testing.T) {}\nfunc Testing(t *testing.T) {}\nfunc FuzzF(f *testing.F) {}\n",
		"p/tags_test.go": "//go:build a\n\npackage p\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Run(\"one\", nil); t.Run(\"two\", nil) }\n",
		"q/q.go":         "package q\n",
	} {
		path := filepath.Join(top, name)
		testfile.Write(t, path, text, 0o644)
	}
	for goals, want := range map[string]string{
		"good":               "",
		"process":            "names no test in ./p",
		"tag":                `"^TestA$" names no test in ./p with tags ""`,
		"alternative":        `the alternative "TestPlane" names no test`,
		"package":            `"" names no test in ./q/...`,
		"subtest":            `"TestA/three" names no test`,
		"fuzz":               `"FuzzG" names no test`,
		"list":               `"" names no test in ./q/...`,
		"variable":           "",
		"variable NAME=four": `"TestA/four" names no test`,
		"hidden":             "finds no call of go in",
	} {
		problems := check(t, top, recipe(t, top, strings.Fields(goals)...))
		if got := strings.Join(problems, "; "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("make %s: want %q, got %q", goals, want, got)
		}
	}
	if targets := strings.Join(targetsOf(t, top), " "); !strings.HasPrefix(targets, "good process tag") {
		t.Errorf("want the targets of the Makefile, got %q", targets)
	}
}
