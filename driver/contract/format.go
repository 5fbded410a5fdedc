package contract

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parameters of StorageClasses for new file systems: whole numbers, in bytes except for ParameterInodes. They have the names of the AWS EBS
// driver. Upstream's plugin ignores them.
const (
	// ParameterBlockSize is the size of a block: ext and xfs.
	ParameterBlockSize = "blockSize"
	// ParameterInodeSize is the size of an inode: ext and xfs.
	ParameterInodeSize = "inodeSize"
	// ParameterBytesPerInode is the bytes of disk for each inode: ext.
	ParameterBytesPerInode = "bytesPerInode"
	// ParameterInodes is the number of inodes, which mkfs rounds up to whole groups: ext, without ParameterBytesPerInode.
	ParameterInodes = "numberOfInodes"
	// ParameterFeatures says which features a new file system has: FeaturesPortable, or those that mkfs chooses. Only this driver has it.
	ParameterFeatures = "mkfsFeatures"
)

// FeaturesPortable leaves out features that kernels of before 2021 cannot mount: ext and xfs.
const FeaturesPortable = "portable"

// ContextFormatPrefix with one of these parameters is its key in a VolumeContext. Upstream's plugin ignores such keys.
const ContextFormatPrefix = "cinder.csi.openstack.org/"

// Format holds the options of a new file system. For a zero value mkfs uses its default.
type Format struct {
	BlockSize, InodeSize, BytesPerInode int64 // bytes
	Inodes                              int64
	Portable                            bool // FeaturesPortable
}

type formatField struct {
	key   string
	value *int64
}

// fields lists the parts of f with their parameters, in the order of the checks.
func (f *Format) fields() []formatField {
	return []formatField{
		{ParameterBlockSize, &f.BlockSize}, {ParameterInodeSize, &f.InodeSize}, {ParameterBytesPerInode, &f.BytesPerInode}, {ParameterInodes, &f.Inodes},
	}
}

// formatRule is the range of a parameter for one kind of file system.
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

// formatKind holds the options of one kind of file system.
type formatKind struct {
	rules    map[string]formatRule
	perBlock int64 // minimum of inodes in a block
}

// FileSystems are the kinds of file system that a node creates, by the name that a class gives in csi.storage.k8s.io/fstype.
var FileSystems = []string{"ext2", "ext3", "ext4", "xfs", "btrfs"}

// FileSystemOf is the file system that the parameters of a StorageClass name; empty where they name none, and the driver decides.
func FileSystemOf(parameters map[string]string) string {
	return cmp.Or(parameters[parameterFSType], parameters[parameterOldFSType])
}

// maxBlock is the largest block that every node can mount: a page of memory. Most kernels cannot mount larger ones.
const maxBlock = 4096

// Defaults of mkfs for a volume, which has at least 1 GiB (mke2fs.conf(5) of e2fsprogs 1.47, mkfs.xfs(8) of 6.1).
const (
	defaultBlock    = 4096
	defaultExtInode = 256
)

// minBytesPerInode is the minimum of mkfs.ext4.
const minBytesPerInode = 1024

// formatKinds was measured with mkfs of e2fsprogs 1.47.0 and xfsprogs 6.1.0 of Debian 12. With checksums xfs has no smaller blocks and inodes,
// and new kernels do not mount xfs without them. btrfs has none of the parameters.
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

// parseFormat reads a Format from keys with a prefix. It does not check it for a file system; Check does.
func parseFormat(from map[string]string, prefix string) (Format, error) {
	var f Format
	for _, field := range f.fields() {
		text, given := from[prefix+field.key]
		if !given {
			continue
		}
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil || number <= 0 || strconv.FormatInt(number, 10) != text {
			return Format{}, fmt.Errorf("%s%s: %.40q is not a whole number above 0; write digits only", prefix, field.key, text)
		}
		*field.value = number
	}
	if features, given := from[prefix+ParameterFeatures]; given && features != FeaturesPortable {
		return Format{}, fmt.Errorf("%s%s: %.40q is unknown; write %s, or leave it out for the choice of mkfs", prefix, ParameterFeatures, features, FeaturesPortable)
	} else if given {
		f.Portable = true
	}
	return f, nil
}

// FormatOfContext reads what Format.Context wrote to a VolumeContext. Errors name the key. It does not check the Format for a file system.
func FormatOfContext(context map[string]string) (Format, error) {
	return parseFormat(context, ContextFormatPrefix)
}

// Context is f as part of a VolumeContext; nil if f is zero.
func (f Format) Context() map[string]string {
	if f == (Format{}) {
		return nil
	}
	context := map[string]string{}
	for _, field := range f.fields() {
		if *field.value != 0 {
			context[ContextFormatPrefix+field.key] = strconv.FormatInt(*field.value, 10)
		}
	}
	if f.Portable {
		context[ContextFormatPrefix+ParameterFeatures] = FeaturesPortable
	}
	return context
}

// Check reports a parameter that a kind of file system does not have, or a value that it does not allow. An empty kind means ext4, the default
// of the driver, which has every parameter.
func (f Format) Check(fsType string) error {
	fsType = cmp.Or(fsType, "ext4")
	kind, known := formatKinds[fsType]
	if f.Portable && !known {
		return fmt.Errorf("%s %s: the file system %.40q does not have this option; %s have it", ParameterFeatures, FeaturesPortable, fsType, having(ParameterBlockSize))
	}
	for _, field := range f.fields() {
		rule, has := kind.rules[field.key]
		switch {
		case *field.value == 0:
		case !has:
			return fmt.Errorf("%s %d: the file system %.40q does not have this option; %s have it", field.key, *field.value, fsType, having(field.key))
		case !rule.takes(*field.value) && field.key == ParameterBlockSize:
			return fmt.Errorf("%s %d: %s needs %s bytes; the kernel cannot mount blocks that are larger than a page of memory", field.key, *field.value, fsType, rule)
		case !rule.takes(*field.value):
			return fmt.Errorf("%s %d: %s needs %s", field.key, *field.value, fsType, rule)
		}
	}
	return f.agrees(fsType, kind)
}

// agrees reports parameters that exclude each other.
func (f Format) agrees(fsType string, kind formatKind) error {
	block, inode := cmp.Or(f.BlockSize, defaultBlock), cmp.Or(f.InodeSize, defaultExtInode)
	switch {
	case f.InodeSize != 0 && f.InodeSize*kind.perBlock > block:
		return fmt.Errorf("%s %d: %s with blocks of %d bytes allows up to %d", ParameterInodeSize, f.InodeSize, fsType, block, block/kind.perBlock)
	case f.BytesPerInode != 0 && f.Inodes != 0:
		return fmt.Errorf("%s and %s exclude each other; keep only one", ParameterBytesPerInode, ParameterInodes)
	case f.BytesPerInode != 0 && f.BytesPerInode < 2*inode:
		return fmt.Errorf("%s %d: inodes of %d bytes would fill more than half of the disk; use %d or more",
			ParameterBytesPerInode, f.BytesPerInode, inode, 2*inode)
	}
	return nil
}

// CheckSize reports more inodes than fit on a disk. As for BytesPerInode, each inode needs 1024 bytes of disk, and all inodes at most half.
func (f Format) CheckSize(bytes int64) error {
	if most := bytes / max(minBytesPerInode, 2*cmp.Or(f.InodeSize, defaultExtInode)); f.Inodes > most {
		return fmt.Errorf("%s %d: a volume of %d bytes has room for %d of that size", ParameterInodes, f.Inodes, bytes, most)
	}
	return nil
}

// having lists the kinds of file system that have an option.
func having(key string) string {
	var names []string
	for name, kind := range formatKinds {
		if _, has := kind.rules[key]; has {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
