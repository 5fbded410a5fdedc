package openstacksim

import (
	"maps"
	"slices"
)

// backend is what a test says about the storage behind Cinder.
type backend struct {
	copyOnWrite bool
	busy        map[string]bool // volumes and snapshots, by ID
	moving      map[string]bool // volumes
}

// SetCopyOnWrite makes the volumes of a snapshot depend on it from now on, or no longer, as those of Ceph do unless Cinder flattens them. The
// backend keeps a snapshot as long as it has such volumes.
func (s *Sim) SetCopyOnWrite(is bool) { assign(s, &s.backend.copyOnWrite, is) }

// SetBusy makes the backend keep a volume or snapshot that somebody deletes, or delete it again. Cinder then makes it available again: a volume
// without a message (VolumeIsBusy in volume/manager.py), a snapshot with one (SnapshotIsBusy). Ceph keeps a volume for 30 seconds after the crash of a
// client that used it (volume/drivers/rbd.py).
func (s *Sim) SetBusy(id string, busy bool) {
	defer s.lock()()
	s.backend.busy[id] = busy
}

// SetMoving says that an administrator moves a volume in use to another backend, or no longer. Cinder then does not show that Nova detaches it
// (begin_detaching in volume/api.py), nor the end of it.
func (s *Sim) SetMoving(volume string, moving bool) {
	defer s.lock()()
	s.backend.moving[volume] = moving
}

// keeps reports whether the backend cannot delete a snapshot now. The caller holds s.mu.
func (s *Sim) keeps(p *snapshot) bool {
	copies := where(maps.Values(s.volumes), func(v *volume) bool { return s.backend.copyOnWrite && v.snapshotID == p.id })
	return s.backend.busy[p.id] || len(copies) > 0
}

// FailLiveMigration leaves for each disk of a server what a failed live migration may leave: a second attachment for the other host
// (_rollback_live_migration in nova/compute/manager.py).
func (s *Sim) FailLiveMigration(server string) {
	defer s.lock()()
	v := s.servers[server]
	for _, d := range slices.Clone(v.disks) {
		_, _ = s.reserveVolume(s.volumes[d.volume], server)
	}
}

// SetRetention makes somebody else delete the object that each further page of a list of snapshots or backups follows, just before the page is
// read. That is the oldest one of the page before, as the retention job of a schedule deletes it.
func (s *Sim) SetRetention(is bool) { assign(s, &s.retention, is) }

// retain deletes the marker of a list, if there is such a job.
func retain[T any](s *Sim, objects map[string]T, q *query) {
	if s.retention && q.marker != "" {
		delete(objects, q.marker)
	}
}
