package prose

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Key is what a baseline counts: the findings of a rule in a file, or of the rule Name in a package.
type Key struct {
	Place string // a file, or a directory for the rule Name
	Rule  Rule
}

// Baseline is the number of known findings.
type Baseline map[Key]int

// counted are the rules that a baseline counts, in the order of its columns.
var counted = []Rule{Word, Length, Name}

func keyOf(f Finding) Key {
	if f.Rule == Name {
		return Key{path.Dir(f.File), Name}
	}
	return Key{f.File, f.Rule}
}

// Count counts findings. Suggestions do not count.
func Count(findings []Finding) Baseline {
	b := Baseline{}
	for _, f := range findings {
		if slices.Contains(counted, f.Rule) {
			b[keyOf(f)]++
		}
	}
	return b
}

// Total is the number of findings of a rule.
func (b Baseline) Total(r Rule) (n int) {
	for key, count := range b {
		if key.Rule == r {
			n += count
		}
	}
	return n
}

// Above gives the findings of every file or package that has more of a rule than the baseline allows.
func (b Baseline) Above(findings []Finding) []Finding {
	now := Count(findings)
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return now[keyOf(f)] <= b[keyOf(f)] })
}

const baselineHeader = `# Known findings of the prose check: number, rule, file (for names: package). A number may only fall.
# Rewrite texts, then run "go run ./tools/prose/cmd/prose -update". For a list of the findings, run "go run ./tools/prose/cmd/prose -all DIRECTORY".
`

// Marshal writes the baseline, sorted by place.
func (b Baseline) Marshal() []byte {
	var w bytes.Buffer
	w.WriteString(baselineHeader)
	keys := slices.SortedFunc(maps.Keys(b), func(x, y Key) int {
		if x.Place != y.Place {
			return strings.Compare(x.Place, y.Place)
		}
		return strings.Compare(string(x.Rule), string(y.Rule))
	})
	for _, key := range keys {
		fmt.Fprintf(&w, "%d %s %s\n", b[key], key.Rule, key.Place)
	}
	return w.Bytes()
}

// ParseBaseline reads what Marshal wrote.
func ParseBaseline(content []byte) (Baseline, error) {
	b := Baseline{}
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(line, " ", 3)
		if len(fields) != 3 || !slices.Contains(counted, Rule(fields[1])) {
			return nil, fmt.Errorf("line %d: want a number, a rule and a file, got %q", n, line)
		}
		count, err := strconv.Atoi(fields[0])
		if err != nil || count < 1 {
			return nil, fmt.Errorf("line %d: %q is not a number of findings", n, fields[0])
		}
		b[Key{fields[2], Rule(fields[1])}] = count
	}
	return b, nil
}
