package fs

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host/command"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// watched is a Runner that keeps what was run, and with which context.
type watched struct {
	answers
	ran   []string
	bound []string // with a context that ends
}

func (w *watched) Run(ctx context.Context, name string, args ...string) (command.Result, error) {
	w.ran = append(w.ran, name)
	if ctx.Done() != nil {
		w.bound = append(w.bound, name)
	}
	return w.answers.Run(ctx, name, args...)
}

// opensAs is a disk of a Finder that a test can exchange.
type opensAs struct {
	sparse
	number disk.Number
}

func (opensAs) Close() error          { return nil }
func (o opensAs) Number() disk.Number { return o.number }

// diskOf finds a disk with that content. exchange gives its name to another disk.
func diskOf(t *testing.T, content sparse) (d *disk.Disk, exchange func()) {
	t.Helper()
	m := testenv.NewMachine(t)
	m.Sysfs(t, "vdb", map[string]string{"serial": hosttest.Serial, "dev": "254:16\n"})
	finder := disk.NewFinder(disk.Options{SysRoot: m.Sys, DevRoot: m.Dev, Open: func(path string) (disk.Device, error) {
		if path != m.Dev+"/vdb" {
			return nil, iofs.ErrNotExist
		}
		return opensAs{content, disk.Number{Major: 254, Minor: 16}}, nil
	}})
	d, err := finder.Find(t.Context(), hosttest.Volume)
	hosttest.Must(t, err)
	return d, func() { m.Sysfs(t, "vdb", map[string]string{"serial": hosttest.OtherSerial}) }
}

// tornExt is an ext4 whose first superblock has a wrong checksum and whose copies are good.
func tornExt() sparse {
	first, backup, later := extCopy(2, 32768, 0), extCopy(2, 32768, 1), extCopy(2, 32768, 3)
	for _, super := range [][]byte{first, backup, later} {
		super[0x65] = 4
		withChecksum(super)
	}
	first[0x3FC]++
	return sparse{size: 8 << 30, parts: map[int64][]byte{1024: first, 128 << 20: backup, 384 << 20: later}}
}

// Each program that may write runs to its end, and only on the disk that is verified just before.
func TestAProgramThatWritesIsRunOnAVerifiedDiskToItsEnd(t *testing.T) {
	t.Parallel()
	type call func(t *Tools, ctx context.Context, d *disk.Disk) error
	format := func(fsType string) call {
		return func(t *Tools, ctx context.Context, d *disk.Disk) error {
			return t.Format(ctx, d, fsType, contract.Format{})
		}
	}
	grow := func(fsType string) call {
		return func(t *Tools, ctx context.Context, d *disk.Disk) error { return t.Grow(ctx, d, fsType, "/staging") }
	}
	check := func(t *Tools, ctx context.Context, d *disk.Disk) error { return t.Check(ctx, d) }
	for name, c := range map[string]struct {
		do      call
		content sparse
		answer  answers
		ran     []string
	}{
		"ext4":      {do: format("ext4"), ran: []string{"mkfs.ext4"}},
		"xfs":       {do: format("xfs"), ran: []string{"mkfs.xfs"}},
		"btrfs":     {do: format("btrfs"), ran: []string{"mkfs.btrfs"}},
		"check":     {do: check, ran: []string{"fsck.ext4"}},
		"restore":   {do: check, content: tornExt(), answer: answers{"fsck.ext4": {Code: 8}}, ran: []string{"fsck.ext4", "fsck.ext4"}},
		"checked":   {do: check, content: tornExt(), answer: answers{"fsck.ext4": {Code: 1}}, ran: []string{"fsck.ext4"}},
		"grow ext":  {do: grow("ext3"), ran: []string{"resize2fs"}},
		"grow xfs":  {do: grow("xfs"), ran: []string{"xfs_growfs"}},
		"btrfs max": {do: grow("btrfs"), ran: []string{"btrfs"}},
	} {
		if c.content.size == 0 {
			c.content.size = 1 << 30
		}
		d, exchange := diskOf(t, c.content)
		run := &watched{answers: c.answer}
		tools := NewTools(Options{Commands: run, InUse: func(string) bool { return false }, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		_ = c.do(tools, ctx, d)
		cancel()
		if !slices.Equal(run.ran, c.ran) || len(run.bound) > 0 {
			t.Errorf("%s: want %q run to their end, got %q, of which a context ends %q", name, c.ran, run.ran, run.bound)
		}
		exchange()
		run.ran = nil
		hosttest.WantKind(t, c.do(tools, t.Context(), d), volume.Conflict, "exchanged")
		if len(run.ran) > 0 {
			t.Errorf("%s: want nothing run on another disk, got %q", name, run.ran)
		}
	}

	// A disk that is exchanged between the check and the restore.
	d, exchange := diskOf(t, tornExt())
	run := &exchanging{answers: answers{"fsck.ext4": {Code: 8}}, exchange: exchange}
	hosttest.WantKind(t, NewTools(Options{Commands: run, Log: slog.New(slog.DiscardHandler)}).Check(t.Context(), d), volume.Conflict, "exchanged")
	if run.n != 1 {
		t.Errorf("want one program run, got %d", run.n)
	}
}

type exchanging struct {
	answers
	exchange func()
	n        int
}

func (e *exchanging) Run(ctx context.Context, name string, args ...string) (command.Result, error) {
	e.n++
	e.exchange()
	return e.answers.Run(ctx, name, args...)
}

func TestTheDriverFormatsNoDiskInUse(t *testing.T) {
	t.Parallel()
	d, _ := diskOf(t, sparse{size: 1 << 30})
	run := &watched{}
	tools := NewTools(Options{Commands: run, InUse: func(path string) bool { return path == d.Path }, Log: slog.New(slog.DiscardHandler)})
	hosttest.WantKind(t, tools.Format(t.Context(), d, "ext4", contract.Format{}), volume.Busy, "uses the disk")
	if len(run.ran) > 0 {
		t.Errorf("want nothing run, got %q", run.ran)
	}
}

// A disk counts as empty only if its first 4 MiB, its last MiB and every place of a copy can be read.
func TestADiskWithABadPlaceIsNotProbed(t *testing.T) {
	t.Parallel()
	const size = 16 << 20
	for _, bad := range []int64{1, 511, 512, 4096, 1 << 20, 4<<20 - 1, size - 1<<20, size - 512<<10, size - 513, size - 1} {
		if err := readEnds(sparse{size: size, bad: bad}); err == nil {
			t.Errorf("want an error, since byte %d cannot be read", bad)
		}
		d, _ := diskOf(t, sparse{size: size, bad: bad})
		_, err := NewTools(Options{Commands: answers{"blkid": {Code: 2}}}).Probe(t.Context(), d)
		hosttest.WantKind(t, err, volume.DataLoss, "cannot be read")
	}
	if err := readEnds(sparse{size: size, bad: size - 1<<20 - 1}); err != nil {
		t.Errorf("want no more than the last MiB read, got %v", err)
	}
	d, _ := diskOf(t, sparse{size: 1 << 30, bad: 128<<20 + 56}) // of the first copy of an ext4
	_, err := NewTools(Options{Commands: answers{"blkid": {Code: 2}}}).Probe(t.Context(), d)
	hosttest.WantKind(t, err, volume.DataLoss, "can no longer be read")
}

func TestAProbeThatItsCallerLeftSaysSo(t *testing.T) {
	t.Parallel()
	d, _ := diskOf(t, sparse{size: 1 << 30})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := NewTools(Options{Commands: answers{"blkid": {Code: 2}}}).Probe(ctx, d)
	hosttest.WantKind(t, err, volume.Canceled, "the call ended while the driver read the disk")
}

// e2fsck turns to these backups if the first superblock is bad.
func TestABackupOfEachBlockSizeMayNameNoOtherDevice(t *testing.T) {
	t.Parallel()
	for log := range uint32(7) {
		block := int64(1024) << log
		at := 8 * block * block
		if log == 0 {
			at += block
		}
		super := extCopy(log, uint32(8*block), 1)
		super[0xE4] = 1 // s_journal_dev
		d := sparse{size: 40 << 30, parts: map[int64][]byte{at: super}}
		if reason, err := extOtherDevice(d); reason == "" || err != nil {
			t.Errorf("blocks of %d: want it refused, got %q, %v", block, reason, err)
		}
		super[0xE4] = 0
		if reason, err := extOtherDevice(d); reason != "" || err != nil {
			t.Errorf("blocks of %d: want nothing refused, got %q, %v", block, reason, err)
		}
	}
}

// blkid looks at the magic alone, and so may a kernel: a superblock with values that cannot be is checked all the same.
func TestASuperblockThatCannotBeMayNameNoOtherDevice(t *testing.T) {
	t.Parallel()
	ext := func(change func(super []byte)) sparse {
		super := extCopy(2, 32768, 0)
		super[0xE4] = 1 // s_journal_dev
		change(super)
		return sparse{size: 8 << 40, parts: map[int64][]byte{extSuper: super}}
	}
	btrfs := make([]byte, superSize)
	copy(btrfs[0x40:], "_BHRfS_M")
	btrfs[0x88] = 2 // num_devices
	for name, c := range map[string]struct {
		disk  sparse
		other func(io.ReaderAt) (string, error)
	}{
		"ext without blocks":               {ext(func(super []byte) { clear(super[4:8]) }), extOtherDevice},
		"ext of 2^32 blocks without 64bit": {ext(func(super []byte) { clear(super[4:8]); super[0x150] = 1 }), extOtherDevice},
		"ext of huge blocks":               {ext(func(super []byte) { super[0x18] = 7 }), extOtherDevice},
		"ext of blocks without a size":     {ext(func(super []byte) { super[0x1B] = 0xFF }), extOtherDevice},
		"btrfs without bytes":              {sparse{size: 8 << 30, parts: map[int64][]byte{btrfsSuper: btrfs}}, btrfsOtherDevice},
	} {
		if reason, err := c.other(c.disk); reason == "" || err != nil {
			t.Errorf("%s: want it refused, got %q, %v", name, reason, err)
		}
	}
}

// What blkid and wipefs do not find, the driver looks for itself.
func TestProbeFindsWhatTheToolsDoNot(t *testing.T) {
	t.Parallel()
	const bcachefs = "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"
	nothing := answers{"blkid": {Code: 2}}
	xfs := answers{"blkid": {Stdout: "TYPE=xfs\nUSAGE=filesystem\n"}, "wipefs": {Stdout: "0x0 xfs"}}
	copied := "copies: e2fsck -f -y -b 32768 -B 4096 "
	for name, c := range map[string]struct {
		tools answers
		size  int64
		parts map[int64][]byte
		want  Content
	}{
		"nothing":                          {nothing, 1 << 30, nil, Content{}},
		"a BSD label":                      {nothing, 1 << 30, map[int64][]byte{512: []byte("\x57\x45\x56\x82")}, Content{Other: "a bsd partition table"}},
		"bcachefs":                         {nothing, 1 << 30, map[int64][]byte{4096 + 24: []byte(bcachefs)}, Content{Other: "bcachefs"}},
		"a copy of ext":                    {nothing, 1 << 30, map[int64][]byte{128 << 20: extCopy(2, 32768, 1)}, Content{Lost: "ext2, ext3 or ext4 at byte 134217728", Repair: copied}},
		"a killed mkfs of ext":             {nothing, 256 << 20, unfinishedExt().parts, Content{Unfinished: true}},
		"a killed mkfs of xfs":             {xfs, 1 << 30, map[int64][]byte{0: unfinishedXFS(nil)}, Content{FSType: "xfs", Unfinished: true}},
		"and its copies":                   {xfs, 1 << 30, map[int64][]byte{0: unfinishedXFS(nil), 256 << 20: xfsCopy(65536)}, Content{FSType: "xfs", Unfinished: true}},
		"an xfs over the copies of an ext": {xfs, 1 << 30, map[int64][]byte{0: unfinishedXFS(nil), 128 << 20: extCopy(2, 32768, 1)}, Content{Lost: "ext2, ext3 or ext4 at byte 134217728", Repair: copied}},
		"a finished xfs over such copies":  {xfs, 1 << 30, map[int64][]byte{0: xfsCopy(65536), 128 << 20: extCopy(2, 32768, 1)}, Content{FSType: "xfs"}},
	} {
		d, _ := diskOf(t, sparse{size: c.size, parts: c.parts})
		got, err := NewTools(Options{Commands: c.tools}).Probe(t.Context(), d)
		if c.want.Repair == copied {
			c.want.Repair = copied[len("copies: "):] + d.Path
		}
		if got != c.want || err != nil {
			t.Errorf("%s: want %+v, got %+v, %v", name, c.want, got, err)
		}
	}
}

// unfinishedXFS is the superblock of an XFS whose mkfs was killed, changed by change and with a right checksum.
func unfinishedXFS(change func(super []byte)) []byte {
	super := xfsCopy(65536)
	big := binary.BigEndian
	big.PutUint16(super[100:], 0xB4A5) // version 5
	big.PutUint16(super[102:], 512)
	super[126] = 1
	if change != nil {
		change(super)
	}
	clear(super[224:228])
	binary.LittleEndian.PutUint32(super[224:], crc32.Checksum(super, crc32.MakeTable(crc32.Castagnoli)))
	return super
}

func TestAnXFSIsUnfinishedOnlyIfItHoldsNoFile(t *testing.T) {
	t.Parallel()
	big := binary.BigEndian
	damaged := unfinishedXFS(nil)
	damaged[300]++
	for name, c := range map[string]struct {
		super []byte
		want  bool
	}{
		"as mkfs leaves it":         {unfinishedXFS(nil), true},
		"the inodes of mkfs":        {unfinishedXFS(func(s []byte) { big.PutUint64(s[128:], 64) }), true},
		"finished":                  {unfinishedXFS(func(s []byte) { s[126] = 0 }), false},
		"inodes of files":           {unfinishedXFS(func(s []byte) { big.PutUint64(s[128:], 65) }), false},
		"a log that the kernel had": {unfinishedXFS(func(s []byte) { big.PutUint64(s[240:], 1) }), false},
		"an older version":          {unfinishedXFS(func(s []byte) { big.PutUint16(s[100:], 0xB4A4) }), false},
		"a sector that is none":     {unfinishedXFS(func(s []byte) { big.PutUint16(s[102:], 256) }), false},
		"another magic":             {unfinishedXFS(func(s []byte) { s[0] = 'Y' }), false},
		"a wrong checksum":          {damaged, false},
	} {
		if got, err := xfsUnfinished(sparse{size: 1 << 30, parts: map[int64][]byte{0: c.super}}); got != c.want || err != nil {
			t.Errorf("%s: want %t, got %t, %v", name, c.want, got, err)
		}
	}
}

// moveBackup leaves a backup in one group alone.
func moveBackup(parts map[int64][]byte, group int64) {
	super := parts[128<<20]
	delete(parts, 128<<20)
	delete(parts, 384<<20)
	super[0x5A] = byte(group)
	withChecksum(super)
	parts[group*128<<20] = super
}

func TestASuperblockIsTornOnlyIfABackupSaysSo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(parts map[int64][]byte)
		want   int64 // the block of the backup; 0 for none
	}{
		"torn":                         {func(map[int64][]byte) {}, 32768},
		"a right checksum":             {func(p map[int64][]byte) { withChecksum(p[1024]) }, 0},
		"no checksums":                 {func(p map[int64][]byte) { p[1024][0x65] = 0 }, 0},
		"the first backup lost":        {func(p map[int64][]byte) { delete(p, 128<<20) }, 3 * 32768},
		"the first backup damaged":     {func(p map[int64][]byte) { p[128<<20][0x3FC]++ }, 3 * 32768},
		"every backup damaged":         {func(p map[int64][]byte) { p[128<<20][0x3FC]++; p[384<<20][0x3FC]++ }, 0},
		"backups without a checksum":   {func(p map[int64][]byte) { p[128<<20][0x65], p[384<<20][0x65] = 0, 0 }, 0},
		"another size than the backup": {func(p map[int64][]byte) { p[1024][4]++ }, 0},
		"another feature":              {func(p map[int64][]byte) { p[1024][0x61]++ }, 0},
		"a journal to replay":          {func(p map[int64][]byte) { p[1024][0x60] ^= 4 }, 32768},
		"the backup of the last group": {func(p map[int64][]byte) { moveBackup(p, 31) }, 31 * 32768},
		"one beyond the last group":    {func(p map[int64][]byte) { moveBackup(p, 32) }, 0},
		"no blocks in a group":         {func(p map[int64][]byte) { clear(p[1024][0x20:0x24]) }, 0},
		"another number of the group":  {func(p map[int64][]byte) { p[128<<20][0x5A] = 2; withChecksum(p[128<<20]); delete(p, 384<<20) }, 0},
	} {
		d := tornExt()
		c.change(d.parts)
		if got, torn := tornSuperblock(d); torn != (c.want != 0) || got.block != c.want || torn && got.blockSize != 4096 {
			t.Errorf("%s: want the backup in block %d, got %d of %d, %t", name, c.want, got.block, got.blockSize, torn)
		}
	}
}

// Without a checksum one superblock is no proof: a backup must agree.
func TestASuperblockWithoutAChecksumIsCleanOnlyIfABackupAgrees(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(first, backup []byte)
		want   bool
	}{
		"they agree":                   {func([]byte, []byte) {}, true},
		"the backup is lost":           {func(_, backup []byte) { clear(backup) }, false},
		"another number of blocks":     {func(first, _ []byte) { first[4]++ }, false},
		"noise in a field of features": {func(first, _ []byte) { first[0x61]++ }, false},
		"noise in the high half":       {func(first, _ []byte) { first[0x150] = 1 }, false},
		"not unmounted":                {func(first, _ []byte) { first[0x3A] = 0 }, false},
	} {
		first, backup := extCopy(2, 32768, 0), extCopy(2, 32768, 1)
		first[0x3A] = 1
		c.change(first, backup)
		if got := extClean(sparse{size: 4 << 30, parts: map[int64][]byte{1024: first, 128 << 20: backup}}); got != c.want {
			t.Errorf("%s: want %t, got %t", name, c.want, got)
		}
	}
}

// The copies of an unfinished file system are cleared before it is made again, and nothing else is.
func TestTheCopiesOfAnUnfinishedFileSystemAreCleared(t *testing.T) {
	t.Parallel()
	content := sparse{size: 1 << 30, parts: map[int64][]byte{128 << 20: extCopy(2, 32768, 1), 8<<20 + 1024: extCopy(0, 8192, 1)}}
	d, exchange := diskOf(t, content)
	hosttest.Must(t, os.MkdirAll(filepath.Dir(d.Path), 0o755))
	file := make([]byte, 130<<20)
	for i := range file {
		file[i] = 0xAA
	}
	hosttest.Must(t, os.WriteFile(d.Path, file, 0o600))
	tools := NewTools(Options{Log: slog.New(slog.DiscardHandler)})
	hosttest.Must(t, tools.ClearCopies(t.Context(), d))
	got, err := os.ReadFile(d.Path)
	hosttest.Must(t, err)
	for _, at := range []int{128 << 20, 8<<20 + 1024} {
		clear(file[at : at+512])
	}
	if !slices.Equal(got, file) {
		t.Error("want the first sector of each copy cleared and no other byte")
	}
	hosttest.Must(t, os.Remove(d.Path))
	hosttest.WantKind(t, tools.ClearCopies(t.Context(), d), volume.Failed, "clear disk")
	exchange()
	hosttest.WantKind(t, tools.ClearCopies(t.Context(), d), volume.Conflict, "exchanged")
	empty, _ := diskOf(t, sparse{size: 1 << 30})
	hosttest.Must(t, tools.ClearCopies(t.Context(), empty))
	if _, err := os.Stat(empty.Path); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("want nothing written to a disk without copies, got %v", err)
	}
}
