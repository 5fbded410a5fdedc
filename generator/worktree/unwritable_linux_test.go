package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// obeyModes makes the modes of directories count for this test, for root too: its thread goes without CAP_DAC_OVERRIDE.
func obeyModes(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var own [2]unix.CapUserData
	if err := unix.Capget(header, &own[0]); err != nil {
		t.Fatal(err)
	}
	without := own
	without[0].Effective &^= 1 << unix.CAP_DAC_OVERRIDE
	if err := unix.Capset(header, &without[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Capset(header, &own[0]); err != nil {
			t.Error(err) // the thread ends with this goroutine, which holds it
			return
		}
		runtime.UnlockOSThread()
	})
}

// readOnly makes a directory one that nobody writes into until the test ends, or until the caller calls the result.
func readOnly(t *testing.T, dir string) (again func()) {
	t.Helper()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	again = func() { _ = os.Chmod(dir, 0o700) }
	t.Cleanup(again)
	return again
}

func TestADirectoryThatCannotBeWrittenKeepsItsBundle(t *testing.T) {
	obeyModes(t)
	dir := t.TempDir()
	if err := run(t, dir, tree(t, map[string]string{"values.yaml": "1"}), false); err != nil {
		t.Fatal(err)
	}
	before := onDisk(t, dir)
	again := readOnly(t, dir)
	next := tree(t, map[string]string{"values.yaml": "2"})
	err := run(t, dir, next, false)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), dir+": no file can be written there") {
		t.Errorf("want an error that names %s, got %v", dir, err)
	}
	if diff := cmp.Diff(before, onDisk(t, dir)); diff != "" {
		t.Errorf("the bundle changed (-before +after):\n%s", diff)
	}
	again()
	if err := run(t, dir, next, false); err != nil {
		t.Errorf("want the next run to write, got %v", err)
	}
}

func TestADirectoryThatCannotBeMadeLeavesNoneOfItsParents(t *testing.T) {
	obeyModes(t)
	parent := t.TempDir()
	readOnly(t, parent)
	dir := filepath.Join(parent, "a", "b")
	err := run(t, dir, tree(t, map[string]string{"values.yaml": "1"}), false)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), dir+" cannot be made") {
		t.Errorf("want an error that names %s, got %v", dir, err)
	}
}

// Files below such a directory stay as they are, and plan.yaml too, which is the last to change. So the next run knows all files.
func TestAPartThatCannotBeWrittenIsCompletedByALaterRun(t *testing.T) {
	obeyModes(t)
	dir := t.TempDir()
	if err := run(t, dir, tree(t, map[string]string{"a.yaml": "1", "below/b.yaml": "1", "gone.yaml": "1"}), false); err != nil {
		t.Fatal(err)
	}
	before := onDisk(t, dir)
	again := readOnly(t, filepath.Join(dir, "below"))
	next := tree(t, map[string]string{"a.yaml": "2", "below/b.yaml": "2"})
	err := run(t, dir, next, false)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), dir+" was written in part, run it again") {
		t.Errorf("want an error that says what to do, got %v", err)
	}
	half := onDisk(t, dir)
	if half["below/b.yaml"] != "1" || half["gone.yaml"] != "1" || half[PlanFile] != before[PlanFile] {
		t.Errorf("want the plan, and what it lists, to stay until the rest is done, got %v", half)
	}
	again()
	if err := run(t, dir, next, true); err != nil { // a.yaml is not as the old plan says
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a.yaml": "2", "below/b.yaml": "2", PlanFile: string(next[PlanFile])}, onDisk(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
