package contract

import "strings"

// Described is a name that others use, with what it means to them. The reference of the driver is written from these tables.
type Described struct{ Name, Meaning string }

// StorageClassParameters are the parameters of a StorageClass that a person sets.
var StorageClassParameters = []Described{
	{ParameterType, "volume type, by name or id; absent: the cloud's default type"},
	{ParameterZone, "volume zone, by its name; wins over topology"},
	{ParameterMetadata, "a JSON object of strings, written to the volume's metadata as they are"},
	{ParameterMetadataPrefix + "KEY", "a value of the volume's metadata, in which `${pvc.name}`, `${pvc.namespace}` and `${pv.name}` are filled and `$$` stands for `$`. " +
		"At most 255 characters once filled, 32 KiB and 256 entries in all"},
	{ParameterHints, "a JSON object for Cinder's scheduler, see below"},
	{parameterFSType, "file system; absent: `--default-fs-type`"},
	{ParameterBlockSize, "bytes of a block of a new file system: ext and xfs 1024, 2048 or 4096"},
	{ParameterInodeSize, "bytes of an inode, a power of two: ext 128 up to the block; xfs 512 up to half the block, 2048 at most. ext with 128 keeps no time after 2038"},
	{ParameterBytesPerInode, "ext: one inode for so many bytes of the disk, 1024 to 67108864, and at least twice `inodeSize`"},
	{ParameterInodes, "ext: inodes, rounded up to whole groups; at most one for each 1024 bytes of the volume, or for twice `inodeSize` if that is more. " +
		"Not beside `bytesPerInode`"},
	{ParameterFeatures, "ext and xfs: `portable` leaves out features that older kernels cannot mount, see [file systems](compatibility.md#file-systems); absent: mkfs decides"},
}

// AttributesClassParameters are the parameters of a VolumeAttributesClass.
var AttributesClassParameters = []Described{
	{ParameterType, "volume type, by name or id"},
	{ParameterPolicy, "whether the volume may be copied to another backend for that type: `never`, the default, or `on-demand`. Only with `type`; without effect on a new volume"},
	{ParameterMetadataPrefix + "KEY", "a value of the volume's metadata, as it stands: nothing in it is filled. An empty value removes the key"},
}

// SnapshotClassParameters are the parameters of a VolumeSnapshotClass that a person sets.
var SnapshotClassParameters = []Described{
	{ParameterType, "`snapshot`, the default, or `backup`: [how backups are made](../explanation/backups.md)"},
	{ParameterForce, "`\"true\"`: below Cinder 3.66, snapshot or back up a volume in use; from 3.66 that needs no force"},
	{ParameterIncremental, "backups: `\"true\"` stores what changed since the volume's latest backup. In full where there is none, or that one failed"},
	{ParameterZone, "backups: the zone of the `cinder-backup` to use. Cinder takes any zone's name. Cinder 21 (Zed) ignores it and uses the volume's zone. " +
		"On Cinder 26 (Epoxy) a backup in a zone without the service [fails and stays](../explanation/backups.md#what-the-cloud-must-have)"},
	{ParameterMetadataPrefix + "KEY", "metadata of the snapshot or backup in Cinder: literal text. `--volume-metadata` sets keys for every object of the cluster"},
	{ParameterBackupTime, "backups: seconds per GiB, plus 30 s, after which an event reports a slow backup. Default: `20`. The backup continues"},
}

// VolumeMetadata are the metadata keys that only the driver writes, with their values. Upstream writes those of the cluster and the claim alone.
var VolumeMetadata = []Described{
	{MetadataCluster, "`--cluster`"},
	{MetadataPVCNamespace, "the namespace of the claim; this and the next two need `--extra-create-metadata` of external-provisioner"},
	{MetadataPVCName, "the name of the claim"},
	{MetadataPVName, "the name of the PersistentVolume"},
	{MetadataVolumeMode, "`Filesystem` or `Block`"},
	{MetadataFSType, "the file system that the request names; absent if it names none"},
	{MetadataShared, "`true`: for several servers"},
	{MetadataRestore, "the backup that the driver must still restore into the volume, [with Ceph](../explanation/what-ceph-changes.md#a-volume-made-from-a-backup); `done` if it has"},
	{MetadataRequest, "which request created the volume"},
	{MetadataSent, "when that request was sent"},
}

// keysOf are the names of a table, without those that stand for any name.
func keysOf(table []Described) []string {
	var all []string
	for _, d := range table {
		if !strings.HasPrefix(d.Name, ParameterMetadataPrefix) {
			all = append(all, d.Name)
		}
	}
	return all
}
