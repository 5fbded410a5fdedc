package cloudtest

import (
	"fmt"
	"maps"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// TestOwner is the owner of the objects of a test.
var TestOwner = idempotent.Owner{Driver: "driver", Cluster: "cluster"}

// VolumeID is the ID of the n-th volume of a test.
func VolumeID(n int) volume.ID { return volume.ID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)) }

// SnapshotID is the ID of the n-th snapshot or backup of a test.
func SnapshotID(n int) volume.SnapshotID {
	return volume.SnapshotID(fmt.Sprintf("50000000-0000-4000-8000-%012d", n))
}

// OwnVolume is a volume with the name pvc-1 that this driver created.
func OwnVolume(n int, status volume.Status) volume.Volume {
	return volume.Volume{ID: VolumeID(n), Name: "pvc-1", Status: status, Size: volume.GiB(1), Metadata: TestOwner.Metadata("pvc-1", nil)}
}

// ForeignVolume is a volume of the same name that somebody else created.
func ForeignVolume(n int, status volume.Status) volume.Volume {
	v := OwnVolume(n, status)
	v.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
	return v
}

// AttachedVolume is a volume that is attached to these servers.
func AttachedVolume(servers ...volume.ServerID) volume.Volume {
	v := volume.Volume{ID: VolumeID(1), Status: volume.InUse, Size: volume.GiB(1), Multiattach: len(servers) > 1}
	for _, server := range servers {
		v.Attachments = append(v.Attachments, volume.Attachment{Volume: v.ID, Server: server})
	}
	return v
}

// HostAttached is a volume that is attached to a host instead of a Nova server ("server_id": null), and to more servers.
func HostAttached(more ...volume.ServerID) volume.Volume {
	v := AttachedVolume(append([]volume.ServerID{""}, more...)...)
	v.Attachments[0].Host = "kvm-7"
	return v
}

// CreatedAt returns v as requested and created at that time.
func CreatedAt(v volume.Volume, at time.Time) volume.Volume {
	v.CreatedAt, v.Metadata = at, merged(v.Metadata, map[string]string{contract.MetadataSent: at.UTC().Format(time.RFC3339)})
	return v
}

func merged(all ...map[string]string) map[string]string {
	one := map[string]string{}
	for _, m := range all {
		maps.Copy(one, m)
	}
	return one
}
