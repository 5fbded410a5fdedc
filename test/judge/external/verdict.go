package external

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Verdict is what a run says about the driver.
type Verdict struct {
	Passed     []Test
	Failed     []Test            // and tests that skipped themselves without a line in skips.txt
	Skipped    map[string][]Test // by the reason of the line
	Unselected int               // left out by the person who ran the tests
	Unused     []string          // lines of skips.txt for no test
}

// Judge sorts the tests of one or more runs. A test that ran several times counts as it ended the last time.
func Judge(tests []Test, skips []Skip) Verdict {
	v := Verdict{Skipped: map[string][]Test{}}
	used := map[string]bool{}
	for _, t := range lastRuns(tests) {
		line := slices.IndexFunc(skips, func(s Skip) bool { return s.Tests.MatchString(t.Name) })
		leftOut := t.State == "skipped" && t.Message == ""
		if line >= 0 {
			used[skips[line].Tests.String()] = true
		}
		switch {
		case leftOut && line >= 0:
			v.Skipped[skips[line].Reason] = append(v.Skipped[skips[line].Reason], t)
		case leftOut:
			v.Unselected++
		case t.State == "passed":
			v.Passed = append(v.Passed, t)
		default:
			v.Failed = append(v.Failed, t)
		}
	}
	for _, s := range skips {
		if !used[s.Tests.String()] {
			v.Unused = append(v.Unused, s.Tests.String())
		}
	}
	return v
}

// lastRuns has each test once, by name: its last run if it ran.
func lastRuns(tests []Test) []Test {
	last := map[string]Test{}
	for _, t := range tests {
		before, known := last[t.Name]
		if !known || t.Time > 0 || before.Time == 0 {
			last[t.Name] = t
		}
	}
	return slices.SortedFunc(maps.Values(last), func(a, b Test) int { return strings.Compare(a.Name, b.Name) })
}

// Err is nil if every test passed that ought to run, and at least one did.
func (v Verdict) Err() error {
	switch {
	case len(v.Failed) > 0:
		return fmt.Errorf("%d tests failed, or skipped themselves without a line in skips.txt", len(v.Failed))
	case len(v.Unused) > 0:
		return fmt.Errorf("skips.txt has lines for no test: %s", strings.Join(v.Unused, ", "))
	case len(v.Passed) == 0:
		return fmt.Errorf("no test ran")
	}
	return nil
}

// String is for a person: counts by suite, what failed, and what did not run and why.
func (v Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| suite | passed | failed | not run | minutes |\n| --- | --- | --- | --- | --- |\n")
	rows := v.rows()
	for _, suite := range slices.Sorted(maps.Keys(rows)) {
		r := rows[suite]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %.1f |\n", suite, r.passed, r.failed, r.skipped, r.time.Minutes())
	}
	for _, t := range v.Failed {
		first, _, _ := strings.Cut(strings.TrimSpace(t.Message), "\n")
		fmt.Fprintf(&b, "%s: %s: %s\n", t.State, t.short(), first)
	}
	if len(v.Skipped) > 0 {
		fmt.Fprintf(&b, "\n| not run | because |\n| --- | --- |\n")
	}
	for _, reason := range slices.Sorted(maps.Keys(v.Skipped)) {
		fmt.Fprintf(&b, "| %d | %s |\n", len(v.Skipped[reason]), reason)
	}
	return b.String()
}

type row struct {
	passed, failed, skipped int
	time                    time.Duration
}

func (v Verdict) rows() map[string]*row {
	rows := map[string]*row{}
	count := func(tests []Test, of func(*row) *int) {
		for _, t := range tests {
			for _, suite := range []string{t.Suite(), "all"} {
				if rows[suite] == nil {
					rows[suite] = &row{}
				}
				rows[suite].time += t.Time
				*of(rows[suite])++
			}
		}
	}
	count(v.Passed, func(r *row) *int { return &r.passed })
	count(v.Failed, func(r *row) *int { return &r.failed })
	for _, tests := range v.Skipped {
		count(tests, func(r *row) *int { return &r.skipped })
	}
	return rows
}
