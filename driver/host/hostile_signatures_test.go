package host

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// signature is a way to make a disk that the tools know as name. If its mkfs is among the test tools, that makes it.
// Otherwise the test writes the fewest bytes that blkid recognises, by the public descriptions of the formats, and
// blkid confirms them.
type signature struct {
	name  string   // as blkid says it
	size  int64    // bytes; smallDisk when zero
	mkfs  []string // the disk follows
	plant []patch
}

const smallDisk = 8 << 20

// patch is bytes at an offset of a disk; a negative offset counts from its end.
type patch struct {
	at    int64
	bytes string
}

func (s signature) make(t *testing.T, disk string) {
	t.Helper()
	if len(s.mkfs) > 0 {
		testenv.Run(t, s.mkfs[0], append(s.mkfs[1:], disk)...)
	}
	for _, p := range s.plant {
		if p.at < 0 {
			p.at += s.bytes()
		}
		write(t, disk, p.at, []byte(p.bytes))
	}
}

func (s signature) bytes() int64 {
	if s.size == 0 {
		return smallDisk
	}
	return s.size
}

func le16(v uint16) string { return string(binary.LittleEndian.AppendUint16(nil, v)) }

func le32(v uint32) string { return string(binary.LittleEndian.AppendUint32(nil, v)) }

func le64(v uint64) string { return string(binary.LittleEndian.AppendUint64(nil, v)) }

func be16(v uint16) string { return string(binary.BigEndian.AppendUint16(nil, v)) }

func be32(v uint32) string { return string(binary.BigEndian.AppendUint32(nil, v)) }

func zeros(n int) string { return strings.Repeat("\x00", n) }

// pad fills s with zeros up to n bytes.
func pad(s string, n int) string { return s + zeros(n-len(s)) }

// rawCRC is CRC-32 without the inversions at its ends, as LVM and NILFS use it.
func rawCRC(seed uint32, s string) uint32 { return ^crc32.Update(^seed, crc32.IEEETable, []byte(s)) }

func castagnoli(s string) uint32 {
	return crc32.Checksum([]byte(s), crc32.MakeTable(crc32.Castagnoli))
}

// bootBlock is a boot sector: what stands at its beginning and its end.
func bootBlock(begin string) string { return pad(begin, 510) + "\x55\xaa" }

func lvm2Label(sector uint64) string {
	body := pad(le32(32)+"LVM2 001"+"abcdefghijklmnopqrstuvwxyzABCDEF", 512-20)
	return "LABELONE" + le64(sector) + le32(rawCRC(0xf597a6cf, body)) + body
}

func nilfsSuper() string {
	const seed = 0x12345678
	head := le32(2) + le16(0) + le16(0x3434) + le16(280) + le16(0) + le32(seed)
	tail := zeros(280 - 20)
	return head + le32(rawCRC(seed, head+zeros(4)+tail)) + tail
}

func stratisSuper() string {
	body := pad("!Stra0tis\x86\xff\x02^\x41rh"+le64(smallDisk/512), 508)
	return le32(castagnoli(body)) + body
}

func mpoolSuper() string {
	body := pad("mpoolDev"+"pool", 62)
	return body + le32(castagnoli(body))
}

func mdSuper1(sector uint64) string {
	return pad(le32(0xa92b4efc)+le32(1), 144) + le64(sector)
}

// uberblocks is the part of a ZFS label that holds them.
func uberblocks() string { return strings.Repeat(pad(le64(0x00bab10c)+le64(5000), 1024), 4) }

// xfsSuper is the beginning of the superblock that XFS and EXFS share in form.
func xfsSuper(magic string) string {
	s := pad(magic+be32(4096)+zeros(4)+be32(2048), 80)
	s += be32(1) + be32(2048) + be32(1) + zeros(4) + be32(512) + be16(0) + be16(512) + be16(256) + be16(16) + zeros(12)
	return s + "\x0c\x09\x08\x04\x0b"
}

func befsSuper() string {
	s := pad("name", 32) + le32(0x42465331) + le32(0x42494745) + le32(1024) + le32(10)
	s = pad(s, 68) + le32(0xdd121031)
	return pad(s, 112) + le32(0x15b6830e) + le32(0) + le16(4) + le16(1)
}

func luks(magic string, version uint16) string {
	return pad(magic+be16(version), 168) + "0a9f1b2c-3d4e-4f50-8a6b-7c8d9e0f1a2b"
}

// signatures has every name that `blkid -k` lists, up to util-linux 2.41; the first of each name comes from util-linux
// 2.38.
var signatures = []signature{
	{name: "linux_raid_member", plant: []patch{{-0x10000, le32(0xa92b4efc) + le32(0) + le32(90) + zeros(20) + le32(1024)}}},
	{name: "linux_raid_member", plant: []patch{{-0x2000, mdSuper1((smallDisk - 0x2000) / 512)}}}, // 1.0, at the end
	{name: "linux_raid_member", plant: []patch{{0, mdSuper1(0)}}},                                // 1.1
	{name: "linux_raid_member", plant: []patch{{0x1000, mdSuper1(8)}}},                           // 1.2
	{name: "ddf_raid_member", plant: []patch{{-512, pad(be32(0xde11de11)+zeros(28)+"01.02.00", 256)}}},
	{name: "isw_raid_member", plant: []patch{{-1024, "Intel Raid ISM Cfg Sig. 1.3.00"}}},
	{name: "lsi_mega_raid_member", plant: []patch{{-512, "$XIDE$"}}},
	{name: "via_raid_member", plant: []patch{{-512, pad(le16(0xaa55)+"\x02", 50) + "\x01"}}},
	{name: "silicon_medley_raid_member", plant: []patch{{-512, pad(pad("", 0x60)+le32(0x2f000000), 0x13e) + le16(0xd100)}}},
	{name: "nvidia_raid_member", plant: []patch{{-1024, "NVIDIA  "}}},
	{name: "promise_fasttrack_raid_member", plant: []patch{{-63 * 512, "Promise Technology, Inc."}}},
	{name: "hpt45x_raid_member", plant: []patch{{-11 * 512, le32(0x5a7816f3)}}},
	{name: "hpt37x_raid_member", plant: []patch{{9*512 + 32, le32(0x5a7816f0)}}},
	{name: "adaptec_raid_member", plant: []patch{{-512, pad(be32(0x37fc4d1e), 256) + "DPTM"}}},
	{name: "jmicron_raid_member", plant: []patch{{-512, "JM\x01\x02"}}},
	{name: "bcache", plant: []patch{{0x1000, zeros(8) + le64(8) + le64(1) + "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81" + "0123456789abcdef"}}},
	{name: "ceph_bluestore", plant: []patch{{0, "bluestore block device\n0a9f1b2c-3d4e-4f50-8a6b-7c8d9e0f1a2b\n"}}},
	{name: "drbd", plant: []patch{{-4096, pad("", 60) + be32(0x83740267+4)}}},
	{name: "drbd", plant: []patch{{-4096, pad("", 60) + be32(0x83740267+6)}}}, // DRBD 9
	{name: "drbdmanage_control_volume", plant: []patch{{0, "$DRBDmgr=q\n0123456789abcdef0123456789abcdef\n"}, {0x1000, "\x1a\xdb\x98\xa2" + be32(1)}}},
	{name: "drbdproxy_datalog", plant: []patch{{0, "DRBDdlh*" + le64(1) + "0123456789abcdef"}}},
	{name: "LVM2_member", plant: []patch{{512, lvm2Label(1)}}},
	{name: "LVM2_member", plant: []patch{{1536, lvm2Label(3)}}},
	{name: "LVM1_member", plant: []patch{{0, "HM" + le16(1)}}},
	{name: "DM_snapshot_cow", plant: []patch{{0, "SnAp" + le32(1)}}},
	{name: "DM_verity_hash", plant: []patch{{0, "verity\x00\x00" + le32(1)}}},
	{name: "DM_integrity", plant: []patch{{0, "integrt\x00\x01"}}},
	{name: "crypto_LUKS", plant: []patch{{0, luks("LUKS\xba\xbe", 1)}}},
	{name: "crypto_LUKS", plant: []patch{{0, luks("LUKS\xba\xbe", 2)}}},
	{name: "crypto_LUKS", plant: []patch{{0x4000, luks("SKUL\xba\xbe", 2)}}},   // the first header is overwritten
	{name: "crypto_LUKS", plant: []patch{{0x400000, luks("SKUL\xba\xbe", 2)}}}, // and the header is as large as can be
	{name: "VMFS_volume_member", plant: []patch{{1 << 20, "\x0d\xd0\x01\xc0"}}},
	{name: "VMFS", plant: []patch{{2 << 20, "\x5e\xf1\xab\x2f"}}},
	{name: "ubi", plant: []patch{{0, "UBI#\x01"}}},
	{name: "vdo", plant: []patch{{0, "dmvdo001"}}},
	{name: "stratis", plant: []patch{{512, stratisSuper()}}},
	{name: "stratis", plant: []patch{{9 * 512, stratisSuper()}}}, // the second copy alone
	{name: "BitLocker", plant: []patch{{0, "\xeb\x52\x90-FVE-FS-"}}},
	{name: "BitLocker", plant: []patch{{0, pad("\xeb\x58\x90-FVE-FS-", 176) + le64(0x10000)}, {0x10000, "-FVE-FS-"}}},
	{name: "vfat", plant: []patch{{0, bootBlock(pad("\xeb\x3c\x90mkfs.fat"+le16(512)+"\x04"+le16(1)+"\x02"+le16(512)+le16(16384)+"\xf8"+le16(16), 0x36) + "FAT16   ")}}},
	{name: "swsuspend", plant: []patch{{0xff6, "S1SUSPEND"}}},
	{name: "swap", mkfs: []string{"mkswap"}},
	{name: "swap", mkfs: []string{"mkswap", "--pagesize", "65536"}},
	{name: "xfs", size: 320 << 20, mkfs: []string{"mkfs.xfs", "-q"}},
	{name: "xfs_external_log", size: 16 << 20, plant: []patch{{0, pad(be32(0xfeedbabe)+be32(1)+be32(2)+be32(512), 300) + be32(1)}}},
	{name: "exfs", plant: []patch{{0, xfsSuper("EXFS")}}},
	{name: "ext4dev", mkfs: []string{"mkfs.ext4", "-q", "-E", "test_fs"}},
	{name: "ext4", mkfs: []string{"mkfs.ext4", "-q"}},
	{name: "ext3", mkfs: []string{"mkfs.ext3", "-q"}},
	{name: "ext2", mkfs: []string{"mkfs.ext2", "-q"}},
	{name: "jbd", mkfs: []string{"mkfs.ext4", "-q", "-O", "journal_dev"}},
	{name: "reiserfs", plant: []patch{{0x10000, pad(pad(zeros(12)+le32(18), 44)+le16(4096), 52) + "ReIsEr2Fs"}}},
	{name: "reiser4", plant: []patch{{0x10000, "ReIsEr4"}}},
	{name: "jfs", size: 16 << 20, plant: []patch{{0x8000, pad("JFS1", 16) + le32(4096) + le16(12) + le16(3) + le32(512) + le16(9)}}},
	{name: "udf", plant: []patch{{0x8000, "\x00BEA01\x01"}, {0x8800, "\x00NSR02\x01"}, {0x9000, "\x00TEA01\x01"}, {256 * 512, pad(le16(2), 12) + le32(256)}}},
	{name: "iso9660", plant: []patch{{0x8000, "\x01CD001\x01"}, {0x8800, "\xffCD001\x01"}}},
	{name: "zfs_member", size: 64 << 20, plant: []patch{{0x20000, uberblocks()}}},
	{name: "zfs_member", size: 64 << 20, plant: []patch{{-0x20000, uberblocks()}}}, // the last label alone
	{name: "hfsplus", plant: []patch{{1024, pad("H+", 40) + be32(4096)}}},
	{name: "hfs", plant: []patch{{1024, pad("BD", 20) + be32(4096)}}},
	{name: "ufs", plant: []patch{{8192 + 1372, le32(0x00011954)}}},
	{name: "ufs", plant: []patch{{65536 + 1372, le32(0x19540119)}}}, // UFS2
	{name: "hpfs", plant: []patch{{0x2000, "\x49\xe8\x95\xf9"}, {0x2200, "\x49\x18\x91\xf9"}}},
	{name: "sysv", plant: []patch{{512 + 504, le32(0xfd187e20)}}},
	{name: "xenix", plant: []patch{{2048, "\x2b\x55\x44"}}},
	{name: "ntfs", plant: []patch{
		{0, bootBlock(pad("\xebR\x90NTFS    "+le16(512)+"\x08", 40) + le64(16000) + le64(4) + le64(2) + "\xf6")},
		{16384, "FILE"},
		{16384 + 3*1024, "FILE"},
	}},
	{name: "ReFS", plant: []patch{{0, "\x00\x00\x00ReFS\x00"}}},
	{name: "cramfs", plant: []patch{{0, "\x45\x3d\xcd\x28" + le32(65536)}}},
	{name: "romfs", plant: []patch{{0, "-rom1fs-"}}},
	{name: "minix", mkfs: []string{"mkfs.minix"}},
	{name: "minix", mkfs: []string{"mkfs.minix", "-3"}},
	{name: "gfs", size: 32 << 20, plant: []patch{{0x10000, pad("\x01\x16\x19\x70", 24) + be32(1309) + be32(1401)}}},
	{name: "gfs2", size: 32 << 20, plant: []patch{{0x10000, pad("\x01\x16\x19\x70", 24) + be32(1801) + be32(1900)}}},
	{name: "ocfs", size: 16 << 20, plant: []patch{{0x2000, "OracleCFS"}}},
	{name: "ocfs2", size: 16 << 20, plant: []patch{{1024, "OCFSV2"}}},
	{name: "oracleasm", plant: []patch{{32, "ORCLDISK"}}},
	{name: "vxfs", plant: []patch{{1024, "\xf5\xfc\x01\xa5" + le32(4)}}},
	{name: "squashfs", plant: []patch{{0, pad("hsqs", 28) + le16(4)}}},
	{name: "squashfs3", plant: []patch{{0, pad("hsqs", 28) + le16(3)}}},
	{name: "nss", plant: []patch{{4096, "SPB5"}}},
	{name: "btrfs", size: 128 << 20, mkfs: []string{"mkfs.btrfs", "-q"}},
	{name: "ubifs", plant: []patch{{0, "\x31\x18\x10\x06"}}},
	{name: "bfs", mkfs: []string{"mkfs.bfs"}},
	{name: "befs", plant: []patch{{0x200, befsSuper()}, {4096, le32(0x3bbe0ad9)}}},
	{name: "nilfs2", plant: []patch{{1024, nilfsSuper()}}},
	{name: "exfat", plant: []patch{{0, bootBlock(pad("\xebv\x90EXFAT   ", 80) + le32(24) + le32(8) + le32(64) + le32(1000) + le32(2) + zeros(8) + "\x09\x03")}}},
	{name: "f2fs", plant: []patch{{1024, "\x10\x20\xf5\xf2" + le16(1) + le16(14)}}},
	{name: "mpool", plant: []patch{{0, mpoolSuper()}}},
	{name: "apfs", plant: []patch{{0, pad(pad("", 24)+le16(1), 32) + "NXSB" + le32(4096)}}},
	{name: "zonefs", plant: []patch{{0, "SFOZ"}}},
	{name: "erofs", plant: []patch{{1024, "\xe2\xe1\xf5\xe0"}}},
}
