package test_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// A caller may give up while its request is still in the handler, on a busy machine above all. Then the handler writes while the test reads, or sets
// the variable for its next case.
func TestNoHandlerWritesAVariableOfItsTestWithoutALock(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || path == "../bin"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		places, err := unlockedWrites(path, nil)
		for _, place := range places {
			t.Errorf("%s: a handler writes a variable of its test; use testenv.Asked, sync/atomic or a lock", place)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// unlockedWrites are the places of a file where an HTTP handler, a function literal without a call of Lock, writes a variable from outside.
func unlockedWrites(name string, text any) ([]string, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, text, 0)
	if err != nil {
		return nil, err
	}
	var places []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		handler, is := n.(*ast.FuncLit)
		if !is || !handles(handler.Type) || locks(handler.Body) {
			return true
		}
		ast.Inspect(handler.Body, func(n ast.Node) bool {
			for _, to := range written(n) {
				if to.Obj != nil && (to.Obj.Pos() < handler.Pos() || to.Obj.Pos() > handler.End()) {
					places = append(places, fmt.Sprint(files.Position(to.Pos())))
				}
			}
			return true
		})
		return true
	})
	return places, nil
}

// handles is whether a function takes an http.ResponseWriter.
func handles(f *ast.FuncType) bool {
	for _, p := range f.Params.List {
		if of, is := p.Type.(*ast.SelectorExpr); is && of.Sel.Name == "ResponseWriter" {
			return true
		}
	}
	return false
}

func locks(body ast.Node) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		method, is := n.(*ast.SelectorExpr)
		found = found || is && method.Sel.Name == "Lock"
		return !found
	})
	return found
}

// written are the variables that a statement writes, whole or in part. What a pointer leads to counts as a part.
func written(n ast.Node) (all []*ast.Ident) {
	var to []ast.Expr
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			to = n.Lhs
		}
	case *ast.IncDecStmt:
		to = []ast.Expr{n.X}
	}
	for _, e := range to {
		for at := e; at != nil; {
			switch of := at.(type) {
			case *ast.Ident:
				all, at = append(all, of), nil
			case *ast.SelectorExpr:
				at = of.X
			case *ast.IndexExpr:
				at = of.X
			case *ast.StarExpr:
				at = of.X
			case *ast.ParenExpr:
				at = of.X
			default:
				at = nil
			}
		}
	}
	return all
}

func TestEachWayOfAHandlerToWriteIsFound(t *testing.T) {
	for line, want := range map[string]int{
		"asked = append(asked, r.URL.Path)": 1, "calls++": 1, "got.path, err = r.URL.Path, nil": 2, "seen[r.URL.Path] = true": 1,
		"mu.Lock(); calls++; mu.Unlock()": 0, "calls := 1; calls++": 0, "own := calls; own++": 0, "w.Header()[\"a\"] = nil": 0, "asked.Add(r.URL.Path)": 0,
	} {
		text := "package a\nfunc f() {\nvar asked, calls, got, err, seen, mu int\nh := func(w http.ResponseWriter, r *http.Request) {\n" + line + "\n}\n}\n"
		if places, err := unlockedWrites("a_test.go", text); err != nil || len(places) != want {
			t.Errorf("%s: want %d, got %v (%v)", line, want, places, err)
		}
	}
}
