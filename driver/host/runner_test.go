package host

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/internal/testenv"
)

// allocated is how many bytes of memory a piece of work takes in all.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestOfAToolsOutputTheEndIsKept(t *testing.T) { // measures memory: not beside other tests
	testenv.NeedTools(t, "sh", "dash", "head", "coreutils")
	const script = `head -c 67108864 /dev/zero | tr '\0' x; echo the end; head -c 67108864 /dev/zero | tr '\0' y >&2; echo the other end >&2`
	var result Result
	var err error
	took := allocated(func() { result, err = processes{}.Run(t.Context(), "sh", "-c", script) })
	must(t, err)
	if result.Code != 0 || !strings.HasSuffix(result.Stdout, "xxxthe end\n") || !strings.HasSuffix(result.Stderr, "yyythe other end\n") {
		t.Errorf("want the end of each, got code %d, %.20q, %.20q", result.Code, result.Stdout, result.Stderr)
	}
	if len(result.Stdout) > outputKept || len(result.Stderr) > outputKept || took > 2<<20 {
		t.Errorf("want at most %d bytes of each kept and 2 MiB used, got %d and %d and %d used", outputKept, len(result.Stdout), len(result.Stderr), took)
	}
}

func TestWhatAToolWritesInPiecesIsKeptInOrder(t *testing.T) {
	t.Parallel()
	for _, piece := range []int{1, 7, outputKept - 1, outputKept, outputKept + 1, 3 * outputKept} {
		var all strings.Builder
		var kept tail
		for n := 0; n < 4*outputKept; n += piece {
			text := strings.Repeat(string(rune('a'+n%26)), piece)
			all.WriteString(text)
			if written, err := kept.Write([]byte(text)); written != piece || err != nil {
				t.Fatalf("want every byte taken, or the tool would be stopped; got %d, %v", written, err)
			}
		}
		want := all.String()[all.Len()-outputKept:]
		if got := kept.String(); got != want {
			t.Errorf("pieces of %d: want the last %d bytes, got %d bytes that differ", piece, outputKept, len(got))
		}
	}
	var few tail
	_, _ = few.Write([]byte("a"))
	_, _ = few.Write([]byte("b"))
	if few.String() != "ab" {
		t.Errorf("want what little there is, got %q", few.String())
	}
}

// A volume's label and file names are its tenant's text, and what a tool says of them goes to logs, events and terminals.
func TestAToolsWordsHaveNoControlCharacters(t *testing.T) {
	t.Parallel()
	got := Result{Stderr: "label \x1b[2J\x1b]0;owned\x07\xff\u202e:\n clean"}.Said()
	if want := "label ?[2J?]0;owned???: clean"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

// A tool that makes or repairs a file system ends by itself: one that was killed leaves a part of its work.
func TestAToolThatWritesIsNotKilledWhenItsCallerGoes(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.plug(t, "vdb", serial, Number{254, 16})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b.run = cancelingTools{b.tools, cancel, t}
	_ = b.Stage(ctx, Staging{Volume: vol, Path: b.place("staging"), FSType: "ext4"})
	if ctx.Err() == nil {
		t.Error("want the caller gone when mkfs ran")
	}
}

// cancelingTools takes the caller away when a tool that writes begins, and makes sure that the tool does not hear of it.
type cancelingTools struct {
	Runner
	cancel context.CancelFunc
	t      *testing.T
}

func (c cancelingTools) Run(ctx context.Context, name string, args ...string) (Result, error) {
	if strings.HasPrefix(name, "mkfs") || name == "fsck" || name == "resize2fs" {
		c.cancel()
		if ctx.Err() != nil || ctx.Done() != nil {
			c.t.Errorf("want %s run to its end", name)
		}
	}
	return c.Runner.Run(ctx, name, args...)
}

// The memory that fsck takes is its volume's tenant's choice, so where the node has none left, fsck goes before others' pods.
func TestFsckIsTheFirstToGoWhereTheNodeHasNoMemoryLeft(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"fsck", "mkfs.ext4"} {
		script := "#!/bin/sh\nfor n in $(seq 100); do read -r adj < /proc/$$/oom_score_adj; [ $adj = 1000 ] && break; /bin/true; done\ncat /proc/self/oom_score_adj\n"
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700))
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	must(t, err)
	for name, want := range map[string]string{"fsck": "1000\n", "mkfs.ext4": string(own)} {
		result, err := processes{}.Run(t.Context(), name)
		if err != nil || result.Stdout != want {
			t.Errorf("%s: want %q, got %+v, %v", name, want, result, err)
		}
	}
}

// A tool that outlives the driver may write over what the next driver makes.
func TestAToolDiesWithTheDriver(t *testing.T) {
	const variable = "HOST_TEST_TOOL_HOLDS"
	if held := os.Getenv(variable); held != "" { // the driver
		_, _ = processes{}.Run(t.Context(), "sh", "-c", `exec 9>"$1"; exec sleep 60`, "sh", held)
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
	if _, err := io.ReadAll(f); err != nil { // until nobody has it open any more
		t.Fatal(err)
	}
}
