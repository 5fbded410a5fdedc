package volumetest

import (
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// TestOwner is the owner of the objects of a test.
var TestOwner = idempotent.Owner{Driver: "driver", Cluster: "cluster"}

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
	v := volume.Volume{ID: VolumeID(1), Status: volume.InUse, Multiattach: len(servers) > 1}
	for _, server := range servers {
		v.Attachments = append(v.Attachments, volume.Attachment{Volume: v.ID, Server: server})
	}
	return v
}

// HostAttached is a cloud with a volume that is attached to a host instead of a Nova server ("server_id": null), and to more servers.
func HostAttached(more ...volume.ServerID) *Cloud {
	v := AttachedVolume(append([]volume.ServerID{""}, more...)...)
	v.Attachments[0].Host = "kvm-7"
	c := NewCloud(v)
	delete(c.Servers, "") // the adapter returns NotFound for an ID that is no UUID
	return c
}

// OwnSnapshot is a snapshot with the name snapshot-1 that this driver created.
func OwnSnapshot(n int, status volume.Status) volume.Snapshot {
	return volume.Snapshot{ID: SnapshotID(n), Name: "snapshot-1", Volume: VolumeID(1), Status: status, Size: volume.GiB(3), Metadata: TestOwner.Metadata("snapshot-1", nil)}
}

// Breaks makes a method fail from now on.
func (c *Cloud) Breaks(method string, err error) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Fail[method] = err
}

// Restore sets the list of volumes that Nova shows for a server.
func (c *Cloud) Restore(server volume.ServerID, list []volume.ID) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Servers[server] = list
}

// lostAnswers names methods whose next answer is lost, as behind a proxy with a timeout. The cloud carries out the request after that delay.
type lostAnswers struct{ Late map[string]time.Duration }

// ErrLost is the error of a lost answer.
var ErrLost = volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()

// loses reports whether the answer to a call is lost; then the work happens later. The caller holds c.Mu.
func (c *Cloud) loses(method string, work func()) bool {
	after, lost := c.Late[method]
	if lost {
		delete(c.Late, method)
		time.AfterFunc(after, func() {
			c.Mu.Lock()
			defer c.Mu.Unlock()
			work()
		})
	}
	return lost
}

// Remaining returns the IDs of all objects.
func (c *Cloud) Remaining() []string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	var ids []string
	for id := range c.VolumesByID {
		ids = append(ids, string(id))
	}
	for _, objects := range []map[volume.SnapshotID]*volume.Snapshot{c.SnapshotsByID, c.BackupsByID} {
		for id := range objects {
			ids = append(ids, string(id))
		}
	}
	slices.Sort(ids)
	return ids
}

// Put adds a volume while the cloud is in use.
func (c *Cloud) Put(v volume.Volume) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.VolumesByID[v.ID] = &v
}

// SameZoneOnly makes a cloud refuse volumes in other zones, as Cinder refuses copies outside the zone of their source (cloned_volume_same_az).
func (c *Cloud) SameZoneOnly(zone string) *Cloud {
	c.Create = func(o volume.CreateOptions, _ *volume.Volume) error {
		if o.Zone != zone {
			return volume.Errorf(volume.NotInZone, "Volume must be in the same availability zone as the source")
		}
		return nil
	}
	return c
}

// SourceVolume is the volume of the snapshots and backups.
var SourceVolume = volume.Volume{ID: VolumeID(1), Name: "pvc-1", Status: volume.Available, Size: volume.GiB(3), Zone: "az 2"}

// Objects returns the snapshots or the backups.
func (c *Cloud) Objects(backups bool) map[volume.SnapshotID]*volume.Snapshot {
	if backups {
		return c.BackupsByID
	}
	return c.SnapshotsByID
}

// PutSnapshot adds a snapshot or backup while the cloud is in use.
func (c *Cloud) PutSnapshot(backup bool, p volume.Snapshot) {
	p.Backup = backup
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Objects(backup)[p.ID] = &p
}

// EveryStatus is every volume status of Cinder 21: VolumeStatus.ALL of objects/fields.py, and two more of volume/api.py.
var EveryStatus = []volume.Status{
	"creating", "available", "deleting", "error", "error_deleting", "error_managing", "managing", "attaching", "in-use",
	"detaching", "maintenance", "restoring-backup", "error_restoring", "reserved", "awaiting-transfer", "backing-up",
	"error_backing-up", "error_extending", "downloading", "uploading", "retyping", "extending",
	"unmanaging", "error_managing_deleting",
}

// NewBackup is a backup of SourceVolume.
func NewBackup(status volume.Status) volume.Snapshot {
	return volume.Snapshot{ID: SnapshotID(1), Volume: SourceVolume.ID, Status: status, Size: SourceVolume.Size, Reason: "disk full"}
}

// EverySnapshotStatus is every snapshot status of Cinder 21 (objects/fields.py, SnapshotStatus.ALL).
var EverySnapshotStatus = []volume.Status{
	"error", "available", "creating", "deleting", "deleted", "updating", "error_deleting", "unmanaging", "backing-up", "restoring",
}

// CreatedAt returns v as requested and created at that time.
func CreatedAt(v volume.Volume, at time.Time) volume.Volume {
	v.CreatedAt, v.Metadata = at, merged(v.Metadata, map[string]string{contract.MetadataSent: at.UTC().Format(time.RFC3339)})
	return v
}

// SnapshotCreatedAt returns p as requested and created at that time.
func SnapshotCreatedAt(p volume.Snapshot, at time.Time) volume.Snapshot {
	p.CreatedAt, p.Metadata = at, merged(p.Metadata, map[string]string{contract.MetadataSent: at.UTC().Format(time.RFC3339)})
	return p
}
