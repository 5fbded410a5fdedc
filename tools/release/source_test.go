package release

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// versioned is a repository whose files have one version each.
func versioned(t *testing.T, chart, app, image, changelog string) string {
	t.Helper()
	return testfile.Tree(t, map[string]string{
		"charts/cinder-csi/Chart.yaml":   fmt.Sprintf("version: %s\nappVersion: %s\n", chart, app),
		chartDir + "/values.yaml":        fmt.Sprintf("chartVersion: %s\nimages: {node: {driver: {repository: cinder-csi/cinder-csi-driver, tag: %s}, other: {repository: other, tag: v9}}}\n", chart, image),
		chartDir + "/values.schema.json": fmt.Sprintf(`{"properties": {"chartVersion": {"const": %q}}}`, chart),
		"CHANGELOG.md":                   "# Changelog\n\n## [Unreleased]\n\n## [" + changelog + "] - day\n",
	})
}

func TestAReleaseWhoseFilesHaveAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version                      string
		chart, app, image, changelog string
		want                         string // part of the error, "" for none
	}{
		"all agree":            {"v1.2.3", "1.2.3", "v1.2.3", "v1.2.3", "1.2.3", ""},
		"version of the chart": {"", "1.2.3", "v1.2.3", "v1.2.3", "1.2.3", ""},
		"candidate":            {"v1.2.3-rc.1", "1.2.3-rc.1", "v1.2.3-rc.1", "v1.2.3-rc.1", "1.2.3-rc.1", ""},
		"no v":                 {"1.2.3", "1.2.3", "1.2.3", "1.2.3", "1.2.3", "want vMAJOR.MINOR.PATCH"},
		"not a version":        {"v1.2.3 -X x=y", "", "", "", "", "want vMAJOR.MINOR.PATCH"},
		"old chart":            {"v1.2.3", "1.2.2", "v1.2.3", "v1.2.3", "1.2.3", `version in charts/cinder-csi/Chart.yaml has "1.2.2"`},
		"old appVersion":       {"v1.2.3", "1.2.3", "v1.2.2", "v1.2.3", "1.2.3", `appVersion in charts/cinder-csi/Chart.yaml has "v1.2.2"`},
		"old image":            {"v1.2.3", "1.2.3", "v1.2.3", "v1.2.2", "1.2.3", `images.node.driver in charts/cinder-csi/values.yaml has "v1.2.2"`},
		"no changes":           {"v1.2.3", "1.2.3", "v1.2.3", "v1.2.3", "1.2.2", "CHANGELOG.md has no section"},
	} {
		_, err := checkVersion(versioned(t, c.chart, c.app, c.image, c.changelog), c.version)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", name, c.want, err)
		}
	}
}

func TestTheFilesOfThisRepositoryHaveOneVersion(t *testing.T) {
	t.Parallel()
	if _, err := checkVersion("../..", ""); err != nil {
		t.Error(err)
	}
}

func TestAReleaseOfUncommittedChangesIsRefused(t *testing.T) {
	t.Parallel()
	root := testfile.Tree(t, map[string]string{"a": "1"})
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"add", "a"},
		{"-c", "user.name=n", "-c", "user.email=n@example.com", "commit", "--quiet", "--message", "a", "--date", "2026-01-02T12:00:00Z"},
	} {
		if _, err := run(t.Context(), root, []string{"GIT_COMMITTER_DATE=2026-01-02T12:00:00Z"}, "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	commit, at, err := source(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC); len(commit) != 40 || !at.Equal(want) {
		t.Errorf("want a commit of %v, got %q of %v", want, commit, at)
	}
	for _, name := range []string{"a", "untracked"} {
		testfile.Write(t, filepath.Join(root, name), "2", 0o644)
		if _, _, err := source(t.Context(), root); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s changed: want an error that names it, got %v", name, err)
		}
		testfile.Write(t, filepath.Join(root, "a"), "1", 0o644)
	}
}

func TestADirectoryThatIsNoReleaseIsNotReplaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dir     string
		refused bool
	}{
		"missing": {filepath.Join(t.TempDir(), "dist"), false},
		"empty":   {t.TempDir(), false},
		"release": {testfile.Tree(t, map[string]string{checksums: "", "bin/a": ""}), false},
		"other":   {testfile.Tree(t, map[string]string{"notes": ""}), true},
	} {
		if err := replaceable(c.dir); (err != nil) != c.refused {
			t.Errorf("%s: want refused %v, got %v", name, c.refused, err)
		}
	}
}

func TestSourceDateEpochReplacesTheTimeOfTheCommit(t *testing.T) {
	t.Parallel()
	commit := time.Unix(5, 0).UTC()
	for text, want := range map[string]time.Time{"": commit, "7": time.Unix(7, 0).UTC()} {
		if got, err := epoch(text, commit); err != nil || !got.Equal(want) {
			t.Errorf("%q: want %v, got %v and %v", text, want, got, err)
		}
	}
	if _, err := epoch("yesterday", commit); err == nil {
		t.Error("yesterday: want an error")
	}
}
