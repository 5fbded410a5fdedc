package release

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// ofVersion are the files that a version is written into.
var ofVersion = []string{
	chartDir + "/Chart.yaml", chartDir + "/values.yaml", chartDir + "/values.schema.json", chartDir + "/README.md", "CHANGELOG.md",
}

// copied is a copy of these files of the repository, with the script.
func copied(t *testing.T) string {
	t.Helper()
	files := map[string]string{}
	for _, name := range append(ofVersion, "tools/release/set-version.sh") {
		text := testfile.Text(t, filepath.Join("../..", name))
		files[name] = text
	}
	return testfile.Tree(t, files)
}

func setVersion(t *testing.T, root, version string) error {
	t.Helper()
	_, err := run(t.Context(), root, nil, "bash", "tools/release/set-version.sh", version, "2027-01-31")
	return err
}

// The second release is the first one that changes a version: each place that keeps the old one makes its defaults unusable.
func TestASecondAndAThirdReleaseHaveOneVersionInEveryFile(t *testing.T) {
	t.Parallel()
	root := copied(t)
	var chart struct{ AppVersion string }
	if err := readYAML(filepath.Join(root, chartDir, "Chart.yaml"), &chart); err != nil {
		t.Fatal(err)
	}
	before := chart.AppVersion
	for _, version := range []string{"v7.8.9", "v7.8.10-rc.1", "v10.0.0"} {
		if err := setVersion(t, root, version); err != nil {
			t.Fatal(err)
		}
		if _, err := checkVersion(root, version); err != nil {
			t.Error(err)
		}
		old := regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(strings.TrimPrefix(before, "v")) + `($|[^0-9.])`)
		for _, name := range ofVersion[:len(ofVersion)-1] { // the changelog keeps every version
			text := testfile.Text(t, filepath.Join(root, name))
			for i, line := range strings.Split(text, "\n") {
				if old.MatchString(line) && !strings.Contains(line, "registry.k8s.io") && !strings.Contains(line, "github.com") {
					t.Errorf("%s, from %s to %s: %s:%d still has it: %s", t.Name(), before, version, name, i+1, line)
				}
			}
		}
		before = version
	}
}

func TestAVersionThatIsNoneChangesNothing(t *testing.T) {
	t.Parallel()
	root := copied(t)
	if err := setVersion(t, root, "7.8.9"); err == nil || !strings.Contains(err.Error(), "want vMAJOR.MINOR.PATCH") {
		t.Errorf("want an error, got %v", err)
	}
	if _, err := checkVersion(root, ""); err != nil {
		t.Error(err)
	}
}

func TestEachPlaceOfAVersionIsCompared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, old, replacement, want string }{
		{chartDir + "/values.yaml", "chartVersion: ", "chartVersion: 9", "chartVersion in " + chartDir + "/values.yaml"},
		{chartDir + "/values.schema.json", `"chartVersion": {"const": "`, `"chartVersion": {"const": "9`, "chartVersion in " + chartDir + "/values.schema.json"},
		{chartDir + "/values.yaml", "cinder-csi/cinder-csi-driver, tag: v", "cinder-csi/cinder-csi-driver, tag: v9", "images.controller.driver in " + chartDir + "/values.yaml"},
		{chartDir + "/values.yaml", "cinder-csi/cinder-csi-generator, tag: v", "cinder-csi/cinder-csi-generator, tag: v9", "images.driftcheck.generator in " + chartDir + "/values.yaml"},
	} {
		root := copied(t)
		name := filepath.Join(root, c.file)
		text := testfile.Text(t, name)
		changed := strings.Replace(text, c.old, c.replacement, 1)
		testfile.Write(t, name, changed, 0o644)
		if _, err := checkVersion(root, ""); changed != text && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: want %q, got %v", c.file, c.want, err)
		} else if changed == text {
			t.Errorf("%s has no %q", c.file, c.old)
		}
	}
}
