package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Runner runs the tools that make and check file systems.
type Runner interface {
	// Run runs a program to its end and gives what it said, whatever its exit code. An error means that it could not be run, was
	// ended by a signal, or the context ended first.
	Run(ctx context.Context, name string, args ...string) (Result, error)
}

// Result is what a program said: the last 64 KiB of each output.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Said is the program's own words, for a message: the end of what it wrote, on one line. They may repeat what is on a volume, such as its label,
// so each character that is not printable is a question mark: the message goes to logs, events and terminals.
func (r Result) Said() string {
	const most = 500
	words := strings.Join(strings.Fields(r.Stderr+" "+r.Stdout), " ")
	if len(words) > most {
		words = "…" + words[len(words)-most:]
	}
	if words == "" {
		return "no message"
	}
	return printable(words)
}

// printable makes a text that a tenant may have chosen fit for a message.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// outputKept is how much of a tool's output is kept. A crafted ext4 image made e2fsck write hundreds of MB, a line for each repair (measured).
const outputKept = 64 << 10

// tail keeps the end of what is written to it. It takes every byte: a tool whose output nobody takes stops or dies, perhaps in the middle of a
// repair.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > outputKept {
		p = p[n-outputKept:]
	}
	if len(t.kept)+len(p) > 2*outputKept { // only then, so that short writes do not move 64 KiB each
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-outputKept:]...)
	}
	t.kept = append(t.kept, p...)
	return n, nil
}

func (t *tail) String() string {
	return string(t.kept[max(0, len(t.kept)-outputKept):])
}

// packages names the Debian package of each tool, for the message of who has to add it.
var packages = map[string]string{
	"mkfs.ext2": "e2fsprogs", "mkfs.ext3": "e2fsprogs", "mkfs.ext4": "e2fsprogs", "fsck.ext4": "e2fsprogs", "resize2fs": "e2fsprogs",
	"mkfs.xfs": "xfsprogs", "xfs_growfs": "xfsprogs", "mkfs.btrfs": "btrfs-progs", "btrfs": "btrfs-progs",
	"blkid": "util-linux", "wipefs": "util-linux", "fsck": "util-linux", "mount": "mount",
}

// processes runs tools as processes of this machine.
type processes struct{}

func (processes) Run(ctx context.Context, name string, args ...string) (Result, error) {
	var stdout, stderr tail
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "LC_ALL=C") // what they say is read by programs
	if ctx.Done() != nil {                     // otherwise it may write, as a child that outlives it may: the end of its output is waited for, and not closed
		cmd.WaitDelay = 2 * time.Second
	}
	// A tool dies with the driver: mkfs.btrfs holds its disk against nobody, and one that went on wrote over the file system that the
	// driver had made, mounted and shown to a pod when it had started again. The kernel goes by the thread that started the tool.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	if err == nil {
		if strings.HasPrefix(name, "fsck") {
			killFirst(cmd.Process.Pid)
		}
		err = cmd.Wait()
	}
	result := Result{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return result, ended(ctx, "%s did not finish in time", name)
	case errors.As(err, &exit) && exit.Exited():
		return result, nil
	case errors.Is(err, exec.ErrNotFound):
		return result, volume.Errorf(volume.Failed, "%s is not installed here (Debian package %s): %w", name, packages[name], err)
	}
	return result, volume.Errorf(volume.Failed, "run %s: %w", name, err)
}

// killFirst has the kernel choose a process, and those it starts, before any pod where the node's memory ends. What is on a volume decides how
// much e2fsck takes: 400 MB for 64 GiB whose bitmaps have every second block in use (measured). Else it would be the last to go, as a child of
// the driver, which is critical to the node, and others' pods would go first. A repair that was cut short is begun again by the next stage.
func killFirst(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0) // best effort: it may have ended
}
