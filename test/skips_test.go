package test_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// otherGates are directories whose tests no gate with skips.txt runs.
var otherGates = []string{"../bin", "../.git", "../test/bed/cluster/programs", "../test/suite/sanity"}

// unlisted are tests that skip, and must not on any cloud where a gate runs them, and functions that skip the tests that call them.
var unlisted = map[string]string{
	"TestParity":     "only clouds of other releases lack something; test/judge counts their skips",
	"anyBlockDevice": "skips.txt names the test that calls it",
	"built":          "only with -short, which no gate has",
	"upstream":       "skips.txt names the tests that call it",
}

// TestEveryTestThatSkipsIsListed reads the tests of every build tag. A skip without a line fails only where the test is skipped, such as on a
// cloud that this machine does not have.
func TestEveryTestThatSkipsIsListed(t *testing.T) {
	text := testfile.Text(t, "skips.txt")
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(otherGates, path):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, declared := range file.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if ok && strings.HasPrefix(f.Name.Name, "Test") && skips(f) && unlisted[f.Name.Name] == "" && !strings.Contains(text, "\n"+f.Name.Name+"\t") {
				t.Errorf("%s: %s can be skipped, and test/skips.txt has no line for it", path, f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// skips is whether the function itself calls Skip, Skipf or SkipNow.
func skips(f *ast.FuncDecl) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			method, ok := call.Fun.(*ast.SelectorExpr)
			found = found || ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, method.Sel.Name)
		}
		return !found
	})
	return found
}
