package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// The content of a volume decides how much memory e2fsck takes: 400 MB for 64 GiB with every second block in use
// (measured). resize2fs reads the group descriptors: 2.5 GiB for the worst superblock of 10 TiB (calculated). So the
// driver bounds both, and "check" means both below. A check that needs more than the node has fails by itself, says so, and writes no
// more. If the kernel has to kill it, the whole container would die with it, also where a pod took the memory. Kubernetes 1.28 and later asks for
// that by memory.oom.group of cgroup v2, and the driver takes it back.
//
// The bound is a limit of the process and not a cgroup of its own. cgroup v2 gives no memory controller to a group below
// one that has processes. The driver would have to leave the group in which the runtime expects it.

// The grants of checks. A check of every second block in use needs 6 MiB for each GiB; one without much to do takes 11 MiB.
const (
	leastMemory = 64 << 20
	memoryOfGiB = 16 << 20
)

// memory shares the memory of a node among the checks. One gets at most what its disk can need, so that a check that lasts for hours leaves the
// rest to others. Nobody waits for memory: a check may hang on a dead disk.
type memory struct {
	available func() (bytes uint64, known bool)
	used      func(pid int) uint64

	mu      sync.Mutex
	running map[*grant]bool
}

// grant is what a check may take.
type grant struct {
	bytes uint64 // 0: nobody knows what the node has
	pid   int    // 0 before the check has started
}

// checks are those of all Processes: the memory is the machine's.
var checks = newMemory(availableMemory, usedMemory)

func newMemory(available func() (uint64, bool), used func(int) uint64) *memory {
	return &memory{available: available, used: used, running: map[*grant]bool{}}
}

// take returns what a check of a disk of that size may take: leastMemory also where the others may take all that the node has. What they have taken
// already is not available to begin with.
func (m *memory) take(size volume.Size) *grant {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := &grant{}
	if left, known := m.available(); known {
		for other := range m.running {
			left -= min(left, other.bytes-min(other.bytes, m.used(other.pid)))
		}
		g.bytes = max(leastMemory, min(leastMemory+uint64(size.RoundUp())*memoryOfGiB, left/8*7))
	}
	m.running[g] = true
	return g
}

func (m *memory) give(g *grant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, g)
}

// bind gives the process of a check its limit. If the node has no memory left all the same, the kernel kills the process before any pod. Both are
// best effort: the process may have ended.
func (m *memory) bind(g *grant, pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
	killAlone(ownGroup())
	if g.bytes == 0 {
		return
	}
	const stack = 8 << 20 // of each thread that reads bitmaps, one for a processor; it counts, and hardly any of it is used
	data := g.bytes + uint64(runtime.NumCPU())*stack
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: data, Max: data}, nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	g.pid = pid
}

// sizeOf is the size of the disk that the last argument of a check names, or 0.
func sizeOf(args []string) volume.Size {
	f, err := os.Open(strings.Join(args[max(0, len(args)-1):], ""))
	if err != nil {
		return 0
	}
	defer f.Close()
	end, _ := f.Seek(0, io.SeekEnd)
	return volume.Size(end)
}

// usedMemory is what a process has in memory of its own (proc(5), statm); 0 if it has ended.
func usedMemory(pid int) uint64 {
	var size, resident, shared uint64
	statm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	_, _ = fmt.Sscan(string(statm), &size, &resident, &shared)
	return (resident - min(resident, shared)) * uint64(os.Getpagesize())
}

func availableMemory() (bytes uint64, known bool) {
	meminfo, _ := os.ReadFile("/proc/meminfo")
	return leastOf(string(meminfo), ownGroup())
}

// ownGroup is the directory of this process's cgroup v2. A privileged container has no cgroup namespace of its own, so it sees those of the machine.
func ownGroup() string {
	groups, _ := os.ReadFile("/proc/self/cgroup")
	return groupOf(string(groups))
}

// groupOf returns the directory of the cgroup v2 in a text of cgroups(7), /proc/PID/cgroup.
func groupOf(groups string) string {
	for line := range strings.Lines(groups) {
		if path, is := strings.CutPrefix(strings.TrimSpace(line), "0::"); is {
			return filepath.Join("/sys/fs/cgroup", filepath.Join("/", path))
		}
	}
	return "/sys/fs/cgroup"
}

// killAlone makes the kernel kill one process of a cgroup, and not all. kubelet may set the opposite again when it resizes the container.
func killAlone(group string) {
	if f, err := os.OpenFile(filepath.Join(group, "memory.oom.group"), os.O_WRONLY, 0); err == nil {
		_, _ = f.WriteString("0")
		_ = f.Close()
	}
}

// leastOf returns what is available by meminfo or in the cgroup of the container, whichever is less. It returns false if that is unknown.
func leastOf(meminfo, group string) (bytes uint64, known bool) {
	content := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(group, name))
		return string(text)
	}
	if _, after, found := strings.Cut(meminfo, "MemAvailable:"); found {
		_, err := fmt.Sscanf(after, "%d", &bytes)
		known, bytes = err == nil, bytes<<10
	}
	var limit, current uint64
	if _, err := fmt.Sscan(content("memory.max"), &limit); err == nil { // else "max", or cgroup v1
		_, _ = fmt.Sscan(content("memory.current"), &current)
		for line := range strings.Lines(content("memory.stat")) {
			// The kernel drops the page cache first. The check of a large disk fills it up to the limit.
			if name, pages, _ := strings.Cut(strings.TrimSpace(line), " "); name == "inactive_file" || name == "active_file" {
				cached, _ := strconv.ParseUint(pages, 10, 64)
				current -= min(current, cached)
			}
		}
		if left := limit - min(limit, current); !known || left < bytes {
			known, bytes = true, left
		}
	}
	return bytes, known
}

func peak(state *os.ProcessState) volume.Size {
	if state == nil {
		return 0
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		return volume.Size(usage.Maxrss) << 10
	}
	return 0
}

func atPeak(peak volume.Size) string {
	if peak == 0 {
		return ""
	}
	return fmt.Sprintf(" when it had taken %d MiB", peak>>20)
}

// memoryReason says what a kill had to do with memory. before and after are what oomKills gave when the program began and
// ended; before is empty if nobody asked.
func memoryReason(exit *exec.ExitError, peak volume.Size, before, after string) string {
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || status.Signal() != syscall.SIGKILL || before == "" || after == before {
		return ""
	}
	return "; the kernel killed it because memory ran out" + atPeak(peak)
}

// oomKills is how often the kernel of this machine killed a process because memory ran out (/proc/vmstat, Linux 4.13).
func (p Processes) oomKills() string {
	vmstat, _ := os.ReadFile(cmp.Or(p.vmstat, "/proc/vmstat"))
	_, after, _ := strings.Cut(string(vmstat), "\noom_kill ")
	count, _, _ := strings.Cut(after, "\n")
	return count
}
