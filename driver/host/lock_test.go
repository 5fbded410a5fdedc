package host

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/host/command"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// slowMkfs makes mkfs slow, so that two processes would make two file systems.
type slowMkfs struct {
	command.Processes
	began func()
}

func (s slowMkfs) Run(ctx context.Context, name string, args ...string) (Result, error) {
	if strings.HasPrefix(name, "mkfs.") {
		s.began()
	}
	return s.Processes.Run(ctx, name, args...)
}

// Two drivers of one server, such as of two stacks, lock volumes in memory only, each for itself. The test program is the second process.
func TestTwoProcessesNeverFormatOneDisk(t *testing.T) {
	options := func(sys, dev string, began func()) Options {
		return Options{SysRoot: sys, DevRoot: dev, Log: slog.New(slog.DiscardHandler), Commands: slowMkfs{began: began}}
	}
	if sys := os.Getenv("STAGE_SYS"); sys != "" { // the second process: it formats the disk, slowly, and ends without a mount
		h := New(options(sys, os.Getenv("STAGE_DEV"), func() {
			fmt.Println("formats")
			_, _ = io.Copy(io.Discard, os.Stdin)
		}))
		staging := os.Getenv("STAGE_PATH")
		stage(t, h, StageSpec{Path: staging, FSType: "ext4"})
		must(t, os.WriteFile(staging+"/data", []byte("kept"), 0o600))
		must(t, h.Unstage(t.Context(), vol, staging))
		return
	}
	_, m, _ := realHost(t, 400<<20)
	other := exec.Command(os.Args[0], "-test.run=^TestTwoProcessesNeverFormatOneDisk$")
	other.Env = append(os.Environ(), "STAGE_SYS="+m.Sys, "STAGE_DEV="+m.Dev, "STAGE_PATH="+m.Path("other"))
	stdin, err := other.StdinPipe()
	must(t, err)
	stdout, err := other.StdoutPipe()
	must(t, err)
	must(t, other.Start())
	finish := sync.OnceFunc(func() { _ = stdin.Close(); _, _ = io.Copy(io.Discard, stdout); must(t, other.Wait()) })
	defer finish()
	said := make([]byte, len("formats\n"))
	_, err = io.ReadFull(stdout, said)
	must(t, err)

	h := New(options(m.Sys, m.Dev, func() { t.Error("want no second file system made") }))
	const locked = "another process has locked disk"
	for limit := time.Second; limit < time.Minute; limit *= 2 { // until it came as far as the lock before the time was over
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		err = h.Stage(ctx, StageSpec{Volume: vol, Path: m.Path("staging"), FSType: "ext4"})
		cancel()
		if err == nil || strings.Contains(err.Error(), locked) {
			break
		}
	}
	wantKind(t, err, volume.DeadlineExceeded, locked)
	finish()
	stage(t, h, StageSpec{Path: m.Path("staging"), FSType: "ext4"})
	if got, _ := os.ReadFile(m.Path("staging", "data")); string(got) != "kept" {
		t.Errorf("want the file of the other process, got %q", got)
	}
	must(t, h.Unstage(t.Context(), vol, m.Path("staging")))
	testenv.Run(t, "flock", "--nonblock", m.Dev+"/vdb", "true") // and the lock is free
}
