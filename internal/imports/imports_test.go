// Package imports_test holds the import rules: which package may import which package and which library.
package imports_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/cinder-csi/cinder-csi/"

// pkg is one package in the output of `go list`. Imports are the direct ones without those of tests; Deps are all.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// path is the package's path inside this module, "" for a package of another module.
func (p pkg) path() string { return pathInModule(p.ImportPath) }

func pathInModule(importPath string) string {
	if path, ours := strings.CutPrefix(importPath, module); ours {
		return path
	}
	return ""
}

// within says whether a path is one of the directories or below one.
func within(path string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// libraryImporters says which packages may import a library directly.
var libraryImporters = []struct {
	library   []string
	importers []string
}{
	{[]string{"github.com/gophercloud"}, []string{"internal/cloud", "driver/openstack", "generator/inspect", "generator/doctor"}},
	{[]string{"github.com/container-storage-interface", "google.golang.org/grpc"}, []string{"driver/rpc", "driver/identity", "driver/controller", "driver/group", "driver/node", "driver/telemetry"}},
	{[]string{"sigs.k8s.io/kustomize", "helm.sh/helm"}, []string{"generator/verify", "internal/release"}},
	{[]string{"k8s.io/client-go"}, []string{"driver/kube", "generator/cluster"}},
	{[]string{"k8s.io/mount-utils", "github.com/moby/sys/mountinfo"}, []string{"driver/host"}},
	{[]string{"github.com/google/go-containerregistry"}, []string{"internal/ociimage", "generator/doctor"}},
}

func TestOnlyNamedPackagesImportALibrary(t *testing.T) {
	for _, p := range packages(t) {
		if within(p.path(), "test") {
			continue
		}
		for _, rule := range libraryImporters {
			for _, imported := range p.Imports {
				if within(imported, rule.library...) && !within(p.path(), rule.importers...) {
					t.Errorf("%s imports %s, which only %s may import", p.path(), imported, strings.Join(rule.importers, ", "))
				}
			}
		}
	}
}

// mayImport lists, for each package and the packages below it, what it may import directly of this module.
var mayImport = map[string][]string{
	"cmd":                        {"driver", "driver/config", "generator/cli", "generator/cluster", "internal"},
	"driver":                     {"driver", "internal"}, // run.go, the only wiring file
	"driver/contract":            {},
	"driver/volume":              {"driver/contract"},
	"driver/volume/volumetest":   {"driver/volume", "driver/contract", "driver/idempotent"},
	"driver/inflight":            {"driver/volume"},
	"driver/observe":             {"driver/volume", "internal/cloud/paging"},
	"driver/idempotent":          {"driver/volume", "driver/contract"},
	"driver/attach":              {"driver/volume", "driver/observe", "driver/inflight"},
	"driver/provision":           {"driver/volume", "driver/contract", "driver/observe", "driver/inflight", "driver/idempotent", "internal/cloud/paging"},
	"driver/snapshot":            {"driver/volume", "driver/contract", "driver/observe", "driver/inflight", "driver/idempotent", "internal/cloud/paging"},
	"driver/config":              {"driver/contract", "internal/cloudconf"},
	"driver/rpc":                 {"driver/volume", "driver/contract", "driver/telemetry", "driver/operation"},
	"driver/operation":           {"driver/volume"},
	"driver/identity":            {"driver/volume", "driver/contract"},
	"driver/controller":          {"driver/volume", "driver/contract", "driver/provision", "driver/attach", "driver/snapshot", "internal/cloud/paging"},
	"driver/node":                {"driver/volume", "driver/contract", "driver/host"},
	"driver/host":                {"driver/volume", "driver/contract", "driver/host"},
	"driver/host/wait":           {"driver/volume"},
	"driver/host/singleflight":   {},
	"driver/host/command":        {"driver/volume", "driver/host/wait"},
	"driver/host/disk":           {"driver/volume", "driver/host/singleflight", "driver/host/wait"},
	"driver/host/fs":             {"driver/volume", "driver/contract", "driver/host/command", "driver/host/disk"},
	"driver/host/mount":          {"driver/volume", "driver/host/command", "driver/host/disk"},
	"driver/host/metadata":       {"driver/volume", "driver/host/disk", "driver/host/wait"},
	"driver/host/limit":          {"driver/volume", "driver/host/disk", "driver/host/mount"},
	"driver/openstack":           {"driver/volume", "driver/contract", "internal/cloud", "driver/openstack/status", "driver/openstack/transport"},
	"driver/openstack/status":    {"driver/volume", "internal/cloud/paging"},
	"driver/openstack/transport": {"driver/volume"},
	"driver/kube":                {"driver/contract", "driver/volume"},
	"driver/guestaccess":         {},
	"driver/telemetry":           {"driver/volume", "driver/operation"},
	"internal/cloudconf":         {},
	"internal/cloud":             {"internal/cloudconf"},
	"internal/cloud/paging":      {},
	"internal/memnet":            {},
	"internal/openstacksim":      {"internal/memnet", "internal/openstacksim"},
	"generator/v1alpha1":         {"driver/contract"},
	"generator/inspect":          {"generator/v1alpha1", "internal/cloud"},
	"generator/plan":             {"generator/v1alpha1", "driver/contract", "driver/config", "internal/cloudconf", "manifests"},
	"generator/field":            {},
	"generator/guard":            {"generator/v1alpha1", "generator/plan", "driver/contract"},
	"generator/printable":        {},
	"generator/bundle":           {"generator/v1alpha1", "generator/plan", "generator/field", "generator/printable", "driver/contract", "driver/config", "internal/cloudconf", "manifests", "charts"},
	"generator/worktree":         {"generator/v1alpha1"},
	"generator/cluster":          {"internal/cloud"},
	"generator/doctor":           {"generator/v1alpha1", "generator/inspect", "generator/cluster", "internal/cloud"},
	"generator/doctor/claim":     {"generator/cluster", "generator/printable", "internal/cloud"},
	"generator/migrate":          {"generator/v1alpha1", "generator/cluster", "driver/contract", "driver/config", "internal/cloud", "internal/cloudconf"},
	"generator/verify":           {"generator/v1alpha1", "driver/contract", "driver/config", "driver/guestaccess", "internal/cloudconf", "manifests", "charts"},
	"generator/report":           {"generator/v1alpha1", "generator/plan", "generator/printable", "generator/doctor"},
	"generator/cli":              {"generator", "internal"},
	"generator/cli/volume":       {"generator/cluster", "generator/doctor/claim", "generator/printable", "internal/cloud"}, // kubectl-cinder links it
	"manifests":                  {},
	"charts":                     {},
}

func TestPackagesImportOneWay(t *testing.T) {
	for _, p := range packages(t) {
		path := p.path()
		if within(path, "test", "docs", "examples", "overlays", "internal/imports", "internal/testenv", "internal/ociimage", "internal/prose", "internal/release") {
			continue
		}
		allowed, listed := ruleFor(path)
		if !listed {
			t.Errorf("%s has no import rule; add one to mayImport", path)
			continue
		}
		for _, imported := range p.Imports {
			if other := pathInModule(imported); other != "" && other != path && !within(other, allowed...) {
				t.Errorf("%s must not import %s (it may import: %s)", path, other, strings.Join(allowed, ", "))
			}
		}
	}
}

// ruleFor gives the rule of a package, or of the nearest directory above it that has one.
func ruleFor(path string) (allowed []string, listed bool) {
	for {
		if allowed, listed = mayImport[path]; listed {
			return allowed, true
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return nil, false
		}
		path = path[:i]
	}
}

// The generator asks registries for images; the programs that run in pods and tests do not.
func TestOnlyTheGeneratorLinksTheImageLibrary(t *testing.T) {
	for _, p := range packages(t) {
		if !within(p.path(), "cmd") || within(p.path(), "cmd/cinder-csi-generator") {
			continue
		}
		for _, dep := range p.Deps {
			if within(dep, "github.com/google/go-containerregistry") {
				t.Errorf("%s reaches %s", p.path(), dep)
			}
		}
	}
}

func TestDriverNeverImportsTheGenerator(t *testing.T) {
	for _, p := range packages(t) {
		if !within(p.path(), "driver", "cmd/cinder-csi-driver") {
			continue
		}
		for _, dep := range p.Deps {
			if within(pathInModule(dep), "generator", "manifests", "charts") {
				t.Errorf("%s reaches %s", p.path(), dep)
			}
		}
	}
}

// pure packages have no I/O, not even through what they import.
var pure = []string{"driver/contract", "driver/volume", "driver/provision", "driver/attach", "driver/snapshot", "driver/idempotent", "generator/plan", "generator/guard", "generator/bundle"}

func TestPurePackagesReachNoIO(t *testing.T) {
	outside := []string{"net/http", "os/exec", "github.com/gophercloud", "google.golang.org/grpc"}
	seen := map[string]bool{}
	for _, p := range packages(t) {
		if !slices.Contains(pure, p.path()) {
			continue
		}
		seen[p.path()] = true
		for _, dep := range p.Deps {
			if within(dep, outside...) {
				t.Errorf("%s reaches %s", p.path(), dep)
			}
		}
	}
	for _, path := range pure {
		if !seen[path] {
			t.Errorf("package %s does not exist; correct this list", path)
		}
	}
}

func TestContractAndCloudconfNeedOnlyTheStandardLibrary(t *testing.T) {
	for _, p := range packages(t) {
		if path := p.path(); path != "driver/contract" && path != "internal/cloudconf" {
			continue
		}
		for _, dep := range p.Deps {
			// The standard library's import paths have no dot in their first element.
			if first, _, _ := strings.Cut(dep, "/"); strings.Contains(first, ".") {
				t.Errorf("%s reaches %s", p.path(), dep)
			}
		}
	}
}
