package volumetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Cloud is a cloud whose objects change one virtual second after a request. A test sets what fails in Fail, and what else happens during a
// call in Hook.
type Cloud struct {
	attachments
	backupFaults
	lostAnswers
	Mu            sync.Mutex
	VolumesByID   map[volume.ID]*volume.Volume
	SnapshotsByID map[volume.SnapshotID]*volume.Snapshot
	BackupsByID   map[volume.SnapshotID]*volume.Snapshot
	Servers       map[volume.ServerID][]volume.ID                      // what Nova lists
	Calls         []string                                             // "DeleteVolume 1", in order
	Fail          map[string]error                                     // by method
	Hook          map[string]func()                                    // by method, runs before the method itself
	Reason        string                                               // of Failure
	Outcome       volume.Status                                        // the status of a created object; empty means available
	ZoneNames     []string                                             // of VolumeZones; nil makes it return none
	Undeletable   volume.Status                                        // the status of a snapshot or backup after a delete; empty means that it is gone
	Refuse        bool                                                 // every attach and detach fails on the host
	Create        func(o volume.CreateOptions, v *volume.Volume) error // what else a create does to the volume
	now           func() time.Time
	made          int
	typed
}

// The servers of a Cloud.
const (
	ServerA volume.ServerID = "aaaaaaaa-0000-4000-8000-000000000001"
	ServerB volume.ServerID = "bbbbbbbb-0000-4000-8000-000000000002"
)

// NewCloud returns a cloud with these volumes, and with the servers ServerA and ServerB.
func NewCloud(volumes ...volume.Volume) *Cloud {
	c := &Cloud{
		VolumesByID: map[volume.ID]*volume.Volume{}, SnapshotsByID: map[volume.SnapshotID]*volume.Snapshot{}, BackupsByID: map[volume.SnapshotID]*volume.Snapshot{}, Servers: map[volume.ServerID][]volume.ID{ServerA: nil, ServerB: nil},
		Fail: map[string]error{}, Hook: map[string]func(){}, now: time.Now,
	}
	for _, v := range volumes {
		c.VolumesByID[v.ID] = &v
		for _, a := range v.Attachments {
			c.Servers[a.Server] = append(c.Servers[a.Server], v.ID)
		}
	}
	return c
}

// VolumeID is the ID of the n-th volume of a test.
func VolumeID(n int) volume.ID { return volume.ID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)) }

// Called records a call, runs its hook, and returns its error.
func (c *Cloud) Called(method string, args ...any) error {
	c.Mu.Lock()
	c.Calls = append(c.Calls, strings.TrimSpace(method+" "+fmt.Sprint(args...)))
	hook := c.Hook[method]
	c.Mu.Unlock()
	if hook != nil {
		hook()
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return c.Fail[method]
}

// Count returns how often a method was called. With arguments behind the method it counts the calls with those: "Extend 1".
func (c *Cloud) Count(method string) int { return c.CountPrefix(method + " ") }

// CountPrefix returns how often all methods were called whose names begin so: "Create".
func (c *Cloud) CountPrefix(prefix string) int {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	n := 0
	for _, call := range c.Calls {
		if strings.HasPrefix(call+" ", prefix) {
			n++
		}
	}
	return n
}

// Change changes a volume now.
func (c *Cloud) Change(id volume.ID, f func(*volume.Volume)) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if v, ok := c.VolumesByID[id]; ok {
		f(v)
	}
}

// Later changes a volume after one second.
func (c *Cloud) Later(id volume.ID, f func(*volume.Volume)) {
	time.AfterFunc(time.Second, func() { c.Change(id, f) })
}

// Remove deletes a volume now.
func (c *Cloud) Remove(id volume.ID) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	delete(c.VolumesByID, id)
}

func (c *Cloud) CreateVolume(_ context.Context, o volume.CreateOptions) (volume.Volume, error) {
	if err := c.Called("CreateVolume"); err != nil {
		return volume.Volume{}, err
	}
	c.Mu.Lock()
	c.made++
	v := volume.Volume{
		ID: VolumeID(100 + c.made), Name: o.Name, Status: volume.Creating, Size: o.Size, Type: o.Type, Zone: o.Zone, SourceID: o.SourceID, SnapshotID: o.SnapshotID,
		BackupID: o.BackupID, Description: o.Description, Metadata: o.Metadata, CreatedAt: c.now(),
	}
	if c.Create != nil {
		if err := c.Create(o, &v); err != nil {
			c.Mu.Unlock()
			return volume.Volume{}, err
		}
	}
	if c.loses("CreateVolume", func() { v.Status, v.CreatedAt = volume.Available, c.now(); c.VolumesByID[v.ID] = &v }) {
		c.Mu.Unlock()
		return volume.Volume{}, ErrLost
	}
	c.VolumesByID[v.ID] = &v
	answer := v
	c.Mu.Unlock()
	c.Later(v.ID, func(v *volume.Volume) {
		v.Status = volume.Available
		if c.Outcome != "" {
			v.Status = c.Outcome
		}
		if v.BackupID != "" && v.Status == volume.Available { // as Cinder does
			v.Metadata = map[string]string{contract.MetadataCluster: "another", "theirs": "1"}
		}
	})
	return answer, nil
}

func (c *Cloud) AddMetadata(_ context.Context, id volume.ID, metadata map[string]string) error {
	err := c.Called("AddMetadata", id)
	if err == nil {
		c.Change(id, func(v *volume.Volume) { v.Metadata = merged(v.Metadata, metadata) })
	}
	return err
}

func merged(all ...map[string]string) map[string]string {
	one := map[string]string{}
	for _, m := range all {
		maps.Copy(one, m)
	}
	return one
}

func (c *Cloud) Volume(_ context.Context, id volume.ID) (volume.Volume, error) {
	if err := c.Called("Volume", id); err != nil {
		return volume.Volume{}, err
	}
	return c.Read(id)
}

// Read reads a volume without recording a call.
func (c *Cloud) Read(id volume.ID) (volume.Volume, error) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if v, ok := c.VolumesByID[id]; ok {
		copied := *v
		copied.Attachments = slices.Clone(v.Attachments)
		for i := range copied.Attachments {
			a := &copied.Attachments[i]
			a.ID, a.Volume, a.Status = AttachmentID(a.Server), id, volume.AttachmentAttached
		}
		return copied, nil
	}
	return volume.Volume{}, volume.Errorf(volume.NotFound, "no volume %s", id)
}

func (c *Cloud) VolumesNamed(_ context.Context, name string) ([]volume.Volume, error) {
	if err := c.Called("VolumesNamed"); err != nil {
		return nil, err
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	var found []volume.Volume
	for _, v := range c.VolumesByID {
		if v.Name == name {
			found = append(found, *v)
		}
	}
	return found, nil
}

// Select returns a page of volumes. It ignores the filters.
func (c *Cloud) Select(_ context.Context, page volume.Selection) ([]volume.Volume, bool, error) {
	if err := c.Called("Select"); err != nil {
		return nil, false, err
	}
	all := sorted(c, c.VolumesByID, volume.PositionOf, func(volume.Volume) bool { return true })
	return pageOf(all, volume.PositionOf, page.Marker, page.Limit)
}

func (c *Cloud) DeleteVolume(_ context.Context, id volume.ID) error {
	if err := c.Called("DeleteVolume", id); err != nil {
		return err
	}
	c.Mu.Lock()
	v, ok := c.VolumesByID[id]
	if ok {
		v.Status = volume.Deleting
	}
	c.Mu.Unlock()
	if !ok {
		return volume.Errorf(volume.NotFound, "no volume %s", id)
	}
	time.AfterFunc(time.Second, func() {
		if v, err := c.Read(id); err == nil && v.Status == volume.Deleting {
			c.Remove(id)
		}
	})
	return nil
}

func (c *Cloud) Failure(context.Context, volume.ID) (string, error) {
	return c.Reason, c.Called("Failure")
}

func (c *Cloud) Server(_ context.Context, id volume.ServerID) (volume.Server, error) {
	if err := c.Called("Server", id); err != nil {
		return volume.Server{}, err
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if _, ok := c.Servers[id]; !ok {
		return volume.Server{}, volume.Errorf(volume.NotFound, "no server %s", id)
	}
	return volume.Server{ID: id, Status: cmp.Or(c.ServerStatus, "ACTIVE"), TaskState: c.Task}, nil
}

func (c *Cloud) ServerAttachments(_ context.Context, server volume.ServerID) ([]volume.Attachment, error) {
	if err := c.Called("ServerAttachments", server); err != nil {
		return nil, err
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	ids, ok := c.Servers[server]
	if !ok {
		return nil, volume.Errorf(volume.NotFound, "no server %s", server)
	}
	var all []volume.Attachment
	for _, id := range ids {
		all = append(all, volume.Attachment{Volume: id, Server: server})
	}
	return all, nil
}

func (c *Cloud) Attach(_ context.Context, server volume.ServerID, v volume.Volume) error {
	if err := c.Called("Attach", server); err != nil {
		return err
	}
	c.Mu.Lock()
	_, ok := c.Servers[server]
	if ok {
		c.Servers[server] = append(c.Servers[server], v.ID)
	}
	c.Mu.Unlock()
	if !ok {
		return volume.Errorf(volume.NotFound, "no server %s", server)
	}
	c.Change(v.ID, func(v *volume.Volume) {
		v.Status = volume.Reserved
		c.AttachmentRecords = append(c.AttachmentRecords, volume.Attachment{ID: AttachmentID(server), Volume: v.ID, Server: server, Status: volume.AttachmentReserved})
	})
	c.Later(v.ID, func(v *volume.Volume) {
		v.Status = volume.InUse
		c.AttachmentRecords = slices.DeleteFunc(c.AttachmentRecords, func(r volume.Attachment) bool { return r.Volume == v.ID && r.Server == server })
		if c.Refuse {
			c.Servers[server] = slices.DeleteFunc(c.Servers[server], func(other volume.ID) bool { return other == v.ID })
			if len(v.Attachments) == 0 {
				v.Status = volume.Available
			}
			return
		}
		v.Attachments = append(v.Attachments, volume.Attachment{Volume: v.ID, Server: server})
	})
	return nil
}

func (c *Cloud) Detach(_ context.Context, server volume.ServerID, id volume.ID) error {
	if err := c.Called("Detach", server); err != nil {
		return err
	}
	c.Mu.Lock()
	ids, ok := c.Servers[server]
	c.Mu.Unlock()
	if !ok || !slices.Contains(ids, id) {
		return volume.Errorf(volume.NotFound, "not attached")
	}
	c.Change(id, func(v *volume.Volume) { v.Status = volume.Detaching })
	if c.Stuck {
		return nil
	}
	c.Later(id, func(v *volume.Volume) {
		v.Status = volume.InUse
		if c.Refuse {
			return
		}
		v.Attachments = slices.DeleteFunc(v.Attachments, func(a volume.Attachment) bool { return a.Server == server })
		if len(v.Attachments) == 0 {
			v.Status = volume.Available
		}
	})
	// The list of Nova changes later than Cinder.
	time.AfterFunc(3*time.Second, func() {
		c.Mu.Lock()
		defer c.Mu.Unlock()
		if !c.Refuse && !c.ListsForever {
			c.Servers[server] = slices.DeleteFunc(c.Servers[server], func(other volume.ID) bool { return other == id })
		}
	})
	return nil
}

// Within returns a context that ends after that many virtual seconds.
func Within(t *testing.T, seconds int) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// WantKind fails the test unless err has that kind and is marked AfterWrite or not.
func WantKind(t *testing.T, err error, want volume.Kind, afterWrite bool) {
	t.Helper()
	if err == nil || volume.KindOf(err) != want || volume.MayHaveWritten(err) != afterWrite {
		t.Fatalf("want an error of kind %q, after write: %v; got %v, kind %q, after write: %v", want, afterWrite, err, volume.KindOf(err), volume.MayHaveWritten(err))
	}
}

// WantStep fails the test unless the outcome of a request is that of the step which the volume status means for it.
func WantStep(t *testing.T, step volume.Step, err error, sent bool) {
	t.Helper()
	switch step {
	case volume.Proceed:
		if err != nil || !sent {
			t.Errorf("got %v, sent %v", err, sent)
		}
	case volume.Wait:
		WantKind(t, err, volume.DeadlineExceeded, false)
	case volume.BeingDeleted:
		WantKind(t, err, volume.NotFound, false)
	default:
		WantKind(t, err, volume.Conflict, false)
	}
}
