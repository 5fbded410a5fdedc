package image

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestEveryToolIsProbed(t *testing.T) {
	t.Parallel()
	for _, tool := range append(slices.Clone(Tools), "cinder-csi-driver", "cinder-csi-plugin") {
		if strings.Contains(tool, "/") {
			continue // a file that a tool reads
		}
		if !slices.ContainsFunc(probes, func(p probeCommand) bool { return strings.Fields(p.command)[0] == tool }) {
			t.Errorf("no probe runs %s", tool)
		}
	}
}

// The node role keeps the programs that it runs in one map; the image has to have them.
func TestImageHasEveryProgramTheNodeRoleRuns(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../../driver/host/command/programs.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var programs []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "programs" || len(spec.Values) != 1 {
			return true
		}
		for _, element := range spec.Values[0].(*ast.CompositeLit).Elts {
			name, err := strconv.Unquote(element.(*ast.KeyValueExpr).Key.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			programs = append(programs, name)
		}
		return false
	})
	if len(programs) == 0 {
		t.Fatal("driver/host/command/programs.go has no map named programs")
	}
	for _, program := range programs {
		if !slices.Contains(Tools, program) {
			t.Errorf("the node role runs %s, which the image does not have", program)
		}
	}
}
