package test_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// raceElsewhere are packages without the race detector whose goroutines it sees elsewhere; the Makefile says where.
var raceElsewhere = []string{"test/suite/errortable", "test/suite/partial"}

// noRace are the directories of the packages that `make test` runs without the race detector.
func noRace(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^NO_RACE := ((?:.*\\\n)*.*)$`).FindSubmatch(text)
	if list == nil {
		t.Fatal("the Makefile has no NO_RACE")
	}
	return strings.Fields(strings.ReplaceAll(string(list[1]), "\\\n", " "))
}

// The race detector finds nothing in code of one goroutine, and takes ten times as long there.
func TestPackagesWithoutTheRaceDetectorStartNoGoroutine(t *testing.T) {
	for _, dir := range noRace(t) {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("NO_RACE: there is no package %s (%v)", dir, err)
		}
		if slices.Contains(raceElsewhere, dir) {
			continue
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			starts, err := goroutines(file, text)
			if err != nil {
				t.Fatal(err)
			}
			for _, place := range starts {
				t.Errorf("%s: this starts a goroutine; take %s out of NO_RACE in the Makefile", place, dir)
			}
		}
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
