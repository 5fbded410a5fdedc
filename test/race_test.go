package test_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A data race is found where goroutines are: in the packages of RACE, and in what their tests link. Elsewhere the detector takes ten times as
// long, and finds nothing.
func TestTheRaceDetectorSeesEveryGoroutineOfThePrograms(t *testing.T) {
	seen := map[string]bool{}
	args := []string{"list", "-deps", "-test", "-f", "{{.ImportPath}}"}
	for _, dir := range listed(t, "RACE") {
		args = append(args, "../"+dir)
	}
	list := exec.Command("go", args...)
	var said strings.Builder
	list.Stderr = &said
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &said)
	}
	for path := range strings.FieldsSeq(string(out)) {
		seen[strings.TrimPrefix(path, "github.com/cinder-csi/cinder-csi/")] = true
	}
	packages := 0
	for _, top := range []string{"cmd", "driver", "generator", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", top), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			starts, err := goroutines(path, text)
			dir, _ := filepath.Rel("..", filepath.Dir(path))
			for _, place := range starts {
				packages++
				if !seen[dir] {
					t.Errorf("%s: this starts a goroutine; name %s, or what tests it, in RACE of test/suite/suite.mk", place, dir)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if packages < 10 {
		t.Errorf("found %d goroutines, want at least 10", packages)
	}
}

// goroutines are the places of a file that start one: the statement go, and calls of a method Go, as sync.WaitGroup and errgroup.Group have it.
func goroutines(name string, text []byte) ([]string, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, text, 0)
	if err != nil {
		return nil, err
	}
	var places []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		_, starts := n.(*ast.GoStmt)
		if call, is := n.(*ast.CallExpr); is {
			method, selects := call.Fun.(*ast.SelectorExpr)
			starts = selects && method.Sel.Name == "Go"
		}
		if starts {
			places = append(places, fmt.Sprint(files.Position(n.Pos())))
		}
		return true
	})
	return places, nil
}

func TestEachWayToStartAGoroutineIsFound(t *testing.T) {
	for line, want := range map[string]int{
		"go work()": 1, "go func() {}()": 1, "group.Go(work)": 1, "s.all.Go(func() { go work() })": 2, "work()": 0, "group.Wait()": 0,
	} {
		if places, err := goroutines("a.go", []byte("package a\nfunc f() {\n"+line+"\n}\n")); err != nil || len(places) != want {
			t.Errorf("%s: want %d, got %v (%v)", line, want, places, err)
		}
	}
}
