// Package worktree is a bundle on disk. The generator owns DIR: plan.yaml lists the files of the last run with their hashes, and
// a run replaces or removes only those files. It overwrites an edited file only with force, and never a file that it did not write.
//
// Writing is all or nothing as far as a file system allows. A run writes temporary files first and then renames them, plan.yaml
// last. If a run is interrupted, the next one completes it.
package worktree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/checkout"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// Dir is a directory and what an earlier run left in it.
type Dir struct {
	Path string
	// Plan is the earlier run's, nil where there was none.
	Plan *v1alpha1.Plan
	// Merged: a merge left a conflict in plan.yaml, among the sums of the files alone. Plan is what both branches decided.
	Merged bool
	// Damaged says why nobody can read the plan.yaml of an earlier run; empty: it can be read. Its files are still the generator's.
	Damaged string
	// Target and Format are those of the earlier run, also where nothing else of a damaged plan.yaml can be read; empty: not known.
	Target, Format string
	// CRLF: git, or an editor, ended the lines of a file with CR and LF. They are compared without CR.
	CRLF bool

	planBytes []byte
	// hashes are of the earlier run's files. After a conflict among the sums a file has those of both branches. Without one it is not known,
	// and any content is the generator's.
	hashes map[string][]string
}

// NotOurs says that DIR holds something that no run of the generator may touch, force or not.
type NotOurs struct{ Problems []string }

func (e *NotOurs) Error() string { return printable.Lines("\n", e.Problems) }

// HasRows says that the error has rows on purpose, as that of [printable.Rows].
func (*NotOurs) HasRows() {}

// ErrNotADirectory says that the path names, or leads through, something that is no directory.
var ErrNotADirectory = errors.New("is not a directory")

// Open reads what an earlier run left. A directory that does not exist is an empty one. Errors: ErrNotADirectory, *NotOurs,
// *v1alpha1.NewerError, or an error of the file system. *NotOurs: plan.yaml is broken or not of this generator; callers can still
// compare the Dir, without an earlier run.
func Open(dir string) (*Dir, error) {
	d := &Dir{Path: dir, hashes: map[string][]string{}}
	if err := checkout.CheckLinks(dir); errors.Is(err, checkout.ErrLeadsOut) {
		return nil, &NotOurs{Problems: []string{dir + ": " + err.Error()}}
	} else if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, nil
	case errors.Is(err, syscall.ENOTDIR), err == nil && !info.IsDir():
		return nil, fmt.Errorf("%s %w", dir, ErrNotADirectory)
	case err != nil:
		return nil, err
	}
	if d.planBytes, err = d.read(PlanFile); errors.Is(err, fs.ErrNotExist) {
		return d, nil
	} else if err != nil {
		return nil, err
	}
	p, merged, err := DecodePlan(filepath.Join(dir, PlanFile), d.planBytes)
	if newer := (*v1alpha1.NewerError)(nil); errors.As(err, &newer) {
		return nil, err
	}
	if err != nil {
		return d, &NotOurs{Problems: []string{err.Error(), d.claim()}}
	}
	for _, f := range p.Files {
		if !isFile(f.Path) {
			return d, &NotOurs{Problems: []string{fmt.Sprintf("%s: lists %q, which is no file of a bundle; restore it", filepath.Join(dir, PlanFile), f.Path)}}
		}
	}
	for _, f := range p.Files {
		d.hashes[f.Path] = append(d.hashes[f.Path], f.SHA256)
	}
	if len(d.hashes) > mostFiles {
		return d, &NotOurs{Problems: []string{fmt.Sprintf("%s: lists more than %d files, which no bundle has; restore it", filepath.Join(dir, PlanFile), mostFiles)}}
	}
	d.Plan, d.Merged, d.Target, d.Format = &p, merged, string(p.Target), string(p.Format)
	return d, nil
}

// isFile is whether plan.yaml may list a path: it is below the directory and can be printed. A name with a dot in front may be git's.
func isFile(p string) bool {
	return fs.ValidPath(p) && !strings.Contains("/"+p, "/.") && p != PlanFile && !strings.ContainsFunc(p, notInAName)
}

// Files are the paths and hashes of a tree, sorted: what a Plan lists.
func Files(tree map[string][]byte) []v1alpha1.File {
	files := make([]v1alpha1.File, 0, len(tree))
	for _, p := range slices.Sorted(maps.Keys(tree)) {
		files = append(files, v1alpha1.File{Path: p, SHA256: hash(tree[p])})
	}
	return files
}

// Read is the bundle as it is on disk: the files that plan.yaml lists, without plan.yaml.
func (d *Dir) Read() (map[string][]byte, error) {
	tree, left := map[string][]byte{}, largestBundle
	for _, p := range slices.Sorted(maps.Keys(d.hashes)) {
		content, err := d.read(p)
		left -= len(content)
		switch {
		case left < 0:
			return nil, errTooLarge(d.Path)
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s is missing, though %s lists it; generate the bundle again", filepath.Join(d.Path, filepath.FromSlash(p)), PlanFile)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", d.Path, err)
		}
		tree[p] = content
	}
	return tree, nil
}

// PlanEdited is whether somebody changed plan.yaml since the earlier run.
func (d *Dir) PlanEdited() bool { return d.Plan != nil && planEdited(d.planBytes) && !d.Merged }

// Edited lists the files that are not as the earlier run left them, missing ones too.
func (d *Dir) Edited() ([]string, error) {
	var edited []string
	if d.Merged || d.PlanEdited() {
		edited = append(edited, PlanFile)
	}
	for _, p := range slices.Sorted(maps.Keys(d.hashes)) {
		content, err := d.read(p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil || d.isEdited(p, content) {
			edited = append(edited, p)
		}
	}
	return edited, nil
}

// Conflicting is whether both branches of a merge wrote the file, each with another sum.
func (d *Dir) Conflicting(p string) bool { return len(d.hashes[p]) > 1 }

// isEdited is whether a listed file holds what no run wrote. With the conflict markers of a merge, both of its sides must be known.
func (d *Dir) isEdited(p string, content []byte) bool {
	written := func(text []byte) bool { return slices.Contains(d.hashes[p], hash(text)) }
	if len(d.hashes[p]) == 0 || written(content) {
		return false
	}
	ours, theirs := sides(content)
	return !d.Conflicting(p) || !hasMarkers(content) || !written(ours) || !written(theirs)
}

func (d *Dir) read(p string) ([]byte, error) {
	root, err := os.OpenRoot(d.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	content, err := readFile(root, p)
	return d.unixLines(content), err
}

// unixLines is a text as the generator wrote it: git may end lines with CR and LF in a checkout. Line endings are no content. The
// generator itself never writes a CR.
func (d *Dir) unixLines(content []byte) []byte {
	if !bytes.Contains(content, []byte("\r\n")) {
		return content
	}
	d.CRLF = true
	return bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
}

// largestFile is the most that a file of a bundle may hold, in bytes: more than twice what 5,000 volume types make. Each of three long texts in a
// plan.yaml of that size costs 100 MiB where the bundle is made again.
const largestFile = 6 << 20

// The bounds of a bundle as a whole: one of four node pools has 30 files. A checkout of a small repository may hold one large file under many names.
const (
	mostFiles     = 2_000
	largestBundle = 4 * largestFile
)

func errTooLarge(dir string) error {
	return fmt.Errorf("%s: its files have more than %d bytes, which no bundle has", dir, largestBundle)
}

// readFile reads a regular file that is not too large. root keeps it from leaving the directory by a link.
func readFile(root *os.Root, p string) ([]byte, error) {
	name := filepath.FromSlash(p)
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return nil, named(p, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w", p, errNoFile)
	case info.Size() > largestFile:
		return nil, fmt.Errorf("%s is larger than %d bytes, which no file of a bundle is", p, largestFile)
	}
	content, err := root.ReadFile(name)
	return content, named(p, err)
}

// named says which file an error is about. The system names its own call instead: "statat x: path escapes from parent".
func named(p string, err error) error {
	of := (*fs.PathError)(nil)
	switch {
	case !errors.As(err, &of):
		return err
	case strings.Contains(of.Err.Error(), "path escapes"):
		return fmt.Errorf("%s: a symbolic link leads out of the directory: %w", p, errNoFile)
	}
	return fmt.Errorf("%s: %w", p, of.Err)
}

// notInAName says that a character has no place in the name of a bundle's file. On Windows, git~1 may be .git.
func notInAName(r rune) bool { return !unicode.IsPrint(r) || r == '\\' || r == '~' }

// Action is what a run would do to one file.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Remove Action = "remove"
)

// FileChange is one file that is not as wanted.
type FileChange struct {
	Path   string
	Action Action
	Old    []byte // as it is on disk; nil where it is missing
	New    []byte // as wanted; nil where it is to be removed
	// HandEdited: not as the earlier run left it. Foreign: no earlier run wrote it.
	HandEdited, Foreign bool
	Unknown             bool   // no run wrote Old, and this one writes no such file: it may hold a password
	Misleads            bool   // Foreign, and other tools build by it, or take it for another file
	Replaces            string // Misleads: the name of the bundle that is the same where case does not count
}

// InTheWay is what is wrong with a foreign file.
func (c FileChange) InTheWay() string {
	if c.Replaces != "" {
		return "this generator did not write the file, and where case does not count, it replaces " + c.Replaces
	}
	if c.Misleads {
		return "this generator did not write the file, and Argo CD, Flux or kustomize would build by it"
	}
	return "this generator did not write the file"
}

// Changes compares the tree that is wanted, plan.yaml included, with the disk; sorted by path, empty when every byte is right.
func (d *Dir) Changes(want map[string][]byte) ([]FileChange, error) {
	paths := map[string]bool{}
	for p := range want {
		paths[p] = true
	}
	for p := range d.hashes {
		paths[p] = true
	}
	changes, err := d.Misleading(want)
	if err != nil {
		return nil, err
	}
	left := largestBundle
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		c, changed, err := d.change(p, want)
		if left -= len(c.Old); err == nil && left < 0 {
			err = errTooLarge(d.Path)
		}
		if err != nil {
			return nil, err
		}
		if changed {
			changes = append(changes, c)
		}
	}
	slices.SortStableFunc(changes, func(a, b FileChange) int { return strings.Compare(a.Path, b.Path) })
	return changes, nil
}

// Unlike compares a directory that no run wrote with the tree that it should have, as Changes does. Other files are left alone.
func Unlike(dir string, want map[string][]byte) ([]FileChange, error) {
	return (&Dir{Path: dir}).Changes(want)
}

// Misleading are the files that make Argo CD, Flux or kustomize build something else than the tree. A name of the tree in another case is one of them.
// They are looked for in each directory that a bundle of any target has. No run writes them.
func (d *Dir) Misleading(want map[string][]byte) ([]FileChange, error) {
	root, err := os.OpenRoot(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer root.Close()
	places := map[string]bool{".": true, "management": true, "guest": true}
	for p := range want {
		places[path.Dir(p)] = true
	}
	names, same := map[string]bool{}, map[string]string{} // files and directories that are in their place; by what they are without case
	for _, p := range slices.Concat([]string{PlanFile}, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(d.hashes))) {
		for ; p != "."; p = path.Dir(p) {
			names[p], same[folded(p)] = true, p
		}
	}
	var found []FileChange
	for place := range places {
		entries, _ := fs.ReadDir(root.FS(), place) // one that does not exist has none
		for _, e := range entries {
			p := path.Join(place, e.Name())
			name := folded(e.Name())
			if !names[p] && (same[folded(p)] != "" || strings.HasPrefix(name, ".argocd-source") || slices.Contains(otherTools, name)) {
				found = append(found, FileChange{Path: p, Action: Remove, Foreign: true, Misleads: true, Replaces: same[folded(p)]})
			}
		}
	}
	return append(found, besides(d.Path)...), nil
}

// besides are the names in another case of the directories that lead from the top of the checkout to a bundle.
func besides(dir string) (found []FileChange) {
	top, at, err := checkout.Top(dir)
	for up := "."; err == nil && at != "" && at != "."; at = filepath.Dir(at) {
		up = path.Join(up, "..")
		entries, _ := os.ReadDir(filepath.Join(top, filepath.Dir(at)))
		for _, e := range entries {
			if name := filepath.Base(at); e.Name() != name && folded(e.Name()) == folded(name) {
				found = append(found, FileChange{Path: path.Join(up, e.Name()), Action: Remove, Foreign: true, Misleads: true, Replaces: path.Join(up, name)})
			}
		}
	}
	return found
}

// otherTools are the names, folded, by which such a tool chooses how it builds a directory.
var otherTools = []string{"kustomization.yaml", "kustomization.yml", "kustomization", "chart.yaml", ".sourceignore"}

// folded is a name as the file systems of macOS and Windows compare it. Some letters have one case alone that is another letter's too, and some stand
// for two.
func folded(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ToUpper(norm.NFKD.String(name))), "ß", "ss")
}

func (d *Dir) change(p string, want map[string][]byte) (FileChange, bool, error) {
	content, wanted := want[p]
	c := FileChange{Path: p, Action: Update, New: content}
	if !wanted {
		c.Action = Remove
	}
	old, err := d.onDisk(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.Action = Create
		_, c.HandEdited = d.hashes[p] // somebody removed it
		return c, wanted, nil
	case errors.Is(err, errNoFile):
		c.Foreign = true
		return c, true, nil
	case err != nil:
		return c, false, err
	}
	c.Old = old
	_, ours := d.hashes[p]
	known := d.Plan != nil || d.Damaged != ""
	c.Foreign = !ours && (p != PlanFile || !known)
	c.HandEdited = d.isEdited(p, old) || p == PlanFile && known && !d.Merged && (d.Damaged != "" || planEdited(old))
	c.Unknown = !wanted && (c.HandEdited || len(d.hashes[p]) == 0)
	return c, !wanted || !bytes.Equal(old, content), nil
}

var errNoFile = errors.New("not a regular file")

// onDisk reads a file that is a file: a link or directory in its place is somebody else's.
func (d *Dir) onDisk(p string) ([]byte, error) {
	root, err := os.OpenRoot(d.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for parent := path.Dir(p); parent != "."; parent = path.Dir(parent) {
		info, err := root.Lstat(filepath.FromSlash(parent))
		if err == nil && !info.IsDir() {
			return nil, errNoFile
		}
	}
	info, err := root.Lstat(filepath.FromSlash(p))
	if err != nil {
		return nil, named(p, err)
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	content, err := readFile(root, p)
	return d.unixLines(content), err
}

// Foreign is an error, *NotOurs, where files that this generator did not write are in the way of these changes.
func Foreign(d *Dir, changes []FileChange) error {
	var problems []string
	for _, c := range changes {
		if c.Foreign {
			at := filepath.Join(d.Path, filepath.FromSlash(c.Path))
			problems = append(problems, at+" is in the way: "+c.InTheWay()+"; move it, or choose another directory")
		}
	}
	if problems == nil {
		return nil
	}
	return &NotOurs{Problems: problems}
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
