// Package imports_test holds the import rules: which package may import which package and which library.
package imports_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/cinder-csi/cinder-csi/"

// top is the directory of the module.
const top = "../.."

// watchSources asks for each source file. `go test` keeps the result of a test until a file changes that the test itself asked for. It does
// not see which files `go list` reads.
func watchSources() error {
	return filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "testdata"}, entry.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) == ".go":
			_, err = os.Stat(path)
		}
		return err
	})
}

// goList asks for every package of the module once.
var goList = sync.OnceValues(func() ([]pkg, error) {
	if err := watchSources(); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = top
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			ImportPath    string
			Imports, Deps []string
		}
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		all = append(all, pkg{strings.TrimPrefix(p.ImportPath, module), p.Imports, p.Deps})
	}
	return all, nil
})

func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := goList()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return all
}

func report(t *testing.T, problems []string) {
	t.Helper()
	for _, problem := range problems {
		t.Error(problem)
	}
}

func TestPackagesImportOneWay(t *testing.T) { report(t, mayImport.check(packages(t))) }

func TestOnlyNamedPackagesImportALibrary(t *testing.T) {
	report(t, checkLibraries(libraryImporters, packages(t)))
}

func TestPurePackagesReachNoIO(t *testing.T) { report(t, checkReach(pure, inputOutput, packages(t))) }

func TestContractAndCloudconfNeedOnlyTheStandardLibrary(t *testing.T) {
	for _, p := range packages(t) {
		if p.path != "driver/contract" && p.path != "internal/cloudconf" {
			continue
		}
		for _, dep := range p.deps {
			// The standard library's import paths have no dot in their first element.
			if first, _, _ := strings.Cut(dep, "/"); strings.Contains(first, ".") {
				t.Errorf("%s reaches %s", p.path, dep)
			}
		}
	}
}

// Tools build and check the product; nothing of the product needs them, or the helpers of the tests.
func TestTheProductReachesNoToolAndNoTestHelper(t *testing.T) {
	report(t, checkReach([]string{"cmd/...", "driver/...", "generator/...", "internal/..."}, []string{"tools/...", "test/..."}, packages(t)))
}

func TestDriverAndGeneratorAreApart(t *testing.T) {
	all := packages(t)
	report(t, checkReach([]string{"driver/...", "cmd/cinder-csi-driver", "internal/..."}, []string{"generator/...", "manifests", "charts"}, all))
	var rest []string
	for _, p := range all {
		if covers("driver/...", p.path) && !anyCovers([]string{"driver/contract", "driver/config", "driver/guestaccess", "driver/cause"}, p.path) {
			rest = append(rest, p.path)
		}
	}
	report(t, checkReach([]string{"generator/..."}, rest, all))
}

// The generator asks registries for images; the programs that run in pods and tests do not.
func TestOnlyTheGeneratorLinksTheImageLibrary(t *testing.T) {
	report(t, checkReach([]string{"cmd/cinder-csi-driver", "cmd/kubectl-cinder", "cmd/openstack-sim"}, []string{"github.com/google/go-containerregistry/..."}, packages(t)))
}
