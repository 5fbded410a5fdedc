package fs

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host/command"
)

func TestTheContractNamesEveryFileSystem(t *testing.T) {
	t.Parallel()
	want := slices.Sorted(maps.Keys(fileSystems))
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(contract.FileSystems))); diff != "" {
		t.Errorf("contract.FileSystems (-want +got):\n%s", diff)
	}
}

func TestParseProbe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		probe      command.Result
		signatures string
		want       Content
		undecided  bool
	}{
		{name: "both find nothing", probe: command.Result{Code: 2}},
		{
			name: "only wipefs finds something", probe: command.Result{Code: 2}, signatures: "0x1ff zfs_member",
			want: Content{Other: "signatures that blkid does not recognise: 0x1ff zfs_member"},
		},
		{name: "a file system", probe: command.Result{Stdout: "DEVNAME=/dev/vdb\nUUID=x\nTYPE=ext4\nUSAGE=filesystem\n"}, signatures: "0x438 ext4", want: Content{FSType: "ext4"}},
		{name: "LUKS", probe: command.Result{Stdout: "TYPE=crypto_LUKS\nUSAGE=crypto\n"}, signatures: "0x0 crypto_LUKS", want: Content{Other: "crypto_LUKS"}},
		{name: "a partition table", probe: command.Result{Stdout: "PTUUID=x\nPTTYPE=gpt\n"}, signatures: "0x200 gpt", want: Content{Other: "a gpt partition table"}},
		{
			name: "a file system and a partition table", probe: command.Result{Stdout: "TYPE=vfat\nUSAGE=filesystem\nPTTYPE=dos\n"},
			want: Content{Other: "vfat dos"},
		},
		{name: "two file systems", probe: command.Result{Code: 8}, signatures: "0x0 xfs 0x438 ext4", want: Content{Other: "several signatures at once: 0x0 xfs 0x438 ext4"}},
		{name: "a type without a usage", probe: command.Result{Stdout: "TYPE=ext4\n"}, want: Content{Other: "ext4"}},
		{name: "success without output", probe: command.Result{}, undecided: true},
		{name: "a wrong call", probe: command.Result{Code: 4}, undecided: true},
		{name: "ended by a signal", probe: command.Result{Code: -1}, undecided: true},
	} {
		got, ok := parseProbe(c.probe, c.signatures)
		if ok == c.undecided || !ok && got != (Content{}) {
			t.Errorf("%s: want a conclusion %t, got %t", c.name, !c.undecided, ok)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func FuzzSuperblocks(f *testing.F) {
	ext := make([]byte, superSize)
	copy(ext[4:], []byte{0, 0, 1, 0})
	copy(ext[24:], []byte{2, 0, 0, 0})
	copy(ext[56:], []byte{0x53, 0xEF})
	btrfs := make([]byte, superSize)
	copy(btrfs[0x40:], "_BHRfS_M")
	copy(btrfs[0x70:], []byte{0, 0, 0, 0x20})
	f.Add(ext)
	f.Add(btrfs)
	f.Add(append([]byte("XFSB"), make([]byte, superSize)...))
	f.Fuzz(func(t *testing.T, super []byte) {
		super = append(super, make([]byte, superSize)...)[:superSize]
		disk := bytes.NewReader(slices.Concat(make([]byte, 1024), super, super)) // whatever it contains, an offset beyond the disk is no error
		if _, err := extOtherDevice(disk); err != nil {
			t.Error(err)
		}
		if _, err := btrfsOtherDevice(bytes.NewReader(slices.Concat(make([]byte, btrfsSuper), super))); err != nil {
			t.Error(err)
		}
		tornSuperblock(disk)
		if unfinished, err := xfsUnfinished(bytes.NewReader(super)); unfinished && err != nil {
			t.Error(err)
		}
	})
}
