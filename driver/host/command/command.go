// Package command runs the programs of the node role: mkfs, fsck, blkid, mount and others.
//
// A program ends when the driver ends. The driver keeps only the end of its output, since what is on a volume may
// decide how much there is.
package command

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Runner runs programs.
type Runner interface {
	// Run runs a program to its end and returns its output, whatever its exit code. It returns an error if the program
	// did not start or ctx ended first. Unavailable if a signal ended it or its output may lack its end.
	Run(ctx context.Context, name string, args ...string) (Result, error)
}

// Result is the outcome of a program: its exit code and the last 64 KiB of each output.
type Result struct {
	Code           int
	Stdout, Stderr string
	Peak           volume.Size // the most memory that it had; 0 if unknown
}

// Message is the end of the output on one line, for an error. The output may repeat what is on a volume, such as its
// label. So Message replaces each character that is not printable by a question mark: errors reach logs, events and
// terminals.
func (r Result) Message() string {
	const limit = 500
	text := strings.Join(strings.Fields(r.Stderr+" "+r.Stdout), " ")
	if len(text) > limit {
		text = "…" + text[len(text)-limit:]
	}
	if text == "" {
		return "no output"
	}
	return Printable(text)
}

// Printable replaces each character that is not printable by a question mark, for a text that a tenant may have
// written.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// outputLimit is how many bytes of each output are kept. A crafted ext4 image made e2fsck write hundreds of MB, one
// line for each repair (measured).
const outputLimit = 64 << 10

// tail keeps the end of what is written to it. It accepts every byte: a program whose output nobody reads blocks or
// dies, perhaps in the middle of a repair.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > outputLimit {
		p = p[n-outputLimit:]
	}
	if len(t.kept)+len(p) > 2*outputLimit { // only then, so that short writes do not move 64 KiB each
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-outputLimit:]...)
	}
	t.kept = append(t.kept, p...)
	return n, nil
}

func (t *tail) String() string {
	return string(t.kept[max(0, len(t.kept)-outputLimit):])
}

// outputDelay is how long the output of a program may be held open after its end. On a node without free processors, each program that is just
// being started holds the output of the others for a moment. With 100 volumes at once and one emulated processor, that took more than two seconds.
const outputDelay = 20 * time.Second

// Processes runs programs as processes of this machine.
type Processes struct {
	outputDelay time.Duration // outputDelay if zero; tests set it
	vmstat      string        // /proc/vmstat if empty; tests set it
}

// Run implements Runner.
func (p Processes) Run(ctx context.Context, name string, args ...string) (Result, error) {
	step := "running " + name
	if len(args) > 0 {
		step += " on " + args[len(args)-1] // the disk, or where it is mounted
	}
	var granted *grant
	if programs[name].tenantMemory {
		granted = checks.take(sizeOf(args))
		defer checks.give(granted)
	}
	defer volume.BeginStep(ctx, step)()
	var stdout, stderr tail
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "LC_ALL=C") // the driver parses the output
	if ctx.Done() != nil {                     // else the program may write, and a child that outlives it too: wait for the end of their output
		cmd.WaitDelay = cmp.Or(p.outputDelay, outputDelay)
	}
	// The program ends with the driver. mkfs.btrfs does not lock its disk. One that continued overwrote the file system
	// that the restarted driver had made and mounted. The kernel sends the signal when the thread that started the
	// program ends, hence the locked thread.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var kills string
	if granted != nil {
		kills = p.oomKills()
	}
	err := cmd.Start()
	if err == nil {
		if granted != nil {
			checks.bind(granted, cmd.Process.Pid)
		}
		err = cmd.Wait()
	}
	result := Result{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String(), Peak: peak(cmd.ProcessState)}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return result, volume.Interrupted(ctx, "run %s: the program did not end in time", name).Cause(cause.NodeMemory)
	case errors.As(err, &exit) && exit.Exited():
		return result, nil
	case errors.As(err, &exit):
		return result, volume.Errorf(volume.Unavailable, "run %s: a signal ended the program (%w), so it gave no answer%s. The next try runs it again",
			name, err, memoryReason(exit, result.Peak, kills, p.oomKills())).Cause(cause.NodeMemory)
	case errors.Is(err, exec.ErrWaitDelay):
		return result, volume.Errorf(volume.Unavailable, "run %s: the program ended, but a process that it started still has its output open after %s. "+
			"The driver does not use an output that may lack its end; the next try runs the program again", name, cmd.WaitDelay).Cause(cause.NodeMemory)
	case errors.Is(err, exec.ErrNotFound):
		return result, volume.Errorf(volume.Failed, "run %s: the program is not installed in the driver image (Debian package %s): %w", name, programs[name].pkg, err).Cause(cause.NodeProgram)
	}
	return result, volume.Errorf(volume.Failed, "run %s: %w", name, err).Cause(cause.NodeProgram)
}
