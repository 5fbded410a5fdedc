package command

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// The content of a volume decides how much memory e2fsck takes: 400 MB for 64 GiB with every second block in use
// (measured). So the driver bounds it. A check that needs more than the node has fails by itself, says so, and writes no
// more. If the kernel has to kill it, the whole container may die with it: Kubernetes 1.28 and later sets memory.oom.group of
// cgroup v2.
//
// The bound is a limit of the process and not a cgroup of its own. cgroup v2 gives no memory controller to a group below
// one that has processes. The driver would have to leave the group in which the runtime expects it.

// granted is what the running checks may take together. The memory is the machine's, so all Processes share it. Nobody waits for memory: a
// check may hang on a dead disk.
var granted struct {
	sync.Mutex
	bytes uint64
}

// boundMemory gives a process a limit below what the node has, and what the other checks may not take, until release. If the node has no memory
// left all the same, the kernel kills the process before any pod. Both are best effort: the process may have ended.
func boundMemory(pid int) (release func()) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
	granted.Lock()
	defer granted.Unlock()
	meminfo, _ := os.ReadFile("/proc/meminfo")
	most, _ := os.ReadFile("/sys/fs/cgroup/memory.max")
	used, _ := os.ReadFile("/sys/fs/cgroup/memory.current")
	limit, ok := memoryLimit(string(meminfo), string(most), string(used), granted.bytes)
	if !ok {
		return func() {}
	}
	const stack = 8 << 20 // of each thread that reads bitmaps, one for a processor; it counts, and hardly any of it is used
	data := limit + uint64(runtime.NumCPU())*stack
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: data, Max: data}, nil)
	granted.bytes += limit
	return func() {
		granted.Lock()
		defer granted.Unlock()
		granted.bytes -= limit
	}
}

// memoryLimit returns seven eighths of the memory that is available, by meminfo or in the cgroup of the container. What
// other checks may take is not available. It returns at least leastMemory. It returns false if that is unknown.
func memoryLimit(meminfo, most, used string, granted uint64) (bytes uint64, ok bool) {
	const leastMemory = 64 << 20 // a check without much to do takes 11 MiB
	if _, after, found := strings.Cut(meminfo, "MemAvailable:"); found {
		_, err := fmt.Sscanf(after, "%d", &bytes)
		ok, bytes = err == nil, bytes<<10
	}
	var limit, current uint64
	if _, err := fmt.Sscan(most, &limit); err == nil { // else "max", or cgroup v1
		_, _ = fmt.Sscan(used, &current)
		if left := limit - min(limit, current); !ok || left < bytes {
			ok, bytes = true, left
		}
	}
	return max((bytes-min(bytes, granted))/8*7, leastMemory), ok
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
