package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// scenariosOf reads the names in the tables of test/suite/cluster, whose build tag keeps them out of this test.
func scenariosOf(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../suite/cluster/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			table, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if of, ok := table.Type.(*ast.ArrayType); ok && isScenario(of.Elt) {
				for _, element := range table.Elts {
					names = append(names, nameIn(t, element.(*ast.CompositeLit)))
				}
			} else if isScenario(table.Type) {
				names = append(names, nameIn(t, table))
			}
			return true
		})
	}
	return names
}

func isScenario(e ast.Expr) bool {
	ident, ok := e.(*ast.Ident)
	return ok && ident.Name == "scenario"
}

func nameIn(t *testing.T, literal *ast.CompositeLit) string {
	t.Helper()
	text, ok := literal.Elts[0].(*ast.BasicLit)
	if !ok {
		t.Fatal("a scenario does not begin with its name")
	}
	name, err := strconv.Unquote(text.Value)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestThePageSaysWhatEachScenarioProves(t *testing.T) {
	page, err := os.ReadFile("../../../docs/explanation/e2e.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := block(string(page), "scenarios")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range strings.Split(strings.TrimSpace(strings.TrimPrefix(rows, tableHead)), "\n") {
		name, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		got = append(got, name)
	}
	// The rehearsals are no part of that run. The README of their directory has them.
	readme, err := os.ReadFile("../../suite/cluster/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scenariosOf(t) {
		if !slices.Contains(got, name) && !strings.Contains(string(readme), "\n| "+name+" | ") {
			t.Errorf("neither docs/explanation/e2e.md nor test/suite/cluster/README.md says what %q proves", name)
		}
	}
}
