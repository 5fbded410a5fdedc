package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAMessageNamesOnlyWhatThereIs(t *testing.T) {
	b := newBed(t)
	for _, c := range []struct {
		args []string
		want string
		not  string
	}{
		{[]string{"doctor"}, "--simulated", "--inventory"},
		{[]string{"inspect"}, "--inventory", "cannot"},
		{[]string{"plan", "--simulated", "--target", "vanilla", "--config", b.dir}, b.dir + " is a directory: name the file in it", "read "},
		{[]string{"plan", "--simulated", "--target", "vanilla", "--check", b.dir}, b.dir + " is a directory: name " + b.dir + "/plan.yaml", "read "},
	} {
		if _, stderr, code := b.run(t, c.args...); code != Usage || !strings.Contains(stderr, c.want) || strings.Contains(stderr, c.not) {
			t.Errorf("%v: want exit 64, %q and not %q, got %d: %s", c.args, c.want, c.not, code, stderr)
		}
	}
}

func TestTheFirstRunReportsNoChanges(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	if _, stderr, code := b.run(t, generation("vanilla", "helm", dir)...); code != OK || strings.Contains(stderr, "config:") {
		t.Errorf("want no change reported where there was nothing, got %d: %s", code, stderr)
	}
}

func TestALinkOutOfTheBundleIsNamed(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	if err := os.Remove(filepath.Join(dir, "values.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "values.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := b.run(t, "validate", dir); code != Failure || !strings.Contains(stderr, "values.yaml: a symbolic link leads out of the directory") {
		t.Errorf("want the link named, got %d: %s", code, stderr)
	}
}

func TestALineForReviewersHasNoWordOfTheProgram(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	config := b.file(t, "config.yaml", "spec: {storageClasses: {overrides: {fast: {reclaimPolicy: Delete}}}, roles: {controller: {tolerations: []}}}")
	stdout, _, code := b.run(t, generation("vanilla", "helm", dir, "--check", "--config", config)...)
	if code != Different || strings.Contains(stdout, "ownReclaimPolicy") || strings.Contains(stdout, "from none to none") ||
		!strings.Contains(stdout, "StorageClass fast: the configuration says its reclaimPolicy now") {
		t.Errorf("want lines that a reviewer understands, got %d: %s", code, stdout)
	}
}
