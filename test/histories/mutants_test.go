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
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

var (
	mutate = flag.Bool("mutants", false, "build the driver with every mutant in turn and play its recorded history; minutes")
	find   = flag.String("find", "", "search for a small history that breaks a promise, and write it to this file as JSON")
	within = flag.String("scenario", ".", "the scenarios in which -find searches before it plays -seeds small random histories, as a regular expression of their names")
)

// fewestMutants is how many rules of the driver are known to be checked. It only grows.
const fewestMutants = 33

// mutant is a patch that breaks one rule of the driver, and the history that shows it.
type mutant struct {
	name, rule     string
	patch, history string // absolute paths
	files          []string
}

// moduleRoot is where the patches apply.
func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func mutants(t *testing.T) []mutant {
	t.Helper()
	patches, err := filepath.Glob(filepath.Join(moduleRoot(t), "test/histories/mutants/*.patch"))
	if err != nil {
		t.Fatal(err)
	}
	var all []mutant
	for _, patch := range patches {
		text, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSuffix(patch, ".patch")
		first, _, _ := strings.Cut(string(text), "\n")
		m := mutant{name: filepath.Base(base), patch: patch, history: base + ".json"}
		var ruled bool
		if m.rule, ruled = strings.CutPrefix(first, "# Breaks the rule: "); !ruled {
			t.Errorf("%s: the first line must be \"# Breaks the rule: …\"", patch)
		}
		for line := range strings.Lines(string(text)) {
			if file, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/"); ok {
				m.files = append(m.files, file)
			}
		}
		if len(m.files) == 0 {
			t.Errorf("%s changes no file", patch)
		}
		all = append(all, m)
	}
	return all
}

// apply writes the files that the mutant changes, changed, below dir. It needs git, whose apply accepts moved lines but no other context.
func (m mutant) apply(t *testing.T, dir string) error {
	t.Helper()
	for _, file := range m.files {
		text, err := os.ReadFile(filepath.Join(moduleRoot(t), file))
		if err != nil {
			return err
		}
		copied := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(copied, text, 0o644); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(t.Context(), "git", "apply", m.patch)
	cmd.Dir = dir
	// The copies are in no repository, even where the directory of temporary files is inside one.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	for _, file := range m.files {
		before, err := os.ReadFile(filepath.Join(moduleRoot(t), file))
		if err != nil {
			return err
		}
		if after, err := os.ReadFile(filepath.Join(dir, file)); err != nil || bytes.Equal(before, after) {
			return fmt.Errorf("git apply left %s as it was (%v)", file, err)
		}
	}
	return nil
}

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
	return h, nil
}

// What proves that the checker checks must itself stay whole: the patches apply to the code of today, and it is they, not the histories,
// that break promises.
func TestEveryMutantApplies(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatalf("this test applies patches with git: %v", err)
	}
	all := mutants(t)
	if len(all) < fewestMutants {
		t.Errorf("there are %d mutants, fewer than the %d that there were", len(all), fewestMutants)
	}
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			if err := m.apply(t, t.TempDir()); err != nil {
				t.Errorf("%s.patch no longer applies; rewrite it for the same rule, never remove it (%s): %v", m.name, m.rule, err)
			}
			h, err := readHistory(m.history)
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

// One history, such as a failing one that was kept, is played and told.
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

// mostTries is how often a mutant's history is played: where two channels of the driver are ready at one moment, Go chooses by chance, and
// with it whether this run shows the break.
const mostTries = 5

// Every mutant breaks a promise in its history, and the checker sees it.
func TestEveryMutantIsCaught(t *testing.T) {
	if !*mutate {
		return // only with -mutants: each links the driver anew
	}
	all := mutants(t)
	promises, tries := make([]string, len(all)), make([]int, len(all))
	links := make(chan struct{}, 2) // that are made at a time
	t.Run("mutants", func(t *testing.T) {
		for i, m := range all {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				links <- struct{}{}
				defer func() { <-links }()
				if promises[i], tries[i] = m.caught(t); promises[i] == "" {
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", m.name, m.rule, promises[i], tries[i])
	}
	_ = w.Flush()
	t.Logf("%d mutants\n%s", len(all), &table)
}

// caught builds the driver with the mutant into a test of its own, which plays the mutant's history until a promise is broken.
func (m mutant) caught(t *testing.T) (promise string, tries int) {
	t.Helper()
	dir := t.TempDir()
	if err := m.apply(t, dir); err != nil {
		t.Fatalf("%s.patch no longer applies; rewrite it for the same rule, never remove it: %v", m.name, err)
	}
	replaced := map[string]map[string]string{"Replace": {}}
	for _, file := range m.files {
		replaced["Replace"][filepath.Join(moduleRoot(t), file)] = filepath.Join(dir, file)
	}
	text, err := json.Marshal(replaced)
	if err != nil {
		t.Fatal(err)
	}
	overlay, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "histories.test")
	if err := os.WriteFile(overlay, text, 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-c", "-o", binary, "./test/histories")
	build.Dir = moduleRoot(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the driver with %s.patch does not compile; rewrite it for the same rule, never remove it: %v\n%s", m.name, err, out)
	}
	var out []byte
	for tries = 1; tries <= mostTries; tries++ {
		child := exec.CommandContext(t.Context(), binary, "-test.run", "^TestPlayOneHistory$", "-test.v", "-test.timeout", "2m", "-history", m.history)
		child.Dir = filepath.Join(moduleRoot(t), "test/histories")
		out, _ = child.CombinedOutput() // its text says how it ended
		for line := range strings.Lines(string(out)) {
			if _, found, ok := strings.Cut(line, promiseBroken); ok {
				promise, _, _ = strings.Cut(strings.TrimSpace(found), ": ")
				return promise, tries
			}
		}
	}
	t.Errorf("nothing notices that a rule is broken: %s\n%s", m.rule, out)
	return "", mostTries
}

// A history for a new mutant is searched for with the driver built from it (mutants/README.md).
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

// generateSmall makes a short history from a seed: one user, several leaders, and much that goes wrong soon. Hundreds of them cost what one
// of generate's costs, and what they find is small already.
func generateSmall(seed uint64) history {
	g := generator{rand.New(rand.NewPCG(seed, 3))}
	h := history{Seed: seed, Replicas: 1 + g.IntN(3), Timeout: pick(g, 15*time.Second, time.Minute, 3*time.Minute)}
	a := g.actor(g.IntN(4), 4+g.IntN(5)) // its number decides whether it shares, and whether it cleans up
	a.Begin = 0
	h.Actors = []actor{a}
	for range 1 + g.IntN(4) {
		// A duplicate that Cinder fails to delete stays and is reported; that is no mutant's doing.
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
			for _, m := range mishaps() {
				at.Kind, at.For, at.Replica, at.Times = m.kind, lasts[m.kind], m.replicas-1, times
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

// try plays a history. One that breaks a promise is shrunk, and written if it breaks it more often than those before; true when it does
// so always.
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
		if err := os.WriteFile(*find, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Logf("kept:\n%s", story(small, shrunk))
	}
	return again == mostTries
}
