package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Wall time says nothing on a busy machine. So gate starts each test binary through itself, and takes its processor time with that of its children.
// go keeps no results of such a run: a budget goes with -count.

// usageFile names the file to which each test binary's line goes: the directory of its package, and nanoseconds.
const usageFile = "GATE_USAGE_FILE"

// standard is the budget of a package without a line, and head how many packages a run prints. A run fails above slack times the budget,
// because processor time depends on the neighbours too. The same tests used 1.6 times as much on one host.
const (
	standard = 25 * time.Second
	head     = 10
	slack    = 3
)

type usage struct {
	dir string // from the top of the source tree
	cpu time.Duration
}

// runBinary runs a test binary in the place of go test, appends what it used, and returns its exit code.
func runBinary(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, usageFile+"=") }) // a test may run gate
	runtime.LockOSThread()                                                                                        // whose end is the parent's for the kernel
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}                                            // go test kills this process only
	if err := cmd.Run(); cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		return 1
	}
	dir, _ := os.Getwd()
	file, err := os.OpenFile(os.Getenv(usageFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(file, "%s\t%d\n", dir, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		file.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		return 1
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 1 // a signal ended it
}

// runWithBudget runs the tests as run does, names the packages above their budgets, and fails if one used far too much.
func runWithBudget(skips, budget string, args []string, out io.Writer) error {
	budgets, err := readBudgets(budget)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	top, err := os.Getwd()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "gate-usage-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	failed := run(skips, append([]string{"-exec", self}, args...), []string{usageFile + "=" + file.Name()}, out)
	all, err := readUsage(file, top)
	if err != nil {
		return err
	}
	far := exceeded(all, budgets, out)
	switch {
	case failed != nil:
		return failed
	case len(far) > 0:
		return fmt.Errorf("%d times the processor time of %s: %s; make the tests cheaper, or give testenv.Full() what only a full run needs", slack, budget, strings.Join(far, ", "))
	}
	return nil
}

// readUsage reads what test binaries used, the most expensive first.
func readUsage(in io.Reader, top string) ([]usage, error) {
	var all []usage
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		dir, number, _ := strings.Cut(lines.Text(), "\t")
		cpu, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, err
		}
		if dir, err = filepath.Rel(top, dir); err != nil {
			return nil, err
		}
		all = append(all, usage{dir, time.Duration(cpu)})
	}
	slices.SortFunc(all, func(a, b usage) int { return cmp.Compare(b.cpu, a.cpu) })
	return all, lines.Err()
}

// exceeded prints the most expensive packages, those above their budgets and the sum. It returns the packages above slack times their budgets.
func exceeded(all []usage, budgets map[string]time.Duration, out io.Writer) (far []string) {
	var sum time.Duration
	for i, u := range all {
		if sum += u.cpu; i < head {
			fmt.Fprintf(out, "%6.1f s of processor time  %s\n", u.cpu.Seconds(), u.dir)
		}
		most := cmp.Or(budgets[u.dir], standard)
		line := fmt.Sprintf("%s (%.0f s of %.0f)", u.dir, u.cpu.Seconds(), most.Seconds())
		if u.cpu > most {
			fmt.Fprintf(out, "WARNING: above its budget of processor time: %s\n", line)
		}
		if u.cpu > slack*most {
			far = append(far, line)
		}
	}
	fmt.Fprintf(out, "%6.1f s in all\n", sum.Seconds())
	return far
}

// readBudgets reads lines of directory, seconds and reason, separated by tabs.
func readBudgets(path string) (map[string]time.Duration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	budgets := map[string]time.Duration{}
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 || fields[2] == "" {
			return nil, fmt.Errorf("%s:%d: want DIRECTORY, SECONDS and REASON separated by tabs", path, n+1)
		}
		seconds, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n+1, err)
		}
		budgets[fields[0]] = time.Duration(seconds) * time.Second
	}
	return budgets, nil
}
