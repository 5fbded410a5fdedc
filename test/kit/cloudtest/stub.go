package cloudtest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Stub is a cloud behind the port of the domain. It records every call. A test makes a method fail with Fail, and does something else
// during a call with Hook. Everything else is the embedded Cloud's.
type Stub struct {
	volume.Cloud
	Calls  []string          // "DeleteVolume 1", in order
	Fail   map[string]error  // by method
	Hook   map[string]func() // by method; it runs before the method itself
	Reason string            // what Failure and SnapshotFailure return; empty means what Cinder says

	// Cinder24 is whether a snapshot stops a retype, as since Cinder 24. The simulation is Cinder 21.
	Cinder24 bool

	// Wanted is the request of the latest CreateVolume. The hook of CreateVolume sees it.
	Wanted volume.CreateOptions

	mu sync.Mutex
}

// NewStub returns a stub of c that fails nothing.
func NewStub(c volume.Cloud) *Stub {
	return &Stub{Cloud: c, Fail: map[string]error{}, Hook: map[string]func(){}}
}

// Breaks makes a method fail from now on, while other calls are in progress. A nil error ends that.
func (s *Stub) Breaks(method string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Fail[method] = err
}

// Count returns how often a method was called. With arguments behind the method it counts the calls with those: "Extend 1".
func (s *Stub) Count(method string) int { return s.CountPrefix(method + " ") }

// CountPrefix returns how often all methods were called whose names begin so: "Create".
func (s *Stub) CountPrefix(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, call := range s.Calls {
		if strings.HasPrefix(call+" ", prefix) {
			n++
		}
	}
	return n
}

// called records a call, runs its hook, and returns its error.
func (s *Stub) called(method string, args ...any) error {
	s.mu.Lock()
	s.Calls = append(s.Calls, strings.TrimSpace(method+" "+fmt.Sprint(args...)))
	hook := s.Hook[method]
	s.mu.Unlock()
	if hook != nil {
		hook()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Fail[method]
}

// command is a method that returns an error only.
func (s *Stub) command(do func() error, method string, args ...any) error {
	if err := s.called(method, args...); err != nil {
		return err
	}
	return do()
}

// query is a method that returns an object.
func query[T any](s *Stub, do func() (T, error), method string, args ...any) (T, error) {
	if err := s.called(method, args...); err != nil {
		var none T
		return none, err
	}
	return do()
}

func (s *Stub) CreateVolume(ctx context.Context, o volume.CreateOptions) (volume.Volume, error) {
	s.mu.Lock()
	s.Wanted = o
	s.mu.Unlock()
	return query(s, func() (volume.Volume, error) { return s.Cloud.CreateVolume(ctx, o) }, "CreateVolume")
}

func (s *Stub) Volume(ctx context.Context, id volume.ID) (volume.Volume, error) {
	return query(s, func() (volume.Volume, error) { return s.Cloud.Volume(ctx, id) }, "Volume", id)
}

func (s *Stub) VolumesNamed(ctx context.Context, name string) ([]volume.Volume, error) {
	return query(s, func() ([]volume.Volume, error) { return s.Cloud.VolumesNamed(ctx, name) }, "VolumesNamed")
}

func (s *Stub) Extend(ctx context.Context, id volume.ID, size volume.Size, attached bool) error {
	return s.command(func() error { return s.Cloud.Extend(ctx, id, size, attached) }, "Extend", id, attached)
}

func (s *Stub) Retype(ctx context.Context, id volume.ID, typeID string, migrate bool) error {
	return s.command(func() error { return s.Cloud.Retype(ctx, id, typeID, migrate) }, "Retype", id, typeID, migrate)
}

func (s *Stub) AddMetadata(ctx context.Context, id volume.ID, metadata map[string]string) error {
	return s.command(func() error { return s.Cloud.AddMetadata(ctx, id, metadata) }, "AddMetadata", id)
}

func (s *Stub) RemoveMetadata(ctx context.Context, id volume.ID, key string) error {
	return s.command(func() error { return s.Cloud.RemoveMetadata(ctx, id, key) }, "RemoveMetadata", id, key)
}

func (s *Stub) DeleteVolume(ctx context.Context, id volume.ID) error {
	return s.command(func() error { return s.Cloud.DeleteVolume(ctx, id) }, "DeleteVolume", id)
}

func (s *Stub) Failure(ctx context.Context, id volume.ID) (string, error) {
	return query(s, func() (string, error) { return s.reason(s.Cloud.Failure(ctx, id)) }, "Failure", id)
}

func (s *Stub) SnapshotStopsRetype(ctx context.Context, id volume.SnapshotID) (bool, error) {
	return query(s, func() (bool, error) {
		stops, err := s.Cloud.SnapshotStopsRetype(ctx, id)
		return stops || s.Cinder24 && err == nil, err
	}, "SnapshotStopsRetype", id)
}

func (s *Stub) SnapshotFailure(ctx context.Context, id volume.SnapshotID) (string, error) {
	return query(s, func() (string, error) { return s.reason(s.Cloud.SnapshotFailure(ctx, id)) }, "SnapshotFailure")
}

func (s *Stub) reason(of string, err error) (string, error) {
	if s.Reason != "" {
		return s.Reason, nil
	}
	return of, err
}

func (s *Stub) CreateSnapshot(ctx context.Context, o volume.SnapshotOptions) (volume.Snapshot, error) {
	how := map[bool]string{true: " in use"}[o.InUse] + map[bool]string{true: " by force"}[o.Force]
	return query(s, func() (volume.Snapshot, error) { return s.Cloud.CreateSnapshot(ctx, o) }, "CreateSnapshot"+how)
}

func (s *Stub) Snapshot(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	return query(s, func() (volume.Snapshot, error) { return s.Cloud.Snapshot(ctx, id) }, "Snapshot", id)
}

func (s *Stub) SnapshotsNamed(ctx context.Context, name string) ([]volume.Snapshot, error) {
	return query(s, func() ([]volume.Snapshot, error) { return s.Cloud.SnapshotsNamed(ctx, name) }, "SnapshotsNamed")
}

func (s *Stub) DeleteSnapshot(ctx context.Context, id volume.SnapshotID) error {
	return s.command(func() error { return s.Cloud.DeleteSnapshot(ctx, id) }, "DeleteSnapshot", id)
}

func (s *Stub) CreateBackup(ctx context.Context, o volume.BackupOptions) (volume.SnapshotID, error) {
	how := map[bool]string{true: " incremental"}[o.Incremental]
	return query(s, func() (volume.SnapshotID, error) { return s.Cloud.CreateBackup(ctx, o) }, "CreateBackup", o.Snapshot, how, " "+o.Zone)
}

func (s *Stub) Backup(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	return query(s, func() (volume.Snapshot, error) { return s.Cloud.Backup(ctx, id) }, "Backup", id)
}

func (s *Stub) BackupsNamed(ctx context.Context, name string) ([]volume.Snapshot, error) {
	return query(s, func() ([]volume.Snapshot, error) { return s.Cloud.BackupsNamed(ctx, name) }, "BackupsNamed")
}

func (s *Stub) Backups(ctx context.Context, p volume.SnapshotPage) (page []volume.Snapshot, more bool, err error) {
	err = s.command(func() error { page, more, err = s.Cloud.Backups(ctx, p); return err }, "Backups")
	return page, more, err
}

func (s *Stub) RestoreBackup(ctx context.Context, id volume.SnapshotID, into volume.ID) error {
	return s.command(func() error { return s.Cloud.RestoreBackup(ctx, id, into) }, "RestoreBackup", id, into)
}

func (s *Stub) DeleteBackup(ctx context.Context, id volume.SnapshotID) error {
	return s.command(func() error { return s.Cloud.DeleteBackup(ctx, id) }, "DeleteBackup", id)
}

func (s *Stub) VolumeAttachments(ctx context.Context, id volume.ID) ([]volume.Attachment, error) {
	return query(s, func() ([]volume.Attachment, error) { return s.Cloud.VolumeAttachments(ctx, id) }, "VolumeAttachments", id)
}

func (s *Stub) ShowAttachment(ctx context.Context, id string) (volume.Attachment, error) {
	return query(s, func() (volume.Attachment, error) { return s.Cloud.ShowAttachment(ctx, id) }, "ShowAttachment", id)
}

func (s *Stub) DeleteAttachment(ctx context.Context, id string) error {
	return s.command(func() error { return s.Cloud.DeleteAttachment(ctx, id) }, "DeleteAttachment", id)
}

func (s *Stub) NovaAnswers(ctx context.Context) error {
	return s.command(func() error { return s.Cloud.NovaAnswers(ctx) }, "NovaAnswers")
}

func (s *Stub) Server(ctx context.Context, id volume.ServerID) (volume.Server, error) {
	return query(s, func() (volume.Server, error) { return s.Cloud.Server(ctx, id) }, "Server", id)
}

func (s *Stub) ServerAttachments(ctx context.Context, server volume.ServerID) ([]volume.Attachment, error) {
	return query(s, func() ([]volume.Attachment, error) { return s.Cloud.ServerAttachments(ctx, server) }, "ServerAttachments", server)
}

func (s *Stub) Attach(ctx context.Context, server volume.ServerID, v volume.Volume) error {
	return s.command(func() error { return s.Cloud.Attach(ctx, server, v) }, "Attach", server)
}

func (s *Stub) Detach(ctx context.Context, server volume.ServerID, id volume.ID) error {
	return s.command(func() error { return s.Cloud.Detach(ctx, server, id) }, "Detach", server)
}

func (s *Stub) Types(ctx context.Context) ([]volume.Type, error) {
	return query(s, func() ([]volume.Type, error) { return s.Cloud.Types(ctx) }, "Types")
}

func (s *Stub) DefaultType(ctx context.Context) (volume.Type, error) {
	return query(s, func() (volume.Type, error) { return s.Cloud.DefaultType(ctx) }, "DefaultType")
}

func (s *Stub) Quotas(ctx context.Context) (map[string]volume.Quota, error) {
	return query(s, func() (map[string]volume.Quota, error) { return s.Cloud.Quotas(ctx) }, "Quotas")
}

func (s *Stub) VolumeZones(ctx context.Context) ([]string, error) {
	return query(s, func() ([]string, error) { return s.Cloud.VolumeZones(ctx) }, "VolumeZones")
}
