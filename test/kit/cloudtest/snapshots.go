package cloudtest

import (
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// SourceVolume is the volume of the snapshots and backups.
var SourceVolume = volume.Volume{ID: VolumeID(1), Name: "pvc-1", Status: volume.Available, Size: volume.GiB(3), Zone: "az1"}

// OwnSnapshot is a snapshot with the name snapshot-1 that this driver created.
func OwnSnapshot(n int, status volume.Status) volume.Snapshot {
	return volume.Snapshot{ID: SnapshotID(n), Name: "snapshot-1", Volume: VolumeID(1), Status: status, Size: volume.GiB(3), Metadata: TestOwner.Metadata("snapshot-1", nil)}
}

// NewBackup is a backup of SourceVolume.
func NewBackup(status volume.Status) volume.Snapshot {
	return volume.Snapshot{ID: SnapshotID(1), Volume: SourceVolume.ID, Status: status, Size: SourceVolume.Size, Reason: "disk full", Objects: 21}
}

// SnapshotCreatedAt returns p as requested and created at that time.
func SnapshotCreatedAt(p volume.Snapshot, at time.Time) volume.Snapshot {
	p.CreatedAt, p.Metadata = at, merged(p.Metadata, map[string]string{contract.MetadataSent: at.UTC().Format(time.RFC3339)})
	return p
}

// WithSnapshots adds snapshots to a cloud.
func (c *Cloud) WithSnapshots(all ...volume.Snapshot) *Cloud {
	c.t.Helper()
	for _, p := range all {
		c.PutSnapshot(false, p)
	}
	return c
}

// WithBackups adds backups to a cloud.
func (c *Cloud) WithBackups(all ...volume.Snapshot) *Cloud {
	c.t.Helper()
	for _, b := range all {
		c.PutSnapshot(true, b)
	}
	return c
}

// PutSnapshot adds or changes a snapshot or backup.
func (c *Cloud) PutSnapshot(backup bool, p volume.Snapshot) {
	c.t.Helper()
	base := ""
	if p.Incremental {
		base = string(SnapshotID(99))
	}
	err := c.Sim.PutSnapshot(openstacksim.SnapshotState{
		Base: base,
		ID:   string(p.ID), Name: p.Name, Status: string(p.Status), Volume: string(p.Volume), Backup: backup, Size: p.Size.RoundUp(), Metadata: p.Metadata,
		Created: p.CreatedAt, Snapshot: string(p.From), Reason: p.Reason, Data: p.DataAt, Zone: p.Zone, Objects: p.Objects,
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// Objects returns the snapshots or the backups.
func (c *Cloud) Objects(backups bool) map[volume.SnapshotID]volume.Snapshot {
	all := map[volume.SnapshotID]volume.Snapshot{}
	for _, s := range c.Sim.SnapshotStates() {
		if s.Backup == backups {
			all[volume.SnapshotID(s.ID)] = snapshotOf(s)
		}
	}
	return all
}

func snapshotOf(s openstacksim.SnapshotState) volume.Snapshot {
	return volume.Snapshot{
		ID: volume.SnapshotID(s.ID), Name: s.Name, Volume: volume.ID(s.Volume), Status: volume.Status(s.Status), Size: volume.GiB(s.Size), Metadata: s.Metadata,
		CreatedAt: s.Created, Backup: s.Backup, Reason: s.Reason, From: volume.SnapshotID(s.Snapshot), DataAt: s.Data, Zone: s.Zone, Objects: s.Objects, Incremental: s.Base != "",
	}
}

// ChangeSnapshot changes a snapshot or backup now, as somebody else or the backend does. It removes one whose ID f removes.
func (c *Cloud) ChangeSnapshot(id volume.SnapshotID, f func(*volume.Snapshot)) {
	c.t.Helper()
	state, ok := c.Sim.SnapshotState(string(id))
	if !ok {
		return
	}
	p := snapshotOf(state)
	if f(&p); p.ID == "" {
		c.Sim.Discard(string(id))
		return
	}
	c.PutSnapshot(state.Backup, p)
}

// LaterSnapshot is ChangeSnapshot after one second.
func (c *Cloud) LaterSnapshot(id volume.SnapshotID, f func(*volume.Snapshot)) {
	time.AfterFunc(time.Second, func() { c.ChangeSnapshot(id, f) })
}

// Undeletable gives snapshots and backups that status one second after the request to delete them, and keeps them.
func (c *Cloud) Undeletable(status volume.Status) {
	for method, op := range map[string]openstacksim.Operation{"DeleteSnapshot": openstacksim.DeleteSnapshot, "DeleteBackup": openstacksim.DeleteBackup} {
		c.Sim.SetLatency(op, 24*time.Hour)
		c.Hook[method] = func() {
			time.AfterFunc(time.Second, func() {
				for _, s := range c.Sim.SnapshotStates() {
					if volume.Status(s.Status) == volume.Deleting {
						c.ChangeSnapshot(volume.SnapshotID(s.ID), func(p *volume.Snapshot) { p.Status, p.Reason = status, "the store is gone" })
					}
				}
			})
		}
	}
}
