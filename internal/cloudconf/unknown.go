package cloudconf

import (
	"fmt"
	"strings"
)

// Name is a known setting. Key "*" means every key of the section.
type Name struct {
	Section string
	Key     string
}

// Unknown is a setting that no program knows.
type Unknown struct {
	Section string
	Key     string // "" if the section itself is unknown
	Line    int
	Nearest string // the most similar known name; "" if none is similar
}

// String names the unknown setting, its line, and the most similar known name.
func (u Unknown) String() string {
	what := "section [" + u.Section + "]"
	if u.Key != "" {
		what = "key " + u.Key + " in " + what
	}
	s := "unknown " + what
	if u.Line > 0 {
		s = fmt.Sprintf("line %d: %s", u.Line, s)
	}
	if u.Nearest != "" {
		s += "; did you mean " + u.Nearest + "?"
	}
	return s
}

// Unknown lists the settings of the file that known does not have, in the order of the file. Comparisons of names ignore case.
func (f *File) Unknown(known []Name) []Unknown {
	var unknown []Unknown
	for _, s := range f.Sections {
		keys := map[string]bool{}
		var names, sections []string
		for _, n := range known {
			sections = append(sections, n.Section)
			if strings.EqualFold(n.Section, s.Name) {
				keys[strings.ToLower(n.Key)] = true
				names = append(names, n.Key)
			}
		}
		if len(names) == 0 {
			unknown = append(unknown, Unknown{Section: s.Name, Line: s.Line, Nearest: nearest(s.Name, sections)})
			continue
		}
		for _, k := range s.Keys {
			if !keys["*"] && !keys[strings.ToLower(k.Name)] {
				unknown = append(unknown, Unknown{Section: s.Name, Key: k.Name, Line: k.Line, Nearest: nearest(k.Name, names)})
			}
		}
	}
	return unknown
}

// nearest returns the candidate with the fewest edits, if they are few enough for a typing error. Of equal candidates, the first
// one counts.
func nearest(name string, candidates []string) string {
	best, least := "", 1+len(name)/3
	for _, c := range candidates {
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < least || d == least && best == "" {
			best, least = c, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
