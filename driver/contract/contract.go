// Package contract holds the names and formats that others depend on: the driver name, topology keys, class parameters, context and metadata
// keys. A change here breaks existing volumes. The package has only data and parsers, and uses only the standard library.
package contract

import (
	"slices"
	"strings"
	"time"
)

// DriverName is the name of upstream's plugin. Existing PersistentVolumes, classes and node labels contain it.
const DriverName = "cinder.csi.openstack.org"

// TopologyKey is the node label and PersistentVolume affinity key of the driver named DriverName.
const TopologyKey = "topology." + DriverName + "/zone"

// TopologyKeyOf is the topology key for a driver name: topology.<driver name>/zone.
func TopologyKeyOf(driver string) string { return "topology." + driver + "/zone" }

// Keys of the metadata that the driver writes to Cinder volumes. Other tools use them to find the volumes of a cluster.
const (
	MetadataCluster      = "cinder.csi.openstack.org/cluster"
	MetadataPVCName      = "csi.storage.k8s.io/pvc/name"
	MetadataPVCNamespace = "csi.storage.k8s.io/pvc/namespace"
	MetadataPVName       = "csi.storage.k8s.io/pv/name"
	// MetadataRequest holds the token of the request for which the driver created a volume or snapshot. As its own failure or
	// duplicate the driver deletes only an object with the token of the present request. Upstream does not write this key.
	MetadataRequest = "cinder.csi.openstack.org/request"
	// MetadataSent is when the driver sent the request that created a volume, snapshot or backup, in RFC 3339. If
	// Cinder's created_at differs, a clock is wrong, and the driver does not use created_at to choose between two duplicates.
	MetadataSent = "cinder.csi.openstack.org/sent"
	// MetadataShared marks a volume for several servers. If its type allows only one, the driver has not returned it to anybody, and
	// deletes it. Upstream does not write this key.
	MetadataShared = "cinder.csi.openstack.org/shared"
	// MetadataVolumeMode is the volumeMode of the claim that the volume was created for: ModeFilesystem or ModeBlock. MetadataFSType is the file
	// system that the request named; a request may name none. Who recovers the volumes of a lost cluster needs both. Upstream does not write
	// these keys, and volumes of earlier versions lack them.
	MetadataVolumeMode = "cinder.csi.openstack.org/volume-mode"
	MetadataFSType     = "cinder.csi.openstack.org/fs-type"
	// MetadataTemporary marks a snapshot that the driver deletes after it has made a backup from it. Upstream does not write this key.
	MetadataTemporary = "cinder.csi.openstack.org/temporary"
)

// MetadataSourceBackup is the metadata key for the backup from which a volume was restored: no microversion has a field for it. The driver
// writes it with the create request, and Cinder writes it after the restore.
const MetadataSourceBackup = "src_backup_id"

// MetadataRestore names the backup whose data a volume must get before anybody uses it. The driver writes it with the create request of an empty
// volume. After the restore the key is gone, because Cinder replaces the metadata, or its value is RestoreDone: Cinder cannot delete a key with a
// slash. So a volume without it was not created for a restore, or it has the data. Only into a volume with it may the driver
// restore: no call has ever returned that. Upstream does not write this key.
const (
	MetadataRestore = "cinder.csi.openstack.org/restore"
	RestoreDone     = "done"
)

// RestoreFrom is the backup that a volume with this metadata still waits for; empty if it waits for none.
func RestoreFrom(metadata map[string]string) string {
	if backup := metadata[MetadataRestore]; backup != RestoreDone {
		return backup
	}
	return ""
}

// Values of MetadataVolumeMode, as Kubernetes writes them.
const (
	ModeFilesystem = "Filesystem"
	ModeBlock      = "Block"
)

// OwnMetadata lists the metadata keys that only the driver writes.
var OwnMetadata = keysOf(VolumeMetadata)

// Keys of the metadata that the driver writes to Cinder snapshots, besides MetadataCluster and MetadataRequest.
const (
	MetadataSnapshotName        = "csi.storage.k8s.io/volumesnapshot/name"
	MetadataSnapshotNamespace   = "csi.storage.k8s.io/volumesnapshot/namespace"
	MetadataSnapshotContentName = "csi.storage.k8s.io/volumesnapshotcontent/name"
	// MetadataType has the value "backup" in the metadata of a backup, as in upstream.
	MetadataType = "type"
)

// SnapshotMetadata lists the metadata keys with the Kubernetes objects of a snapshot.
var SnapshotMetadata = []string{MetadataSnapshotName, MetadataSnapshotNamespace, MetadataSnapshotContentName}

// writtenMetadata are the keys that the driver, or Cinder for it, writes to any object.
var writtenMetadata = slices.Concat(OwnMetadata, SnapshotMetadata, []string{MetadataSourceBackup, MetadataTemporary, MetadataType})

// WrittenMetadata returns what the driver, or Cinder for it, has written of the metadata of an object.
func WrittenMetadata(metadata map[string]string) map[string]string {
	written := map[string]string{}
	for _, key := range writtenMetadata {
		if value, has := metadata[key]; has {
			written[key] = value
		}
	}
	return written
}

// Description is the description of each Cinder object that the driver creates, as in upstream.
const Description = "Created by OpenStack Cinder CSI driver"

// DescriptionOfRestored is Description for a volume that Cinder restores from a backup. Cinder replaces the metadata of such a volume by the
// metadata of the original, but keeps the description. So the description also holds the token and the time of the request.
func DescriptionOfRestored(token string, sent time.Time) string {
	return Description + descriptionRequest + token + descriptionSent + sent.UTC().Format(time.RFC3339)
}

const descriptionRequest, descriptionSent = ", request ", ", sent "

// ParseDescriptionOfRestored reads the text of DescriptionOfRestored. Earlier versions did not write the time.
func ParseDescriptionOfRestored(description string) (token string, sent time.Time, ok bool) {
	rest, ok := strings.CutPrefix(description, Description+descriptionRequest)
	token, at, _ := strings.Cut(rest, descriptionSent)
	sent, _ = time.Parse(time.RFC3339, at)
	return token, sent, ok
}

// Keys of contexts and secrets.
const (
	// ContextResizeRequired in a VolumeContext ("true") says that the volume was created from a source: a snapshot, a volume or a backup. It
	// may be larger than its file system, and the node never formats it. A recovered PersistentVolume has it too. The key is upstream's.
	ContextResizeRequired = "cinder.csi.openstack.org/resizeRequired"
	// ContextDevicePath in a PublishContext is for upstream's node service; our node does not read it.
	ContextDevicePath = "DevicePath"
	// SecretCloud names the cloud: the name of its [Global "name"] section.
	SecretCloud = "cloud"
)

// StartupTaint is the key of the taint with which an administrator lets new nodes join. The controller removes it from a node once the driver is
// ready there.
func StartupTaint(driverName string) string { return driverName + "/agent-not-ready" }
