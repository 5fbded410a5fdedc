// Package versions_test compares the versions that must move together and stand in several files: each Go module, image and pipeline has its
// own.
package versions_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cinder-csi/cinder-csi/charts"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const (
	top = "../.."
	// programs pins the Kubernetes and the sidecars of the cluster that tests run on.
	programs = "test/bed/cluster/programs/go.mod"
	// older is the module of the one program that is a release behind the others; its go.mod says why.
	older = "test/bed/cluster/provisioner/go.mod"
	// images names the image of each role and sidecar.
	images = "charts/cinder-csi/values.yaml"
)

// staged are modules that each release of Kubernetes publishes, and that a go.mod of this project may require.
var staged = regexp.MustCompile(`^k8s\.io/(api|apimachinery|client-go|kubectl|kubelet|mount-utils|streaming|component-base|apiserver)$`)

func read(t *testing.T, name string) []byte {
	t.Helper()
	return testfile.Read(t, filepath.Join(top, name))
}

// goMod is a go.mod file as `go mod edit -json` prints it.
type goMod struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

// modules are the go.mod files of the repository and the one of the tools, by path.
func modules(t *testing.T) map[string]goMod {
	t.Helper()
	all, err := readModules()
	if err != nil || len(all) < 9 {
		t.Fatalf("found %d modules, want at least 9; error %v", len(all), err)
	}
	return all
}

// readModules starts a process for each file, so all tests share the result.
var readModules = sync.OnceValues(func() (map[string]goMod, error) {
	all := map[string]goMod{}
	add := func(name string) error {
		if _, err := os.ReadFile(filepath.Join(top, name)); err != nil { // so that the result of the test is not kept when the file changes
			return err
		}
		text, err := exec.Command("go", "mod", "edit", "-json", filepath.Join(top, name)).Output()
		if err != nil {
			return err
		}
		var file goMod
		err = json.Unmarshal(text, &file)
		all[name] = file
		return err
	}
	if err := add(".ci/tools.mod"); err != nil {
		return nil, err
	}
	err := fs.WalkDir(os.DirFS(top), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "testdata"}, entry.Name()):
			return fs.SkipDir
		case entry.Name() == "go.mod":
			return add(name)
		}
		return nil
	})
	return all, err
})

// required is the version of a module that a go.mod requires, replaced or not; empty if it requires none.
func required(file goMod, path string) string {
	for _, replace := range file.Replace {
		if replace.Old.Path == path {
			return replace.New.Version
		}
	}
	for _, require := range file.Require {
		if require.Path == path {
			return require.Version
		}
	}
	return ""
}

// minor is 1.37 for v1.37.2, and 0.37 for v0.37.2.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

func TestGoHasOneVersion(t *testing.T) {
	all := modules(t)
	want := all["go.mod"].Go
	for name, file := range all {
		if file.Go != want {
			t.Errorf("%s has go %s, go.mod has %s", name, file.Go, want)
		}
	}
	image := regexp.MustCompile(`golang:([0-9.]+)`)
	for _, name := range []string{"Dockerfile", ".github/workflows/checks.yaml", ".github/workflows/release.yaml", ".github/workflows/weekly.yaml", ".gitlab-ci.yml"} {
		found := image.FindAllSubmatch(read(t, name), -1)
		if found == nil {
			t.Errorf("%s names no image of Go", name)
		}
		for _, tag := range found {
			if string(tag[1]) != minor(want) {
				t.Errorf("%s has %s, go.mod has go %s", name, tag[0], want)
			}
		}
	}
	if text := "Go " + minor(want); !bytes.Contains(read(t, "README.md"), []byte(text)) {
		t.Errorf("README.md does not ask for %s", text)
	}
}

// The API of Kubernetes that the product links, the tools of its users and the servers that tests run on are of one minor version.
func TestKubernetesHasOneMinorVersion(t *testing.T) {
	all := modules(t)
	want := strings.TrimPrefix(minor(required(all[programs], "k8s.io/kubernetes")), "1.")
	for name, file := range all {
		// kube-router and kube-rbac-proxy, whose releases choose their own libraries.
		if name == older || name == "test/bed/cluster/router/go.mod" || name == "test/bed/cluster/rbacproxy/go.mod" {
			continue
		}
		for _, require := range file.Require {
			if version := required(file, require.Path); staged.MatchString(require.Path) && minor(version) != "0."+want {
				t.Errorf("%s has %s %s, %s has Kubernetes 1.%s", name, require.Path, version, programs, want)
			}
		}
	}
	for name, pattern := range map[string]string{
		"test/bed/cluster/README.md":      `pins Kubernetes (1\.[0-9]+)`,
		"test/suite/cluster/e2e_test.go":  `kubernetesVersion: "(1\.[0-9]+)"`,
		"test/kit/switches/table.go":      `"kubernetesVersion", list\{.*"(1\.[0-9]+)"\}`,
		"docs/reference/compatibility.md": `\| API types of Kubernetes (1\.[0-9]+),`,
	} {
		if found := regexp.MustCompile(pattern).FindSubmatch(read(t, name)); found == nil || string(found[1]) != "1."+want {
			t.Errorf("%s: want 1.%s at %q, found %q", name, want, pattern, found)
		}
	}
}

func TestTheProductLinksOneReleaseOfTheModulesOfKubernetes(t *testing.T) {
	releases := map[string][]string{}
	for _, require := range modules(t)["go.mod"].Require {
		if staged.MatchString(require.Path) {
			releases[require.Version] = append(releases[require.Version], require.Path)
		}
	}
	if len(releases) != 1 {
		t.Errorf("go.mod has modules of several releases of Kubernetes: %v", releases)
	}
}

// Modules that build Kubernetes itself replace each of its staged modules by the one of the same release.
func TestModulesThatBuildKubernetesHaveOneRelease(t *testing.T) {
	all := modules(t)
	want := required(all[programs], "k8s.io/kubernetes")
	builders := 0
	for name, file := range all {
		release := required(file, "k8s.io/kubernetes")
		if release == "" {
			continue
		}
		builders++
		if release != want {
			t.Errorf("%s has Kubernetes %s, %s has %s", name, release, programs, want)
		}
		for _, replace := range file.Replace {
			if staged := strings.Replace(release, "v1.", "v0.", 1); strings.HasPrefix(replace.Old.Path, "k8s.io/") && replace.New.Version != staged {
				t.Errorf("%s replaces %s by %s, Kubernetes %s needs %s", name, replace.Old.Path, replace.New.Version, release, staged)
			}
		}
	}
	if builders < 3 {
		t.Errorf("found %d modules that build Kubernetes, want at least 3", builders)
	}
}

// What the product links and what runs beside it in a test is one version.
func TestModulesSharedWithTestsHaveOneVersion(t *testing.T) {
	all := modules(t)
	for path, others := range map[string][]string{
		"helm.sh/helm/v3": {"test/kit/render/go.mod"},
		"github.com/container-storage-interface/spec": {programs, "test/suite/sanity/go.mod", "test/suite/external/e2e/go.mod"},
	} {
		want := required(all["go.mod"], path)
		for _, other := range others {
			if got := required(all[other], path); got != want || want == "" {
				t.Errorf("%s has %s %q, go.mod has %q", other, path, got, want)
			}
		}
	}
}

// tags are the tags of the images of the chart, by the name of the image. An image of this project has no registry.
func tags(t *testing.T) map[string]string {
	t.Helper()
	roles, err := charts.Images()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]string{}
	for _, ofRole := range roles {
		for _, image := range ofRole {
			name := strings.TrimPrefix(image.Registry+"/"+image.Repository, "/")
			if tag, twice := byName[name]; twice && tag != image.Tag {
				t.Errorf("%s has %s with the tags %s and %s", images, name, tag, image.Tag)
			}
			byName[name] = image.Tag
		}
	}
	return byName
}

func TestTheAnnotationsOfTheChartNameItsImages(t *testing.T) {
	annotations := string(read(t, "charts/cinder-csi/Chart.yaml"))
	for name, tag := range tags(t) {
		if own := strings.HasPrefix(name, "cinder-csi/"); !own && !strings.Contains(annotations, "image: "+name+":"+tag+"\n") {
			t.Errorf("the annotations of Chart.yaml do not have %s:%s", name, tag)
		}
	}
}

// The cluster that tests run on has the sidecars that a bundle names, built from their modules.
func TestTheClusterHasTheSidecarsOfTheManifests(t *testing.T) {
	all := modules(t)
	want := tags(t)
	for image, path := range map[string]string{
		"csi-attacher":    "github.com/kubernetes-csi/external-attacher/v4",
		"csi-resizer":     "github.com/kubernetes-csi/external-resizer/v2",
		"csi-snapshotter": "github.com/kubernetes-csi/external-snapshotter/v8",
	} {
		tag := want["registry.k8s.io/sig-storage/"+image]
		if got := required(all[programs], path); got != tag || tag == "" {
			t.Errorf("%s has %s %s, %s has the image %s", programs, path, got, images, tag)
		}
	}
	readme := string(read(t, "test/bed/cluster/README.md"))
	for image, word := range map[string]string{"csi-attacher": "attacher ", "csi-resizer": "resizer ", "csi-snapshotter": "snapshotter and snapshot-controller "} {
		if text := word + strings.TrimPrefix(want["registry.k8s.io/sig-storage/"+image], "v"); !strings.Contains(readme, text) {
			t.Errorf("test/bed/cluster/README.md does not say %q", text)
		}
	}
	if text := "The provisioner is " + strings.TrimPrefix(required(all[older], "github.com/kubernetes-csi/external-provisioner/v6"), "v") +
		", not " + strings.TrimPrefix(want["registry.k8s.io/sig-storage/csi-provisioner"], "v"); !strings.Contains(readme, text) {
		t.Errorf("test/bed/cluster/README.md does not say %q", text)
	}
}

func TestThePipelinesUseOneVersionOfEachAction(t *testing.T) {
	workflows, err := filepath.Glob(filepath.Join(top, ".github/workflows/*.yaml"))
	if err != nil || len(workflows) < 2 {
		t.Fatalf("found the workflows %q, error %v", workflows, err)
	}
	pins := map[string]string{}
	for _, name := range workflows {
		text := testfile.Text(t, name)
		for _, use := range regexp.MustCompile(`uses: ([^@\s]+)@(\S+)`).FindAllStringSubmatch(text, -1) {
			if pin := pins[use[1]]; pin != "" && pin != use[2] {
				t.Errorf("%s has %s@%s, another workflow has %s", name, use[1], use[2], pin)
			}
			pins[use[1]] = use[2]
		}
	}
}
