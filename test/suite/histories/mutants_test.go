package histories

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/mutant"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
	"github.com/cinder-csi/cinder-csi/test/suite/mutants"
)

var (
	mutate = flag.Bool("mutants", false, "build the driver with every mutant in turn and play its recorded history; minutes")
	find   = flag.String("find", "", "search for a small history that breaks a promise, and write it to this file as JSON")
	within = flag.String("scenario", ".", "the scenarios in which -find searches before it plays -seeds small random histories, as a regular expression of their names")
)

// fewestMutants is how many rules of the driver the histories are known to check. It only grows.
const fewestMutants = 34

// moduleRoot is the directory to which the packages of mutants are relative.
func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func historyOf(m mutant.Mutant) string { return filepath.Join("mutants", m.Name+".json") }

func readHistory(file string) (history, error) {
	var h history
	text, err := os.ReadFile(file)
	if err != nil {
		return h, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&h); err != nil {
		return h, fmt.Errorf("%s: %w", file, err)
	}
	if h.Replicas < 1 || h.operations() == 0 {
		return h, fmt.Errorf("%s: a history has a replica and an operation", file)
	}
	for _, f := range h.Faults {
		if !slices.Contains(slices.Concat(requestFaults, cloudFaults, processFaults), f.Kind) {
			return h, fmt.Errorf("%s: there is no fault %q", file, f.Kind)
		}
	}
	return h, nil
}

// The mutants prove that the histories check the driver. So each must apply to the present code, and the unbroken driver must keep its
// promises in its history.
func TestEveryMutantApplies(t *testing.T) {
	if len(mutants.Histories) < fewestMutants {
		t.Errorf("there are %d mutants, fewer than the %d that there were", len(mutants.Histories), fewestMutants)
	}
	histories, err := filepath.Glob("mutants/*.json")
	if err != nil || len(histories) != len(mutants.Histories) {
		t.Errorf("%d histories for %d mutants (%v)", len(histories), len(mutants.Histories), err)
	}
	for _, m := range mutants.Histories {
		t.Run(m.Name, func(t *testing.T) {
			if _, err := m.Changed(moduleRoot(t)); err != nil {
				t.Error(err)
			}
			h, err := readHistory(historyOf(m))
			if err != nil {
				t.Fatal(err)
			}
			if r := run(t, h, t.TempDir()); len(r.violations) > 0 {
				t.Errorf("the unbroken driver breaks a promise in the history of a mutant: %v\n%s", r.violations[0], story(h, r))
			}
		})
	}
}

// promiseBroken begins the line with which a child process says what it found.
const promiseBroken = "promise broken: "

// TestPlayOneHistory plays one history, such as a failing one that was kept, and prints its story.
func TestPlayOneHistory(t *testing.T) {
	if *which == "" {
		return // only with -history
	}
	h, err := readHistory(*which)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, h, t.TempDir())
	t.Logf("%s%s", story(h, r), r.counts)
	if len(r.violations) > 0 {
		t.Errorf("\n%s%s: %s", promiseBroken, r.violations[0].Rule, r.violations[0].Detail)
	}
}

// mostTries is how often the history of a mutant is played. If two channels of the driver are ready at one moment, Go chooses one by chance,
// and not every choice shows the broken promise.
const mostTries = 5

// Every mutant breaks a promise in its history, and the checker sees it.
func TestEveryMutantIsCaught(t *testing.T) {
	if !*mutate {
		return // only with -mutants: each links the driver again
	}
	all := mutants.Histories
	promises, tries := make([]string, len(all)), make([]int, len(all))
	links := make(chan struct{}, 2) // that are made at a time
	t.Run("mutants", func(t *testing.T) {
		for i, m := range all {
			t.Run(m.Name, func(t *testing.T) {
				t.Parallel()
				links <- struct{}{}
				defer func() { <-links }()
				if promises[i], tries[i] = caught(t, m); promises[i] == "" {
					promises[i] = "NOT CAUGHT"
				}
			})
		}
	})
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "mutant\tthe rule that it breaks\tthe promise that it breaks\ttries")
	for i, m := range all {
		if tries[i] == 0 {
			continue // -run has left it out, or it does not apply
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", m.Name, m.Rule, promises[i], tries[i])
	}
	_ = w.Flush()
	t.Logf("%d mutants\n%s", len(all), &table)
}

// caught builds a test with the mutant, which plays the history of the mutant until a promise is broken.
func caught(t *testing.T, m mutant.Mutant) (promise string, tries int) {
	t.Helper()
	root, dir := moduleRoot(t), t.TempDir()
	overlay, err := m.Overlay(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "histories.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-c", "-o", binary, "./test/suite/histories")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("mutant %s does not compile; rewrite it for the same rule, never remove it: %v\n%s", m.Name, err, out)
	}
	var out []byte
	for tries = 1; tries <= mostTries; tries++ {
		child := exec.CommandContext(t.Context(), binary, "-test.run", "^TestPlayOneHistory$", "-test.v", "-test.timeout", "2m", "-history", historyOf(m))
		out, _ = child.CombinedOutput() // its text says how it ended
		for line := range strings.Lines(string(out)) {
			if _, found, ok := strings.Cut(line, promiseBroken); ok {
				promise, _, _ = strings.Cut(strings.TrimSpace(found), ": ")
				return promise, tries
			}
		}
	}
	t.Errorf("no promise is broken although this rule is: %s\n%s", m.Rule, out)
	return "", mostTries
}

// TestFindHistory searches a history for a new mutant, with the driver built from it (mutants/README.md).
func TestFindHistory(t *testing.T) {
	if *find == "" {
		return // only with -find
	}
	names := regexp.MustCompile(*within)
	f := finder{dir: t.TempDir(), begun: time.Now()}
	for _, s := range scenarios() {
		if names.MatchString(s.name) && f.scenario(t, s) {
			return
		}
	}
	for seed := *first; seed < *first+*seeds; seed++ {
		if f.try(t, fmt.Sprint("seed ", seed), generateSmall(seed)) {
			return
		}
	}
	if f.kept == 0 {
		t.Fatalf("none of %d histories breaks a promise", f.played)
	}
}

// generateSmall creates a short history from a seed: one user, several leaders, and many early faults. Hundreds of them cost as much as one
// of generate, and need little shrinking.
func generateSmall(seed uint64) history {
	g := generator{rand.New(rand.NewPCG(seed, 3))}
	h := history{Seed: seed, Replicas: 1 + g.IntN(3), Timeout: pick(g, 15*time.Second, time.Minute, 3*time.Minute)}
	a := g.actor(g.IntN(4), 4+g.IntN(5)) // the number decides whether the actor shares volumes and whether it cleans up
	a.Begin = 0
	h.Actors = []actor{a}
	for range 1 + g.IntN(4) {
		// The driver keeps and reports a duplicate that Cinder fails to delete, with and without a mutant.
		if f := g.fault(time.Minute, h.Replicas); f.Kind != deleteFails {
			h.Faults = append(h.Faults, f)
		}
	}
	for range h.Replicas - 1 {
		h.Faults = append(h.Faults, fault{At: g.between(time.Second, 30*time.Second), Kind: leaderChanged, Replica: g.IntN(h.Replicas), Times: 1})
	}
	return h
}

// finder looks for a history that breaks a promise each time it is played.
type finder struct {
	dir    string
	begun  time.Time
	played int
	kept   int // how often the best one broke it, of mostTries
}

func (f *finder) scenario(t *testing.T, s scenario) bool {
	t.Helper()
	if f.try(t, s.name, s.history(false)) || f.try(t, s.name+", abandoned", s.history(true)) {
		return true
	}
	requests := s.requests(t, f.dir)
	for _, times := range []int{1, 5} { // five are more than the transport repeats
		for _, at := range requests {
			for _, m := range faultCases() {
				at.Kind, at.For, at.Replica, at.Times = m.kind, faultDurations[m.kind], m.replicas-1, times
				for _, abandon := range []bool{false, true} {
					h := s.history(abandon, at)
					h.Replicas, h.Skew = m.replicas, m.skew
					if f.try(t, fmt.Sprintf("%s: %s at %s %d, %d times, abandoned %t", s.name, m.kind, at.Class, at.Skip+1, times, abandon), h) {
						return true
					}
				}
			}
		}
	}
	return false
}

// try plays a history. It shrinks one that breaks a promise, and writes it if it breaks the promise more often than earlier ones. It returns
// true if the history breaks the promise each time.
func (f *finder) try(t *testing.T, from string, h history) bool {
	t.Helper()
	f.played++
	r := run(t, h, f.dir)
	if len(r.violations) == 0 {
		return false
	}
	small, shrunk, _ := shrink(t, h, r, f.dir)
	again := 0
	for range mostTries {
		if r := run(t, small, f.dir); len(r.violations) > 0 {
			again++
		}
	}
	t.Logf("%s, after %d histories: %s, %d of %d times", from, f.played, shrunk.violations[0], again, mostTries)
	if again > f.kept {
		f.kept = again
		text, err := json.MarshalIndent(small, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, *find, append(text, '\n'), 0o644)
		t.Logf("kept:\n%s", story(small, shrunk))
	}
	return again == mostTries
}
