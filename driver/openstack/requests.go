package openstack

import (
	"net/http"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// The requests of this package. A request names a microversion only where the base version lacks something:
//   - Cinder 3.5 filters messages by resource.
//   - Cinder 3.27 has an attachments API.
//   - Cinder 3.42 extends attached volumes.
//   - Cinder 3.43 gives backups metadata.
//   - Cinder 3.47 creates a volume from a backup.
//   - Cinder 3.51 creates a backup in a zone.
//   - Cinder 3.60 compares times in the filter of a list.
//   - Cinder 3.66 creates snapshots of volumes in use without "force", which it refuses.
//   - Cinder 3.71 is that of Cinder 24, whose retype fails if the volume has a snapshot with metadata.
//   - Nova 2.20 attaches to a shelved server and detaches from one. Below, Nova answers 409.
//   - Nova 2.26 shows the tags of a server.
//   - Nova 2.60 attaches a multiattach volume.
//
// The exact name filter of the volume list is in 3.0 already; only name~ needs 3.34.
var (
	createVolume           = blockStorage(http.MethodPost, "/volumes", "")
	createVolumeFromBackup = blockStorage(http.MethodPost, "/volumes", "3.47")
	getVolume              = blockStorage(http.MethodGet, "/volumes/{id}", "")
	listVolumes            = blockStorage(http.MethodGet, "/volumes/detail", "")
	listChangedVolumes     = blockStorage(http.MethodGet, "/volumes/detail", "3.60")
	deleteVolume           = blockStorage(http.MethodDelete, "/volumes/{id}", "")
	addMetadata            = blockStorage(http.MethodPost, "/volumes/{id}/metadata", "")
	removeMetadata         = blockStorage(http.MethodDelete, "/volumes/{id}/metadata/{key}", "")
	extendVolume           = blockStorage(http.MethodPost, "/volumes/{id}/action", "")
	extendAttachedVolume   = blockStorage(http.MethodPost, "/volumes/{id}/action", "3.42")
	retypeVolume           = extendVolume // an action too; the body says which

	createSnapshot      = blockStorage(http.MethodPost, "/snapshots", "")
	createSnapshotInUse = blockStorage(http.MethodPost, "/snapshots", "3.66")
	getSnapshot         = blockStorage(http.MethodGet, "/snapshots/{id}", "")
	listSnapshots       = blockStorage(http.MethodGet, "/snapshots/detail", "")
	getSnapshotLater    = blockStorage(http.MethodGet, "/snapshots/{id}", "3.71")
	deleteSnapshot      = blockStorage(http.MethodDelete, "/snapshots/{id}", "")

	createBackup       = blockStorage(http.MethodPost, "/backups", "3.43")
	createBackupInZone = blockStorage(http.MethodPost, "/backups", "3.51")
	listBackups        = blockStorage(http.MethodGet, "/backups/detail", "3.43")
	getBackup          = blockStorage(http.MethodGet, "/backups/{id}", "3.43")
	deleteBackup       = blockStorage(http.MethodDelete, "/backups/{id}", "")
	restoreBackup      = blockStorage(http.MethodPost, "/backups/{id}/restore", "")

	listAttachments  = blockStorage(http.MethodGet, "/attachments", "3.27")
	getAttachment    = blockStorage(http.MethodGet, "/attachments/{id}", "3.27")
	deleteAttachment = blockStorage(http.MethodDelete, "/attachments/{id}", "3.27")

	listMessages    = blockStorage(http.MethodGet, "/messages", "3.5")
	listTypes       = blockStorage(http.MethodGet, "/types", "")
	getDefaultType  = blockStorage(http.MethodGet, "/types/default", "")
	getQuotas       = blockStorage(http.MethodGet, "/os-quota-sets/{project}", "")
	listVolumeZones = blockStorage(http.MethodGet, "/os-availability-zone", "")

	getServer             = compute(http.MethodGet, "/servers/{id}", "2.26")
	listServerAttachments = compute(http.MethodGet, "/servers/{server}/os-volume_attachments", "")
	attachVolume          = compute(http.MethodPost, "/servers/{server}/os-volume_attachments", "2.20")
	attachMultiattach     = compute(http.MethodPost, "/servers/{server}/os-volume_attachments", "2.60")
	detachVolume          = compute(http.MethodDelete, "/servers/{server}/os-volume_attachments/{volume}", "2.20")
)

// Calls lists every request of this package. Package cloud sends the others: Keystone's POST /auth/tokens, and the version documents of
// Keystone and of an endpoint without a version.
var Calls = []cloud.Call{
	createVolume, createVolumeFromBackup, getVolume, listVolumes, listChangedVolumes, deleteVolume, addMetadata, removeMetadata, extendVolume, extendAttachedVolume,
	createSnapshot, createSnapshotInUse, getSnapshot, getSnapshotLater, listSnapshots, deleteSnapshot,
	createBackup, createBackupInZone, listBackups, getBackup, deleteBackup, restoreBackup,
	listAttachments, getAttachment, deleteAttachment,
	listMessages, listTypes, getDefaultType, getQuotas, listVolumeZones,
	getServer, listServerAttachments, attachVolume, attachMultiattach, detachVolume,
}

func blockStorage(method, path, microversion string) cloud.Call {
	return cloud.Call{Service: "block-storage", Method: method, Path: path, Microversion: microversion}
}

func compute(method, path, microversion string) cloud.Call {
	return cloud.Call{Service: "compute", Method: method, Path: path, Microversion: microversion}
}
