package imports_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unrecovered are the functions of the driver's process that start a goroutine without package panics, and why a panic cannot end the process there.
var unrecovered = map[string]string{
	"cmd/cinder-csi-driver/guesttoken.go guestToken": "net/http recovers each page",
	"driver/http.go ServeHTTP":                       "closes the server",
	"driver/idempotent/recheck.go list":              "what it calls, listCreated, recovers",
	"driver/inflight/calls.go Drain":                 "waits and closes a channel",
	"driver/node/inflight.go drain":                  "waits and closes a channel",
	"cmd/cinder-csi-driver/main.go main":             "ends the watch of signals",
	"driver/rpc/measure.go logSlow":                  "reads how far an RPC is, and logs it",
	"driver/rpc/server.go Serve":                     "the loop of gRPC; Recover is around each RPC",
	"driver/run.go serve":                            "cancels a context",
	"internal/cloud/body.go takeSlot":                "frees a slot",
}

// A panic in a goroutine that nobody recovers ends the process, and with it the operations of all volumes.
func TestEveryGoroutineOfTheDriverRecovers(t *testing.T) {
	all := packages(t)
	main := all[slices.IndexFunc(all, func(p pkg) bool { return p.path == "cmd/cinder-csi-driver" })]
	seen, started := map[string]bool{}, 0
	for _, dep := range append(main.deps, module+main.path) {
		dir, ours := strings.CutPrefix(dep, module)
		if !ours || dir == "internal/panics" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(top, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, declared := range parsed.Decls {
				f, is := declared.(*ast.FuncDecl)
				if !is {
					continue
				}
				bare, n := goroutinesOf(f)
				started += n
				if place := dir + "/" + filepath.Base(file) + " " + f.Name.Name; bare > 0 {
					seen[place] = true
					if unrecovered[place] == "" {
						t.Errorf("%s starts a goroutine whose panic ends the process; use package panics", place)
					}
				}
			}
		}
	}
	if started < 15 {
		t.Errorf("only %d goroutines were found", started)
	}
	for _, place := range slices.Sorted(maps.Keys(unrecovered)) {
		if !seen[place] {
			t.Errorf("%s starts no goroutine without package panics any more: take it from the list", place)
		}
	}
}

// goroutinesOf counts the goroutines that a function starts, and those whose code does not use package panics. A method Go, of a WaitGroup or an
// errgroup, starts one, and so does AfterFunc.
func goroutinesOf(f *ast.FuncDecl) (bare, all int) {
	ast.Inspect(f, func(n ast.Node) bool {
		var code ast.Node
		switch n := n.(type) {
		case *ast.GoStmt:
			code = n.Call
		case *ast.CallExpr:
			if called, is := n.Fun.(*ast.SelectorExpr); is && slices.Contains([]string{"Go", "AfterFunc"}, called.Sel.Name) {
				code = n
			}
		}
		if code == nil {
			return true
		}
		all++
		recovers := false
		ast.Inspect(code, func(n ast.Node) bool {
			selected, is := n.(*ast.SelectorExpr)
			if is {
				name, isName := selected.X.(*ast.Ident)
				recovers = recovers || isName && name.Name == "panics"
			}
			return true
		})
		if !recovers {
			bare++
		}
		return true
	})
	return bare, all
}
