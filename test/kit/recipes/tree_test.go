package recipes

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tree is the source tree. It finds tests in the sources: to compile the test binaries of all tags for `go test -list` takes an hour of
// processor time. The names are the same, because go test takes them from the declarations, too.
type tree struct {
	top  string
	read map[string]map[string]subtests // by directory and tags
}

// subtests are the subtests that a test names by literals. Others may be computed.
type subtests struct {
	names    []string
	computed bool
}

// tests returns the tests, benchmarks and fuzz targets of a package, or of all below it if its last element is "...".
func (s *tree) tests(pkg string, tags []string) (map[string]subtests, error) {
	dir, all := strings.CutSuffix(pkg, "...")
	dir = filepath.Clean(dir)
	if !all {
		return s.testsIn(dir, tags)
	}
	tests := map[string]subtests{}
	err := filepath.WalkDir(filepath.Join(s.top, dir), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		below, _ := filepath.Rel(s.top, name)
		base := entry.Name()
		_, noModule := os.Stat(filepath.Join(name, "go.mod"))
		if below != dir && (base == "testdata" || base == "bin" || base[0] == '.' || base[0] == '_' || noModule == nil) {
			return fs.SkipDir
		}
		its, err := s.testsIn(below, tags)
		if none := (*build.NoGoError)(nil); errors.As(err, &none) {
			return nil
		}
		maps.Copy(tests, its)
		return err
	})
	return tests, err
}

func (s *tree) testsIn(dir string, tags []string) (map[string]subtests, error) {
	key := dir + " " + strings.Join(tags, ",")
	if known, is := s.read[key]; is {
		return known, nil
	}
	context := build.Default
	context.BuildTags = tags
	p, err := context.ImportDir(filepath.Join(s.top, dir), 0)
	if err != nil {
		return nil, fmt.Errorf("./%s with tags %q: %w", dir, strings.Join(tags, ","), err)
	}
	tests := map[string]subtests{}
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && f.Name.Name != "TestMain" && isTest(f.Name.Name) {
				tests[f.Name.Name] = subtestsOf(f)
			}
		}
	}
	s.read[key] = tests
	return tests, nil
}

// isTest has the rule of go test: a prefix, and no lower-case letter behind it.
func isTest(name string) bool {
	for _, prefix := range []string{"Test", "Fuzz", "Benchmark", "Example"} {
		if rest, is := strings.CutPrefix(name, prefix); is {
			first, _ := utf8.DecodeRuneInString(rest)
			return !unicode.IsLower(first)
		}
	}
	return false
}

// subtestsOf finds the calls of Run in a test. What another function runs counts as computed, so a call that passes on the test does, too.
func subtestsOf(f *ast.FuncDecl) subtests {
	var s subtests
	ast.Inspect(f, func(n ast.Node) bool {
		c, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		if run, is := c.Fun.(*ast.SelectorExpr); is && run.Sel.Name == "Run" && len(c.Args) == 2 {
			name := ""
			literal, is := c.Args[0].(*ast.BasicLit)
			if is {
				name, _ = strconv.Unquote(literal.Value)
			}
			if name == "" {
				s.computed = true
			} else {
				s.names = append(s.names, name)
			}
			return true
		}
		for _, a := range c.Args {
			if t, is := a.(*ast.Ident); is && t.Name == "t" {
				s.computed = true
			}
		}
		return true
	})
	return s
}
