package host

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/host/command"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// killedFsck runs the programs of this machine, but e2fsck dies by SIGKILL at its first step, by whichever name it is
// called. The bind mounts are in a mount namespace of the program alone.
type killedFsck struct{ killer string }

func (k killedFsck) Run(ctx context.Context, name string, args ...string) (Result, error) {
	if name != "fsck.ext4" {
		return command.Processes{}.Run(ctx, name, args...)
	}
	const script = `mount --bind "$0" "$(readlink -f "$(command -v e2fsck)")" && exec "$@"`
	return command.Processes{}.Run(ctx, "unshare", append([]string{"--mount", "sh", "-e", "-c", script, k.killer, name}, args...)...)
}

// The OOM killer takes a check first. A file system that ext4 found damaged is not mounted for writing then.
func TestACheckThatWasKilledIsNoAnswer(t *testing.T) {
	h, m, disk := realHost(t, 64<<20)
	staging := m.Path("staging")
	stage(t, h, StageSpec{Path: staging, FSType: "ext4"})
	must(t, h.Unpublish(t.Context(), staging))
	testenv.Run(t, "tune2fs", "-E", "force_fsck", disk) // the flag that ext4 sets when it finds an error

	killer := filepath.Join(t.TempDir(), "killer")
	must(t, os.WriteFile(killer, []byte("#!/bin/sh\nkill -9 $$\n"), 0o700))
	killed := New(Options{SysRoot: m.Sys, DevRoot: m.Dev, Log: slog.New(slog.DiscardHandler), Commands: killedFsck{killer}})
	wantKind(t, killed.Stage(t.Context(), StageSpec{Volume: vol, Path: staging, FSType: "ext4"}), volume.Unavailable, "killed", "does not mount it")
	if n := countMounts(t, h, m); n != 0 {
		t.Errorf("want nothing mounted, got %d mounts", n)
	}
	stage(t, h, StageSpec{Path: staging, FSType: "ext4"}) // the next one repairs and mounts it
}

// e2fsck cannot open a disk that another mount namespace has mounted. The kernel has read its superblock already.
func TestAFileSystemThatIsMountedElsewhereIsStagedUnchecked(t *testing.T) {
	h, m, disk := realHost(t, 64<<20)
	staging := m.Path("staging")
	stage(t, h, StageSpec{Path: staging, FSType: "ext4"})
	must(t, h.Unpublish(t.Context(), staging))
	must(t, os.MkdirAll(staging, 0o755))
	_, end := elsewhere(t, `mount "$1" "$2"`, disk, staging)
	defer end()
	stage(t, h, StageSpec{Path: staging, FSType: "ext4"})
	must(t, h.Unpublish(t.Context(), staging))
}
