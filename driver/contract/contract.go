// Package contract holds what others depend on: the driver's name, topology keys, class parameters, context and metadata keys.
// A change here breaks volumes that exist. Data and parsers only, standard library only.
package contract

import (
	"strings"
	"time"
)

// DriverName is the name upstream's plugin registers, which existing PersistentVolumes, classes and node labels carry.
const DriverName = "cinder.csi.openstack.org"

// TopologyKey is the node label and PersistentVolume affinity key of the driver named DriverName.
const TopologyKey = "topology." + DriverName + "/zone"

// TopologyKeyOf is the topology key of a driver of any name: topology.<driver name>/zone.
func TopologyKeyOf(driver string) string { return "topology." + driver + "/zone" }

// Keys of the metadata that the driver writes to Cinder volumes; other tools find a cluster's volumes by them.
const (
	MetadataCluster      = "cinder.csi.openstack.org/cluster"
	MetadataPVCName      = "csi.storage.k8s.io/pvc/name"
	MetadataPVCNamespace = "csi.storage.k8s.io/pvc/namespace"
	MetadataPVName       = "csi.storage.k8s.io/pv/name"
	// MetadataRequest holds the token of the request that a volume or snapshot was made for. Only one that carries the token of the
	// very request at hand is ever removed as our own failure or duplicate. Upstream writes no such key.
	MetadataRequest = "cinder.csi.openstack.org/request"
	// MetadataSent is when the driver sent the request that created a volume, snapshot or backup, in RFC 3339. Where Cinder's
	// created_at does not fit it, a clock is wrong, and created_at does not decide which of two duplicates may be removed.
	MetadataSent = "cinder.csi.openstack.org/sent"
	// MetadataShared marks a volume that was made for several servers: where its type turns out to allow one only, nobody was told
	// of it, and it is removed. Upstream writes no such key.
	MetadataShared = "cinder.csi.openstack.org/shared"
	// MetadataTemporary marks a snapshot that is there only until the backup which is made from it is. Upstream's carry no such key.
	MetadataTemporary = "cinder.csi.openstack.org/temporary"
)

// MetadataSourceBackup is the metadata key under which a volume has the backup it was restored from: no microversion has a field
// for it. Cinder writes it once the volume is restored, the driver when it asks for the volume.
const MetadataSourceBackup = "src_backup_id"

// OwnMetadata lists the metadata keys that only the driver writes.
var OwnMetadata = []string{MetadataCluster, MetadataPVCName, MetadataPVCNamespace, MetadataPVName, MetadataRequest, MetadataSent, MetadataShared}

// Keys of the metadata that the driver writes to Cinder snapshots, besides MetadataCluster and MetadataRequest.
const (
	MetadataSnapshotName        = "csi.storage.k8s.io/volumesnapshot/name"
	MetadataSnapshotNamespace   = "csi.storage.k8s.io/volumesnapshot/namespace"
	MetadataSnapshotContentName = "csi.storage.k8s.io/volumesnapshotcontent/name"
	// MetadataType says "backup" in the metadata of a backup, as upstream's does.
	MetadataType = "type"
)

// SnapshotMetadata lists the metadata keys that tell of Kubernetes' objects behind a snapshot.
var SnapshotMetadata = []string{MetadataSnapshotName, MetadataSnapshotNamespace, MetadataSnapshotContentName}

// Description is what every Cinder object the driver makes carries, as upstream's do.
const Description = "Created by OpenStack Cinder CSI driver"

// DescriptionOfRestored is Description for a volume that is restored from a backup. Cinder replaces the metadata of such a volume
// with that of the volume which was backed up, but leaves its description alone, so the request's token stands there too, and when
// the driver sent the request.
func DescriptionOfRestored(token string, sent time.Time) string {
	return Description + descriptionRequest + token + descriptionSent + sent.UTC().Format(time.RFC3339)
}

const descriptionRequest, descriptionSent = ", request ", ", sent "

// ParseDescriptionOfRestored reads what DescriptionOfRestored wrote; earlier versions wrote no time.
func ParseDescriptionOfRestored(description string) (token string, sent time.Time, ok bool) {
	rest, ok := strings.CutPrefix(description, Description+descriptionRequest)
	token, at, _ := strings.Cut(rest, descriptionSent)
	sent, _ = time.Parse(time.RFC3339, at)
	return token, sent, ok
}

// Keys of contexts and secrets.
const (
	// ContextResizeRequired in a VolumeContext ("true") tells the node that a volume made from a source may be larger than the
	// file system on it.
	ContextResizeRequired = "cinder.csi.openstack.org/resizeRequired"
	// ContextDevicePath in a PublishContext is upstream's; written for upstream's node half, never read by ours.
	ContextDevicePath = "DevicePath"
	// SecretCloud selects the cloud, by the name of its [Global "name"] section.
	SecretCloud = "cloud"
)
