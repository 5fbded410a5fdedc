// Command sidecarflags reads the flags of the CSI sidecars from their Go modules and prints them for generator/verify/sidecars.yaml
// (make sidecar-flags). The versions are those of the images that a bundle names.
//
// It reads source and compiles nothing: one of the sidecars needs a module that the Go proxy does not serve.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/charts"
)

// sidecars are the containers whose modules the Go proxy serves.
var sidecars = []struct{ name, module, command string }{
	{"attacher", "github.com/kubernetes-csi/external-attacher/v4", "cmd/csi-attacher"},
	{"provisioner", "github.com/kubernetes-csi/external-provisioner/v6", "cmd/csi-provisioner"},
	{"resizer", "github.com/kubernetes-csi/external-resizer/v2", "cmd/csi-resizer"},
	{"snapshotter", "github.com/kubernetes-csi/external-snapshotter/v8", "cmd/csi-snapshotter"},
}

// libraries are the packages with which every sidecar adds flags, by module.
var libraries = map[string]string{
	"github.com/kubernetes-csi/csi-lib-utils": "standardflags",
	"k8s.io/component-base":                   "logs/api/v1",
}

// program is one entry of the file.
type program struct {
	Version string   `json:"version"`
	Source  string   `json:"source"`
	Flags   []string `json:"flags"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "sidecarflags:", err)
		os.Exit(1)
	}
}

func run() error {
	images, err := charts.Images()
	if err != nil {
		return err
	}
	programs := map[string]program{}
	for _, s := range sidecars {
		version := images["controller"][s.name].Tag
		flags, err := flagsOf(s.module, version, s.command)
		if err != nil {
			return fmt.Errorf("%s %s: %w", s.module, version, err)
		}
		programs[s.name] = program{version, "https://pkg.go.dev/" + s.module + "@" + version + "/" + s.command, flags}
	}
	text, err := yaml.Marshal(programs)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("# The flags of the CSI sidecars, by container name. Written by make sidecar-flags; edits are lost.\n%s", text)
	return err
}

// flagsOf are the flags that a command registers itself or with one of the libraries, sorted.
func flagsOf(module, version, command string) ([]string, error) {
	dir, requires, err := download(module, version)
	if err != nil {
		return nil, err
	}
	names, err := registered(filepath.Join(dir, command))
	if err != nil {
		return nil, err
	}
	for library, pkg := range libraries {
		dir, _, err := download(library, requires[library])
		if err != nil {
			return nil, err
		}
		more, err := registered(filepath.Join(dir, pkg))
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// download gives the directory of a module in the module cache, and the versions of the modules that it requires.
func download(module, version string) (dir string, requires map[string]string, err error) {
	var at struct{ Dir, GoMod string }
	if err := output(&at, "go", "mod", "download", "-json", module+"@"+version); err != nil {
		return "", nil, err
	}
	type required struct{ Path, Version string }
	var file struct {
		Require []required
		Replace []struct{ Old, New required }
	}
	if err := output(&file, "go", "mod", "edit", "-json", at.GoMod); err != nil {
		return "", nil, err
	}
	requires = map[string]string{}
	for _, r := range file.Require {
		requires[r.Path] = r.Version
	}
	for _, r := range file.Replace {
		if _, direct := requires[r.Old.Path]; direct && r.Old.Path == r.New.Path {
			requires[r.Old.Path] = r.New.Version
		}
	}
	return at.Dir, requires, nil
}

func output(into any, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return json.Unmarshal(text, into)
}

// registered are the names of the flags that the Go files of a directory define with package flag or pflag, sorted by file.
func registered(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s has no Go files (%v)", dir, err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		constants := map[string]string{}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
				for i, name := range v.Names {
					constants[name.Name] = literal(v.Values[i], nil)
				}
			}
			if call, ok := n.(*ast.CallExpr); ok {
				if name := flagName(call, constants); name != "" {
					names = append(names, name)
				}
			}
			return true
		})
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s defines no flag", path.Base(dir))
	}
	return names, nil
}

// definers are the functions of package flag and pflag that define a flag, by the index of the argument that is its name.
var definers = func() map[string]int {
	index := map[string]int{"Var": 1, "VarP": 1, "Func": 0, "BoolFunc": 0}
	for _, kind := range []string{"Bool", "Duration", "Float32", "Float64", "Int", "Int32", "Int64", "String", "StringSlice", "Uint", "Uint64"} {
		index[kind], index[kind+"Var"] = 0, 1
	}
	return index
}()

// flagName is the name of the flag that a call defines; "" where it defines none.
func flagName(call *ast.CallExpr, constants map[string]string) string {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	at, defines := definers[function.Sel.Name]
	on, named := function.X.(*ast.Ident)
	// A name, a value and a usage at least: flags.Bool("x") alone reads a flag.
	if !defines || !named || len(call.Args) < at+2 || !slices.Contains([]string{"flag", "flags", "fs", "pflag", "goflag"}, on.Name) {
		return ""
	}
	return literal(call.Args[at], constants)
}

// literal is the text of a string, written out or the name of a constant of the same file.
func literal(e ast.Expr, constants map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.Ident:
		return constants[e.Name]
	}
	return ""
}
