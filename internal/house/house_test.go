// Package house holds the tests that keep the rooms of this project apart: who may import whom.
package house

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

// pkg is what `go list` says of one package; Imports are the direct ones without tests, Deps all of them.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// room is the package's path inside the module, "" for others'.
func (p pkg) room() string { return room(p.ImportPath) }

func room(path string) string {
	if r, ours := strings.CutPrefix(path, module); ours {
		return r
	}
	return ""
}

func within(path string, rooms ...string) bool {
	return slices.ContainsFunc(rooms, func(r string) bool { return path == r || strings.HasPrefix(path, r+"/") })
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

// knows says which rooms alone may import a library directly.
var knows = []struct {
	library []string
	rooms   []string
}{
	{[]string{"github.com/gophercloud"}, []string{"internal/cloud", "driver/openstack", "generator/inspect", "generator/doctor"}},
	{[]string{"github.com/container-storage-interface", "google.golang.org/grpc"}, []string{"driver/rpc", "driver/identity", "driver/controller", "driver/group", "driver/node", "driver/telemetry"}},
	{[]string{"sigs.k8s.io/kustomize", "helm.sh/helm"}, []string{"generator/verify"}},
	{[]string{"k8s.io/client-go"}, []string{"driver/kube"}},
	{[]string{"k8s.io/mount-utils"}, []string{"driver/host"}},
}

func TestLibrariesAreKnownToTheirRoomsAlone(t *testing.T) {
	for _, p := range packages(t) {
		if within(p.room(), "test", "internal/house") {
			continue
		}
		for _, k := range knows {
			for _, imported := range p.Imports {
				if within(imported, k.library...) && !within(p.room(), k.rooms...) {
					t.Errorf("%s imports %s, which only %s may", p.room(), imported, strings.Join(k.rooms, ", "))
				}
			}
		}
	}
}

// mayImport lists, for each room, the rooms of this module it may import directly; a room may always import its own sub-rooms'
// siblings only if they are listed.
var mayImport = map[string][]string{
	"cmd":                      {"driver", "driver/config", "generator/cli", "internal"},
	"driver":                   {"driver", "internal"}, // run.go, the only wiring file
	"driver/contract":          {},
	"driver/volume":            {"driver/contract"},
	"driver/volume/volumetest": {"driver/volume", "driver/contract", "driver/idempotent"},
	"driver/inflight":          {"driver/volume"},
	"driver/observe":           {"driver/volume", "internal/cloud/paging"},
	"driver/idempotent":        {"driver/volume", "driver/contract"},
	"driver/attach":            {"driver/volume", "driver/observe", "driver/inflight"},
	"driver/provision":         {"driver/volume", "driver/contract", "driver/observe", "driver/inflight", "driver/idempotent", "internal/cloud/paging"},
	"driver/snapshot":          {"driver/volume", "driver/contract", "driver/observe", "driver/inflight", "driver/idempotent", "internal/cloud/paging"},
	"driver/config":            {"driver/contract", "internal/cloudconf"},
	"driver/rpc":               {"driver/volume", "driver/contract", "driver/telemetry"},
	"driver/identity":          {"driver/volume", "driver/contract"},
	"driver/controller":        {"driver/volume", "driver/contract", "driver/provision", "driver/attach", "driver/snapshot", "internal/cloud/paging"},
	"driver/node":              {"driver/volume", "driver/contract", "driver/host"},
	"driver/host":              {"driver/volume", "driver/contract"},
	"driver/openstack":         {"driver/volume", "driver/contract", "driver/telemetry", "internal/cloud", "driver/openstack/status"},
	"driver/openstack/status":  {"driver/volume", "internal/cloud/paging"},
	"driver/kube":              {"driver/volume"},
	"driver/telemetry":         {"driver/volume"},
	"internal/cloudconf":       {},
	"internal/cloud":           {"internal/cloudconf"},
	"internal/cloud/paging":    {},
	"internal/memnet":          {},
	"internal/openstacksim":    {"internal/memnet", "internal/openstacksim"},
	"generator/v1alpha1":       {"driver/contract"},
	"generator/inspect":        {"generator/v1alpha1", "internal/cloud"},
	"generator/plan":           {"generator/v1alpha1", "driver/contract", "driver/config", "internal/cloudconf"},
	"generator/guard":          {"generator/v1alpha1", "generator/plan", "driver/contract"},
	"generator/printable":      {},
	"generator/bundle":         {"generator/v1alpha1", "generator/plan", "generator/printable", "driver/contract", "driver/config", "internal/cloudconf", "manifests", "charts"},
	"generator/worktree":       {"generator/v1alpha1"},
	"generator/verify":         {"generator/v1alpha1", "driver/contract", "driver/config", "internal/cloudconf", "manifests", "charts"},
	"generator/report":         {"generator/v1alpha1", "generator/plan", "generator/printable"},
	"generator/cli":            {"generator", "internal"},
	"manifests":                {},
	"charts":                   {},
}

func TestRoomsImportOneWay(t *testing.T) {
	for _, p := range packages(t) {
		r := p.room()
		if within(r, "test", "docs", "examples", "overlays", "internal/house", "internal/testenv", "internal/ociimage") {
			continue
		}
		allowed, listed := ruleFor(r)
		if !listed {
			t.Errorf("%s is a room without an import rule: add it here", r)
			continue
		}
		for _, imported := range p.Imports {
			if other := room(imported); other != "" && other != r && !within(other, allowed...) {
				t.Errorf("%s must not import %s (it may import: %s)", r, other, strings.Join(allowed, ", "))
			}
		}
	}
}

func ruleFor(room string) (allowed []string, listed bool) {
	for {
		if allowed, listed = mayImport[room]; listed {
			return allowed, true
		}
		i := strings.LastIndexByte(room, '/')
		if i < 0 {
			return nil, false
		}
		room = room[:i]
	}
}

func TestDriverNeverImportsTheGenerator(t *testing.T) {
	for _, p := range packages(t) {
		if !within(p.room(), "driver", "cmd/cinder-csi-driver") {
			continue
		}
		for _, dep := range p.Deps {
			if within(room(dep), "generator", "manifests", "charts") {
				t.Errorf("%s reaches %s", p.room(), dep)
			}
		}
	}
}

// pure rooms never reach the outside world, not even through what they import.
var pure = []string{"driver/contract", "driver/volume", "driver/provision", "driver/attach", "driver/snapshot", "driver/idempotent", "generator/plan", "generator/guard", "generator/bundle"}

func TestPureRoomsNeverReachTheOutsideWorld(t *testing.T) {
	outside := []string{"net/http", "os/exec", "github.com/gophercloud", "google.golang.org/grpc"}
	seen := map[string]bool{}
	for _, p := range packages(t) {
		if !slices.Contains(pure, p.room()) {
			continue
		}
		seen[p.room()] = true
		for _, dep := range p.Deps {
			if within(dep, outside...) {
				t.Errorf("%s reaches %s", p.room(), dep)
			}
		}
	}
	for _, r := range pure {
		if !seen[r] {
			t.Errorf("room %s is gone: correct this list", r)
		}
	}
}

func TestContractAndCloudconfNeedTheStandardLibraryAlone(t *testing.T) {
	for _, p := range packages(t) {
		if r := p.room(); r != "driver/contract" && r != "internal/cloudconf" {
			continue
		}
		for _, dep := range p.Deps {
			// The standard library's import paths have no dot in their first element.
			if first, _, _ := strings.Cut(dep, "/"); strings.Contains(first, ".") {
				t.Errorf("%s reaches %s", p.room(), dep)
			}
		}
	}
}
