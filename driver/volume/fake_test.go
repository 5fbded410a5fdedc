package volume

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// fakeCloud is a cloud whose volumes change one virtual second after they were told to. A test says what fails by fail, and what
// else happens at a call by hook.
type fakeCloud struct {
	fakeRows
	fakeBackups
	fakeLate
	mu          sync.Mutex
	volumes     map[ID]*Volume
	snaps       map[SnapshotID]*Snapshot
	backups     map[SnapshotID]*Snapshot
	servers     map[ServerID][]ID                      // what Nova lists
	calls       []string                               // "DeleteVolume 1", in order
	fail        map[string]error                       // by method
	hook        map[string]func()                      // by method, runs before the method's own work
	reason      string                                 // of Failure
	outcome     Status                                 // what a creating volume becomes; empty means available
	zones       []string                               // that it tells
	undeletable Status                                 // what a snapshot that was to be deleted becomes; empty means that it goes
	refuse      bool                                   // the servers' hosts fail every attach and detach
	create      func(o CreateOptions, v *Volume) error // what else a create does to the volume
	now         func() time.Time
	made        int
	typed
}

const (
	serverA ServerID = "aaaaaaaa-0000-4000-8000-000000000001"
	serverB ServerID = "bbbbbbbb-0000-4000-8000-000000000002"
)

func newCloud(volumes ...Volume) *fakeCloud {
	c := &fakeCloud{
		volumes: map[ID]*Volume{}, snaps: map[SnapshotID]*Snapshot{}, backups: map[SnapshotID]*Snapshot{}, servers: map[ServerID][]ID{serverA: nil, serverB: nil},
		fail: map[string]error{}, hook: map[string]func(){}, now: time.Now,
	}
	for _, v := range volumes {
		c.volumes[v.ID] = &v
		for _, a := range v.Attachments {
			c.servers[a.Server] = append(c.servers[a.Server], v.ID)
		}
	}
	return c
}

// id is the id of the n-th volume of a test.
func id(n int) ID { return ID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)) }

func (c *fakeCloud) called(method string, args ...any) error {
	c.mu.Lock()
	c.calls = append(c.calls, method+fmt.Sprint(args...))
	hook := c.hook[method]
	c.mu.Unlock()
	if hook != nil {
		hook()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fail[method]
}

func (c *fakeCloud) count(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, call := range c.calls {
		if len(call) >= len(method) && call[:len(method)] == method {
			n++
		}
	}
	return n
}

// change alters a volume now, later alters it after one second.
func (c *fakeCloud) change(id ID, f func(*Volume)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.volumes[id]; ok {
		f(v)
	}
}

func (c *fakeCloud) later(id ID, f func(*Volume)) {
	time.AfterFunc(time.Second, func() { c.change(id, f) })
}

func (c *fakeCloud) remove(id ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.volumes, id)
}

func (c *fakeCloud) CreateVolume(_ context.Context, o CreateOptions) (Volume, error) {
	if err := c.called("CreateVolume"); err != nil {
		return Volume{}, err
	}
	c.mu.Lock()
	c.made++
	v := Volume{
		ID: id(100 + c.made), Name: o.Name, Status: Creating, Size: o.Size, Type: o.Type, Zone: o.Zone, SourceID: o.SourceID, SnapshotID: o.SnapshotID,
		BackupID: o.BackupID, Description: o.Description, Metadata: o.Metadata, CreatedAt: c.now(),
	}
	if c.create != nil {
		if err := c.create(o, &v); err != nil {
			c.mu.Unlock()
			return Volume{}, err
		}
	}
	if c.loses("CreateVolume", func() { v.Status, v.CreatedAt = Available, c.now(); c.volumes[v.ID] = &v }) {
		c.mu.Unlock()
		return Volume{}, errLost
	}
	c.volumes[v.ID] = &v
	answer := v
	c.mu.Unlock()
	c.later(v.ID, func(v *Volume) {
		v.Status = Available
		if c.outcome != "" {
			v.Status = c.outcome
		}
		if v.BackupID != "" && v.Status == Available { // as Cinder does
			v.Metadata = map[string]string{contract.MetadataCluster: "another", "theirs": "1"}
		}
	})
	return answer, nil
}

func (c *fakeCloud) AddMetadata(_ context.Context, id ID, metadata map[string]string) error {
	err := c.called("AddMetadata", id)
	if err == nil {
		c.change(id, func(v *Volume) { v.Metadata = merged(v.Metadata, metadata) })
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

func (c *fakeCloud) Volume(_ context.Context, id ID) (Volume, error) {
	if err := c.called("Volume", id); err != nil {
		return Volume{}, err
	}
	return c.read(id)
}

func (c *fakeCloud) read(id ID) (Volume, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.volumes[id]; ok {
		copied := *v
		copied.Attachments = slices.Clone(v.Attachments)
		for i := range copied.Attachments {
			copied.Attachments[i].ID = rowID(copied.Attachments[i].Server)
		}
		return copied, nil
	}
	return Volume{}, Errorf(NotFound, "no volume %s", id)
}

func (c *fakeCloud) VolumesNamed(_ context.Context, name string) ([]Volume, error) {
	if err := c.called("VolumesNamed"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []Volume
	for _, v := range c.volumes {
		if v.Name == name {
			found = append(found, *v)
		}
	}
	return found, nil
}

// Volumes gives three volumes in one answer at most, whatever is asked for.
func (c *fakeCloud) Volumes(_ context.Context, page Page) ([]Volume, error) {
	if err := c.called("Volumes"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Volume
	for _, v := range c.volumes {
		all = append(all, *v)
	}
	slices.SortFunc(all, func(a, b Volume) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID)) })
	if page.Marker != "" {
		i := slices.IndexFunc(all, func(v Volume) bool { return v.ID == page.Marker })
		if i < 0 {
			return nil, Errorf(NotFound, "no volume %s", page.Marker)
		}
		all = all[i+1:]
	}
	most := 3
	if page.Limit > 0 {
		most = min(most, page.Limit)
	}
	return all[:min(most, len(all))], nil
}

func (c *fakeCloud) DeleteVolume(_ context.Context, id ID) error {
	if err := c.called("DeleteVolume", id); err != nil {
		return err
	}
	c.mu.Lock()
	v, ok := c.volumes[id]
	if ok {
		v.Status = Deleting
	}
	c.mu.Unlock()
	if !ok {
		return Errorf(NotFound, "no volume %s", id)
	}
	time.AfterFunc(time.Second, func() {
		if v, err := c.read(id); err == nil && v.Status == Deleting {
			c.remove(id)
		}
	})
	return nil
}

func (c *fakeCloud) Failure(context.Context, ID) (string, error) {
	return c.reason, c.called("Failure")
}

func (c *fakeCloud) Server(_ context.Context, id ServerID) (Server, error) {
	if err := c.called("Server", id); err != nil {
		return Server{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.servers[id]; !ok {
		return Server{}, Errorf(NotFound, "no server %s", id)
	}
	return Server{ID: id, Status: cmp.Or(c.serverStatus, "ACTIVE"), TaskState: c.task}, nil
}

func (c *fakeCloud) ServerAttachments(_ context.Context, server ServerID) ([]Attachment, error) {
	if err := c.called("Listed", server); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ids, ok := c.servers[server]
	if !ok {
		return nil, Errorf(NotFound, "no server %s", server)
	}
	var all []Attachment
	for _, id := range ids {
		all = append(all, Attachment{Volume: id, Server: server})
	}
	return all, nil
}

func (c *fakeCloud) Attach(_ context.Context, server ServerID, v Volume) error {
	if err := c.called("Attach", server); err != nil {
		return err
	}
	c.mu.Lock()
	_, ok := c.servers[server]
	if ok {
		c.servers[server] = append(c.servers[server], v.ID)
	}
	c.mu.Unlock()
	if !ok {
		return Errorf(NotFound, "no server %s", server)
	}
	c.change(v.ID, func(v *Volume) {
		v.Status = Reserved
		c.rows = append(c.rows, Row{ID: rowID(server), Volume: v.ID, Server: server, Status: AttachmentReserved})
	})
	c.later(v.ID, func(v *Volume) {
		v.Status = InUse
		c.rows = slices.DeleteFunc(c.rows, func(r Row) bool { return r.Volume == v.ID && r.Server == server })
		if c.refuse {
			c.servers[server] = slices.DeleteFunc(c.servers[server], func(other ID) bool { return other == v.ID })
			if len(v.Attachments) == 0 {
				v.Status = Available
			}
			return
		}
		v.Attachments = append(v.Attachments, Attachment{Volume: v.ID, Server: server})
	})
	return nil
}

func (c *fakeCloud) Detach(_ context.Context, server ServerID, id ID) error {
	if err := c.called("Detach", server); err != nil {
		return err
	}
	c.mu.Lock()
	ids, ok := c.servers[server]
	c.mu.Unlock()
	if !ok || !slices.Contains(ids, id) {
		return Errorf(NotFound, "not attached")
	}
	c.change(id, func(v *Volume) { v.Status = Detaching })
	if c.stuck {
		return nil
	}
	c.later(id, func(v *Volume) {
		v.Status = InUse
		if c.refuse {
			return
		}
		v.Attachments = slices.DeleteFunc(v.Attachments, func(a Attachment) bool { return a.Server == server })
		if len(v.Attachments) == 0 {
			v.Status = Available
		}
	})
	// Nova's list lags behind Cinder.
	time.AfterFunc(3*time.Second, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.refuse && !c.listsForever {
			c.servers[server] = slices.DeleteFunc(c.servers[server], func(other ID) bool { return other == id })
		}
	})
	return nil
}

// Await reads the volume every 300 virtual milliseconds.
func (c *fakeCloud) Await(ctx context.Context, id ID, done func(Volume, bool) (bool, error)) (Volume, error) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	var last Status
	for {
		select {
		case <-ctx.Done():
			return Volume{}, Errorf(KindOf(ctx.Err()), "volume %s: it is %s: %w", id, last, ctx.Err())
		case <-tick.C:
		}
		v, err := c.read(id)
		last = v.Status
		if end, err := done(v, err == nil); end || err != nil {
			return v, err
		}
	}
}

// within is a context whose deadline is that many virtual seconds away.
func within(t *testing.T, seconds int) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func wantKind(t *testing.T, err error, want Kind, afterWrite bool) {
	t.Helper()
	if err == nil || KindOf(err) != want || MayHaveWritten(err) != afterWrite {
		t.Fatalf("want an error of kind %q, after a write: %v; got %v, kind %q, after a write: %v", want, afterWrite, err, KindOf(err), MayHaveWritten(err))
	}
}
