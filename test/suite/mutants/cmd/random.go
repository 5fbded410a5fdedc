package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"os/exec"
	"strings"
	"sync"

	"github.com/cinder-csi/cinder-csi/test/kit/mutant"
)

// random is a draw: mutants that rules make of covered lines.
type random struct {
	count  int
	seed   uint64
	dirs   []string // with all packages below them
	suites []string // that run after the tests of the package
	full   bool     // without -short too, for tests that need root
}

// atOnce is how many mutants are built at a time.
const atOnce = 2

// domains are the directories of which a draw is by default, one at a time: each decides about volumes, or about a bundle.
var domains = []string{
	"driver/attach", "driver/provision", "driver/snapshot", "driver/idempotent", "driver/inflight", "driver/openstack", "driver/host", "driver/node",
	"driver/rpc", "generator/plan", "generator/guard", "generator/worktree", "internal/cloud", "internal/cluster",
}

// seedOf makes a number of a date, or of what somebody gave.
func seedOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, text)
	return h.Sum64()
}

func (d random) run(ctx context.Context, root string, out io.Writer) error {
	var all []mutant.Change
	packages := map[string]string{} // of a change's file
	for _, dir := range d.dirs {
		list := exec.CommandContext(ctx, "go", "list", "./"+strings.Trim(dir, "./")+"/...")
		list.Dir = root
		text, err := list.Output()
		if err != nil {
			return fmt.Errorf("go list of %s: %w", dir, err)
		}
		for _, path := range strings.Fields(string(text)) {
			_, pkg, _ := strings.Cut(path, "/cinder-csi/cinder-csi/")
			if strings.HasSuffix(pkg, "test") { // helpers of tests
				continue
			}
			changes, err := d.changes(ctx, root, "./"+pkg)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%d places in %s\n", len(changes), pkg)
			for _, c := range changes {
				packages[c.File] = "./" + pkg
			}
			all = append(all, changes...)
		}
	}
	mutant.Shuffle(all, d.seed)
	caught, survived := 0, 0
	for len(all) > 0 && caught+survived < d.count {
		n := min(atOnce, d.count-caught-survived, len(all))
		tried := make([]attempt, n)
		var wait sync.WaitGroup
		for i, c := range all[:n] {
			wait.Go(func() { tried[i] = d.judge(ctx, root, c, packages[c.File]) })
		}
		wait.Wait()
		for i, c := range all[:n] {
			switch a := tried[i]; {
			case a.err != nil:
				return a.err
			case a.verdict == mutant.DoesNotBuild: // another is drawn in its place
			case a.verdict == mutant.Survived:
				survived++
				fmt.Fprintf(out, "SURVIVED %s", c.Diff(root))
			default:
				caught++
				fmt.Fprintf(out, "%s by %s: %s:%d (%s)\n", a.verdict, a.by, strings.TrimPrefix(c.File, root+"/"), c.Line, c.Rule)
			}
		}
		all = all[n:]
	}
	fmt.Fprintf(out, "\ncaught %d of %d\n", caught, caught+survived)
	return nil
}

// changes are those of one package.
func (d random) changes(ctx context.Context, root, pkg string) ([]mutant.Change, error) {
	args := []string{"-short"}
	if d.full {
		args = nil
	}
	covered, err := mutant.Covered(ctx, root, pkg, args...)
	if err != nil {
		return nil, err
	}
	return mutant.Changes(root, pkg, covered)
}

// attempt is what the tests did with one change.
type attempt struct {
	by      string
	verdict mutant.Verdict
	err     error
}

// judge tries the tests of the package, then the same without -short, then the suites.
func (d random) judge(ctx context.Context, root string, c mutant.Change, pkg string) attempt {
	steps := []mutant.Test{{Package: pkg, Pattern: "."}}
	if d.full {
		steps = append(steps, steps[0])
	}
	for _, suite := range d.suites {
		steps = append(steps, mutant.Test{Package: "./" + strings.Trim(suite, "./"), Pattern: "."})
	}
	for i, test := range steps {
		args := []string{"-failfast", "-timeout", "180s"}
		if !d.full || i != 1 {
			args = append(args, "-short")
		}
		r, err := mutant.Run(ctx, root, c.Files(), test, args...)
		if err != nil || r.Verdict != mutant.Survived {
			return attempt{test.Package + " " + r.By, r.Verdict, err}
		}
	}
	return attempt{verdict: mutant.Survived}
}
