package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// nodeCodes lists the gRPC codes of the RPCs of a node with the causes of their errors, as the source has them. Each error of driver/host and
// driver/node names its kind and its cause in one expression. Package rpc has the code of a kind.
func nodeCodes(t *testing.T) string {
	t.Helper()
	codeOf, causeOf := map[string]string{}, map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\tvolume\.(\w+): +\{codes\.(\w+), codes\.\w+\},$`).FindAllStringSubmatch(testfile.Text(t, "../driver/rpc/codes.go"), -1) {
		codeOf[row[1]] = row[2]
	}
	_, table, _ := strings.Cut(testfile.Text(t, "../driver/volume/error.go"), "var usualCauses = map[Kind]cause.ID{")
	table, _, _ = strings.Cut(table, "\n}")
	for _, row := range regexp.MustCompile(`(\w+): cause\.(\w+),`).FindAllStringSubmatch(table, -1) {
		causeOf[row[1]] = row[2]
	}
	if len(codeOf) < 15 || len(causeOf) < 9 {
		t.Fatalf("driver/rpc/codes.go has %d kinds, and driver/volume/error.go %d usual causes", len(codeOf), len(causeOf))
	}
	ids := causeIDs(t)
	causes := map[string]map[string]bool{}
	add := func(kind, name string) {
		if codeOf[kind] == "" || ids[name] == "" {
			t.Errorf("volume.%s has the code %q, and cause.%s the ID %q", kind, codeOf[kind], name, ids[name])
			return
		}
		if causes[codeOf[kind]] == nil {
			causes[codeOf[kind]] = map[string]bool{}
		}
		causes[codeOf[kind]][ids[name]] = true
	}
	listed := map[string]bool{}
	nodeErrors(t, func(kind, name string) {
		if name == "" {
			name = causeOf[kind]
		}
		listed[name] = true
		add(kind, name)
	})
	for name := range nodeCauses(t) {
		if !listed[name] {
			t.Errorf("the source of the node role names cause.%s, and no error with a kind has it", name)
		}
	}
	var b strings.Builder
	b.WriteString("| code | causes |\n| --- | --- |\n")
	for _, code := range slices.Sorted(maps.Keys(causes)) {
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", code, strings.Join(slices.Sorted(maps.Keys(causes[code])), "`, `"))
	}
	return b.String()
}

// causeIDs are the IDs of the causes of the driver by the names of their constants.
func causeIDs(t *testing.T) map[string]string {
	t.Helper()
	ids := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\t(\w+) += returned\("([a-z.-]+)"`).FindAllStringSubmatch(testfile.Text(t, "../driver/cause/driver.go"), -1) {
		if _, found := cause.Find(cause.ID(row[2])); found {
			ids[row[1]] = row[2]
		}
	}
	return ids
}

// nodeErrors calls see with the kind and the cause, or no cause, of each error in the source of the node role. It fails for a cause whose kind it
// does not find.
func nodeErrors(t *testing.T, see func(kind, cause string)) {
	t.Helper()
	for _, top := range []string{"../driver/host", "../driver/node"} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			named := map[ast.Node]bool{}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				kinds, causes := constantsIn(call, "volume"), constantsIn(call, "cause")
				if made := madeBy(call); made != nil && len(causes) == 1 {
					named[made] = true
				}
				switch method := selected(call.Fun); {
				case method == "Cause" || method == "" && len(kinds) == 1 && len(causes) == 1: // Errorf(…).Cause(…), or a function of the file that takes both
					made := madeBy(call)
					if len(causes) == 1 && made != nil && len(kinds) == 0 {
						kinds = []string{"DeadlineExceeded"} // volume.Interrupted: the time of the call is over
					}
					for _, name := range causes {
						if len(kinds) != 1 {
							t.Errorf("%s: cause.%s is named for the kinds %v; want one", files.Position(call.Pos()), name, kinds)
							continue
						}
						see(kinds[0], name)
					}
				case method == "Errorf" && !named[call] && len(kinds) == 1 && !strings.HasPrefix(path, "../driver/host/metadata/"): // those are reasons in one error
					see(kinds[0], "")
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// nodeCauses are the names of all causes in the source of the node role.
func nodeCauses(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, pattern := range []string{"../driver/host/*.go", "../driver/host/*/*.go", "../driver/node/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, found := range regexp.MustCompile(`\bcause\.([A-Z]\w+)`).FindAllStringSubmatch(testfile.Text(t, file), -1) {
				names[found[1]] = true
			}
		}
	}
	delete(names, "ID") // the type
	return names
}

// selected is the name behind the last dot of an expression; empty without a dot.
func selected(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}

// madeBy is the call of volume.Errorf or volume.Interrupted at the beginning of a chain of calls; nil if there is none.
func madeBy(call *ast.CallExpr) *ast.CallExpr {
	for {
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return nil
		}
		if s.Sel.Name == "Errorf" || s.Sel.Name == "Interrupted" {
			return call
		}
		if call, ok = s.X.(*ast.CallExpr); !ok {
			return nil
		}
	}
}

// constantsIn are the exported names of a package that stand alone as an argument in a chain of calls.
func constantsIn(call *ast.CallExpr, of string) (names []string) {
	for call != nil {
		for _, arg := range call.Args {
			if s, ok := arg.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == of {
					names = append(names, s.Sel.Name)
				}
			}
		}
		s, _ := call.Fun.(*ast.SelectorExpr)
		if s == nil {
			return names
		}
		call, _ = s.X.(*ast.CallExpr)
	}
	return names
}

func TestTheReferenceListsTheCodesOfANode(t *testing.T) {
	page.Hold(t, "reference/driver.md", map[string]string{"node-codes": nodeCodes(t)}, *update, "go test ./docs -update")
}
