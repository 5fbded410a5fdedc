package openstack

import (
	"net/http"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// The requests of this package. A microversion stands only where the base version lacks something:
// 3.5 filters messages by resource, 3.47 creates a volume from a backup, 3.60 compares times in a list's filter, 2.60 attaches a multiattach volume. The exact name
// filter of the volume list is in 3.0 already; only name~ needs 3.34.
var (
	createVolume           = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/volumes"}
	createVolumeFromBackup = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/volumes", Microversion: "3.47"}
	getVolume              = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/volumes/{id}"}
	listVolumes            = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/volumes/detail"}
	listChangedVolumes     = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/volumes/detail", Microversion: "3.60"}
	deleteVolume           = cloud.Call{Service: "block-storage", Method: http.MethodDelete, Path: "/volumes/{id}"}
	addMetadata            = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/volumes/{id}/metadata"}
	listMessages           = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/messages", Microversion: "3.5"}
	listVolumeZones        = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/os-availability-zone"}

	getServer         = cloud.Call{Service: "compute", Method: http.MethodGet, Path: "/servers/{id}"}
	listAttachments   = cloud.Call{Service: "compute", Method: http.MethodGet, Path: "/servers/{server}/os-volume_attachments"}
	attach            = cloud.Call{Service: "compute", Method: http.MethodPost, Path: "/servers/{server}/os-volume_attachments"}
	attachMultiattach = cloud.Call{Service: "compute", Method: http.MethodPost, Path: "/servers/{server}/os-volume_attachments", Microversion: "2.60"}
	detach            = cloud.Call{Service: "compute", Method: http.MethodDelete, Path: "/servers/{server}/os-volume_attachments/{volume}"}
)

// Calls lists every request this package can send, besides Keystone's POST /auth/tokens, and the version documents of Keystone
// and of an unversioned endpoint, which package cloud sends.
var Calls = []cloud.Call{
	createVolume, createVolumeFromBackup, getVolume, listVolumes, listChangedVolumes, deleteVolume, addMetadata, listMessages, listVolumeZones,
	getServer, listAttachments, attach, attachMultiattach, detach,
	extendVolume, extendAttachedVolume,
	createSnapshot, createSnapshotInUse, getSnapshot, listSnapshots, deleteSnapshot,
	createBackup, createBackupInZone, getBackup, listBackups, deleteBackup,
	listTypes, defaultType, getQuotas,
	listRows, getRow, deleteRow,
}
