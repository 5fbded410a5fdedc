package cause_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/cause"
)

// hasDefault are the kinds for which package volume has a usual cause.
var hasDefault = map[string]bool{
	"InvalidArgument": true, "NotFound": true, "Busy": true, "OutOfRange": true, "DeadlineExceeded": true, "Canceled": true, "Unknown": true, "Unimplemented": true, "NotOwned": true,
}

// reasons is the package whose errors are parts of the message of one error, which names the cause: metadata.Reader.Read.
const reasons = "host/metadata"

// source calls see for each file of the driver that is no test.
func source(t *testing.T, see func(path string, files *token.FileSet, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../cause/") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err == nil {
			see(path, files, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// constantOf is the name of a constant of a package: "Conflict" of volume.Conflict; empty for other expressions.
func constantOf(e ast.Expr, of string) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok && x.Name == of {
			return s.Sel.Name
		}
	}
	return ""
}

func TestEachErrorNamesItsCause(t *testing.T) {
	seen := 0
	source(t, func(path string, files *token.FileSet, file *ast.File) {
		named := map[ast.Expr]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Cause" {
				named[s.X] = true
			}
			return true
		})
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || constantOf(call.Fun, "volume") != "Errorf" {
				return true
			}
			seen++
			of, again := call.Args[0].(*ast.CallExpr)
			again = again && constantOf(of.Fun, "volume") == "KindOf" // the error of an error, which has named its cause
			if !named[call] && !again && !hasDefault[constantOf(call.Args[0], "volume")] && !strings.HasPrefix(path, "../"+reasons+"/") {
				t.Errorf("%s: this error names no cause, and its kind has no usual one: add .Cause(cause....)", files.Position(call.Pos()))
			}
			return true
		})
	})
	if seen < 200 {
		t.Errorf("the source has only %d errors", seen)
	}
}

func TestTheDriverReturnsEachOfItsCauses(t *testing.T) {
	used := map[string]bool{}
	source(t, func(_ string, _ *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				used[constantOf(s, "cause")] = true
			}
			return true
		})
	})
	for name, id := range constants(t) {
		row, _ := cause.Find(id)
		if row.Driver() != used[name] {
			t.Errorf("%s (%s): the driver uses the constant: %t, and the row is one of the driver: %t", name, id, used[name], row.Driver())
		}
	}
}
