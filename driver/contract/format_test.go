package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFormatParameters(t *testing.T) {
	for name, test := range map[string]struct {
		parameters map[string]string
		fsType     string
		want       Format
		problem    string // part of the error's text
	}{
		"nothing":                          {fsType: "btrfs"},
		"everything that ext4 has":         {map[string]string{"blockSize": "1024", "inodeSize": "512", "bytesPerInode": "65536"}, "ext4", Format{BlockSize: 1024, InodeSize: 512, BytesPerInode: 65536}, ""},
		"a number of inodes":               {map[string]string{"numberOfInodes": "4294967295"}, "ext3", Format{Inodes: 4294967295}, ""},
		"everything that xfs has":          {map[string]string{"blockSize": "2048", "inodeSize": "1024"}, "xfs", Format{BlockSize: 2048, InodeSize: 1024}, ""},
		"the largest of ext2":              {map[string]string{"blockSize": "4096", "inodeSize": "4096", "bytesPerInode": "67108864"}, "ext2", Format{BlockSize: 4096, InodeSize: 4096, BytesPerInode: 67108864}, ""},
		"the smallest of ext4":             {map[string]string{"inodeSize": "128", "bytesPerInode": "1024"}, "ext4", Format{InodeSize: 128, BytesPerInode: 1024}, ""},
		"xfs where nobody says":            {map[string]string{"inodeSize": "2048"}, "", Format{InodeSize: 2048}, ""},
		"portable features":                {map[string]string{"mkfsFeatures": "portable"}, "xfs", Format{Portable: true}, ""},
		"portable, and no kind":            {map[string]string{"mkfsFeatures": "portable", "blockSize": "1024"}, "", Format{BlockSize: 1024, Portable: true}, ""},
		"btrfs has only one set":           {map[string]string{"mkfsFeatures": "portable"}, "btrfs", Format{}, "mkfsFeatures portable: the file system \"btrfs\" does not have this option; ext2, ext3, ext4, xfs have it"},
		"features of no name":              {map[string]string{"mkfsFeatures": "-O ^has_journal"}, "ext4", Format{}, `mkfsFeatures: "-O ^has_journal" is unknown; write portable`},
		"a unit":                           {map[string]string{"blockSize": "4k"}, "ext4", Format{}, `blockSize: "4k" is not a whole number`},
		"nothing in it":                    {map[string]string{"blockSize": ""}, "ext4", Format{}, `blockSize: "" is not`},
		"zero":                             {map[string]string{"inodeSize": "0"}, "ext4", Format{}, `inodeSize: "0"`},
		"negative":                         {map[string]string{"bytesPerInode": "-1024"}, "ext4", Format{}, `"-1024"`},
		"a sign":                           {map[string]string{"numberOfInodes": "+5"}, "ext4", Format{}, `"+5"`},
		"leading zeros":                    {map[string]string{"blockSize": "04096"}, "ext4", Format{}, `"04096"`},
		"too many digits":                  {map[string]string{"numberOfInodes": "99999999999999999999"}, "ext4", Format{}, "is not a whole number"},
		"an option of mkfs":                {map[string]string{"blockSize": "4096 -O ^has_journal"}, "ext4", Format{}, "is not a whole number"},
		"blocks that cannot be mounted":    {map[string]string{"blockSize": "8192"}, "ext4", Format{}, "blockSize 8192: ext4 needs a power of two from 1024 to 4096 bytes; the kernel cannot mount blocks that are larger than a page of memory"},
		"no xfs with larger ones either":   {map[string]string{"blockSize": "65536"}, "xfs", Format{}, "larger than a page"},
		"blocks too small for ext":         {map[string]string{"blockSize": "512"}, "ext4", Format{}, "from 1024"},
		"blocks too small for xfs":         {map[string]string{"blockSize": "512"}, "xfs", Format{}, "from 1024"},
		"no power of two":                  {map[string]string{"blockSize": "3072"}, "ext4", Format{}, "a power of two"},
		"inodes too small for ext":         {map[string]string{"inodeSize": "64"}, "ext4", Format{}, "inodeSize 64: ext4 needs a power of two from 128 to 4096"},
		"inodes of no power of two":        {map[string]string{"inodeSize": "384"}, "ext4", Format{}, "a power of two"},
		"inodes larger than a block":       {map[string]string{"blockSize": "1024", "inodeSize": "2048"}, "ext4", Format{}, "inodeSize 2048: ext4 with blocks of 1024 bytes allows up to 1024"},
		"inodes too small for xfs":         {map[string]string{"inodeSize": "256"}, "xfs", Format{}, "inodeSize 256: xfs needs a power of two from 512 to 2048"},
		"inodes larger than half a block":  {map[string]string{"blockSize": "1024", "inodeSize": "1024"}, "xfs", Format{}, "inodeSize 1024: xfs with blocks of 1024 bytes allows up to 512"},
		"inodes too large for xfs":         {map[string]string{"inodeSize": "4096"}, "xfs", Format{}, "from 512 to 2048"},
		"too few bytes for an inode":       {map[string]string{"bytesPerInode": "1023"}, "ext4", Format{}, "bytesPerInode 1023: ext4 needs a number from 1024 to 67108864"},
		"too many bytes for an inode":      {map[string]string{"bytesPerInode": "67108865"}, "ext4", Format{}, "to 67108864"},
		"a disk of inodes":                 {map[string]string{"inodeSize": "1024", "bytesPerInode": "2047"}, "ext4", Format{}, "bytesPerInode 2047: inodes of 1024 bytes would fill more than half of the disk; use 2048 or more"},
		"both ways to say how many":        {map[string]string{"bytesPerInode": "4096", "numberOfInodes": "1000"}, "ext4", Format{}, "bytesPerInode and numberOfInodes exclude each other"},
		"too many inodes":                  {map[string]string{"numberOfInodes": "4294967296"}, "ext4", Format{}, "numberOfInodes 4294967296: ext4 needs a number from 1 to 4294967295"},
		"xfs has no bytes per inode":       {map[string]string{"bytesPerInode": "4096"}, "xfs", Format{}, `bytesPerInode 4096: the file system "xfs" does not have this option; ext2, ext3, ext4 have it`},
		"xfs has no number of inodes":      {map[string]string{"numberOfInodes": "4096"}, "xfs", Format{}, "ext2, ext3, ext4 have"},
		"btrfs has no size of blocks":      {map[string]string{"blockSize": "4096"}, "btrfs", Format{}, `the file system "btrfs" does not have this option; ext2, ext3, ext4, xfs have it`},
		"nor has one that nobody knows":    {map[string]string{"inodeSize": "256"}, "zfs", Format{}, `"zfs" does not have this option`},
		"none where nobody says, like one": {map[string]string{"bytesPerInode": "1"}, "", Format{}, "ext4 needs a number from 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			parameters := map[string]string{}
			for key, value := range test.parameters {
				parameters[key] = value
			}
			if test.fsType != "" {
				parameters["csi.storage.k8s.io/fstype"] = test.fsType
			}
			got, unknown, err := ParseStorageClass(parameters)
			if !problemIs(err, test.problem) {
				t.Fatalf("want an error with %q, got %v", test.problem, err)
			}
			if diff := cmp.Diff(StorageClass{Format: test.want}, got); diff != "" || len(unknown) != 0 {
				t.Errorf("unknown %q, -want +got\n%s", unknown, diff)
			}
			again, err := FormatOfContext(got.Format.Context())
			if again != test.want || err != nil {
				t.Errorf("want the VolumeContext %v read as %+v, got %+v, %v", got.Format.Context(), test.want, again, err)
			}
		})
	}
}

// The keys are on volumes that exist: they never change.
func TestAFormatHasItsKeysInTheVolumeContext(t *testing.T) {
	want := map[string]string{
		"cinder.csi.openstack.org/blockSize": "1024", "cinder.csi.openstack.org/inodeSize": "256",
		"cinder.csi.openstack.org/bytesPerInode": "8192", "cinder.csi.openstack.org/numberOfInodes": "5",
		"cinder.csi.openstack.org/mkfsFeatures": "portable",
	}
	got := Format{BlockSize: 1024, InodeSize: 256, BytesPerInode: 8192, Inodes: 5, Portable: true}.Context()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("-want +got\n", diff)
	}
	if got := (Format{}).Context(); got != nil {
		t.Errorf("want no context of a volume that asks for nothing, got %v", got)
	}
	_, err := FormatOfContext(map[string]string{"cinder.csi.openstack.org/inodeSize": "256;reboot", "blockSize": "x", "inodeSize": "y"})
	if !problemIs(err, `cinder.csi.openstack.org/inodeSize: "256;reboot" is not`) {
		t.Errorf("want the key named, got %v", err)
	}
}

// mkfs.ext4 refuses one inode for fewer than 1024 bytes, and fails half-way where the tables leave nothing for data.
func TestInodesMustFitOnTheDisk(t *testing.T) {
	const gib = 1 << 30
	for _, test := range []struct {
		f    Format
		size int64
		ok   bool
	}{
		{Format{}, gib, true},
		{Format{Inodes: 1 << 20}, gib, true},
		{Format{Inodes: 1<<20 + 1}, gib, false},
		{Format{Inodes: 1<<20 + 1}, 2 * gib, true},
		{Format{Inodes: 1<<20 + 1, InodeSize: 128}, gib, false},
		{Format{Inodes: 1 << 19, InodeSize: 1024}, gib, true},
		{Format{Inodes: 1<<19 + 1, InodeSize: 1024}, gib, false},
	} {
		if err := test.f.CheckSize(test.size); (err == nil) != test.ok {
			t.Errorf("%+v on %d bytes: want fits %t, got %v", test.f, test.size, test.ok, err)
		}
	}
}

// A node that does not know the file system checks a VolumeContext as for ext4, and must not refuse the values of another.
func TestExt4TakesWhateverAnotherKindDoes(t *testing.T) {
	for block := int64(0); block <= 8192; block += 256 {
		for inode := int64(0); inode <= 8192; inode += 128 {
			f := Format{BlockSize: block, InodeSize: inode}
			for kind := range formatKinds {
				if f.Check(kind) == nil && f.Check("ext4") != nil {
					t.Errorf("%+v is taken by %s and not by ext4", f, kind)
				}
			}
		}
	}
}
