package command

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

var (
	must     = hosttest.Must
	wantKind = hosttest.WantKind
)

// allocated is how many bytes of memory a piece of work takes in all.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestTheEndOfTheOutputIsKept(t *testing.T) { // measures memory: not beside other tests
	testenv.NeedTools(t, "sh", "dash", "head", "coreutils")
	const script = `head -c 67108864 /dev/zero | tr '\0' x; echo the end; head -c 67108864 /dev/zero | tr '\0' y >&2; echo the other end >&2`
	var result Result
	var err error
	took := allocated(func() { result, err = Processes{}.Run(t.Context(), "sh", "-c", script) })
	must(t, err)
	if result.Code != 0 || !strings.HasSuffix(result.Stdout, "xxxthe end\n") || !strings.HasSuffix(result.Stderr, "yyythe other end\n") {
		t.Errorf("want the end of each, got code %d, %.20q, %.20q", result.Code, result.Stdout, result.Stderr)
	}
	if len(result.Stdout) > outputLimit || len(result.Stderr) > outputLimit || took > 2<<20 {
		t.Errorf("want at most %d bytes of each kept and 2 MiB used, got %d and %d and %d used", outputLimit, len(result.Stdout), len(result.Stderr), took)
	}
}

func TestOutputInPiecesIsKeptInOrder(t *testing.T) {
	t.Parallel()
	for _, piece := range []int{1, 7, outputLimit - 1, outputLimit, outputLimit + 1, 3 * outputLimit} {
		var all strings.Builder
		var kept tail
		for n := 0; n < 4*outputLimit; n += piece {
			text := strings.Repeat(string(rune('a'+n%26)), piece)
			all.WriteString(text)
			if written, err := kept.Write([]byte(text)); written != piece || err != nil {
				t.Fatalf("want every byte accepted, or the program would block; got %d, %v", written, err)
			}
		}
		want := all.String()[all.Len()-outputLimit:]
		if got := kept.String(); got != want {
			t.Errorf("pieces of %d: want the last %d bytes, got %d bytes that differ", piece, outputLimit, len(got))
		}
	}
	var few tail
	_, _ = few.Write([]byte("a"))
	_, _ = few.Write([]byte("b"))
	if few.String() != "ab" {
		t.Errorf("want what little there is, got %q", few.String())
	}
}

// A tenant chooses the label and the file names of a volume, and programs repeat them in messages.
func TestAMessageHasNoControlCharacters(t *testing.T) {
	t.Parallel()
	got := Result{Stderr: "label \x1b[2J\x1b]0;owned\x07\xff\u202e:\n clean"}.Message()
	if want := "label ?[2J?]0;owned???: clean"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

// The content of a volume decides how much memory a check or resize2fs takes. The pods of other tenants must not be killed first, and
// the check fails before the node has no memory left.
func TestTheMemoryOfACheckIsBoundedAndItIsTheFirstThatTheKernelKills(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"fsck.ext4", "resize2fs", "mkfs.ext4"} {
		script := `#!/bin/sh
for n in $(seq 100); do read -r adj < /proc/$$/oom_score_adj; grep -q 'data size *unlimited' /proc/$$/limits || [ $adj != 1000 ] || break; /bin/true; done
read -r adj < /proc/$$/oom_score_adj
while read -r a b c limit rest; do [ "$a $b $c" != "Max data size" ] || break; done < /proc/$$/limits
echo $adj $limit
`
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700))
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	must(t, err)
	image := filepath.Join(dir, "image")
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, 1<<30))
	most := (80 + 8*runtime.NumCPU()) << 20
	bounded := fmt.Sprintf("1000 %d\n", most)
	for name, want := range map[string]string{"fsck.ext4": bounded, "resize2fs": bounded, "mkfs.ext4": strings.TrimSpace(string(own)) + " unlimited\n"} {
		result, err := Ask(t.Context(), Processes{}, name, image)
		if err != nil || result.Stdout != want {
			t.Errorf("%s: want %q, got %+v, %v", name, want, result, err)
		}
	}
	if len(checks.running) != 0 {
		t.Errorf("want all memory given back after the checks, got %d", len(checks.running))
	}
}

func TestTheLimitOfACheckIsBelowWhatTheNodeHas(t *testing.T) {
	t.Parallel()
	const mib, gib = 1 << 20, 1 << 30
	meminfo := "MemTotal: 9 kB\nMemAvailable:   8388608 kB\n"
	for _, c := range []struct {
		name, meminfo, most, used, stat string
		size                            volume.Size
		granted                         uint64 // to another check
		want                            uint64
	}{
		{name: "a small disk", meminfo: meminfo, size: volume.GiB(1), want: 80 * mib},
		{name: "a part of a GiB", meminfo: meminfo, size: 1, want: 80 * mib},
		{name: "no size", meminfo: meminfo, want: 64 * mib},
		{name: "a large disk", meminfo: meminfo, size: volume.GiB(100), want: 1664 * mib},
		{name: "a disk for which the node is too small", meminfo: meminfo, size: volume.GiB(1000), want: 7 * gib},
		{name: "no limit of the container", meminfo: meminfo, most: "max\n", used: "1\n", size: volume.GiB(1000), want: 7 * gib},
		{name: "the container has less", meminfo: meminfo, most: "2147483648\n", used: "1073741824\n", size: volume.GiB(1000), want: 896 * mib},
		{name: "the container has more", meminfo: meminfo, most: "107374182400\n", used: "1\n", size: volume.GiB(1000), want: 7 * gib},
		{name: "another check runs", meminfo: meminfo, granted: 7 * gib, size: volume.GiB(1000), want: 896 * mib},
		{name: "only small checks fit beside it", meminfo: meminfo, granted: 8*gib - 72*mib, size: volume.GiB(1000), want: 64 * mib},
		{name: "another check may take all of it", meminfo: meminfo, granted: 8 * gib, want: 64 * mib},
		{name: "another check may take all of the container", meminfo: meminfo, most: "2147483648\n", used: "1073741824\n", granted: gib, want: 64 * mib},
		{name: "nothing is left, and no other check runs", meminfo: meminfo, most: "1000\n", used: "2000\n", size: volume.GiB(1000), want: 64 * mib},
		{name: "no meminfo", most: "8589934592\n", used: "0\n", size: volume.GiB(1000), want: 7 * gib},
		// The kernel drops the cache before a program of the container lacks memory. A check of a large disk fills it.
		{name: "pages that were read once", most: "8589934592\n", used: "8589934592\n", stat: "anon 1\nfile 8589934592\ninactive_file 8589934592\n", size: volume.GiB(1000), want: 7 * gib},
		{name: "pages that were read again", most: "8589934592\n", used: "8589934592\n", stat: "active_file 8589934592\n", size: volume.GiB(1000), want: 7 * gib},
		{name: "pages of both kinds, and others", most: "8589934592\n", used: "8589934592\n", stat: "anon 4294967296\nshmem 1\ninactive_anon 1\ninactive_file 2147483648\nactive_file 2147483648\nunevictable 1\n", size: volume.GiB(1000), want: 3584 * mib},
		{name: "more cache than use, since one was read later", most: "8589934592\n", used: "1\n", stat: "inactive_file 2\n", size: volume.GiB(1000), want: 7 * gib},
		{name: "no cache", most: "8589934592\n", used: "8589934592\n", stat: "inactive_file 0\nactive_file 0\n", size: volume.GiB(1000), want: 64 * mib},
	} {
		group := t.TempDir()
		for name, text := range map[string]string{"memory.max": c.most, "memory.current": c.used, "memory.stat": c.stat} {
			must(t, os.WriteFile(filepath.Join(group, name), []byte(text), 0o600))
		}
		m := newMemory(func() (uint64, bool) { return leastOf(c.meminfo, group) }, func(int) uint64 { return 0 })
		if c.granted > 0 {
			m.running[&grant{bytes: c.granted}] = true
		}
		if got := m.take(c.size); got.bytes != c.want {
			t.Errorf("%s: want %d MiB, got %+v", c.name, c.want>>20, got)
		}
	}
	unknown := newMemory(func() (uint64, bool) { return leastOf("", t.TempDir()) }, func(int) uint64 { return 0 })
	for range 3 {
		if g := unknown.take(volume.GiB(1)); g.bytes != 0 {
			t.Errorf("want no limit where nobody knows what the node has, got %+v", g)
		}
	}
}

func TestTheGroupOfAContainerIsReadAlsoWithoutANamespace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":       "/sys/fs/cgroup",
		"0::/\n": "/sys/fs/cgroup",
		"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope\n": "/sys/fs/cgroup/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope",
		"0::/../../other\n":                           "/sys/fs/cgroup/other",
		"4:memory:/docker/1\n3:cpu:/\n0::/docker/1\n": "/sys/fs/cgroup/docker/1",
		"4:memory:/docker/1\n":                        "/sys/fs/cgroup",
	} {
		if got := groupOf(text); got != want {
			t.Errorf("%q: want %s, got %s", text, want, got)
		}
	}
}

// Without it the kernel ends the driver with a check that it kills for the memory of another pod.
func TestTheKernelKillsACheckAlone(t *testing.T) {
	t.Parallel()
	with, without := t.TempDir(), t.TempDir() // without: cgroup v1
	file := filepath.Join(with, "memory.oom.group")
	must(t, os.WriteFile(file, []byte("1"), 0o600))
	killAlone(with)
	killAlone(without)
	if got, err := os.ReadFile(file); err != nil || string(got) != "0" {
		t.Errorf("want 0, got %s, %v", got, err)
	}
	if files, err := os.ReadDir(without); err != nil || len(files) > 0 {
		t.Errorf("want no new file, got %v, %v", files, err)
	}
}

// Whatever checks begin and end, and however much of its memory each has taken, together they may take no more than the node has. One for which that
// is too little takes the least all the same, so that checks which hang delay no other volume.
func TestTheLimitsOfChecksAtTheSameTimeAreBelowWhatTheNodeHas(t *testing.T) {
	t.Parallel()
	for _, total := range []uint64{1 << 20, 100 << 20, 512 << 20, 8 << 30, 256 << 30} {
		random := rand.New(rand.NewPCG(total, 1))
		taken := map[int]uint64{}
		m := newMemory(func() (uint64, bool) {
			left := total
			for _, bytes := range taken {
				left -= min(left, bytes)
			}
			return left, true
		}, func(pid int) uint64 { return taken[pid] })
		for pid := 1; pid <= 3000; pid++ {
			var sum uint64
			for g := range m.running {
				sum += g.bytes
			}
			g := m.take(volume.GiB(1 << random.IntN(15)))
			if g.bytes < leastMemory || g.bytes > leastMemory && sum+g.bytes > total {
				t.Fatalf("%d MiB: beside checks of %d MiB one got %d", total>>20, sum>>20, g.bytes>>20)
			}
			g.pid, taken[pid] = pid, g.bytes*uint64(random.IntN(3))/2
			for g := range m.running {
				if random.IntN(20) == 0 {
					delete(taken, g.pid)
					m.give(g)
				}
			}
		}
	}
}

// Three checks of disks that are too large for the node last for hours, or hang. Fifty others begin beside them, each with what most need.
func TestLongChecksLeaveMemoryForSmallOnes(t *testing.T) {
	t.Parallel()
	m := newMemory(func() (uint64, bool) { return 8 << 30, true }, func(int) uint64 { return 0 })
	for range 3 {
		m.take(volume.GiB(2000))
	}
	for i := range 50 {
		if got := m.take(volume.GiB(1)).bytes; got < leastMemory {
			t.Errorf("check %d got %d bytes", i, got)
		}
	}
}

// A check that needs more than its limit says so, and is no answer.
func TestACheckWithoutMemoryIsToldAsSuch(t *testing.T) {
	testenv.NeedTools(t, "mkfs.ext4", "e2fsprogs")
	image := filepath.Join(t.TempDir(), "image")
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, 64<<30))
	testenv.Run(t, "mkfs.ext4", "-q", "-F", "-E", "nodiscard", image)
	limited := runner(func(ctx context.Context, name string, args ...string) (Result, error) {
		return Processes{}.Run(ctx, "sh", append([]string{"-c", `ulimit -d 16384; exec "$0" "$@"`, name}, args...)...)
	})
	_, err := Ask(t.Context(), limited, "fsck.ext4", "-f", "-n", image)
	wantKind(t, err, volume.Unavailable, "fsck.ext4", "no more memory when it had taken", "MiB", "a node with more memory")
}

// Every exit code of every program is an answer or none.
func TestEveryExitCodeIsAnAnswerOrNone(t *testing.T) {
	t.Parallel()
	want := map[string][]int{"fsck.ext4": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, "blkid": {0, 2, 4, 8}, "mount": {0, 1, 32}}
	for name, p := range programs {
		answers := want[name]
		if answers == nil {
			answers = []int{0, 1}
		}
		for code := range 256 {
			r, err := Ask(t.Context(), runner(func(context.Context, string, ...string) (Result, error) { return Result{Code: code}, nil }), name)
			if slices.Contains(answers, code) {
				if err != nil || r.Code != code {
					t.Errorf("%s: want exit code %d as an answer, got %+v, %v", name, code, r, err)
				}
			} else if !volume.Is(err, volume.Unavailable) {
				t.Errorf("%s: want exit code %d not as an answer, got %+v, %v", name, code, r, err)
			}
		}
		if p.pkg == "" || p.tenantMemory != (name == "fsck.ext4" || name == "resize2fs") {
			t.Errorf("%s: got %+v", name, p)
		}
	}
}

// The kernel counts what it kills because memory ran out. Only of a program whose memory a tenant decides does the driver say so.
func TestAKillForWantOfMemoryIsNamed(t *testing.T) {
	if (Processes{}).oomKills() == "" {
		t.Fatal("want the counter oom_kill in /proc/vmstat")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	counter := filepath.Join(dir, "vmstat")
	for _, c := range []struct {
		program, signal, after string
		named                  bool
	}{{"fsck.ext4", "KILL", "8", true}, {"fsck.ext4", "KILL", "7", false}, {"fsck.ext4", "TERM", "8", false}, {"mkfs.ext4", "KILL", "8", false}} {
		count := "pgfault 5\noom_kill %s\nballoon 1\n"
		script := fmt.Sprintf("#!/bin/sh\nprintf '"+strings.ReplaceAll(count, "\n", `\n`)+"' > %s\nkill -%s $$\n", c.after, counter, c.signal)
		for path, content := range map[string]string{counter: fmt.Sprintf(count, "7"), filepath.Join(dir, c.program): script} {
			if err := os.WriteFile(path, []byte(content), 0o700); err != nil { //nolint:gosec // the test runs one of them
				t.Fatal(err)
			}
		}
		_, err := Processes{vmstat: counter}.Run(t.Context(), c.program)
		if !volume.Is(err, volume.Unavailable) || strings.Contains(err.Error(), "the kernel killed it because memory ran out when it had taken ") != c.named {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

type runner func(ctx context.Context, name string, args ...string) (Result, error)

func (r runner) Run(ctx context.Context, name string, args ...string) (Result, error) {
	return r(ctx, name, args...)
}

// A program that continues may overwrite what the restarted driver makes.
func TestAProgramEndsWithTheDriver(t *testing.T) {
	const variable = "HOST_TEST_TOOL_HOLDS"
	if held := os.Getenv(variable); held != "" { // the driver
		_, _ = Processes{}.Run(t.Context(), "sh", "-c", `exec 9>"$1"; sleep 3 9>&-; echo survived >&9`, "sh", held)
		return
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	driver := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	driver.Env = append(os.Environ(), variable+"="+pipe)
	must(t, driver.Start())
	f, err := os.Open(pipe) // when the tool has it open
	must(t, err)
	defer f.Close()
	must(t, driver.Process.Kill())
	_ = driver.Wait()
	if left, err := io.ReadAll(f); err != nil || len(left) > 0 { // until no process has it open
		t.Fatalf("want the program ended with the driver, got %q, %v", left, err)
	}
}

func TestAMissingProgramIsNamedWithItsPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Processes{}.Run(t.Context(), "mkfs.xfs")
	wantKind(t, err, volume.Failed, "mkfs.xfs", "xfsprogs")
}

func TestAProgramEndsWithItsContext(t *testing.T) {
	for limit := 50 * time.Millisecond; ; limit *= 2 { // until the program had the time to begin
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		result, err := Processes{}.Run(ctx, "sh", "-c", "echo begun; exec sleep 600")
		cancel()
		wantKind(t, err, volume.DeadlineExceeded, "run sh")
		if result.Stdout != "" {
			return
		}
	}
}

// A program that failed has its exit code, whatever its children do.
func TestAProgramWhoseChildKeepsItsOutputIsRunAgain(t *testing.T) {
	t.Parallel()
	for code, kind := range map[string]volume.Kind{"0": volume.Unavailable, "3": volume.Unknown} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := Processes{outputDelay: 100 * time.Millisecond}.Run(ctx, "sh", "-c", "sleep 60 & echo $!; exit "+code)
			child, parseErr := strconv.Atoi(strings.TrimSpace(r.Stdout))
			must(t, parseErr)
			_ = unix.Kill(child, unix.SIGKILL)
			if kind != volume.Unknown {
				wantKind(t, err, kind, "run sh", "still has its output open", "the next try runs the program again")
			} else if err != nil || r.Code != 3 {
				t.Errorf("want the exit code, got %+v, %v", r, err)
			}
		})
	}
}

// A program that may write is not given up while a child of it has its output open.
func TestTheOutputOfAProgramThatMayWriteIsAwaited(t *testing.T) {
	t.Parallel()
	r, err := Processes{outputDelay: 20 * time.Millisecond}.Run(context.Background(), "sh", "-c", "(sleep 0.3; echo late) & echo early")
	if err != nil || r.Stdout != "early\nlate\n" {
		t.Errorf("want all of the output, got %+v, %v", r, err)
	}
}

func TestRunReturnsTheExitCode(t *testing.T) {
	t.Parallel()
	r, err := Processes{}.Run(t.Context(), "sh", "-c", "echo out; echo err >&2; exit 3")
	if err != nil || r != (Result{Code: 3, Stdout: "out\n", Stderr: "err\n", Peak: r.Peak}) || r.Message() != "err out" || r.Peak < 64<<10 || r.Peak > 1<<30 {
		t.Errorf("want code 3, both streams and the memory, got %+v, %v", r, err)
	}
	for signal, name := range map[string]string{"KILL": "killed", "TERM": "terminated", "SEGV": "segmentation fault"} {
		_, err = Processes{}.Run(t.Context(), "sh", "-c", "kill -"+signal+" $$")
		wantKind(t, err, volume.Unavailable, name, "no answer")
	}
}

// A program that is being started holds the output of others until it runs. Without a free processor that takes seconds.
func TestAProgramWhoseOutputIsHeldOpenSucceeds(t *testing.T) {
	t.Parallel()
	r, err := Processes{}.Run(t.Context(), "sh", "-c", "sleep 2.5 & echo done")
	if err != nil || r.Stdout != "done\n" {
		t.Errorf("want the output of the program, got %+v, %v", r, err)
	}
}
