package host

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
)

// featureFields are where superblocks name the features that decide which kernel mounts a file system.
var featureFields = map[string]struct {
	order  binary.ByteOrder
	at     []int64 // 32-bit fields: those that matter for reading, then for writing
	ignore uint32  // a bit of the first field
}{
	"ext": {binary.LittleEndian, []int64{1024 + 0x60, 1024 + 0x64, 1024 + 0x5c}, 0}, // incompat, ro_compat, compat: orphan_file
	"xfs": {binary.BigEndian, []int64{216, 212}, 0},
	// Every kernel since 3.4 sets 0x20, big metadata, with the first transaction that it commits. A short mount may commit none.
	"btrfs": {binary.LittleEndian, []int64{btrfsSuper + 0xbc, btrfsSuper + 0xb4}, 0x20},
}

// The numbers are those of Debian 12, whose tools this machine has. The image has those of Debian 13, and the driver switches off what they add. A
// change of a number is a change of the oldest kernel that mounts a new volume: see docs/reference/compatibility.md.
func TestFeaturesOfNewFileSystemsDoNotChangeUnseen(t *testing.T) {
	for _, c := range []struct {
		fsType, family string
		portable       bool
		want           string
	}{
		{"ext2", "ext", false, "0x2 0x3 0x38"},
		{"ext3", "ext", false, "0x2 0x3 0x3c"},
		{"ext4", "ext", false, "0x2c2 0x46b 0x3c"},
		{"ext4", "ext", true, "0x2c2 0x46b 0x3c"},
		{"xfs", "xfs", false, "0xb 0xd"},
		{"xfs", "xfs", true, "0x3 0x5"},
		{"btrfs", "btrfs", false, "0x341 0x3"},
	} {
		t.Run(fmt.Sprintf("%s, portable %t", c.fsType, c.portable), func(t *testing.T) {
			h, m, device := realHost(t, 400<<20)
			stage(t, h, StageSpec{Path: m.Path("staging"), FSType: c.fsType, Format: FormatOptions{Portable: c.portable}})
			must(t, h.Unstage(t.Context(), vol, m.Path("staging")))
			f, err := os.Open(device)
			must(t, err)
			defer f.Close()
			var got string
			for i, at := range featureFields[c.family].at {
				field := make([]byte, 4)
				_, err := f.ReadAt(field, at)
				must(t, err)
				value := featureFields[c.family].order.Uint32(field)
				if i == 0 {
					value &^= featureFields[c.family].ignore
				}
				got += fmt.Sprintf(" %#x", value)
			}
			if got[1:] != c.want {
				t.Errorf("want the features %s, got%s", c.want, got)
			}
		})
	}
}

// The tools of the image make none of these features by default. Those of a later Debian do.
func TestAPortableExt4HasNoFeatureThatOldKernelsRefuse(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	must(t, b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("staging"), FSType: "ext4", Format: FormatOptions{Portable: true}}))
	if made := strings.Join(b.tools.changed(), "\n"); !strings.Contains(made, "-O ^metadata_csum_seed,^orphan_file") {
		t.Errorf("want mkfs without them, got %s", made)
	}
}
