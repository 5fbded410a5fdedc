package worktree

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWhatAKilledRunLeavesIsRemovedByALaterOneAndNotTakenByGit(t *testing.T) {
	dir := t.TempDir()
	killed, running := filepath.Join(dir, ".cinder-csi-generator.4027.0"), filepath.Join(dir, ".cinder-csi-generator.4028.0")
	for _, staging := range []string{killed, running} {
		write(t, filepath.Join(staging, "0"), "half")
	}
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(killed, long, long); err != nil {
		t.Fatal(err)
	}
	if err := run(t, dir, tree(t, map[string]string{"values.yaml": "1"}), false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed); err == nil {
		t.Error("want what a killed run left removed")
	}
	if _, err := os.Stat(running); err != nil {
		t.Errorf("want what another run is writing left alone, got %v", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	staging, err := stagingDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if ignored, err := root.ReadFile(staging + "/.gitignore"); err != nil || string(ignored) != "*\n" {
		t.Errorf("want git to ignore it, got %q, %v", ignored, err)
	}
}
