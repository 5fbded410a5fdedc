// Command gate runs `go test -json` with its own arguments and checks the result. It fails if a test fails, if no test ran, or if a test is skipped
// that test/skips.txt does not name. It accepts skips for want of root (from others, and with -short) and of tools (from others). It prints failures
// in full, one line for each package, and the counts at the end.
//
// With -budget it also warns if the test binary of a package uses more processor time than the file allows. It fails at three times as much.
//
//	go run ./test/kit/gate [-skips test/skips.txt] [-budget test/budget.txt] -- -race ./...
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/test/kit/testlog"
)

// What begins the reason of a skip for want of root or of a program; a test compares them with those of test/kit/testenv.
const (
	needsRoot  = "needs root: "
	needsTools = "needs tools: "
	needsFull  = "needs -full: "
	takesLong  = "takes a second or more: "
)

// allowed are the skips that are no failure.
type allowed struct {
	listed      []string
	root, short bool // who runs the tests, and how
}

// outcome counts the tests.
type outcome struct {
	passed, failed, skipped int
	needRoot, needTools     int // of the skipped
	unlisted                []string
}

func main() {
	if os.Getenv(usageFile) != "" && len(os.Args) > 1 {
		os.Exit(runBinary(os.Args[1:]))
	}
	skips := flag.String("skips", "test/skips.txt", "the committed `list` of skips")
	budget := flag.String("budget", "", "the committed `list` of budgets of processor time; none without it")
	flag.Parse()
	run := func() error { return run(*skips, flag.Args(), nil, os.Stdout) }
	if *budget != "" {
		run = func() error { return runWithBudget(*skips, *budget, flag.Args(), os.Stdout) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	}
}

func run(skips string, args, env []string, out io.Writer) error {
	listed, err := readSkips(skips)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	if slices.Contains(args, "-race") {
		cc := cmp.Or(os.Getenv("CC"), "gcc")
		if _, err := exec.LookPath(cc); err != nil && os.Geteuid() != 0 {
			fmt.Fprintf(out, "SKIPPED: the race detector needs a C compiler (apt-get install gcc libc6-dev): %v\n", err)
			return nil
		}
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1") // which the race detector needs, and nothing else does
	}
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	o, readErr := judge(pipe, out, allowed{listed: listed, root: os.Geteuid() == 0, short: slices.Contains(args, "-short")})
	waitErr := cmd.Wait()
	fmt.Fprintf(out, "\n%d passed, %d failed, %d skipped\n", o.passed, o.failed, o.skipped)
	if o.needRoot > 0 {
		fmt.Fprintf(out, "%d tests need root and did not run\n", o.needRoot)
	}
	if o.needTools > 0 {
		fmt.Fprintf(out, "%d tests need Debian packages and did not run; `make test-tools` as root installs them\n", o.needTools)
	}
	switch {
	case readErr != nil:
		return readErr
	case len(o.unlisted) > 0:
		return fmt.Errorf("skipped without a line in %s: %s", skips, strings.Join(o.unlisted, ", "))
	case waitErr != nil:
		return fmt.Errorf("go test: %w", waitErr)
	case o.failed > 0:
		return fmt.Errorf("%d failed", o.failed)
	case o.passed == 0:
		return fmt.Errorf("no test ran")
	}
	return nil
}

func judge(in io.Reader, out io.Writer, may allowed) (o outcome, err error) {
	tests, err := testlog.Reader{Out: out, Ended: func(t testlog.Test) { o.end(t, out, may) }}.Read(in)
	for _, t := range tests {
		if t.Outcome == testlog.Unfinished && t.Name != "" { // its binary ended first: a panic, a timeout, or a signal
			o.failed++
			fmt.Fprintf(out, "did not end: %s %s\n%s", t.Package, t.Name, t.Output)
		}
	}
	return o, err
}

func (o *outcome) end(t testlog.Test, out io.Writer, may allowed) {
	switch {
	case t.Outcome == testlog.Failed:
		fmt.Fprint(out, t.Output)
		if t.Name != "" {
			o.failed++
		}
	case t.Name == "":
		if t.Outcome == testlog.Passed {
			fmt.Fprintf(out, "ok  %s %.1fs\n", t.Package, t.Seconds)
		}
	case t.Outcome == testlog.Passed:
		o.passed++
	case t.Outcome == testlog.Skipped:
		o.skipped++
		o.skip(t, strings.TrimSpace(t.Output), out, may)
	}
}

func (o *outcome) skip(t testlog.Test, why string, out io.Writer, may allowed) {
	switch {
	case strings.Contains(why, ".go:") && strings.Contains(why, ": "+needsRoot) && (!may.root || may.short):
		o.needRoot++
	case strings.Contains(why, ".go:") && strings.Contains(why, ": "+needsTools) && (!may.root || may.short):
		o.needTools++
	case strings.Contains(why, ".go:") && (strings.Contains(why, ": "+needsFull) || strings.Contains(why, ": "+takesLong) && may.short):
	default:
		name := t.Package + " " + t.Name
		fmt.Fprintf(out, "skip %s: %s\n", name, why)
		if !slices.Contains(may.listed, t.Top()) { // a line names a test with its subtests
			o.unlisted = append(o.unlisted, name)
		}
	}
}

// readSkips reads the names of the tests that may be skipped: lines of name, condition and reason, separated by tabs.
func readSkips(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 || fields[2] == "" {
			return nil, fmt.Errorf("%s:%d: want NAME, CONDITION and REASON separated by tabs", path, n+1)
		}
		names = append(names, fields[0])
	}
	return names, nil
}
