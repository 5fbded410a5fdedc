package prose

import (
	"fmt"
	"go/ast"
	"go/token"
	"unicode"
)

// identifiers checks the names that a Go file declares.
func (c *Checker) identifiers(name string, files *token.FileSet, file *ast.File) []Finding {
	var findings []Finding
	for _, id := range declared(file) {
		for _, m := range c.words.inName(splitName(id.Name)) {
			findings = append(findings, Finding{
				File: name, Line: files.Position(id.Pos()).Line, Rule: Name, Text: id.Name, Problem: m.String(),
			})
		}
	}
	return findings
}

// declared lists what a file declares: the package, types, functions, constants, variables, parameters, fields, methods, labels.
func declared(file *ast.File) []*ast.Ident {
	all := []*ast.Ident{file.Name}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			all = append(all, n.Name)
		case *ast.TypeSpec:
			all = append(all, n.Name)
		case *ast.ValueSpec:
			all = append(all, n.Names...)
		case *ast.Field:
			all = append(all, n.Names...)
		case *ast.LabeledStmt:
			all = append(all, n.Label)
		case *ast.ImportSpec:
			if n.Name != nil {
				all = append(all, n.Name)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				all = append(all, idents(n.Lhs)...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				all = append(all, idents([]ast.Expr{n.Key, n.Value})...)
			}
		}
		return true
	})
	return all
}

func idents(expressions []ast.Expr) []*ast.Ident {
	var all []*ast.Ident
	for _, e := range expressions {
		if id, ok := e.(*ast.Ident); ok {
			all = append(all, id)
		}
	}
	return all
}

// splitName splits a Go name into lower-case words: "newHTTPClient_v3" is new, http, client, v3.
func splitName(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, string(word))
		}
		word = nil
	}
	runes := []rune(name)
	for i, r := range runes {
		upper := unicode.IsUpper(r)
		afterLower := i > 0 && !unicode.IsUpper(runes[i-1])
		beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if r == '_' || upper && (afterLower || beforeLower) {
			end()
		}
		if r != '_' {
			word = append(word, unicode.ToLower(r))
		}
	}
	end()
	return words
}

// match is a rejected word that was found.
type match struct {
	found string
	rule  wordRule
}

func (m match) String() string {
	return fmt.Sprintf("%q is rejected; write %s", m.found, m.rule.instead)
}
