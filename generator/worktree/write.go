package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Write makes the changes. The caller has asked Refusals. On an error before the first rename nothing has changed.
func (d *Dir) Write(changes []FileChange) (err error) {
	made, err := makeDir(d.Path)
	if err != nil {
		return fmt.Errorf("%s cannot be made: %w", d.Path, err)
	}
	root, err := os.OpenRoot(d.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	staging, err := stage(root, changes)
	defer func() {
		err = errors.Join(err, root.RemoveAll(staging))
		if err != nil {
			removeEmpty(made)
		}
	}()
	if err != nil {
		return fmt.Errorf("%s: %w", d.Path, err)
	}
	if err := replace(root, staging, changes); err != nil {
		return fmt.Errorf("%s was written in part, run it again: %w", d.Path, err)
	}
	return nil
}

// replace puts the new files into place and removes those no longer needed. plan.yaml comes last: until then the old one says
// which files are ours, those still to be removed among them.
func replace(root *os.Root, staging string, changes []FileChange) error {
	if err := place(root, staging, changes, func(c FileChange) bool { return c.Path != PlanFile }); err != nil {
		return err
	}
	if err := prune(root, changes); err != nil {
		return err
	}
	return place(root, staging, changes, func(c FileChange) bool { return c.Path == PlanFile })
}

// makeDir makes a directory and its parents; made are those that were missing, deepest first.
func makeDir(dir string) (made []string, err error) {
	for p := filepath.Clean(dir); ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) || p == filepath.Dir(p) {
			break
		}
		made = append(made, p)
	}
	return made, os.MkdirAll(dir, 0o755)
}

func removeEmpty(dirs []string) {
	for _, dir := range dirs {
		_ = os.Remove(dir) // refuses what is not empty
	}
}

// stage writes all that is new into a directory of its own, so that a full disk is noticed before anything is replaced.
func stage(root *os.Root, changes []FileChange) (string, error) {
	staging, err := stagingDir(root)
	if err != nil {
		return staging, err
	}
	for i, c := range changes {
		if c.Action == Remove {
			continue
		}
		if err := writeFile(root, path.Join(staging, strconv.Itoa(i)), c.New); err != nil {
			return staging, fmt.Errorf("%s cannot be written, nothing was changed: %w", c.Path, err)
		}
	}
	return staging, nil
}

func stagingDir(root *os.Root) (string, error) {
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s%d.%d", stagingPrefix, os.Getpid(), i)
		err := root.Mkdir(name, 0o700)
		if errors.Is(err, fs.ErrExist) && i <= 100 {
			continue
		}
		if err != nil {
			return name, fmt.Errorf("no file can be written there: %w", named(".", err))
		}
		removeStale(root, name)
		return name, writeFile(root, path.Join(name, ".gitignore"), []byte("*\n")) // a run that is killed leaves it, and git add must not take it
	}
}

const (
	stagingPrefix = ".cinder-csi-generator."
	// staleAfter is how much older a staging directory must be than a new one to be that of a killed run. A run takes seconds.
	staleAfter = time.Hour
)

// removeStale removes what killed runs left. Other runs may be at work in the same directory.
func removeStale(root *os.Root, own string) {
	made, err := root.Stat(own)
	if err != nil {
		return
	}
	entries, _ := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), stagingPrefix) && made.ModTime().Sub(info.ModTime()) > staleAfter {
			_ = root.RemoveAll(e.Name())
		}
	}
}

func writeFile(root *os.Root, name string, content []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// place renames into place those of the staged files that are wanted now.
func place(root *os.Root, staging string, changes []FileChange, now func(FileChange) bool) error {
	for i, c := range changes {
		if c.Action == Remove || !now(c) {
			continue
		}
		to := filepath.FromSlash(c.Path)
		if err := root.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := root.Rename(path.Join(staging, strconv.Itoa(i)), to); err != nil {
			return err
		}
	}
	return nil
}

// prune removes files no longer needed, and directories that are empty without them.
func prune(root *os.Root, changes []FileChange) error {
	for _, c := range changes {
		if c.Action != Remove {
			continue
		}
		if err := root.Remove(filepath.FromSlash(c.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for dir := path.Dir(c.Path); dir != "." && !strings.HasPrefix(dir, ".."); dir = path.Dir(dir) {
			if root.Remove(filepath.FromSlash(dir)) != nil {
				break // not empty
			}
		}
	}
	return nil
}
