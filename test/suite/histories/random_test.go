package histories

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

var (
	first = flag.Uint64("seed", 1, "the first seed of the random histories")
	seeds = flag.Uint64("seeds", 2, "how many random histories are played")
	until = flag.Duration("for", 0, "how long to play random histories, in real time; 0 plays -seeds of them")
	keep  = flag.String("keep", "", "the directory that gets every failing history, shrunk, as JSON")
)

// Users work as usual, and many faults overlap.
func TestRandomHistoriesLoseNothing(t *testing.T) {
	var mu sync.Mutex
	var sum counts
	var failed []string
	var next, broken atomic.Uint64
	next.Store(*first)
	begun := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for worker := range 2 {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				for {
					seed := next.Add(1) - 1
					if *until == 0 && seed >= *first+*seeds || *until > 0 && time.Since(begun) > *until || broken.Load() >= 5 {
						return
					}
					h := generate(seed)
					r := run(t, h, dir)
					mu.Lock()
					if sum.add(r.counts); sum.Histories%500 == 0 {
						t.Logf("%d histories, %d operations after %s", sum.Histories, sum.Operations, time.Since(begun).Round(time.Second))
					}
					mu.Unlock()
					if len(r.violations) > 0 {
						broken.Add(1)
						mu.Lock()
						failed = append(failed, fmt.Sprintf("seed %d: %s: %s", seed, r.violations[0].Rule, r.violations[0].Detail))
						mu.Unlock()
						report(t, seed, h, r, dir)
					}
				}
			})
		}
	})
	t.Logf("seeds %d to %d: %s", *first, next.Load()-1, sum)
	for _, violation := range failed { // again, where a reader of the last lines sees it
		t.Log(violation)
	}
}

// report shrinks a failing history and prints its story.
func report(t *testing.T, seed uint64, h history, r result, dir string) {
	t.Helper()
	small, shrunk, tries := shrink(t, h, r, dir)
	text, _ := json.MarshalIndent(small, "", " ")
	if *keep != "" {
		if err := os.WriteFile(filepath.Join(*keep, fmt.Sprintf("seed-%d.json", seed)), text, 0o644); err != nil {
			t.Error(err)
		}
	}
	t.Errorf("seed %d: %s: %s\nshrunk in %d runs to %d operations and %d faults:\n%s%s", seed, r.violations[0].Rule, r.violations[0].Detail,
		tries, small.operations(), len(small.Faults), story(small, shrunk), text)
}

// A failing seed is useful only if it fails again. Most histories repeat themselves to the nanosecond. If two channels of the driver are ready
// at one moment, Go's select chooses one by chance, and the rest of the history differs. So how many do is a figure and no promise.
func TestMostHistoriesRepeatThemselves(t *testing.T) {
	testenv.NeedFull(t, "plays each of twelve histories twice")
	const played = 12
	dir, repeated, diff := t.TempDir(), 0, ""
	for seed := range uint64(played) {
		h := generate(seed)
		if diff = gocmp.Diff(events(run(t, h, dir)), events(run(t, h, dir))); diff == "" {
			repeated++
		}
	}
	fmt.Printf("measured: %d of %d histories repeat themselves\n", repeated, played)
	if repeated == 0 {
		t.Errorf("none of %d histories repeats itself; the last difference:\n%s", played, diff)
	}
}

// events are the lines of the trace with their times. The scheduler decides the order within one moment and the text of an error.
func events(r result) []string {
	trace := slices.Clone(r.trace)
	for i, e := range trace {
		head, outcome, answered := strings.Cut(e.what, " <- ")
		if words := strings.SplitN(outcome, ": ", 3); answered && len(words) == 3 {
			trace[i].what = head + " <- " + words[0] + ": " + words[1]
		}
	}
	slices.SortStableFunc(trace, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.what, b.what)) })
	var all []string
	for _, e := range trace {
		all = append(all, fmt.Sprint(e.at, " ", e.what))
	}
	return all
}
