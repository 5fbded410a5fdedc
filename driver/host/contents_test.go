package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestWhatBlkidAndWipefsSayDecides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		probe      Result
		signatures string
		want       contents
		undecided  bool
	}{
		{name: "both find nothing", probe: Result{Code: 2}},
		{
			name: "only wipefs finds something", probe: Result{Code: 2}, signatures: "0x1ff zfs_member",
			want: contents{foreign: "signatures that blkid does not recognise: 0x1ff zfs_member"},
		},
		{name: "a file system", probe: Result{Stdout: "DEVNAME=/dev/vdb\nUUID=x\nTYPE=ext4\nUSAGE=filesystem\n"}, signatures: "0x438 ext4", want: contents{fsType: "ext4"}},
		{name: "LUKS", probe: Result{Stdout: "TYPE=crypto_LUKS\nUSAGE=crypto\n"}, signatures: "0x0 crypto_LUKS", want: contents{foreign: "crypto_LUKS"}},
		{name: "a partition table", probe: Result{Stdout: "PTUUID=x\nPTTYPE=gpt\n"}, signatures: "0x200 gpt", want: contents{foreign: "a gpt partition table"}},
		{
			name: "a file system and a partition table", probe: Result{Stdout: "TYPE=vfat\nUSAGE=filesystem\nPTTYPE=dos\n"},
			want: contents{foreign: "vfat dos"},
		},
		{name: "two file systems", probe: Result{Code: 8}, signatures: "0x0 xfs 0x438 ext4", want: contents{foreign: "several signatures at once: 0x0 xfs 0x438 ext4"}},
		{name: "a type that says nothing of its use", probe: Result{Stdout: "TYPE=ext4\n"}, want: contents{foreign: "ext4"}},
		{name: "success without words", probe: Result{}, undecided: true},
		{name: "a wrong call", probe: Result{Code: 4}, undecided: true},
		{name: "ended by a signal", probe: Result{Code: -1}, undecided: true},
	} {
		got, ok := judge(c.probe, c.signatures)
		if ok == c.undecided || !ok && got != (contents{}) {
			t.Errorf("%s: want a verdict %t, got %t", c.name, !c.undecided, ok)
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(contents{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestNoFileSystemIsMadeOnADiskThatMayHoldData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*bench, *fakeDevice, *Staging)
		kind   volume.Kind
		words  string
	}{
		{"its beginning cannot be read", func(_ *bench, d *fakeDevice, _ *Staging) { d.badFrom = 1 }, volume.DataLoss, "cannot be read"},
		{"its end cannot be read", func(_ *bench, d *fakeDevice, _ *Staging) { d.badFrom = 16<<20 - 1 }, volume.DataLoss, "cannot be read"},
		{"it ends before its size", func(_ *bench, d *fakeDevice, _ *Staging) { d.contents = make([]byte, 8<<20) }, volume.DataLoss, "cannot be read"},
		{"it has no size", func(_ *bench, d *fakeDevice, _ *Staging) { d.size = 0 }, volume.DataLoss, "no size"},
		{"wipefs sees a signature", func(b *bench, _ *fakeDevice, _ *Staging) { b.tools.answers["wipefs"] = Result{Stdout: "0x0 drbd\n"} }, volume.DataLoss, "drbd"},
		{"wipefs fails", func(b *bench, _ *fakeDevice, _ *Staging) {
			b.tools.answers["wipefs"] = Result{Code: 1, Stderr: "probing failed"}
		}, volume.DataLoss, "probing failed"},
		{"blkid sees two", func(b *bench, _ *fakeDevice, _ *Staging) { b.tools.answers["blkid"] = Result{Code: 8} }, volume.DataLoss, "several"},
		{"blkid fails", func(b *bench, _ *fakeDevice, _ *Staging) { b.tools.answers["blkid"] = Result{Code: 4} }, volume.DataLoss, "exit code 4"},
		{"it was made from a source", func(_ *bench, _ *fakeDevice, s *Staging) { s.FromSource = true }, volume.DataLoss, "made from a source"},
		{"nobody may write", func(_ *bench, _ *fakeDevice, s *Staging) { s.ReadOnly = true }, volume.Conflict, "read-only"},
		{"the class says ro", func(_ *bench, _ *fakeDevice, s *Staging) { s.Flags = []string{"noatime,ro"} }, volume.Conflict, "read-only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, Options{})
			d := b.plug(t, "vdb", serial, Number{254, 16})
			s := Staging{Volume: vol, Path: b.place("staging"), FSType: "ext4"}
			c.change(b, d, &s)
			wantKind(t, b.Stage(t.Context(), s), c.kind, c.words)
			if ran := b.tools.changed(); len(ran) > 0 || len(b.mounter.table) > 0 {
				t.Errorf("want nothing changed, got %q, mounts %v", ran, b.mounter.table)
			}
		})
	}
}
