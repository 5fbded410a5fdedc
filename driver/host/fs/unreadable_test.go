package fs

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"testing"

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

// fsck(8) adds up its exit codes: 4 stands for errors that remain, with or without others that it corrected.
func TestErrorsThatFsckLeavesAreDataLoss(t *testing.T) {
	t.Parallel()
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
	for code, remain := range map[int]bool{0: false, 1: false, 2: false, 3: false, 4: true, 5: true, 8: false, 12: true} {
		err := NewTools(Options{Commands: answers{"fsck": {Code: code, Stdout: "UNEXPECTED INCONSISTENCY"}}}).Check(t.Context(), d)
		if remain {
			hosttest.WantKind(t, err, volume.DataLoss, "UNEXPECTED INCONSISTENCY", "vdb")
		} else if err != nil {
			t.Errorf("exit code %d: %v", code, err)
		}
	}
}
