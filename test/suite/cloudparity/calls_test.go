package cloudparity

import (
	"net/http"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// The calls that cases are about. They repeat the declarations of the driver and of the generator. The coverage test compares the two, so
// a request that changes there must change here too.
var (
	createVolume           = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/volumes"}
	createVolumeFromBackup = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/volumes", Microversion: "3.47"}
	getVolume              = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/volumes/{id}"}
	listVolumes            = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/volumes/detail"}
	deleteVolume           = cloud.Call{Service: "block-storage", Method: http.MethodDelete, Path: "/volumes/{id}"}
	listMessages           = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/messages", Microversion: "3.5"}

	getServer         = cloud.Call{Service: "compute", Method: http.MethodGet, Path: "/servers/{id}", Microversion: "2.26"}
	listAttachments   = cloud.Call{Service: "compute", Method: http.MethodGet, Path: "/servers/{server}/os-volume_attachments"}
	attach            = cloud.Call{Service: "compute", Method: http.MethodPost, Path: "/servers/{server}/os-volume_attachments", Microversion: "2.20"}
	attachMultiattach = cloud.Call{Service: "compute", Method: http.MethodPost, Path: "/servers/{server}/os-volume_attachments", Microversion: "2.60"}
	detach            = cloud.Call{Service: "compute", Method: http.MethodDelete, Path: "/servers/{server}/os-volume_attachments/{volume}", Microversion: "2.20"}

	volumeZones        = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/os-availability-zone"}
	computeZones       = cloud.Call{Service: "compute", Method: http.MethodGet, Path: "/os-availability-zone"}
	listTypes          = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/types"}
	defaultType        = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/types/default"}
	extraSpecs         = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/types/{id}/extra_specs"}
	encryption         = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/types/{id}/encryption"}
	volumeLimits       = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/limits"}
	quotaSet           = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/os-quota-sets/{project}"}
	listProjectBackups = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/backups"}
	listServices       = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/os-services"}
	groupTypes         = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/group_types", Microversion: "3.11"}

	createToken      = cloud.Call{Service: "identity", Method: http.MethodPost, Path: "/auth/tokens"}
	identityVersions = cloud.Call{Service: "identity", Method: http.MethodGet, Path: "/"}
	computeVersions  = cloud.Call{Service: "compute", Method: http.MethodGet, Path: "/"}
	volumeVersions   = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/"}
)

// Calls that only prepare a case or check its result.
var (
	listServers    = cloud.Call{Service: "compute", Method: http.MethodGet, Path: "/servers"}
	volumeAction   = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/volumes/{id}/action"}
	createType     = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/types"}
	updateQuota    = cloud.Call{Service: "block-storage", Method: http.MethodPut, Path: "/os-quota-sets/{project}"}
	deleteType     = cloud.Call{Service: "block-storage", Method: http.MethodDelete, Path: "/types/{id}"}
	createSnapshot = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/snapshots"}
	getSnapshot    = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/snapshots/{id}"}
	replaceTags    = cloud.Call{Service: "compute", Method: http.MethodPut, Path: "/servers/{id}/tags", Microversion: "2.26"}
	serverAction   = cloud.Call{Service: "compute", Method: http.MethodPost, Path: "/servers/{id}/action"}
	createAppCred  = cloud.Call{Service: "identity", Method: http.MethodPost, Path: "/users/{user}/application_credentials"}
	deleteAppCred  = cloud.Call{Service: "identity", Method: http.MethodDelete, Path: "/users/{user}/application_credentials/{id}"}
)

// at is a call at another microversion.
func at(c cloud.Call, microversion string) cloud.Call {
	c.Microversion = microversion
	return c
}
