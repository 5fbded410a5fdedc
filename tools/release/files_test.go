package release

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestTheDriverIsBuiltForLinuxAndOtherProgramsForWorkstationsToo(t *testing.T) {
	t.Parallel()
	root := testfile.Tree(t, map[string]string{"cmd/cinder-csi-driver/main.go": "", "cmd/openstack-sim/main.go": "", "cmd/tool/main.go": ""})
	all, err := programs(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range all {
		got = append(got, p.file())
	}
	want := []string{
		"bin/cinder-csi-driver-linux-amd64", "bin/cinder-csi-driver-linux-arm64",
		"bin/tool-linux-amd64", "bin/tool-linux-arm64", "bin/tool-darwin-amd64", "bin/tool-darwin-arm64",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEveryBuildOfTheDriverHasTheTags: a build without them works, so nobody would notice that it is larger.
func TestEveryBuildOfTheDriverHasTheTags(t *testing.T) {
	t.Parallel()
	for file, wants := range map[string][]string{
		"Makefile":   {"\nTAGS := " + tags + "\n", "\nexport GOFLAGS := $(GOFLAGS) -buildvcs=false -trimpath -tags=$(TAGS) "}, // for all that it includes
		"Dockerfile": {" go build -trimpath -tags " + tags + " "},
	} {
		text := testfile.Text(t, "../../"+file)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q", file, want)
			}
		}
	}
}

// TestTheDriverLinksNoTemplates: with html/template or text/template the linker keeps every exported method, whatever calls it.
func TestTheDriverLinksNoTemplates(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", tags, "../../cmd/"+driver)
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	packages, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"html/template", "text/template", "golang.org/x/net/trace"} {
		if slices.Contains(strings.Fields(string(packages)), name) {
			t.Errorf("the driver links %s", name)
		}
	}
}

func TestThePackagedChartIsThatOfHelmWithTheTimeOfTheRelease(t *testing.T) {
	t.Parallel()
	content, name, err := packaged("../../"+chartDir, noon)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := packaged("../../"+chartDir, noon)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content, again) {
		t.Error("two packages of one chart differ")
	}
	later, _, err := packaged("../../"+chartDir, noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(content, later) {
		t.Error("the time of the release makes no difference")
	}
	chart, err := loader.LoadArchive(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if want := "cinder-csi-" + chart.Metadata.Version + ".tgz"; chart.Name() != "cinder-csi" || name != want {
		t.Errorf("want the chart cinder-csi in %s, got %s in %s", want, chart.Name(), name)
	}
}

func TestEachCommandHasAManualPageAndTypedProgramsHaveCompletions(t *testing.T) {
	t.Parallel()
	var listed bytes.Buffer
	r := &release{Options: Options{Version: "v1.2.3", Report: &listed}, dir: t.TempDir(), time: noon}
	if err := r.writeManuals(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, part := range map[string]string{
		"man/cinder-csi-driver.1":                    "cloud-config",
		"man/cinder-csi-generator.1":                 "Jan 2026",
		"man/cinder-csi-generator-generate.1":        "cinder-csi v1.2.3",
		"man/kubectl-cinder.1":                       "kubectl-cinder-volume(1)",
		"man/kubectl-cinder-volume.1":                "driver-namespace",
		"completions/bash/cinder-csi-generator":      "__start_cinder-csi-generator",
		"completions/zsh/_cinder-csi-generator":      "#compdef cinder-csi-generator",
		"completions/fish/cinder-csi-generator.fish": "complete -c cinder-csi-generator",
		"completions/bash/kubectl-cinder":            "__start_kubectl-cinder",
		"completions/zsh/_kubectl-cinder":            "#compdef kubectl-cinder",
		"completions/fish/kubectl-cinder.fish":       "complete -c kubectl-cinder",
		"completions/kubectl_complete-cinder":        "kubectl-cinder __complete",
	} {
		content, err := os.ReadFile(r.path(name))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(content), part) {
			t.Errorf("%s has no %q", name, part)
		}
		if !slices.Contains(strings.Split(listed.String(), "\n"), name) {
			t.Errorf("the report does not list %s", name)
		}
	}
	if info, err := os.Stat(r.path("completions/kubectl_complete-cinder")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("kubectl runs kubectl_complete-cinder: want mode 0755, got %v, %v", info.Mode(), err)
	}
}

// A program that a release has and the manual leaves out would be noticed by its users only.
func TestEachReleasedProgramHasAManualPage(t *testing.T) {
	t.Parallel()
	r := &release{Options: Options{Version: "v1.2.3", Report: io.Discard}, dir: t.TempDir(), time: noon}
	if err := r.writeManuals(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := programs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if _, err := os.Stat(r.path("man/" + p.name + ".1")); err != nil {
			t.Error(err)
		}
	}
}

// A default that follows the environment, such as a kubeconfig below the home directory, must not get into the files.
func TestManualsAndCompletionsAreTheSameOnAnotherMachine(t *testing.T) {
	written := func(home string) map[string]string {
		t.Setenv("HOME", home)
		t.Setenv("KUBECONFIG", home+"/config")
		t.Setenv("OS_CLOUD", home)
		r := &release{Options: Options{Version: "v1.2.3", Report: io.Discard}, dir: t.TempDir(), time: noon}
		if err := r.writeManuals(t.Context()); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		err := fs.WalkDir(os.DirFS(r.dir), ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(r.path(name))
			files[name] = string(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	if diff := cmp.Diff(written("/home/one"), written("/root")); diff != "" {
		t.Errorf("(-one +other):\n%s", diff)
	}
}

func TestChecksumsNameEveryFile(t *testing.T) {
	t.Parallel()
	r := &release{dir: testfile.Tree(t, map[string]string{"b": "b\n", "bin/a": "a\n"})}
	if err := r.writeChecksums(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := testfile.Read(t, r.path(checksums))
	// As sha256sum prints them.
	want := "0263829989b6fd954f72baaf2fc64bc2e2f01d692d4de72986ea808f6e99813f  b\n" +
		"87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7  bin/a\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilesAreReadableForEverybody(t *testing.T) {
	t.Parallel()
	r := &release{dir: t.TempDir()}
	if err := r.write("a/b", []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(r.dir, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	if want := fs.FileMode(0o755); info.Mode().Perm() != want {
		t.Errorf("want mode %v, got %v", want, info.Mode().Perm())
	}
}

func TestEachLicenceTextIsWrittenOnceWithItsModules(t *testing.T) {
	t.Parallel()
	got := string(thirdParty(map[string][]string{"text 1": {"b v1", "a v2"}, "text 2": {"c v1"}}))
	line := strings.Repeat("-", 80)
	want := "a v2\nb v1\n\ntext 1\n\n" + line + "\n\nc v1\n\ntext 2\n\n" + line + "\n\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAModuleWithoutLicenceIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := noticesIn(testfile.Tree(t, map[string]string{"README": ""})); err == nil {
		t.Error("want an error, got none")
	}
	got, err := noticesIn(testfile.Tree(t, map[string]string{"README": "", "LICENSE.txt": "one\n", "NOTICE": "two"}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "two"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLicencesAreReadFromTheReferencePage(t *testing.T) {
	t.Parallel()
	licences, err := readLicences("../../THIRD_PARTY.md")
	if err != nil {
		t.Fatal(err)
	}
	for module, want := range map[string]string{"github.com/spf13/cobra": "Apache-2.0", "golang.org/x/sys": "BSD-3-Clause"} {
		if licences[module] != want {
			t.Errorf("%s: want %s, got %q", module, want, licences[module])
		}
	}
	if _, err := readLicences("../../LICENSE"); err == nil {
		t.Error("a page without the table: want an error, got none")
	}
}
