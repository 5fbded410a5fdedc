package contract

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parameters of StorageClasses that say how a new file system is made: whole numbers, in bytes but for ParameterInodes. The names
// are those of the AWS EBS driver. Upstream's plugin ignores them.
const (
	// ParameterBlockSize is the size of a block: ext and xfs.
	ParameterBlockSize = "blockSize"
	// ParameterInodeSize is the size of an inode: ext and xfs.
	ParameterInodeSize = "inodeSize"
	// ParameterBytesPerInode makes one inode for so many bytes of the disk: ext.
	ParameterBytesPerInode = "bytesPerInode"
	// ParameterInodes is the number of inodes, which the tool rounds up to whole groups: ext, and not beside ParameterBytesPerInode.
	ParameterInodes = "numberOfInodes"
)

// ContextFormatPrefix before one of these parameters is its key in a VolumeContext. Upstream's plugin ignores such keys.
const ContextFormatPrefix = "cinder.csi.openstack.org/"

// Format says how a new file system is made. What is zero is left to the tool that makes it.
type Format struct {
	BlockSize, InodeSize, BytesPerInode int64 // bytes
	Inodes                              int64
}

type formatField struct {
	key   string
	value *int64
}

// fields are the parts of f by their parameters, in the order in which they are checked.
func (f *Format) fields() []formatField {
	return []formatField{
		{ParameterBlockSize, &f.BlockSize}, {ParameterInodeSize, &f.InodeSize}, {ParameterBytesPerInode, &f.BytesPerInode}, {ParameterInodes, &f.Inodes},
	}
}

// formatRule is what a kind of file system takes for a parameter.
type formatRule struct {
	least, most int64
	power       bool // of two
}

func (r formatRule) takes(value int64) bool {
	return value >= r.least && value <= r.most && (!r.power || value&(value-1) == 0)
}

func (r formatRule) String() string {
	what := "a number"
	if r.power {
		what = "a power of two"
	}
	return fmt.Sprintf("%s from %d to %d", what, r.least, r.most)
}

// formatKind is what a kind of file system takes.
type formatKind struct {
	rules    map[string]formatRule
	perBlock int64 // how many inodes a block must hold at least
}

// maxBlock is the largest block that every node mounts: a page of the usual size. Most kernels mount none that are larger.
const maxBlock = 4096

// What mkfs makes of a volume, which has 1 GiB at least, where nobody says (mke2fs.conf(5) of e2fsprogs 1.47, mkfs.xfs(8) of 6.1).
const (
	usualBlock    = 4096
	usualExtInode = 256
)

// minBytesPerInode is mkfs.ext4's.
const minBytesPerInode = 1024

// formatKinds was measured with mkfs of e2fsprogs 1.47.0 and xfsprogs 6.1.0, Debian 12's. xfs has no smaller blocks and inodes with
// checksums, and without them the kernel no longer mounts it. btrfs has none of the parameters.
var formatKinds = map[string]formatKind{"ext2": extFormat, "ext3": extFormat, "ext4": extFormat, "xfs": {
	rules:    map[string]formatRule{ParameterBlockSize: {1024, maxBlock, true}, ParameterInodeSize: {512, 2048, true}},
	perBlock: 2,
}}

var extFormat = formatKind{
	rules: map[string]formatRule{
		ParameterBlockSize: {1024, maxBlock, true}, ParameterInodeSize: {128, maxBlock, true},
		ParameterBytesPerInode: {minBytesPerInode, 64 << 20, false}, ParameterInodes: {1, 1<<32 - 1, false},
	},
	perBlock: 1,
}

// parseFormat reads a Format from keys that begin with prefix. Whether a file system takes it is for Check to say.
func parseFormat(from map[string]string, prefix string) (Format, error) {
	var f Format
	for _, field := range f.fields() {
		text, given := from[prefix+field.key]
		if !given {
			continue
		}
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil || number <= 0 || strconv.FormatInt(number, 10) != text {
			return Format{}, fmt.Errorf("%s%s: %.40q is not a whole number above 0, in digits alone", prefix, field.key, text)
		}
		*field.value = number
	}
	return f, nil
}

// FormatOfContext reads what Format.Context wrote to a VolumeContext. An error names the key. Whether a file system takes it is for
// Check to say.
func FormatOfContext(context map[string]string) (Format, error) {
	return parseFormat(context, ContextFormatPrefix)
}

// Context is f for a VolumeContext; nil when f says nothing.
func (f Format) Context() map[string]string {
	var context map[string]string
	for _, field := range f.fields() {
		if *field.value == 0 {
			continue
		}
		if context == nil {
			context = map[string]string{}
		}
		context[ContextFormatPrefix+field.key] = strconv.FormatInt(*field.value, 10)
	}
	return context
}

// Check says why a file system of that kind cannot be made so: which parameter, its value, and what is allowed. An empty kind is
// ext4, the driver's default, which takes whatever another does.
func (f Format) Check(fsType string) error {
	fsType = cmp.Or(fsType, "ext4")
	kind := formatKinds[fsType]
	for _, field := range f.fields() {
		rule, has := kind.rules[field.key]
		switch {
		case *field.value == 0:
		case !has:
			return fmt.Errorf("%s %d: the file system %.40q has no such option; %s", field.key, *field.value, fsType, having(field.key))
		case !rule.takes(*field.value) && field.key == ParameterBlockSize:
			return fmt.Errorf("%s %d: %s takes %s bytes; larger blocks than a page of memory cannot be mounted", field.key, *field.value, fsType, rule)
		case !rule.takes(*field.value):
			return fmt.Errorf("%s %d: %s takes %s", field.key, *field.value, fsType, rule)
		}
	}
	return f.agrees(fsType, kind)
}

// agrees says which of the parameters cannot be together.
func (f Format) agrees(fsType string, kind formatKind) error {
	block, inode := cmp.Or(f.BlockSize, usualBlock), cmp.Or(f.InodeSize, usualExtInode)
	switch {
	case f.InodeSize != 0 && f.InodeSize*kind.perBlock > block:
		return fmt.Errorf("%s %d: %s with blocks of %d bytes takes up to %d", ParameterInodeSize, f.InodeSize, fsType, block, block/kind.perBlock)
	case f.BytesPerInode != 0 && f.Inodes != 0:
		return fmt.Errorf("%s and %s exclude each other; keep one", ParameterBytesPerInode, ParameterInodes)
	case f.BytesPerInode != 0 && f.BytesPerInode < 2*inode:
		return fmt.Errorf("%s %d: with inodes of %d bytes they would take more than half of the disk; it takes %d or more",
			ParameterBytesPerInode, f.BytesPerInode, inode, 2*inode)
	}
	return nil
}

// CheckSize says why so many inodes cannot be made on a disk of so many bytes: as for BytesPerInode, each takes 1024 of them, and all
// together half.
func (f Format) CheckSize(bytes int64) error {
	if most := bytes / max(minBytesPerInode, 2*cmp.Or(f.InodeSize, usualExtInode)); f.Inodes > most {
		return fmt.Errorf("%s %d: a volume of %d bytes takes up to %d, of that size", ParameterInodes, f.Inodes, bytes, most)
	}
	return nil
}

// having names the kinds of file system that have an option.
func having(key string) string {
	var names []string
	for name, kind := range formatKinds {
		if _, has := kind.rules[key]; has {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ") + " have"
}
