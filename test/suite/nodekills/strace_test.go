package nodekills

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// changing are the system calls that change the mount table, a file system's tree or what is on a disk, or start a
// tool. A question mark lets strace accept a call that this architecture does not have.
var changing = []string{
	"mount", "?umount", "umount2", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "pivot_root",
	"?mkdir", "mkdirat", "?mknod", "mknodat", "?unlink", "unlinkat", "?rmdir", "?rename", "?renameat", "renameat2", "?link", "linkat",
	"?symlink", "symlinkat", "?open", "openat", "openat2", "?creat", "truncate", "ftruncate", "fallocate",
	"?chmod", "fchmod", "fchmodat", "?chown", "fchown", "?lchown", "fchownat", "setxattr", "fsetxattr",
	"sync", "syncfs", "fsync", "fdatasync", "write", "pwrite64", "writev", "pwritev", "execve", "execveat",
}

// writing are the system calls by which a tool changes a disk. The ioctl calls are among them, since xfs and ext4 grow
// by one.
var writing = []string{"write", "pwrite64", "pwritev", "fallocate", "fsync", "ioctl", "mount"}

// call is a system call as a trace shows it, without what differs from run to run. These are the numbers of file
// descriptors, addresses, and the names of the test's own directory ($DIR) and disk ($DISK).
type call struct {
	by   string // the program: driver, or a tool that it runs
	name string
	args string
}

func (c call) String() string { return fmt.Sprintf("%s: %s(%s)", c.by, c.name, c.args) }

// path is the file that the call is about: what is executed, else the last file that it names.
func (c call) path() string {
	args := c.args
	if strings.HasSuffix(strings.TrimSuffix(c.name, "64"), "write") { // what a tool prints may begin with a path
		args, _, _ = strings.Cut(args, ",")
	}
	names := namedPath.FindAllStringSubmatch(args, -1)
	if len(names) == 0 {
		return ""
	}
	chosen := names[len(names)-1]
	if c.name == "execve" || c.name == "ioctl" { // strace shows what an ioctl of btrfs answers too, which is the path of the disk
		chosen = names[0]
	}
	return strings.Join(chosen[1:], "")
}

// namedPath finds a path in quotes, or behind a file descriptor as `strace -y` shows it.
var namedPath = regexp.MustCompile(`"((?:/|\$)[^"]*)"|<((?:/|\$)[^>]*)>`)

// changes reports whether the call changes anything that outlives the process. A log, a pipe, a socket and a setting in
// /proc do not count. Nor does what a tool writes to the disk: there are hundreds of those calls, and
// TestAVolumeSurvivesAKillWhileAToolWorksOnItsDisk kills at ten of them.
func (c call) changes() bool {
	if c.by != "driver" && slices.Contains(writing, c.name) {
		return c.name == "mount"
	}
	if strings.HasPrefix(c.path(), "/proc/") { // of a process that the kill ends, and under its number, which differs from run to run
		return false
	}
	switch c.name {
	case "open", "openat", "openat2":
		return strings.Contains(c.args, "O_CREAT") || strings.Contains(c.args, "O_TRUNC")
	case "write", "pwrite64", "writev", "pwritev", "fsync", "fdatasync":
		return c.path() != "" && c.path() != "/dev/null"
	}
	return true
}

// names are what differs from run to run.
type names struct{ dir, disk string }

var (
	current    = regexp.MustCompile(`AT_FDCWD<[^>]*>`)
	descriptor = regexp.MustCompile(`\b\d+<`)
	address    = regexp.MustCompile(`0x[0-9a-f]{6,}`)
	variables  = regexp.MustCompile(`/\* \d+ vars \*/`)
)

func (n names) normal(args string) string {
	for _, r := range []struct{ is, becomes string }{{n.dir, "$DIR"}, {n.disk, "$DISK"}, {filepath.Base(n.disk) + ".", "$LOOP."}} {
		args = strings.ReplaceAll(args, r.is, r.becomes)
	}
	args = current.ReplaceAllString(args, "AT_FDCWD")
	args = descriptor.ReplaceAllString(args, "<")
	return strings.TrimSpace(variables.ReplaceAllString(address.ReplaceAllString(args, "ADDRESS"), ""))
}

func (n names) real(path string) string {
	return strings.NewReplacer("$DIR", n.dir, "$DISK", n.disk, "$LOOP.", filepath.Base(n.disk)+".").Replace(path)
}

// event is one thing that a trace shows.
type event struct {
	call
	pid  int
	done bool // the call has ended; else it has begun
}

// trace is strace, attached to a process and following what it starts.
type trace struct {
	names
	strace *exec.Cmd
	events chan event // closed when strace has ended
	said   *bufio.Reader
	mu     sync.Mutex
	raw    strings.Builder
}

// attach lets strace follow the driver, and returns when every thread of it is followed. hold are further arguments:
// which calls are held, and which are shown.
func (n *node) attach(t *testing.T, calls []string, hold ...string) *trace {
	t.Helper()
	out, in, err := os.Pipe()
	must(t, "make a pipe", err)
	args := []string{"-f", "-y", "-Y", "-s", "200", "-e", "signal=none", "-e", "trace=" + strings.Join(calls, ","), "-o", "/proc/self/fd/3", "-p", strconv.Itoa(n.driver.Process.Pid)}
	tr := &trace{names: names{n.Path(), n.disk}, strace: exec.Command("strace", append(args, hold...)...), events: make(chan event, 1<<16)}
	tr.strace.ExtraFiles = []*os.File{in}
	said, err := tr.strace.StderrPipe()
	must(t, "make a pipe", err)
	must(t, "start strace", tr.strace.Start())
	must(t, "close the pipe", in.Close())
	go tr.read(out)
	t.Cleanup(tr.end)
	tr.said = bufio.NewReader(said)
	for line := ""; !strings.Contains(line, "attached"); {
		if line, err = tr.said.ReadString('\n'); err != nil { // before that it may tell where a link leads
			t.Fatalf("strace did not attach: %v: %s", err, line)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, tr.said) }()
	return tr
}

// detach lets the processes go on without strace, and ends it. Later calls do nothing.
func (tr *trace) detach() {
	if tr.strace.ProcessState == nil {
		_ = tr.strace.Process.Signal(unix.SIGTERM)
		_ = tr.strace.Wait()
	}
}

// end ends strace at once. It would keep what was killed under it as a zombie for as long as it had to hold it.
func (tr *trace) end() {
	if tr.strace.ProcessState == nil {
		_ = tr.strace.Process.Kill()
		_ = tr.strace.Wait()
	}
}

// line is one line of a trace: the process, what it runs, the call and its arguments.
var line = regexp.MustCompile(`(?s)^(\d+)<([^>]*)>\s+(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)$`)

// result is the end of a line: strace puts it in a column of its own.
var result = regexp.MustCompile(`\)\s+= `)

// read turns strace's text into events. A call that is held shows as a line without an end, so text is looked at as it
// comes.
func (tr *trace) read(from *os.File) {
	defer close(tr.events)
	defer from.Close()
	open := map[int]call{} // begun and not ended, by process
	var text string
	var shown bool // the event of the line that has no end yet
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		text += string(buffer[:n])
		tr.mu.Lock()
		tr.raw.Write(buffer[:n])
		tr.mu.Unlock()
		for {
			full, rest, ended := strings.Cut(text, "\n")
			if !ended {
				break
			}
			tr.take(full, open, shown, true)
			text, shown = rest, false
		}
		if text != "" && !shown {
			shown = tr.take(text, open, false, false)
		}
		if err != nil {
			return
		}
	}
}

// take reports whether the text shows the beginning of a call.
func (tr *trace) take(text string, open map[int]call, shown, ended bool) bool {
	m := line.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	pid, _ := strconv.Atoi(m[1])
	if m[3] != "" { // resumed
		if c, ok := open[pid]; ok && ended {
			tr.events <- event{c, pid, true}
			delete(open, pid)
		}
		return false
	}
	args, unfinished := strings.CutSuffix(strings.TrimSpace(m[5]), "<unfinished ...>") // strace writes what it has of a call at once
	if all := result.FindAllStringIndex(args, -1); len(all) > 0 {
		args = args[:all[len(all)-1][0]]
	}
	args = strings.TrimSuffix(strings.TrimRight(args, " "), ")")
	c := call{m[2], m[4], tr.normal(strings.TrimSuffix(strings.TrimSpace(args), ","))}
	if strings.HasPrefix(c.by, "cinder-csi") {
		c.by = "driver"
	}
	if !shown {
		tr.events <- event{c, pid, false}
	}
	switch {
	case unfinished || !ended:
		open[pid] = c
	default:
		tr.events <- event{c, pid, true}
		delete(open, pid)
	}
	return true
}

// text is all that strace wrote, for a message.
func (tr *trace) text() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.raw.String()
}
