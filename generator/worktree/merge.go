package worktree

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The lines that git and others put around two versions of the same lines.
const (
	oursMarker   = "<<<<<<< "
	baseMarker   = "||||||| "
	middleMarker = "======="
	theirsMarker = ">>>>>>> "
)

// hasMarkers is whether a merge left a conflict in the text.
func hasMarkers(text []byte) bool {
	return bytes.HasPrefix(text, []byte(oursMarker)) || bytes.Contains(text, []byte("\n"+oursMarker))
}

// filesKey begins the last part of plan.yaml, in which two branches nearly always conflict: each changes the sum of the same file.
const filesKey = "\nfiles:\n"

// resolveSums takes a plan.yaml with conflicts apart, if all of them lie among the sums of the files. It gives the part above the list, and the
// files of both branches. The sum of a file in conflict is empty: its content may be that of a branch, or what git made of both.
func resolveSums(text []byte) (decided []byte, files []v1alpha1.File, ok bool) {
	above, list, found := bytes.Cut(text, []byte(filesKey))
	if !found || hasMarkers(above) {
		return nil, nil, false
	}
	at := map[string]int{}
	var current string
	conflict := false
	note := func(path, sum string) {
		i, seen := at[path]
		if !seen {
			i = len(files)
			at[path] = i
			files = append(files, v1alpha1.File{Path: path})
		}
		files[i].SHA256 = cmp.Or(sum, files[i].SHA256)
	}
	uncertain := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		line = strings.TrimSuffix(line, "\n")
		path, isPath := strings.CutPrefix(line, "  - path: ")
		sum, isSum := strings.CutPrefix(line, "    sha256: ")
		switch {
		case strings.HasPrefix(line, oursMarker):
			conflict = true
		case strings.HasPrefix(line, theirsMarker):
			conflict = false
		case line == "", line == middleMarker, strings.HasPrefix(line, baseMarker), strings.HasPrefix(line, sumPrefix):
		case isPath:
			current = unquoted(path)
			note(current, "")
		case isSum && current != "":
			note(current, sum)
		default:
			return nil, nil, false // no list of files
		}
		if conflict && current != "" && (isPath || isSum) {
			uncertain[current] = true
		}
	}
	for i, f := range files {
		if uncertain[f.Path] {
			files[i].SHA256 = ""
		}
	}
	return append(above, '\n'), files, !conflict
}

// listed finds the paths in a plan.yaml that nothing else can be read from.
var listed = regexp.MustCompile(`(?m)^ +- path: (.+)$`)

func unquoted(path string) string { return strings.Trim(path, `"'`) }

// decode reads plan.yaml, also one with conflicts that resolveSums knows how to take apart.
func (d *Dir) decode() (v1alpha1.Plan, error) {
	name := filepath.Join(d.Path, PlanFile)
	if !hasMarkers(d.planBytes) {
		return v1alpha1.DecodePlan(name, d.planBytes)
	}
	decided, files, ok := resolveSums(d.planBytes)
	if !ok {
		at := 1 + bytes.Count(d.planBytes[:bytes.Index(d.planBytes, []byte(oursMarker))], []byte("\n"))
		return v1alpha1.Plan{}, fmt.Errorf("%s: line %d: a merge left its conflict markers, and both branches changed the same decision or setting", name, at)
	}
	p, err := v1alpha1.DecodePlan(name, decided)
	p.Files, d.Merged = files, err == nil
	return p, err
}

// claim takes the files of a plan.yaml that nobody can read for the generator's, if the generator wrote that plan.yaml. It returns what to do.
func (d *Dir) claim() string {
	if !bytes.Contains(d.planBytes, []byte(planNotice)) {
		return d.Path + ": its " + PlanFile + " is not one that this generator wrote; restore it, or choose another directory"
	}
	d.Damaged = PlanFile + " cannot be read"
	if hasMarkers(d.planBytes) {
		d.Damaged = PlanFile + " holds the conflict markers of a merge"
	}
	for _, found := range listed.FindAllSubmatch(d.planBytes, -1) {
		if p := unquoted(string(found[1])); isFile(p) {
			d.hashes[p] = ""
		}
	}
	return d.Path + ": its " + PlanFile + " cannot be read; take that of one branch, such as by git restore --source=HEAD --staged --worktree " + d.Path + ", and run generate again"
}
