package mutant

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Change is a mutant that a rule made: one place of one line.
type Change struct {
	File, Rule string
	Line       int
	Before     string // the line
	After      string
	text       string // of the whole file
}

// Files is the changed file, for Run.
func (c Change) Files() map[string]string { return map[string]string{c.File: c.text} }

// Diff shows the change as people read it.
func (c Change) Diff(root string) string {
	name, err := filepath.Rel(root, c.File)
	if err != nil {
		name = c.File
	}
	return fmt.Sprintf("%s:%d (%s)\n-%s\n+%s\n", name, c.Line, c.Rule, c.Before, c.After)
}

// Shuffle orders changes by a seed.
func Shuffle(changes []Change, seed uint64) {
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
}

// Changes are all changes that the rules make in a package, in the order of its files. A line for which covered is false gets none.
func Changes(root, pkg string, covered func(file string, line int) bool) ([]Change, error) {
	context := build.Default
	context.CgoEnabled, context.BuildTags = false, []string{"grpcnotrace"}
	found, err := context.ImportDir(filepath.Join(root, pkg), 0)
	if err != nil {
		return nil, err
	}
	var all []Change
	for _, name := range found.GoFiles {
		path := filepath.Join(root, pkg, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f := drawer{path: path, name: filepath.Join(pkg, name), text: string(text), files: token.NewFileSet(), covered: covered}
		parsed, err := parser.ParseFile(f.files, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(parsed, f.visit)
		all = append(all, f.changes...)
	}
	return all, nil
}

type drawer struct {
	path, name, text string
	files            *token.FileSet
	covered          func(file string, line int) bool
	changes          []Change
}

// spoken are calls whose arguments people read. No promise is about them, so a change there says nothing about the tests.
var spoken = regexp.MustCompile(`^(Errorf|Sprintf|Printf|Fprintf|Sprint|Println|New|Debug|Info|Warn|Error|DebugContext|InfoContext|WarnContext|ErrorContext|Log|LogAttrs|Op|String|Int|Any|Panicf|panic|MustCompile)$`)

// silent are calls that only count, log or trace.
var silent = regexp.MustCompile(`(?i)(^|\.)(log|logger|slog|metrics?|span|telemetry)\b.*\.`)

func (d *drawer) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		return !spoken.MatchString(called(n))
	case *ast.ImportSpec, *ast.StructType:
		return false // a tag or a path is no number
	case *ast.IfStmt:
		d.negate(n.Cond)
	case *ast.ForStmt:
		// A loop without an end says little; its body has changes enough.
	case *ast.DeferStmt:
		switch n.Call.Fun.(type) {
		case *ast.Ident, *ast.SelectorExpr:
			if !slices.Contains([]string{"recover", "cancel", "stop", "Stop"}, called(n.Call)) && // what a context or timer holds is freed later
				!silent.MatchString(d.source(n.Call.Fun)) {
				d.replace("a defer is dropped", n, "_ = "+d.source(n.Call.Fun))
			}
		}
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !spoken.MatchString(called(call)) && !silent.MatchString(d.source(call.Fun)) && called(call) != "" {
			d.replace("a call is left out", n, "_ = "+d.source(call.Fun))
		}
	case *ast.ReturnStmt:
		d.swallow(n)
	case *ast.BinaryExpr:
		d.operator(n)
	case *ast.BasicLit:
		d.number(n)
	}
	return true
}

// called is the last name of the function of a call.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

func (d *drawer) negate(condition ast.Expr) {
	if condition != nil && d.source(condition) != "err != nil" { // that one, every test sees
		d.replace("a condition is negated", condition, "!("+d.source(condition)+")")
	}
}

// swallow returns no error in place of the last result.
func (d *drawer) swallow(n *ast.ReturnStmt) {
	if len(n.Results) == 0 {
		return
	}
	last := n.Results[len(n.Results)-1]
	if name, ok := last.(*ast.Ident); ok && name.Name == "err" {
		d.replace("an error is swallowed", last, "nil")
	}
}

var operators = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.LAND: "||", token.LOR: "&&",
}

func (d *drawer) operator(n *ast.BinaryExpr) {
	if other, ok := operators[n.Op]; ok {
		d.at("an operator is another", n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other)
	}
}

// number makes a number larger by one. Numbers with a base are modes and masks.
func (d *drawer) number(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}
	if value, err := strconv.Atoi(n.Value); err == nil && !strings.HasPrefix(n.Value, "0") {
		d.replace("off by one", n, strconv.Itoa(value+1))
	}
}

func (d *drawer) source(n ast.Node) string {
	return d.text[d.files.Position(n.Pos()).Offset:d.files.Position(n.End()).Offset]
}

func (d *drawer) replace(rule string, n ast.Node, by string) { d.at(rule, n.Pos(), n.End(), by) }

func (d *drawer) at(rule string, from, to token.Pos, by string) {
	begin, end := d.files.Position(from), d.files.Position(to)
	if begin.Line != end.Line || !d.covered(d.name, begin.Line) {
		return
	}
	text := d.text[:begin.Offset] + by + d.text[end.Offset:]
	line := func(text string) string { return strings.Split(text, "\n")[begin.Line-1] }
	d.changes = append(d.changes, Change{d.path, rule, begin.Line, line(d.text), line(text), text})
}
