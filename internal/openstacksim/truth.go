package openstacksim

import (
	"slices"
	"time"
)

// VolumeState is a volume as the databases of the services have it, whatever their APIs show.
type VolumeState struct {
	ID, Name, Status, Zone, Type string
	Description                  string
	Snapshot, Source             string // the IDs of what it was created from
	Size                         int    // GiB
	Multiattach                  bool
	Metadata                     map[string]string
	Created                      time.Time // by the clock of its host
	Attachments                  []AttachmentState
	Disks                        []string // the servers that have it as a disk, according to Nova
}

// AttachmentState is a Cinder attachment. Host is the compute host, which Cinder shows to administrators only.
type AttachmentState struct{ ID, Server, Status, Host string }

// SnapshotState is one snapshot or backup.
type SnapshotState struct {
	ID, Name, Status, Volume string
	Backup                   bool
	Size                     int // GiB
	Metadata                 map[string]string
	Created                  time.Time // by the clock of its host
	Snapshot, Reason, Zone   string    // of a backup: the snapshot that it was made from, why it failed, and the zone of its cinder-backup
	Base                     string    // of an incremental backup: the one that it depends on
	Objects                  int       // of a backup: how many its store has; 0 with Ceph
	Data                     time.Time // of a backup: when the volume had its data
}

// VolumeState reads a volume of any project; ok reports whether it exists.
func (s *Sim) VolumeState(id string) (state VolumeState, ok bool) {
	defer s.lock()()
	s.applyDue()
	v, ok := s.volumes[id]
	if !ok {
		return VolumeState{}, false
	}
	return s.volumeState(v), true
}

// VolumeStates reads the volumes of every project, ordered by ID.
func (s *Sim) VolumeStates() []VolumeState {
	defer s.lock()()
	s.applyDue()
	return each(sortedKeys(s.volumes), func(id string) VolumeState { return s.volumeState(s.volumes[id]) })
}

func (s *Sim) volumeState(v *volume) VolumeState {
	state := VolumeState{
		ID: v.id, Name: deref(v.name), Status: v.status, Zone: v.zone, Type: v.kind.Name, Description: deref(v.description),
		Snapshot: v.snapshotID, Source: v.sourceID, Size: v.size, Multiattach: v.multiattach, Metadata: v.metadata, Created: v.created,
		Disks: s.holders(v),
	}
	for _, a := range v.attachments {
		state.Attachments = append(state.Attachments, AttachmentState{a.id, a.server, a.status, a.host})
	}
	return state
}

// AttachmentVolume returns the volume and the server of an attachment.
func (s *Sim) AttachmentVolume(id string) (volume, server string, ok bool) {
	defer s.lock()()
	for _, v := range s.volumes {
		for _, a := range v.attachments {
			if a.id == id {
				return v.id, a.server, true
			}
		}
	}
	return "", "", false
}

// SnapshotState reads a snapshot or backup; ok reports whether it exists.
func (s *Sim) SnapshotState(id string) (state SnapshotState, ok bool) {
	defer s.lock()()
	s.applyDue()
	if p := s.snapshots[id]; p != nil {
		return p.state(), true
	}
	if b := s.backups[id]; b != nil {
		return b.state(), true
	}
	return SnapshotState{}, false
}

func (p *snapshot) state() SnapshotState {
	return SnapshotState{ID: p.id, Name: deref(p.name), Status: p.status, Volume: p.volume.id, Size: p.size, Metadata: p.metadata, Created: p.created}
}

func (b *backup) state() SnapshotState {
	return SnapshotState{
		ID: b.id, Name: deref(b.name), Status: b.status, Volume: b.volume, Backup: true, Size: b.size, Metadata: b.labels, Created: b.created,
		Snapshot: b.snapshot, Reason: b.reason, Zone: b.zone, Base: b.base, Objects: b.objects, Data: b.data,
	}
}

// SnapshotStates reads every snapshot, then every backup, each ordered by ID.
func (s *Sim) SnapshotStates() []SnapshotState {
	defer s.lock()()
	s.applyDue()
	return slices.Concat(
		each(sortedKeys(s.snapshots), func(id string) SnapshotState { return s.snapshots[id].state() }),
		each(sortedKeys(s.backups), func(id string) SnapshotState { return s.backups[id].state() }),
	)
}

// ResetStatus sets the status of a volume, snapshot or backup, as an administrator does. It does nothing if there is no such
// object.
func (s *Sim) ResetStatus(id, status string) {
	defer s.lock()()
	if v := s.volumes[id]; v != nil {
		v.turn(status)
	}
	if p := s.snapshots[id]; p != nil {
		p.turn(status)
	}
	if b := s.backups[id]; b != nil {
		b.turn(status, b.reason)
	}
}

// Unplug removes a volume from a server at once, as an administrator does with os-force_detach and the database of Nova.
func (s *Sim) Unplug(volume, server string) {
	defer s.lock()()
	if v := s.servers[server]; v != nil {
		if d := v.disk(volume); d != nil {
			v.drop(d)
		}
	}
	vol := s.volumes[volume]
	if vol == nil {
		return
	}
	for _, a := range vol.attachments {
		if a.server == server {
			s.release(a)
			return
		}
	}
}

// Discard removes a volume, snapshot or backup at once. The disks that Nova lists stay.
func (s *Sim) Discard(id string) {
	defer s.lock()()
	delete(s.volumes, id)
	delete(s.snapshots, id)
	delete(s.backups, id)
}
