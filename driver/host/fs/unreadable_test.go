package fs

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host/command"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// part is a disk of which only a part can be read.
type part struct {
	size     volume.Size
	readable int64 // from its begin
	err      error // of a read beyond that; nil ends the read early, as io.ReaderAt says with io.EOF
}

func (p part) Size() (volume.Size, error) { return p.size, nil }

func (p part) ReadAt(b []byte, at int64) (int, error) {
	n := int(min(max(p.readable-at, 0), int64(len(b))))
	clear(b[:n])
	switch {
	case n == len(b):
		return n, nil
	case p.err != nil:
		return n, p.err
	}
	return n, io.EOF
}

// A signature may lie where the disk cannot be read, so such a disk never counts as empty.
func TestADiskThatCannotBeReadToItsEndIsNotProbed(t *testing.T) {
	t.Parallel()
	broken := errors.New("input/output error")
	for name, test := range map[string]struct {
		disk part
		want error
	}{
		"all of it":                     {part{size: 16 << 20, readable: 16 << 20}, nil},
		"smaller than its tail":         {part{size: 4096, readable: 4096}, nil},
		"the end is missing":            {part{size: 16 << 20, readable: 16<<20 - 1}, io.ErrUnexpectedEOF},
		"only the begin":                {part{size: 16 << 20, readable: headSize}, io.ErrUnexpectedEOF},
		"an error at the end":           {part{size: 16 << 20, readable: 16<<20 - 1, err: broken}, broken},
		"an error at the begin":         {part{size: 16 << 20, readable: 512, err: broken}, broken},
		"a short disk that ends early":  {part{size: 4096, readable: 4095}, io.ErrUnexpectedEOF},
		"a short disk that has nothing": {part{size: 4096, readable: 0}, io.ErrUnexpectedEOF},
	} {
		if err := readEnds(test.disk); !errors.Is(err, test.want) {
			t.Errorf("%s: want %v, got %v", name, test.want, err)
		}
	}
	if err := readEnds(part{}); err == nil {
		t.Error("want an error for a disk of size 0")
	}
}

// opened is a part of a disk as a Finder opens it.
type opened struct{ part }

func (opened) Close() error        { return nil }
func (opened) Number() disk.Number { return disk.Number{Major: 254, Minor: 16} }

// answers is a Runner whose programs have one result each.
type answers map[string]command.Result

func (a answers) Run(_ context.Context, name string, _ ...string) (command.Result, error) {
	return a[name], nil
}

func findDisk(t *testing.T) *disk.Disk {
	t.Helper()
	m := testenv.NewMachine(t)
	m.Sysfs(t, "vdb", map[string]string{"serial": hosttest.Serial, "dev": "254:16\n"})
	finder := disk.NewFinder(disk.Options{SysRoot: m.Sys, DevRoot: m.Dev, Open: func(path string) (disk.Device, error) {
		if path != m.Dev+"/vdb" {
			return nil, iofs.ErrNotExist
		}
		return opened{part{size: 16 << 20, readable: 16 << 20}}, nil
	}})
	d, err := finder.Find(t.Context(), hosttest.Volume)
	hosttest.Must(t, err)
	return d
}

// e2fsck(8) adds up its exit codes: 4 stands for errors that remain, with or without others that it corrected.
func TestErrorsThatFsckLeavesAreDataLoss(t *testing.T) {
	t.Parallel()
	d := findDisk(t)
	for code, remain := range map[int]bool{0: false, 1: false, 2: false, 3: false, 4: true, 5: true, 12: true} {
		err := NewTools(Options{Commands: answers{"fsck.ext4": {Code: code, Stdout: "UNEXPECTED INCONSISTENCY"}}}).Check(t.Context(), d)
		if remain {
			hosttest.WantKind(t, err, volume.DataLoss, "UNEXPECTED INCONSISTENCY", "vdb")
		} else if err != nil {
			t.Errorf("exit code %d: %v", code, err)
		}
	}
}

// Each program has three outcomes: it did its work, it says that it cannot, or it did not answer. The third decides
// nothing about the disk and is retried.
func TestNoAnswerOfAProgramIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	d := findDisk(t)
	probe := func(t *Tools) error { _, err := t.Probe(context.Background(), d); return err }
	format := func(fsType string) func(*Tools) error {
		return func(t *Tools) error { return t.Format(context.Background(), d, fsType, contract.Format{}) }
	}
	grow := func(fsType string) func(*Tools) error {
		return func(t *Tools) error { return t.Grow(context.Background(), d, fsType, "/staging") }
	}
	check := func(t *Tools) error { return t.Check(context.Background(), d) }
	for _, c := range []struct {
		name   string
		do     func(*Tools) error
		done   int
		cannot map[int]volume.Kind
	}{
		{"blkid", probe, 2, map[int]volume.Kind{4: volume.DataLoss}},
		{"wipefs", probe, 0, map[int]volume.Kind{1: volume.DataLoss}},
		{"mkfs.ext2", format("ext2"), 0, map[int]volume.Kind{1: volume.Failed}},
		{"mkfs.ext3", format("ext3"), 0, map[int]volume.Kind{1: volume.Failed}},
		{"mkfs.ext4", format("ext4"), 0, map[int]volume.Kind{1: volume.Failed}},
		{"mkfs.xfs", format("xfs"), 0, map[int]volume.Kind{1: volume.Failed}},
		{"mkfs.btrfs", format("btrfs"), 0, map[int]volume.Kind{1: volume.Failed}},
		{"fsck.ext4", check, 0, map[int]volume.Kind{4: volume.DataLoss, 8: volume.Unavailable}},
		{"resize2fs", grow("ext4"), 0, map[int]volume.Kind{1: volume.Failed}},
		{"xfs_growfs", grow("xfs"), 0, map[int]volume.Kind{1: volume.Failed}},
		{"btrfs", grow("btrfs"), 0, map[int]volume.Kind{1: volume.Failed}},
	} {
		with := func(r command.Result) *Tools {
			return NewTools(Options{Commands: answers{"blkid": {Code: 2}, c.name: r}, Log: slog.New(slog.DiscardHandler)})
		}
		if err := c.do(with(command.Result{Code: c.done})); err != nil {
			t.Errorf("%s: want success, got %v", c.name, err)
		}
		for code, kind := range c.cannot {
			hosttest.WantKind(t, c.do(with(command.Result{Code: code, Stderr: "cannot"})), kind, "cannot")
		}
		for _, r := range []command.Result{
			{Code: 16},
			{Code: 32},
			{Code: 64},
			{Code: 126},
			{Code: 127},
			{Code: 128},
			{Code: 137},
			{Code: 139},
			{Code: -1},
			{Code: 1, Stderr: "Memory allocation failed"},
			{Code: 8, Stdout: "Cannot allocate memory"},
			{Code: 12, Stderr: "Memory allocation failed"},
		} {
			hosttest.WantKind(t, c.do(with(r)), volume.Unavailable, c.name, "no answer")
		}
		died := volume.Errorf(volume.Unavailable, "a signal ended the program")
		tools := NewTools(Options{Commands: dies{answers{"blkid": {Code: 2}}, c.name, died}})
		if err := c.do(tools); !errors.Is(err, died) || !volume.Is(err, volume.Unavailable) {
			t.Errorf("%s: want what ended it, got %v", c.name, err)
		}
	}
}

// dies is a Runner one of whose programs a signal ends.
type dies struct {
	answers
	name string
	err  error
}

func (d dies) Run(ctx context.Context, name string, args ...string) (command.Result, error) {
	if name == d.name {
		return command.Result{Code: -1}, d.err
	}
	return d.answers.Run(ctx, name, args...)
}

// The kernel gives one error for several reasons.
func TestTheErrorOfAGrowthThatIsNotPermittedNamesTheReason(t *testing.T) {
	t.Parallel()
	d, sys := findDisk(t), t.TempDir()
	const denied = "resize2fs: Permission denied to resize filesystem"
	tools := NewTools(Options{SysRoot: sys, Commands: answers{"resize2fs": {Code: 1, Stderr: denied}}})
	hosttest.WantKind(t, tools.Grow(t.Context(), d, "ext4", "/staging"), volume.Failed, denied, "CAP_SYS_RESOURCE")
	dir := filepath.Join(sys, "fs", "ext4", "vdb")
	hosttest.Must(t, errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "errors_count"), []byte("3\n"), 0o600)))
	hosttest.WantKind(t, tools.Grow(t.Context(), d, "ext4", "/staging"), volume.Failed, denied, "ext4 recorded 3 errors", "Stop the pods")
	tools = NewTools(Options{SysRoot: sys, Commands: answers{"resize2fs": {Code: 1, Stderr: "other"}}})
	if err := tools.Grow(t.Context(), d, "ext4", "/staging"); err == nil || strings.Contains(err.Error(), "recorded") {
		t.Errorf("want no reason for another error, got %v", err)
	}
}
