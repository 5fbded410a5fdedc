package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// As root, a rename over a device would replace it for everybody.
func TestSaveReplacesNothingButARegularFile(t *testing.T) {
	b := newBed(t)
	want := b.ok(t, "inspect", "--simulated", "-o", "yaml")
	target := b.file(t, "target.yaml", "old")
	link := filepath.Join(b.dir, "link.yaml")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := b.run(t, "inspect", "--simulated", "--save", link); code != Usage || !strings.Contains(stderr, "is a symbolic link") {
		t.Errorf("want exit 64 for a link to a file, got %d: %s", code, stderr)
	}
	if got, _ := os.ReadFile(target); string(got) != "old" {
		t.Errorf("want the file that the link names as it was, got %.100q", got)
	}

	fifo := filepath.Join(b.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		got, _ := os.ReadFile(fifo)
		read <- string(got)
	}()
	device := filepath.Join(b.dir, "device")
	if err := os.Symlink(fifo, device); err != nil {
		t.Fatal(err)
	}
	b.ok(t, "inspect", "--simulated", "--save", device)
	if info, err := os.Lstat(fifo); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Fatalf("want the fifo to stay one, got %v, %v", info.Mode(), err)
	}
	if got := <-read; got != want {
		t.Errorf("want the inventory through the fifo, got %.100q", got)
	}

	private := b.file(t, "private.yaml", "old")
	if err := os.Chmod(private, 0o600); err != nil {
		t.Fatal(err)
	}
	b.ok(t, "inspect", "--simulated", "--save", private)
	if info, err := os.Stat(private); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("want the mode of the file kept, got %v, %v", info.Mode(), err)
	}
	if got := b.ok(t, "inspect", "--simulated", "--save", "-"); got != want {
		t.Errorf("want the inventory on stdout, got %.100q", got)
	}
	if _, stderr, code := b.run(t, "inspect", "--simulated", "--save", b.dir); code != Usage || !strings.Contains(stderr, "is a directory") {
		t.Errorf("want exit 64 for a directory, got %d: %s", code, stderr)
	}
}

func TestABundleSaysItsTargetAndFormat(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("standalone", "helm", dir)...)
	b.ok(t, "generate", "--os-cloud", "sim-demo", "--output-dir", dir, "--check")
	b.ok(t, "generate", "--os-cloud", "sim-demo", "--output-dir", dir)
	for name, args := range map[string][]string{
		"a new one needs --target": {"generate", "--os-cloud", "sim-demo", "--output-dir", filepath.Join(b.dir, "new")},
		"--base is for":            {"generate", "--os-cloud", "sim-demo", "--output-dir", dir, "--base", "../base"},
	} {
		if _, stderr, code := b.run(t, args...); code != Usage || !strings.Contains(stderr, name) {
			t.Errorf("want exit 64 and %q, got %d: %s", name, code, stderr)
		}
	}
}

func TestAnOlderGeneratorLeavesTheBundleOfANewerOne(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.Version = "v0.9.0"
	b.ok(t, generation("vanilla", "helm", dir)...)
	before := files(t, dir)
	for version, want := range map[string]int{"v0.9.0": OK, "v0.8.7": Failure, "v0.9.0-rc.1": Failure, "v0-test": OK} {
		b.Version = version
		if _, stderr, code := b.run(t, "plan", "--os-cloud", "sim-demo", "--check", filepath.Join(dir, "plan.yaml")); code != want {
			t.Errorf("%s: plan --check: want exit %d, got %d: %s", version, want, code, stderr)
		}
		if want == OK {
			continue
		}
		for _, more := range [][]string{nil, {"--force"}, {"--check"}} {
			if _, stderr, code := b.run(t, generation("vanilla", "helm", dir, more...)...); code != Failure || !strings.Contains(stderr, "v0.9.0 or newer") {
				t.Errorf("%s %v: want exit 1 and the version to use, got %d: %s", version, more, code, stderr)
			}
		}
	}
	if after := files(t, dir); len(after) != len(before) || after["plan.yaml"] != before["plan.yaml"] {
		t.Error("an older generator changed the bundle")
	}
	b.Version = "v0.10.0"
	b.ok(t, generation("vanilla", "helm", dir)...)
}

// What follows from a mistake on the command line is no news, and what would keep an old value there is no advice.
func TestAnotherTargetOrCloudIsAllThatARunSays(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	inventory := filepath.Join(b.dir, "inventory.yaml")
	b.ok(t, "inspect", "--simulated", "--save", inventory)
	for name, args := range map[string][]string{
		"the directory holds a bundle for target vanilla": generation("standalone", "helm", dir),
		"the bundle is for project":                       {"generate", "--simulated", "--target", "vanilla", "--format", "helm", "--output-dir", dir},
	} {
		stdout, stderr, code := b.run(t, append(args, "--check")...)
		if lines := strings.Count(stdout, "\n"); code != Different || lines != 1 || !strings.Contains(stdout, name) {
			t.Errorf("--check: want exit 2 and the line %q alone, got %d: %s%s", name, code, stdout, stderr)
		}
		_, stderr, code = b.run(t, args...)
		if code != Refused || !strings.Contains(stderr, name) || strings.Contains(stderr, "add this to the configuration") || strings.Contains(stderr, string(v1alpha1.Adopt)) {
			t.Errorf("want exit 3 and %q alone, got %d: %s", name, code, stderr)
		}
	}
	if _, stderr, code := b.run(t, append(generation("standalone", "helm", dir), "--force")...); code != Refused || !strings.Contains(stderr, "--accept driver-name") || strings.Contains(stderr, "add this to the configuration") {
		t.Errorf("want --force to leave what needs --accept refused, without a pin, got %d: %s", code, stderr)
	}
}
