package worktree

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/shell"
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

// resolveSums takes a plan.yaml with conflicts apart, if all of them lie among the sums of the files. It gives the part above the list, and
// each path with each sum that a side gives it. What has none of these sums is no content that a run wrote.
func resolveSums(text []byte) (decided []byte, files []v1alpha1.File, ok bool) {
	above, list, found := bytes.Cut(text, []byte(filesKey))
	if !found || hasMarkers(above) {
		return nil, nil, false
	}
	var s sums
	for line := range strings.Lines(string(list)) {
		if !s.read(strings.TrimSuffix(line, "\n")) {
			return nil, nil, false // no list of files
		}
	}
	return append(above, '\n'), s.files, !s.conflict
}

type sums struct {
	files    []v1alpha1.File
	current  []string // the paths that the next sum may belong to
	before   []string // those at the beginning of the conflict
	ends     []string // those at the ends of its sides so far
	conflict bool
}

func (s *sums) read(line string) bool {
	path, isPath := strings.CutPrefix(line, "  - path: ")
	sum, isSum := strings.CutPrefix(line, "    sha256: ")
	switch {
	case strings.HasPrefix(line, oursMarker) && !s.conflict:
		s.conflict, s.before, s.ends = true, s.current, nil
	case s.conflict && (line == middleMarker || strings.HasPrefix(line, baseMarker)):
		s.ends, s.current = union(s.ends, s.current), s.before
	case s.conflict && strings.HasPrefix(line, theirsMarker):
		s.conflict, s.current = false, union(s.ends, s.current)
	case line == "", strings.HasPrefix(line, sumPrefix):
	case isPath:
		s.current = []string{unquoted(path)}
	case isSum && len(s.current) > 0:
		for _, path := range s.current {
			if f := (v1alpha1.File{Path: path, SHA256: sum}); !slices.Contains(s.files, f) {
				s.files = append(s.files, f)
			}
		}
	default:
		return false
	}
	return len(s.current) <= mostSides && len(s.files) <= mostSides*mostFiles
}

// mostSides is more than the branches that git merges at a time. Each conflict could double the paths that a sum belongs to.
const mostSides = 16

// union are two lists of paths without repetitions.
func union(a, b []string) []string {
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}

// listed finds the paths in a plan.yaml that nothing else can be read from.
var listed = regexp.MustCompile(`(?m)^ +- path: (.+)$`)

func unquoted(path string) string { return strings.Trim(path, `"'`) }

// DecodePlan reads a plan.yaml, also one with conflicts that resolveSums knows how to take apart: merged. The files of such a plan are those
// of both branches, and a path may have several sums.
func DecodePlan(name string, content []byte) (p v1alpha1.Plan, merged bool, err error) {
	content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	if !hasMarkers(content) {
		p, err = v1alpha1.DecodePlan(name, content)
		return p, false, err
	}
	decided, files, ok := resolveSums(content)
	if !ok {
		at := 1 + bytes.Count(content[:bytes.Index(content, []byte(oursMarker))], []byte("\n"))
		return v1alpha1.Plan{}, false, &Conflict{fmt.Sprintf("%s: line %d: a merge left its conflict markers, and both branches changed the same lines", name, at)}
	}
	p, err = v1alpha1.DecodePlan(name, decided)
	p.Files = files
	return p, err == nil, err
}

// Conflict says that a merge left conflicts in a plan.yaml, above the sums of the files.
type Conflict struct{ message string }

func (e *Conflict) Error() string { return e.message }

// HasConflict is the value of Damaged for such a plan.yaml.
const HasConflict = PlanFile + " holds the conflict markers of a merge"

// claim takes the files of a plan.yaml that nobody can read for the generator's, if the generator wrote that plan.yaml. It returns what to do.
func (d *Dir) claim() string {
	if !bytes.Contains(d.planBytes, []byte(planNotice)) {
		return d.Path + ": its " + PlanFile + " is not one that this generator wrote; restore it, or choose another directory"
	}
	d.Damaged = PlanFile + " cannot be read"
	if hasMarkers(d.planBytes) {
		d.Damaged = HasConflict
	}
	settled := outsideOfConflicts(d.planBytes)
	d.Target, d.Format = only(targetLine, settled), only(formatLine, settled)
	for _, found := range listed.FindAllSubmatch(d.planBytes, mostFiles) {
		if p := unquoted(string(found[1])); isFile(p) {
			d.hashes[p] = nil
		}
	}
	restore := "git restore --source=HEAD --staged --worktree " + shell.Word(d.Path)
	if d.Damaged == HasConflict {
		return d.Path + ": its " + PlanFile + " cannot be read. Take the whole bundle of one branch, then run generate again with the configuration of both. " +
			restore + " keeps that of the commit that is checked out, and drops what the other branch changed in it"
	}
	return d.Path + ": its " + PlanFile + " cannot be read. " + restore + " undoes an edit since the last commit. " +
		"Or run generate with --config and --force, which writes the file again; then nothing compares it with what is installed"
}

var (
	targetLine = regexp.MustCompile(`(?m)^target: (.+)$`)
	formatLine = regexp.MustCompile(`(?m)^format: (.+)$`)
)

// only is what a line says that stands once in a text.
func only(line *regexp.Regexp, text []byte) string {
	if found := line.FindAllSubmatch(text, 2); len(found) == 1 {
		return unquoted(string(found[0][1]))
	}
	return ""
}

// outsideOfConflicts are the lines that both branches agree on.
func outsideOfConflicts(text []byte) (settled []byte) {
	eachLine(text, func(line []byte, side string) {
		if side == "" {
			settled = append(settled, line...)
		}
	})
	return settled
}

// sides are a text with conflicts as one branch has it, and as the other.
func sides(text []byte) (ours, theirs []byte) {
	eachLine(text, func(line []byte, side string) {
		if side == "" || side == oursMarker {
			ours = append(ours, line...)
		}
		if side == "" || side == middleMarker {
			theirs = append(theirs, line...)
		}
	})
	return ours, theirs
}

// eachLine calls f for every line but the markers, with the marker that begins its side of a conflict; empty: it is in none.
func eachLine(text []byte, f func(line []byte, side string)) {
	side := ""
	for line := range bytes.Lines(text) {
		is := func(marker string) bool { return bytes.HasPrefix(line, []byte(marker)) }
		switch {
		case is(oursMarker):
			side = oursMarker
		case side != "" && is(baseMarker):
			side = baseMarker
		case side != "" && bytes.Equal(bytes.TrimRight(line, "\r\n"), []byte(middleMarker)):
			side = middleMarker
		case side != "" && is(theirsMarker):
			side = ""
		default:
			f(line, side)
		}
	}
}
