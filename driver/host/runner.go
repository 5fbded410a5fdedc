package host

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Runner runs the tools that make and check file systems.
type Runner interface {
	// Run runs a program to its end and gives what it said, whatever its exit code. An error means that it could not be run, was
	// ended by a signal, or the context ended first.
	Run(ctx context.Context, name string, args ...string) (Result, error)
}

// Result is what a program said.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Said is the program's own words, for a message: the end of what it wrote, on one line.
func (r Result) Said() string {
	const most = 500
	words := strings.Join(strings.Fields(r.Stderr+" "+r.Stdout), " ")
	if len(words) > most {
		words = "…" + words[len(words)-most:]
	}
	if words == "" {
		return "no message"
	}
	return words
}

// packages names the Debian package of each tool, for the message of who has to add it.
var packages = map[string]string{
	"mkfs.ext2": "e2fsprogs", "mkfs.ext3": "e2fsprogs", "mkfs.ext4": "e2fsprogs", "resize2fs": "e2fsprogs",
	"mkfs.xfs": "xfsprogs", "xfs_growfs": "xfsprogs", "mkfs.btrfs": "btrfs-progs", "btrfs": "btrfs-progs",
	"blkid": "util-linux", "wipefs": "util-linux", "fsck": "util-linux", "mount": "mount",
}

// processes runs tools as processes of this machine.
type processes struct{}

func (processes) Run(ctx context.Context, name string, args ...string) (Result, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "LC_ALL=C") // what they say is read by programs
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
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
