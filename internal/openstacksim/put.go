package openstacksim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// PutVolume makes the databases of Cinder and Nova hold a volume as the state says. It changes the volume with that ID, or adds one to
// the first project that has an application credential. A story begins there, or somebody else acts in it: no service checks anything.
// An empty Type, Zone or Created is the default of a new volume. A data plane has no bytes of a volume that PutVolume adds.
func (s *Sim) PutVolume(state VolumeState) error {
	defer s.lock()()
	s.applyDue()
	v := s.volumes[state.ID]
	if v == nil {
		v = &volume{id: state.ID, project: s.homeProject(), zone: s.volumeZones[0].name, kind: s.typeByName(s.defaultType), created: now()}
	}
	if state.Type != "" {
		if v.kind = s.typeByName(state.Type); v.kind == nil {
			return fmt.Errorf("there is no volume type %s", state.Type)
		}
	}
	v.zone, v.created = cmp.Or(state.Zone, v.zone), cmp.Or(state.Created, v.created).Truncate(time.Second) // as Cinder stores it
	v.name, v.description, v.status, v.size, v.multiattach = optional(state.Name), optional(state.Description), state.Status, state.Size, state.Multiattach
	v.snapshotID, v.sourceID, v.host, v.metadata = state.Snapshot, state.Source, s.hostOf(v), cloneOrEmpty(state.Metadata)
	v.putAttachments(s, state.Attachments)
	s.putDisks(v, state.Disks)
	s.volumes[v.id] = v
	v.update()
	return nil
}

// homeProject is the ID of the project of the first application credential, or of the first project.
func (s *Sim) homeProject() string {
	if len(s.appCreds) > 0 {
		if p := s.project(s.appCreds[0].Project); p != nil {
			return p.ID
		}
	}
	return s.config.Projects[0].ID
}

// putAttachments keeps the attachments whose IDs v has already: disks refer to them.
func (v *volume) putAttachments(s *Sim, states []AttachmentState) {
	var all []*attachment
	for _, state := range states {
		i := slices.IndexFunc(v.attachments, func(a *attachment) bool { return a.id == state.ID })
		a := &attachment{id: state.ID, volume: v, mode: "rw"}
		if i >= 0 {
			a = v.attachments[i]
		}
		if a.id == "" {
			a.id = s.newID()
		}
		if state.Status == "attached" && a.attachedAt.IsZero() {
			a.attachedAt = now()
		}
		a.server, a.status, a.host = state.Server, state.Status, state.Host
		all = append(all, a)
	}
	v.attachments = all
}

// putDisks makes Nova list v for these servers and no others.
func (s *Sim) putDisks(v *volume, servers []string) {
	for id, server := range s.servers {
		d := server.disk(v.id)
		switch wanted := slices.Contains(servers, id); {
		case d != nil && !wanted:
			server.drop(d)
			continue
		case !wanted:
			continue
		case d == nil:
			d = &disk{id: s.newID(), volume: v.id, device: deviceName(len(server.disks) + 1)}
			server.disks = append(server.disks, d)
		}
		for _, a := range v.attachments {
			if a.server == id {
				d.attachment = a
			}
		}
	}
}

// PutSnapshot does for a snapshot or backup what PutVolume does for a volume. The volume of a snapshot must exist.
func (s *Sim) PutSnapshot(state SnapshotState) error {
	defer s.lock()()
	s.applyDue()
	state.Created = cmp.Or(state.Created, now()).Truncate(time.Second) // as Cinder stores it
	if state.Backup {
		s.putBackup(state)
		return nil
	}
	v := s.volumes[state.Volume]
	if v == nil {
		return fmt.Errorf("snapshot %s: there is no volume %s", state.ID, state.Volume)
	}
	p := s.snapshots[state.ID]
	if p == nil {
		p = &snapshot{id: state.ID, project: v.project}
		s.snapshots[p.id] = p
	}
	p.name, p.status, p.volume, p.size = optional(state.Name), state.Status, v, state.Size
	p.metadata, p.created, p.updated = cloneOrEmpty(state.Metadata), state.Created, p.clock.now()
	return nil
}

func (s *Sim) putBackup(state SnapshotState) {
	b := s.backups[state.ID]
	if b == nil {
		b = &backup{id: state.ID, project: s.homeProject(), metadata: map[string]string{}}
		if v := s.volumes[state.Volume]; v != nil {
			b.metadata = cloneOrEmpty(v.metadata)
		}
		s.backups[b.id] = b
	}
	b.name, b.volume, b.size, b.snapshot, b.zone = optional(state.Name), state.Volume, state.Size, state.Snapshot, state.Zone
	b.labels, b.created, b.data = cloneOrEmpty(state.Metadata), state.Created, cmp.Or(state.Data, state.Created)
	b.objects, b.base = state.Objects, state.Base
	b.turn(state.Status, state.Reason)
}

func cloneOrEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}
