package volumetest

import (
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// testOwner is the owner of the objects of a test.
var TestOwner = idempotent.Owner{Driver: "driver", Cluster: "cluster"}

// ofOurs is a volume that this driver made for gib.
func OwnVolume(n int, status volume.Status) volume.Volume {
	return volume.Volume{ID: VolumeID(n), Name: "pvc-1", Status: status, Size: volume.GiB(1), Metadata: TestOwner.Metadata("pvc-1", nil)}
}

// ofOthers is one of the same name that somebody else made.
func ForeignVolume(n int, status volume.Status) volume.Volume {
	v := OwnVolume(n, status)
	v.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
	return v
}

func AttachedVolume(servers ...volume.ServerID) volume.Volume {
	v := volume.Volume{ID: VolumeID(1), Status: volume.InUse, Multiattach: len(servers) > 1}
	for _, server := range servers {
		v.Attachments = append(v.Attachments, volume.Attachment{Volume: v.ID, Server: server})
	}
	return v
}

// hostAttached is a volume that a host has which is no server of Nova's: "server_id": null.
func HostAttached(more ...volume.ServerID) *Cloud {
	v := AttachedVolume(append([]volume.ServerID{""}, more...)...)
	v.Attachments[0].Host = "kvm-7"
	c := NewCloud(v)
	delete(c.Servers, "") // the adapter answers NotFound for an id that is not a UUID
	return c
}

// pictureOfOurs is a snapshot that this driver made for picture.
func OwnSnapshot(n int, status volume.Status) volume.Snapshot {
	return volume.Snapshot{ID: SnapshotID(n), Name: "snapshot-1", Volume: VolumeID(1), Status: status, Size: volume.GiB(3), Metadata: TestOwner.Metadata("snapshot-1", nil)}
}

// breaks lets a method fail from now on.
func (c *Cloud) Breaks(method string, err error) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Fail[method] = err
}

func (c *Cloud) Restore(server volume.ServerID, list []volume.ID) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Servers[server] = list
}

// fakeLate says which calls are answered by a proxy that gave up, and how long after that the cloud has done them all the same: each
// once, by method.
type lostAnswers struct{ Late map[string]time.Duration }

var ErrLost = volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()

// loses reports whether the answer to a call is lost, whose work is done later then. It needs c.mu.
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

// left are the ids of all that there is.
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

// put adds a volume while the cloud is in use.
func (c *Cloud) Put(v volume.Volume) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.VolumesByID[v.ID] = &v
}

// sameZoneOnly makes a cloud refuse copies in another zone than their source's, as Cinder's cloned_volume_same_az does.
func (c *Cloud) SameZoneOnly(zone string) *Cloud {
	c.Create = func(o volume.CreateOptions, _ *volume.Volume) error {
		if o.Zone != zone {
			return volume.Errorf(volume.NotHere, "Volume must be in the same availability zone as the source")
		}
		return nil
	}
	return c
}

// source is the volume that snapshots are made of.
var SourceVolume = volume.Volume{ID: VolumeID(1), Name: "pvc-1", Status: volume.Available, Size: volume.GiB(3), Zone: "az 2"}

// kept is what a cloud has of snapshots, or of backups.
func (c *Cloud) Objects(backups bool) map[volume.SnapshotID]*volume.Snapshot {
	if backups {
		return c.BackupsByID
	}
	return c.SnapshotsByID
}

// putSnapshot adds a snapshot or a backup while the cloud is in use.
func (c *Cloud) PutSnapshot(backup bool, p volume.Snapshot) {
	p.Backup = backup
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Objects(backup)[p.ID] = &p
}

// everyStatus is every status that Cinder 21 gives a volume: objects/fields.py VolumeStatus.ALL, and the two that volume/api.py sets besides.
var EveryStatus = []volume.Status{
	"creating", "available", "deleting", "error", "error_deleting", "error_managing", "managing", "attaching", "in-use",
	"detaching", "maintenance", "restoring-backup", "error_restoring", "reserved", "awaiting-transfer", "backing-up",
	"error_backing-up", "error_extending", "downloading", "uploading", "retyping", "extending",
	"unmanaging", "error_managing_deleting",
}

// archived is backup 1 of source.
func NewBackup(status volume.Status) volume.Snapshot {
	return volume.Snapshot{ID: SnapshotID(1), Volume: SourceVolume.ID, Status: status, Size: SourceVolume.Size, Reason: "disk full"}
}

// every status that Cinder 21 gives a snapshot: objects/fields.py SnapshotStatus.ALL.
var EverySnapshotStatus = []volume.Status{
	"error", "available", "creating", "deleting", "deleted", "updating", "error_deleting", "unmanaging", "backing-up", "restoring",
}

// createdAt is v, sent and created at that time.
func CreatedAt(v volume.Volume, at time.Time) volume.Volume {
	v.CreatedAt, v.Metadata = at, merged(v.Metadata, map[string]string{contract.MetadataSent: at.UTC().Format(time.RFC3339)})
	return v
}

// snapshotCreatedAt is p, sent and created at that time.
func SnapshotCreatedAt(p volume.Snapshot, at time.Time) volume.Snapshot {
	p.CreatedAt, p.Metadata = at, merged(p.Metadata, map[string]string{contract.MetadataSent: at.UTC().Format(time.RFC3339)})
	return p
}
