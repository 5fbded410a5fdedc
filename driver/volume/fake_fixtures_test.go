package volume

import (
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// testOwner is the owner of the objects of a test.
var testOwner = Owner{Driver: "driver", Cluster: "cluster"}

// ofOurs is a volume that this driver made for gib.
func ofOurs(n int, status Status) Volume {
	return Volume{ID: id(n), Name: "pvc-1", Status: status, Size: GiB(1), Metadata: testOwner.Metadata("pvc-1", nil)}
}

// ofOthers is one of the same name that somebody else made.
func ofOthers(n int, status Status) Volume {
	v := ofOurs(n, status)
	v.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
	return v
}

func attachedTo(servers ...ServerID) Volume {
	v := Volume{ID: id(1), Status: InUse, Multiattach: len(servers) > 1}
	for _, server := range servers {
		v.Attachments = append(v.Attachments, Attachment{Volume: v.ID, Server: server})
	}
	return v
}

// hostAttached is a volume that a host has which is no server of Nova's: "server_id": null.
func hostAttached(more ...ServerID) *fakeCloud {
	v := attachedTo(append([]ServerID{""}, more...)...)
	v.Attachments[0].Host = "kvm-7"
	c := newCloud(v)
	delete(c.servers, "") // the adapter answers NotFound for an id that is not a UUID
	return c
}

// pictureOfOurs is a snapshot that this driver made for picture.
func pictureOfOurs(n int, status Status) Snapshot {
	return Snapshot{ID: sid(n), Name: "snapshot-1", Volume: id(1), Status: status, Size: GiB(3), Metadata: testOwner.Metadata("snapshot-1", nil)}
}

// breaks lets a method fail from now on.
func (c *fakeCloud) breaks(method string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail[method] = err
}

func (c *fakeCloud) restore(server ServerID, list []ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers[server] = list
}

// fakeLate says which calls are answered by a proxy that gave up, and how long after that the cloud has done them all the same: each
// once, by method.
type fakeLate struct{ late map[string]time.Duration }

var errLost = Errorf(Unavailable, "HTTP 504").AfterWrite()

// loses reports whether the answer to a call is lost, whose work is done later then. It needs c.mu.
func (c *fakeCloud) loses(method string, work func()) bool {
	after, lost := c.late[method]
	if lost {
		delete(c.late, method)
		time.AfterFunc(after, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			work()
		})
	}
	return lost
}

// left are the ids of all that there is.
func (c *fakeCloud) left() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for id := range c.volumes {
		ids = append(ids, string(id))
	}
	for _, objects := range []map[SnapshotID]*Snapshot{c.snaps, c.backups} {
		for id := range objects {
			ids = append(ids, string(id))
		}
	}
	slices.Sort(ids)
	return ids
}

// put adds a volume while the cloud is in use.
func (c *fakeCloud) put(v Volume) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.volumes[v.ID] = &v
}

// sameZoneOnly makes a cloud refuse copies in another zone than their source's, as Cinder's cloned_volume_same_az does.
func (c *fakeCloud) sameZoneOnly(zone string) *fakeCloud {
	c.create = func(o CreateOptions, _ *Volume) error {
		if o.Zone != zone {
			return Errorf(NotHere, "Volume must be in the same availability zone as the source")
		}
		return nil
	}
	return c
}

// source is the volume that snapshots are made of.
var source = Volume{ID: id(1), Name: "pvc-1", Status: Available, Size: GiB(3), Zone: "az 2"}

// kept is what a cloud has of snapshots, or of backups.
func (c *fakeCloud) kept(backups bool) map[SnapshotID]*Snapshot {
	if backups {
		return c.backups
	}
	return c.snaps
}

// putSnapshot adds a snapshot or a backup while the cloud is in use.
func (c *fakeCloud) putSnapshot(backup bool, p Snapshot) {
	p.Backup = backup
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept(backup)[p.ID] = &p
}

// everyStatus is every status that Cinder 21 gives a volume: objects/fields.py VolumeStatus.ALL, and the two that volume/api.py sets besides.
var everyStatus = []Status{
	"creating", "available", "deleting", "error", "error_deleting", "error_managing", "managing", "attaching", "in-use",
	"detaching", "maintenance", "restoring-backup", "error_restoring", "reserved", "awaiting-transfer", "backing-up",
	"error_backing-up", "error_extending", "downloading", "uploading", "retyping", "extending",
	"unmanaging", "error_managing_deleting",
}

// archived is backup 1 of source.
func archived(status Status) Snapshot {
	return Snapshot{ID: sid(1), Volume: source.ID, Status: status, Size: source.Size, Reason: "disk full"}
}

// every status that Cinder 21 gives a snapshot: objects/fields.py SnapshotStatus.ALL.
var everySnapshotStatus = []Status{
	"error", "available", "creating", "deleting", "deleted", "updating", "error_deleting", "unmanaging", "backing-up", "restoring",
}

// createdAt is v, sent and created at that time.
func createdAt(v Volume, at time.Time) Volume {
	v.CreatedAt, v.Metadata = at, merged(v.Metadata, map[string]string{contract.MetadataSent: at.UTC().Format(time.RFC3339)})
	return v
}

// snapshotCreatedAt is p, sent and created at that time.
func snapshotCreatedAt(p Snapshot, at time.Time) Snapshot {
	p.CreatedAt, p.Metadata = at, merged(p.Metadata, map[string]string{contract.MetadataSent: at.UTC().Format(time.RFC3339)})
	return p
}
