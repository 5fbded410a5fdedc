package shell_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// command is the begin of a command in a text, or of flags that a sentence asks for, up to what follows it. A sentence, a line or a quote ends it.
var command = regexp.MustCompile("(?:^|[ (`$'\"\n])(?:(?:kubectl|oc|openstack|helm|git|cinder-csi-generator|sed) -{0,2}[a-z](?:[^;:.`\n]|[.:][^ \n])*|(?:give|with|by|as|repeat|name) (?:--[a-z-]+[ =]|[A-Z_]+=))$")

// verb is one verb of a format, with its index if it has one.
var verb = regexp.MustCompile(`%[-+# 0-9.]*(?:\[(\d+)\])?[-+# 0-9.]*[a-zA-Z%]`)

// part is a text, or what a program puts between two texts.
type part struct {
	text string
	of   ast.Expr
}

// parts are the texts and values of an expression: a concatenation, or a call with a format.
func parts(e ast.Expr) []part {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return parts(e.X)
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return []part{{text: text}}
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return append(parts(e.X), parts(e.Y)...)
		}
	}
	return []part{{of: e}}
}

// formatted are the parts of a call whose argument number i is a format.
func formatted(call *ast.CallExpr, i int) []part {
	var all []part
	next := i + 1
	for _, p := range parts(call.Args[i]) {
		if p.of != nil {
			all = append(all, p)
			continue
		}
		end := 0
		for _, at := range verb.FindAllStringSubmatchIndex(p.text, -1) {
			if p.text[at[1]-1] == '%' {
				continue
			}
			if at[2] >= 0 {
				n, _ := strconv.Atoi(p.text[at[2]:at[3]])
				next = i + n
			}
			all = append(all, part{text: p.text[end:at[0]]})
			if next < len(call.Args) {
				all = append(all, part{of: call.Args[next]})
			}
			end, next = at[1], next+1
		}
		all = append(all, part{text: p.text[end:]})
	}
	return all
}

// quoting are the functions whose result is one word or more of a command, whatever they get.
var quoting = regexp.MustCompile(`^(?:shell\.(?:Word|Line|ID|Name)|namesOf)$`)

// harmless are the other values, by file, and why each is only a word or more.
var harmless = map[string]string{
	"driver/attach/call.go v.ID":                       "a volume that exists, and so a UUID",
	"driver/attach/marked.go id":                       "a server that exists, and so a UUID",
	"driver/attach/detach.go id":                       "a volume that exists, and so a UUID",
	"driver/attach/stale.go seen.volume.ID":            "a volume that exists, and so a UUID",
	"driver/attach/stale.go seen.server":               "a server that the cloud has shown, and so a UUID",
	"driver/snapshot/createbackup.go p.ID":             "a UUID, or the placeholder",
	"driver/snapshot/createbackup.go b.Volume":         "a UUID, or the placeholder",
	"generator/bundle/credentials.go ca":               "empty, or a flag and shell.Word",
	"generator/bundle/driftcheck.go ns":                "made by shell.Word",
	"generator/bundle/readme.go dir":                   "$DIR, or a directory below it that the generator names",
	"generator/guard/class.go strings.ToLower(k.kind)": "StorageClass or VolumeAttributesClass",
}

// source is one file of the program.
type source struct {
	name    string // below the root
	content []byte
	files   *token.FileSet
	tree    *ast.File
}

func (s source) text(e ast.Expr) string {
	return string(s.content[s.files.Position(e.Pos()).Offset:s.files.Position(e.End()).Offset])
}

func parsed(t *testing.T, root string) (all []source) {
	t.Helper()
	for _, dir := range []string{"cmd", "driver", "generator", "internal"} {
		err := fs.WalkDir(os.DirFS(root), dir, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			s := source{name: name, files: token.NewFileSet()}
			if s.content, err = os.ReadFile(filepath.Join(root, name)); err == nil {
				s.tree, err = parser.ParseFile(s.files, name, s.content, parser.SkipObjectResolution)
			}
			all = append(all, s)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// A name with $(...) in it runs a program where a person pastes the command. So each value in a command goes through this package.
func TestEveryValueInAPrintedCommandIsQuoted(t *testing.T) {
	root := filepath.Join("..", "..")
	used, constants := map[string]bool{}, map[string]bool{}
	commands := 0
	all := parsed(t, root)
	for _, f := range all {
		for _, d := range f.tree.Decls {
			if d, is := d.(*ast.GenDecl); is && d.Tok == token.CONST {
				for _, spec := range d.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						constants[path.Dir(f.name)+" "+name.Name] = true
					}
				}
			}
		}
	}
	for _, f := range all {
		inner := map[ast.Expr]bool{} // expressions that are a part of one that was looked at
		look := func(all []part) {
			before := ""
			for _, p := range all {
				if p.of == nil {
					before += p.text
					continue
				}
				if command.MatchString(before) {
					commands++
					text, called := f.text(p.of), ""
					if call, is := p.of.(*ast.CallExpr); is {
						called = f.text(call.Fun)
					}
					if !quoting.MatchString(called) && !constants[path.Dir(f.name)+" "+text] && harmless[f.name+" "+text] == "" {
						t.Errorf("%s: %s stands in the command %q; write it with shell.Word", f.name, text, before)
					}
					used[f.name+" "+text] = true
				}
				before += "X"
			}
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				for i, arg := range n.Args {
					if all := parts(arg); len(all) > 0 && all[0].of == nil && strings.Contains(all[0].text, "%") || len(all) > 1 {
						look(formatted(n, i))
						inner[arg] = true
					}
				}
			case *ast.BinaryExpr:
				if !inner[n] && n.Op == token.ADD {
					look(parts(n))
				}
				inner[n.X], inner[n.Y] = true, true
			}
			return true
		})
	}
	if commands < 20 {
		t.Errorf("found %d values in commands only", commands)
	}
	for at := range harmless {
		if !used[at] {
			t.Errorf("harmless: %s stands in no command", at)
		}
	}
}
