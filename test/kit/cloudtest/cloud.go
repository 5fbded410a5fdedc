// Package cloudtest is the cloud of the stories about the domain packages of the driver: openstacksim behind the adapter driver/openstack.
// A story runs in a testing/synctest bubble, so its waits take no time. Cinder and Nova refuse there what they refuse in a real cloud.
//
// A Cloud is also a Stub. With that, a test fails or delays a call at the port of the domain, for which openstacksim has no fault.
package cloudtest

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/driver/openstack/status"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// The servers of a Cloud, and one that it never had.
const (
	ServerA  volume.ServerID = "aaaaaaaa-0000-4000-8000-000000000001"
	ServerB  volume.ServerID = "bbbbbbbb-0000-4000-8000-000000000002"
	NoServer volume.ServerID = "cccccccc-0000-4000-8000-000000000003"
)

// Cloud is a simulated cloud whose objects change one virtual second after a request, and backups after ten. It is the port of the domain
// (volume.Cloud) and its waiters.
type Cloud struct {
	*Stub
	Sim                          *openstacksim.Sim
	SnapshotWaiter, BackupWaiter volume.SnapshotWaiter
	t                            testing.TB
	volumes                      volume.Waiter
}

// New returns a cloud with these volumes, and with the servers ServerA and ServerB. The driver logs in with a password. The hubs of the
// cloud stop when the test ends.
func New(t testing.TB, volumes ...volume.Volume) *Cloud {
	t.Helper()
	return NewWith(t, func(*openstacksim.Config) {}, volumes...)
}

// NewWith is New for a cloud with another configuration. The first application credential says whose password the driver uses.
func NewWith(t testing.TB, change func(*openstacksim.Config), volumes ...volume.Volume) *Cloud {
	t.Helper()
	return build(t, change, func(t testing.TB, sim *openstacksim.Sim, config openstacksim.Config) *cloud.Cloud {
		t.Helper()
		who := config.ApplicationCredentials[0]
		i := slices.IndexFunc(config.Users, func(u openstacksim.User) bool { return u.Name == who.User })
		login, err := cloud.Connect(t.Context(), cloud.Settings{
			Name: "sim", AuthURL: "http://cloud.test/identity/v3", UserID: config.Users[i].ID, Password: cloud.Secret(config.Users[i].Password),
			ProjectName: who.Project, ProjectDomainID: "default",
		}, cloud.Options{Transport: memnet.Transport(sim.Handler())})
		if err != nil {
			t.Fatal(err)
		}
		return login
	}, volumes...)
}

// NewByCredential is New for a driver that logs in with an application credential, as a generated bundle does.
func NewByCredential(t testing.TB, volumes ...volume.Volume) *Cloud {
	t.Helper()
	return build(t, func(*openstacksim.Config) {}, func(t testing.TB, sim *openstacksim.Sim, _ openstacksim.Config) *cloud.Cloud {
		t.Helper()
		return testenv.Login(t, sim)
	}, volumes...)
}

func build(t testing.TB, change func(*openstacksim.Config), login func(testing.TB, *openstacksim.Sim, openstacksim.Config) *cloud.Cloud, volumes ...volume.Volume) *Cloud {
	t.Helper()
	config := openstacksim.Default()
	config.Latency = map[openstacksim.Operation]time.Duration{}
	for _, op := range openstacksim.Operations {
		config.Latency[op] = time.Second
	}
	for op, takes := range map[openstacksim.Operation]time.Duration{
		openstacksim.Answer: 0, openstacksim.Reserve: 0, openstacksim.CreateBackup: 5 * time.Second, openstacksim.Detach: 3 * time.Second,
	} {
		config.Latency[op] = takes
	}
	config.Servers = []openstacksim.Server{{ID: string(ServerA), Project: "demo", Zone: "az1"}, {ID: string(ServerB), Project: "demo", Zone: "az2"}}
	change(&config)
	sim := openstacksim.New(config)
	sim.SetTiming(openstacksim.Timing{Forget: 2 * time.Second}) // the list of Nova changes later than Cinder
	adapter := openstack.NewCurrent(cloud.Fixed(login(t, sim, config)), slog.New(slog.DiscardHandler))
	hub, snapshots, backups := status.NewHub(adapter), status.NewSnapshotHub(adapter), status.NewBackupHub(adapter)
	for _, run := range []func(context.Context) error{hub.Run, snapshots.Run, backups.Run} {
		go func() { _ = run(t.Context()) }()
	}
	c := &Cloud{Stub: NewStub(adapter), Sim: sim, SnapshotWaiter: snapshots, BackupWaiter: backups, t: t, volumes: hub}
	for _, v := range volumes {
		c.Put(v)
	}
	return c
}

// Await implements volume.Waiter.
func (c *Cloud) Await(ctx context.Context, id volume.ID, done func(volume.Volume, bool) (bool, error)) (volume.Volume, error) {
	return c.volumes.Await(ctx, id, done)
}

// Put adds a volume with complete attachments. Nova lists it for each of the servers that exist.
func (c *Cloud) Put(v volume.Volume) {
	c.t.Helper()
	state := openstacksim.VolumeState{ID: string(v.ID)}
	for _, a := range v.Attachments {
		state.Disks = append(state.Disks, string(a.Server))
	}
	c.put(state, v)
}

// put makes the cloud hold v. It keeps what a volume.Volume does not show: unfinished attachments and the list of Nova.
func (c *Cloud) put(state openstacksim.VolumeState, v volume.Volume) {
	c.t.Helper()
	state.Name, state.Status, state.Zone, state.Type, state.Description = v.Name, string(v.Status), v.Zone, v.Type, v.Description
	state.Size, state.Multiattach, state.Metadata, state.Created = v.Size.RoundUp(), v.Multiattach, v.Metadata, v.CreatedAt
	state.Snapshot, state.Source = v.SnapshotID, string(v.SourceID)
	if v.BackupID != v.Metadata[contract.MetadataSourceBackup] {
		state.Metadata = merged(v.Metadata, map[string]string{contract.MetadataSourceBackup: v.BackupID})
	}
	unfinished := slices.DeleteFunc(slices.Clone(state.Attachments), func(a openstacksim.AttachmentState) bool {
		return a.Status == string(volume.AttachmentAttached) || v.AttachedTo(volume.ServerID(a.Server))
	})
	state.Attachments = nil
	for _, a := range v.Attachments {
		state.Attachments = append(state.Attachments, openstacksim.AttachmentState{
			ID: cmp.Or(a.ID, AttachmentID(a.Server)), Server: string(a.Server), Status: string(volume.AttachmentAttached), Host: a.Host,
		})
	}
	state.Attachments = append(state.Attachments, unfinished...)
	if err := c.Sim.PutVolume(state); err != nil {
		c.t.Fatal(err)
	}
}

// Read reads a volume without a request.
func (c *Cloud) Read(id volume.ID) (volume.Volume, error) {
	state, ok := c.Sim.VolumeState(string(id))
	if !ok {
		return volume.Volume{}, volume.NoVolume(id)
	}
	return volumeOf(state), nil
}

func volumeOf(state openstacksim.VolumeState) volume.Volume {
	v := volume.Volume{
		ID: volume.ID(state.ID), Name: state.Name, Status: volume.Status(state.Status), Size: volume.GiB(state.Size), Zone: state.Zone, Type: state.Type,
		Multiattach: state.Multiattach, SnapshotID: state.Snapshot, SourceID: volume.ID(state.Source), BackupID: state.Metadata[contract.MetadataSourceBackup],
		RestoreFrom: contract.RestoreFrom(state.Metadata),
		Description: state.Description, Metadata: merged(state.Metadata), CreatedAt: state.Created,
	}
	for _, a := range state.Attachments {
		if a.Status == string(volume.AttachmentAttached) {
			v.Attachments = append(v.Attachments, volume.Attachment{ID: a.ID, Volume: v.ID, Server: volume.ServerID(a.Server), Status: volume.AttachmentAttached, Host: a.Host})
		}
	}
	return v
}

// Volumes returns the IDs of all volumes.
func (c *Cloud) Volumes() (ids []volume.ID) {
	for _, state := range c.Sim.VolumeStates() {
		ids = append(ids, volume.ID(state.ID))
	}
	return ids
}

// Change changes a volume now, as somebody else or the backend does. The list of Nova stays as it is.
func (c *Cloud) Change(id volume.ID, f func(*volume.Volume)) {
	v, err := c.Read(id)
	if err != nil {
		return
	}
	f(&v)
	if state, ok := c.Sim.VolumeState(string(id)); ok {
		c.put(state, v)
	}
}

// Later changes a volume after one second.
func (c *Cloud) Later(id volume.ID, f func(*volume.Volume)) {
	time.AfterFunc(time.Second, func() { c.Change(id, f) })
}

// Remove removes a volume now.
func (c *Cloud) Remove(id volume.ID) { c.Sim.Discard(string(id)) }

// Remaining returns the IDs of all volumes, snapshots and backups, sorted.
func (c *Cloud) Remaining() (ids []string) {
	for _, v := range c.Sim.VolumeStates() {
		ids = append(ids, v.ID)
	}
	for _, s := range c.Sim.SnapshotStates() {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return ids
}

// Loses makes the cloud process the next create of that method without an answer, as behind a proxy with a timeout: after that delay.
func (c *Cloud) Loses(method string, after time.Duration) {
	path := map[string]string{"CreateVolume": "volumes", "CreateSnapshot": "snapshots", "CreateBackup": "backups", "RestoreBackup": "backups/*/restore"}[method]
	c.Sim.SetFault(openstacksim.Fault{Method: "POST", Path: "/volume/v3/*/" + path, Status: 504, After: after == 0, Late: after, Times: 1})
}

// ErrLost is the error of a lost answer.
var ErrLost = volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()
