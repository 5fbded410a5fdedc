package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Result is what a comparison of calls with grants found.
type Result struct {
	// Used are the grants that a call used.
	Used map[Grant]bool
	// Calls is how many calls needed a right.
	Calls int
	// Findings are sentences. A run without findings has none.
	Findings []string
}

// Compare compares the calls of the accounts with what they are granted. It reports each kind of call that was denied, and each that no role for
// its program grants.
func Compare(granted []Grant, calls []Call) Result {
	r := Result{Used: map[Grant]bool{}}
	denied, beyond := map[string]int{}, map[string]int{}
	for _, c := range calls {
		right := c.Right()
		if right.Resource == "" && !c.Denied() {
			continue
		}
		r.Calls++
		if c.Denied() {
			denied[fmt.Sprintf("%s (%s): %s %s", c.User.Username, c.Program(), c.Verb, c.RequestURI)]++
			continue
		}
		found := false
		for _, g := range granted {
			if g.Right == right && (g.Account == c.Account() || c.Account() == "") && g.mayServe(c.Program()) {
				r.Used[g], found = true, true
			}
		}
		if !found {
			beyond[fmt.Sprintf("%s calls %q, which no role of its own grants", c.Program(), right)]++
		}
	}
	for _, what := range slices.Sorted(maps.Keys(denied)) {
		r.Findings = append(r.Findings, fmt.Sprintf("denied %d times: %s", denied[what], what))
	}
	for _, what := range slices.Sorted(maps.Keys(beyond)) {
		r.Findings = append(r.Findings, fmt.Sprintf("%s (%d times)", what, beyond[what]))
	}
	return r
}

// Unused reports each grant that no call used and no reason explains, and each reason for what is not granted. A reason is found by Grant.String.
// A verb that reads counts as used if another verb read the same resource for the same role.
func (r Result) Unused(granted []Grant, reasons map[string]string) []string {
	byRole := map[string]map[Right]bool{}
	for g := range r.Used {
		if byRole[g.Role] == nil {
			byRole[g.Role] = map[Right]bool{}
		}
		byRole[g.Role][g.Right] = true
	}
	var findings []string
	names := map[string]bool{}
	for _, g := range granted {
		names[g.String()] = true
		if !g.Right.isUsed(byRole[g.Role]) && reasons[g.String()] == "" {
			findings = append(findings, fmt.Sprintf("%s is granted %q, and nothing used it", g.Account, g))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		if !names[name] {
			findings = append(findings, fmt.Sprintf("a reason names %q, which is not granted", name))
		}
	}
	return findings
}

// ParseReasons reads a list of reasons: in each line a grant as Grant.String writes it, a colon and a sentence. A line that begins with # is a
// comment.
func ParseReasons(text string) (map[string]string, error) {
	reasons := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, has := strings.Cut(line, ": ")
		if !has || reason == "" {
			return nil, fmt.Errorf("%q has no reason", line)
		}
		if reasons[name] != "" {
			return nil, fmt.Errorf("%q is there twice", name)
		}
		reasons[name] = reason
	}
	return reasons, nil
}

// Format lists the grants that calls used, a line each and in order.
func Format(r Result) string {
	var lines []string
	for g := range r.Used {
		lines = append(lines, g.String()+"\n")
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}
