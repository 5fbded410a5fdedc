package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host"
	"github.com/cinder-csi/cinder-csi/driver/host/limit"
	"github.com/cinder-csi/cinder-csi/driver/host/metadata"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

const vol = "0a9f1b2c-3d4e-4f50-8a6b-7c8d9e0f1a2b"

// fakeMachine records its calls.
type fakeMachine struct {
	server   metadata.Server
	capacity limit.Capacity
	stats    host.Stats
	issues   []volume.HealthIssue
	err      error
	calls    []any
}

type (
	published struct {
		host.PublishSpec
		Block bool
	}
	unmounted struct{ Path string }
	unstaged  struct {
		Volume volume.ID
		Path   string
	}
)

func (f *fakeMachine) Server(context.Context) (metadata.Server, error) { return f.server, f.err }

func (f *fakeMachine) AttachCapacity(_ context.Context, foreign []volume.ID) limit.Capacity {
	if len(foreign) > 0 {
		f.calls = append(f.calls, foreign)
	}
	return f.capacity
}

func (f *fakeMachine) AwaitDisk(context.Context, volume.ID) error {
	return errors.New("no block volume in this test")
}

func (f *fakeMachine) Stage(_ context.Context, s host.StageSpec) error {
	f.calls = append(f.calls, s)
	return f.err
}

func (f *fakeMachine) Publish(_ context.Context, p host.PublishSpec) error {
	f.calls = append(f.calls, published{p, false})
	return f.err
}

func (f *fakeMachine) PublishBlock(_ context.Context, p host.PublishSpec) error {
	f.calls = append(f.calls, published{p, true})
	return f.err
}

func (f *fakeMachine) Unstage(_ context.Context, id volume.ID, path string) error {
	f.calls = append(f.calls, unstaged{id, path})
	return f.err
}

func (f *fakeMachine) Health(_ context.Context, id volume.ID, paths ...string) ([]volume.HealthIssue, error) {
	f.calls = append(f.calls, paths)
	return f.issues, f.err
}

func (f *fakeMachine) Unpublish(_ context.Context, path string) error {
	f.calls = append(f.calls, unmounted{path})
	return f.err
}

func (f *fakeMachine) Stats(context.Context, string) (host.Stats, error) { return f.stats, f.err }

func (f *fakeMachine) Expand(_ context.Context, e host.ExpandSpec) (volume.Size, error) {
	f.calls = append(f.calls, e)
	return e.Size, f.err
}

func serverOf(m machine, o Options) *Server {
	o.Log = slog.New(slog.DiscardHandler)
	return newServer(m, o)
}

func mount(mode csi.VolumeCapability_AccessMode_Mode, fsType string, flags ...string) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType, MountFlags: flags}},
	}
}

func block(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	}
}

const (
	writer    = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	manyRead  = csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	manyWrite = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
)

func TestNodeGetInfo(t *testing.T) {
	t.Parallel()
	const id = "5f0c6d1e-8b7a-4c3d-9e21-0a1b2c3d4e5f"
	for _, c := range []struct {
		name string
		zone string
		o    Options
		want *csi.NodeGetInfoResponse // nil for an error
	}{
		{"nothing said", "az1", Options{}, &csi.NodeGetInfoResponse{NodeId: id, MaxVolumesPerNode: defaultAttachLimit}},
		{"a limit", "az1", Options{AttachLimit: 7}, &csi.NodeGetInfoResponse{NodeId: id, MaxVolumesPerNode: 7}},
		{"a limit that is none", "az1", Options{AttachLimit: -1}, &csi.NodeGetInfoResponse{NodeId: id, MaxVolumesPerNode: defaultAttachLimit}},
		{"a zone that is no label", " zone 1!", Options{WithTopology: true}, topology(id, map[string]string{"topology.cinder.csi.openstack.org/zone": "zone-1"})},
		{
			"another driver's name and more segments", "az1",
			Options{DriverName: "x.example", WithTopology: true, AdditionalTopology: map[string]string{"rack": "7"}},
			topology(id, map[string]string{"topology.x.example/zone": "az1", "rack": "7"}),
		},
		{"a key of its own", "az1", Options{TopologyKey: "k", WithTopology: true}, topology(id, map[string]string{"k": "az1"})},
		{"a zone given by hand", "", Options{TopologyKey: "k", WithTopology: true, AdditionalTopology: map[string]string{"k": "az9"}}, topology(id, map[string]string{"k": "az9"})},
		{"segments without topology", "az1", Options{AdditionalTopology: map[string]string{"rack": "7"}}, &csi.NodeGetInfoResponse{NodeId: id, MaxVolumesPerNode: defaultAttachLimit}},
		{"no zone", "", Options{WithTopology: true}, nil},
		{"a zone of blanks", "  ", Options{WithTopology: true}, nil},
		{"a zone of which no label is left", "東京", Options{TopologyKey: "k", WithTopology: true}, topology(id, map[string]string{"k": "zone-130016b2599bf7e5"})},
	} {
		m := &fakeMachine{server: metadata.Server{ID: id, Zone: c.zone}, capacity: limit.Capacity{Unknown: "no sysfs"}}
		got, err := serverOf(m, c.o).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
		if c.want == nil {
			if !volume.Is(err, volume.Failed) || !strings.Contains(err.Error(), "--with-topology=false") {
				t.Errorf("%s: want an error that says what to do, got %v", c.name, err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got, protocmp.Transform()); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
		}
	}
}

func topology(id string, segments map[string]string) *csi.NodeGetInfoResponse {
	return &csi.NodeGetInfoResponse{NodeId: id, MaxVolumesPerNode: defaultAttachLimit, AccessibleTopology: &csi.Topology{Segments: segments}}
}

func TestIncompleteRequestsAreRejected(t *testing.T) {
	t.Parallel()
	type kind = volume.Kind
	call := map[string]func(*Server) error{}
	want := map[string]kind{}
	add := func(name string, k kind, f func(*Server) error) { call[name], want[name] = f, k }
	stage := func(name string, k kind, r *csi.NodeStageVolumeRequest) {
		add("stage: "+name, k, func(s *Server) error { _, err := s.NodeStageVolume(t.Context(), r); return err })
	}
	publish := func(name string, k kind, r *csi.NodePublishVolumeRequest) {
		add("publish: "+name, k, func(s *Server) error { _, err := s.NodePublishVolume(t.Context(), r); return err })
	}
	expand := func(name string, k kind, r *csi.NodeExpandVolumeRequest) {
		add("expand: "+name, k, func(s *Server) error { _, err := s.NodeExpandVolume(t.Context(), r); return err })
	}
	capability := mount(writer, "ext4")
	stage("no volume", volume.InvalidArgument, &csi.NodeStageVolumeRequest{StagingTargetPath: "/s", VolumeCapability: capability})
	stage("no path", volume.InvalidArgument, &csi.NodeStageVolumeRequest{VolumeId: vol, VolumeCapability: capability})
	stage("no capability", volume.InvalidArgument, &csi.NodeStageVolumeRequest{VolumeId: vol, StagingTargetPath: "/s"})
	stage("no access mode", volume.InvalidArgument, &csi.NodeStageVolumeRequest{
		VolumeId: vol, StagingTargetPath: "/s", VolumeCapability: &csi.VolumeCapability{AccessType: capability.GetAccessType()},
	})
	stage("no access type", volume.InvalidArgument, &csi.NodeStageVolumeRequest{
		VolumeId: vol, StagingTargetPath: "/s", VolumeCapability: &csi.VolumeCapability{AccessMode: capability.GetAccessMode()},
	})
	for name, c := range map[string]struct{ fsType, key, value string }{
		"a format that is no number": {"ext4", "blockSize", "4k"}, "a format that nothing has": {"", "blockSize", "8192"}, "a format that xfs has not": {"xfs", "bytesPerInode", "4096"},
		"inodes that xfs has not": {"xfs", "inodeSize", "256"}, "a format that btrfs has not": {"btrfs", "blockSize", "4096"}, "an option of mkfs": {"ext4", "inodeSize", "-O ^has_journal"},
	} {
		stage(name, volume.InvalidArgument, &csi.NodeStageVolumeRequest{
			VolumeId: vol, StagingTargetPath: "/s", VolumeCapability: mount(writer, c.fsType), VolumeContext: map[string]string{"cinder.csi.openstack.org/" + c.key: c.value},
		})
	}
	publish("no volume", volume.InvalidArgument, &csi.NodePublishVolumeRequest{TargetPath: "/t", StagingTargetPath: "/s", VolumeCapability: capability})
	publish("no target", volume.InvalidArgument, &csi.NodePublishVolumeRequest{VolumeId: vol, StagingTargetPath: "/s", VolumeCapability: capability})
	publish("no capability", volume.InvalidArgument, &csi.NodePublishVolumeRequest{VolumeId: vol, TargetPath: "/t", StagingTargetPath: "/s"})
	publish("not staged", volume.Conflict, &csi.NodePublishVolumeRequest{VolumeId: vol, TargetPath: "/t", VolumeCapability: capability})
	publish("ephemeral", volume.Unimplemented, &csi.NodePublishVolumeRequest{
		VolumeId: vol, TargetPath: "/t", VolumeCapability: capability, VolumeContext: map[string]string{"csi.storage.k8s.io/ephemeral": "true"},
	})
	expand("no volume", volume.InvalidArgument, &csi.NodeExpandVolumeRequest{VolumePath: "/t"})
	expand("no path", volume.InvalidArgument, &csi.NodeExpandVolumeRequest{VolumeId: vol})
	expand("an empty range", volume.InvalidArgument, &csi.NodeExpandVolumeRequest{
		VolumeId: vol, VolumePath: "/t", CapacityRange: &csi.CapacityRange{RequiredBytes: 2, LimitBytes: 1},
	})
	for name, r := range map[string]*csi.NodeUnstageVolumeRequest{"no volume": {StagingTargetPath: "/s"}, "no path": {VolumeId: vol}} {
		add("unstage: "+name, volume.InvalidArgument, func(s *Server) error { _, err := s.NodeUnstageVolume(t.Context(), r); return err })
	}
	for name, r := range map[string]*csi.NodeUnpublishVolumeRequest{"no volume": {TargetPath: "/t"}, "no path": {VolumeId: vol}} {
		add("unpublish: "+name, volume.InvalidArgument, func(s *Server) error { _, err := s.NodeUnpublishVolume(t.Context(), r); return err })
	}
	for name, r := range map[string]*csi.NodeGetVolumeStatsRequest{"no volume": {VolumePath: "/t"}, "no path": {VolumeId: vol}} {
		add("stats: "+name, volume.InvalidArgument, func(s *Server) error { _, err := s.NodeGetVolumeStats(t.Context(), r); return err })
	}
	for name, f := range call {
		m := &fakeMachine{}
		if err := f(serverOf(m, Options{})); !volume.Is(err, want[name]) || len(m.calls) > 0 {
			t.Errorf("%s: want %s and nothing done, got %v, %v", name, want[name], err, m.calls)
		}
	}
}

func TestRequestsAreTranslated(t *testing.T) {
	t.Parallel()
	const s, p = "/staging", "/pod"
	named := strings.ToUpper(vol) // as somebody may write it into a PersistentVolume; the controller takes it too
	stage := func(c *csi.VolumeCapability, context map[string]string) func(*Server) error {
		return func(server *Server) error {
			return csitest.Outcome(server.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: named, StagingTargetPath: s, VolumeCapability: c, VolumeContext: context}))
		}
	}
	publish := func(c *csi.VolumeCapability, readOnly bool) func(*Server) error {
		return func(server *Server) error {
			return csitest.Outcome(server.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
				VolumeId: named, StagingTargetPath: s, TargetPath: p, VolumeCapability: c, Readonly: readOnly,
			}))
		}
	}
	expand := func(r *csi.NodeExpandVolumeRequest) func(*Server) error {
		return func(server *Server) error {
			r.VolumeId, r.VolumePath, r.CapacityRange = named, p, &csi.CapacityRange{RequiredBytes: 5}
			got, err := server.NodeExpandVolume(t.Context(), r)
			if got.GetCapacityBytes() != 5 {
				t.Errorf("want the size reached, got %v", got)
			}
			return err
		}
	}
	for _, c := range []struct {
		name string
		call func(*Server) error
		want any
	}{
		{"stage", stage(mount(writer, "xfs", "noatime"), nil), host.StageSpec{Volume: vol, Path: s, FSType: "xfs", DefaultFSType: "ext3", MountFlags: []string{"noatime"}}},
		{"stage what came from a source", stage(mount(writer, ""), map[string]string{"cinder.csi.openstack.org/resizeRequired": "True"}), host.StageSpec{Volume: vol, Path: s, DefaultFSType: "ext3", FromSource: true}},
		{
			"stage with a format", stage(mount(writer, "ext4"), map[string]string{"cinder.csi.openstack.org/blockSize": "1024", "cinder.csi.openstack.org/inodeSize": "512", "cinder.csi.openstack.org/numberOfInodes": "9"}),
			host.StageSpec{Volume: vol, Path: s, FSType: "ext4", DefaultFSType: "ext3", Format: contract.Format{BlockSize: 1024, InodeSize: 512, Inodes: 9}},
		},
		{
			"stage with a format and no file system", stage(mount(writer, ""), map[string]string{"cinder.csi.openstack.org/inodeSize": "2048", "cinder.csi.openstack.org/blockSize": "4096"}),
			host.StageSpec{Volume: vol, Path: s, DefaultFSType: "ext3", Format: contract.Format{BlockSize: 4096, InodeSize: 2048}},
		},
		{"stage for readers", stage(mount(manyRead, ""), nil), host.StageSpec{Volume: vol, Path: s, DefaultFSType: "ext3", ReadOnly: true}},
		{"publish", publish(mount(writer, ""), false), published{host.PublishSpec{Volume: vol, Staging: s, Target: p}, false}},
		{"publish read-only", publish(mount(writer, ""), true), published{host.PublishSpec{Volume: vol, Staging: s, Target: p, ReadOnly: true}, false}},
		{"publish for readers", publish(mount(manyRead, ""), false), published{host.PublishSpec{Volume: vol, Staging: s, Target: p, ReadOnly: true, ReadOnlyByMode: true}, false}},
		{"publish for readers, read-only by itself", publish(mount(manyRead, ""), true), published{host.PublishSpec{Volume: vol, Staging: s, Target: p, ReadOnly: true}, false}},
		{"publish for one pod", publish(mount(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, ""), false), published{host.PublishSpec{Volume: vol, Staging: s, Target: p, SingleTarget: true}, false}},
		{"publish for pods of one node", publish(mount(csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER, ""), false), published{host.PublishSpec{Volume: vol, Staging: s, Target: p}, false}},
		{"publish a device for one reader", publish(block(csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY), false), published{host.PublishSpec{Volume: vol, Staging: s, Target: p, ReadOnly: true, ReadOnlyByMode: true, SingleTarget: true}, true}},
		{"publish a device", publish(block(manyWrite), false), published{host.PublishSpec{Volume: vol, Staging: s, Target: p}, true}},
		{"publish a device for readers", publish(block(manyRead), false), published{host.PublishSpec{Volume: vol, Staging: s, Target: p, ReadOnly: true, ReadOnlyByMode: true}, true}},
		{"expand", expand(&csi.NodeExpandVolumeRequest{}), host.ExpandSpec{Volume: vol, Path: p, Size: 5}},
		{"expand what is staged", expand(&csi.NodeExpandVolumeRequest{StagingTargetPath: s, VolumeCapability: mount(writer, "")}), host.ExpandSpec{Volume: vol, Path: s, Size: 5}},
		{"expand a device", expand(&csi.NodeExpandVolumeRequest{StagingTargetPath: s, VolumeCapability: block(writer)}), host.ExpandSpec{Volume: vol, Path: p, Size: 5, Block: true}},
		{"unpublish, whatever the id", func(server *Server) error {
			return csitest.Outcome(server.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "odd", TargetPath: p}))
		}, unmounted{p}},
		{"unstage", func(server *Server) error {
			return csitest.Outcome(server.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: named, StagingTargetPath: s}))
		}, unstaged{vol, s}},
	} {
		m := &fakeMachine{}
		if err := c.call(serverOf(m, Options{DefaultFSType: "ext3"})); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff([]any{c.want}, m.calls); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// The controller half may be upstream's plugin or an older driver, whose publish context says where Cinder believes
// the disk to be. Wrong, empty or missing, it changes nothing: the disk is found by its serial.
func TestThePublishContextIsIgnored(t *testing.T) {
	t.Parallel()
	for _, context := range []map[string]string{
		nil, {}, {"DevicePath": "/dev/vdb"}, {"DevicePath": "/dev/sda"}, {"DevicePath": ""}, {"DevicePath": "na", "of-a-later-driver": "x"},
	} {
		m := &fakeMachine{}
		s := serverOf(m, Options{DefaultFSType: "ext4"})
		_, err := s.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
			VolumeId: vol, StagingTargetPath: "/staging", VolumeCapability: mount(writer, ""), PublishContext: context,
			VolumeContext: map[string]string{"cinder.csi.openstack.org/resizeRequired": "true", "storage.kubernetes.io/csiProvisionerIdentity": "x"},
		})
		if err != nil {
			t.Errorf("stage with %v: %v", context, err)
		}
		_, err = s.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: vol, StagingTargetPath: "/staging", TargetPath: "/pod", VolumeCapability: mount(writer, ""), PublishContext: context})
		if err != nil {
			t.Errorf("publish with %v: %v", context, err)
		}
		want := []any{
			host.StageSpec{Volume: vol, Path: "/staging", DefaultFSType: "ext4", FromSource: true},
			published{host.PublishSpec{Volume: vol, Staging: "/staging", Target: "/pod"}, false},
		}
		if diff := cmp.Diff(want, m.calls); diff != "" {
			t.Errorf("with %v (-want +got):\n%s", context, diff)
		}
	}
}

func TestStatsOfAFileSystemAndOfADevice(t *testing.T) {
	t.Parallel()
	m := &fakeMachine{stats: host.Stats{Bytes: host.Usage{Total: 10, Available: 6, Used: 4}, Inodes: host.Usage{Total: 3, Available: 2, Used: 1}}}
	request := &csi.NodeGetVolumeStatsRequest{VolumeId: vol, VolumePath: "/p"}
	got, err := serverOf(m, Options{}).NodeGetVolumeStats(t.Context(), request)
	want := &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: 10, Available: 6, Used: 4}, {Unit: csi.VolumeUsage_INODES, Total: 3, Available: 2, Used: 1},
	}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	m.stats = host.Stats{Block: true, Bytes: host.Usage{Total: 10}}
	got, err = serverOf(m, Options{}).NodeGetVolumeStats(t.Context(), request)
	want = &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: 10}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAnErrorHasNoResponseAndNamesTheOperation(t *testing.T) {
	t.Parallel()
	m := &fakeMachine{err: volume.Errorf(volume.DataLoss, "refused")}
	s := serverOf(m, Options{})
	staged, err := s.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: vol, StagingTargetPath: "/s", VolumeCapability: mount(writer, "")})
	if staged != nil || !volume.Is(err, volume.DataLoss) || err.Error() != "stage: refused" {
		t.Errorf("want no answer and the error, got %v, %v", staged, err)
	}
	expanded, err := s.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: vol, VolumePath: "/p"})
	if expanded != nil || !volume.Is(err, volume.DataLoss) {
		t.Errorf("want no answer and the error, got %v, %v", expanded, err)
	}
}

func TestNodeGetCapabilities(t *testing.T) {
	t.Parallel()
	got, err := serverOf(&fakeMachine{}, Options{}).NodeGetCapabilities(t.Context(), &csi.NodeGetCapabilitiesRequest{})
	step(t, "NodeGetCapabilities", err)
	var names []string
	for _, c := range got.GetCapabilities() {
		names = append(names, c.GetRpc().GetType().String())
	}
	want := []string{"STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS", "EXPAND_VOLUME", "SINGLE_NODE_MULTI_WRITER", "GET_VOLUME_HEALTH"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("with VOLUME_MOUNT_GROUP kubelet would leave a volume's group to the driver (-want +got):\n%s", diff)
	}
}

func TestAStageErrorAfterAMountIsMarked(t *testing.T) {
	t.Parallel()
	m := &fakeMachine{err: volume.AfterWrite(volume.Errorf(volume.Failed, "the growth failed"))}
	_, err := serverOf(m, Options{}).NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: vol, StagingTargetPath: "/s", VolumeCapability: mount(writer, "")})
	if !volume.Is(err, volume.Failed) || !volume.MayHaveWritten(err) {
		t.Errorf("want the mark that keeps the answer from being final, got %v", err)
	}
}

func TestNodeGetVolumeHealth(t *testing.T) {
	t.Parallel()
	m := &fakeMachine{issues: []volume.HealthIssue{{Severity: volume.Inaccessible, Reason: "DiskMissing", Message: "m"}, {Severity: volume.Degraded, Reason: "FileSystemReadOnly", Message: "n"}}}
	got, err := serverOf(m, Options{}).NodeGetVolumeHealth(t.Context(), &csi.NodeGetVolumeHealthRequest{VolumeId: vol, StagingTargetPath: "/s", VolumePublishPath: "/p"})
	want := &csi.NodeGetVolumeHealthResponse{VolumeHealth: &csi.VolumeHealth{VolumeId: vol, HealthStatuses: []*csi.VolumeHealth_VolumeHealthEntry{
		{Status: csi.VolumeHealthErrorType_INACCESSIBLE, Reason: "DiskMissing", Message: "m"},
		{Status: csi.VolumeHealthErrorType_DEGRADED, Reason: "FileSystemReadOnly", Message: "n"},
	}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]any{[]string{"/s", "/p"}}, m.calls); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if _, err := serverOf(m, Options{}).NodeGetVolumeHealth(t.Context(), &csi.NodeGetVolumeHealthRequest{}); !volume.Is(err, volume.InvalidArgument) {
		t.Errorf("want an invalid argument, got %v", err)
	}
}

// The readiness probe of the node pods: a rollout stops if NodeGetInfo fails, and no later failure takes the readiness away. kubelet does not call
// NodeGetInfo when the container restarts alone.
func TestANodeIsRegisteredOnceNodeGetInfoSucceeds(t *testing.T) {
	t.Parallel()
	m, log := &fakeMachine{err: errors.New("no metadata")}, &strings.Builder{}
	s := newServer(m, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	for i, step := range []struct {
		err        error
		registered bool
	}{{errors.New("no metadata"), false}, {errors.New("no metadata"), false}, {nil, true}, {errors.New("no metadata"), true}} {
		m.err = step.err
		if err := s.Registered(t.Context()); (err == nil) != step.registered {
			t.Errorf("step %d: want it registered: %t, got %v", i, step.registered, err)
		} else if err != nil && strings.Contains(err.Error(), "metadata") { // anybody who reaches the page reads it
			t.Errorf("step %d: the error has the reason: %v", i, err)
		}
	}
	if n := strings.Count(log.String(), "no metadata"); n != 1 {
		t.Errorf("want the reason once in the log, got %d: %s", n, log)
	}
}

// The metadata service chooses a part of the reason, and somebody else may answer in its place.
func TestTheReasonWhyANodeIsNotRegisteredIsCut(t *testing.T) {
	t.Parallel()
	log := &strings.Builder{}
	s := newServer(&fakeMachine{err: errors.New(strings.Repeat("zone ", 1<<18))}, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	if err := s.Registered(t.Context()); err == nil || log.Len() > 2000 {
		t.Errorf("want an error and a short line, got %v and %d bytes", err, log.Len())
	}
}

// Anybody who writes a PersistentVolume chooses the handle. Events and the log of kubelet have the messages.
func TestAHandleThatIsNoIDIsQuotedAndCutInMessages(t *testing.T) {
	t.Parallel()
	handle := "\x1b[2J\u202e\n" + strings.Repeat("x", 1<<20)
	filesystem := mount(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "ext4")
	stage := &csi.NodeStageVolumeRequest{VolumeId: handle, StagingTargetPath: "/s", VolumeCapability: filesystem}
	for name, call := range map[string]func(s *Server) error{
		"context": func(s *Server) error {
			_, err := s.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
				VolumeId: handle, StagingTargetPath: "/s", VolumeCapability: filesystem, VolumeContext: map[string]string{"cinder.csi.openstack.org/" + contract.ParameterBlockSize: "x"},
			})
			return err
		},
		"ephemeral": func(s *Server) error {
			_, err := s.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
				VolumeId: handle, TargetPath: "/t", VolumeCapability: filesystem, VolumeContext: map[string]string{contextEphemeral: "true"},
			})
			return err
		},
		"not staged": func(s *Server) error {
			_, err := s.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: handle, TargetPath: "/t", VolumeCapability: filesystem})
			return err
		},
		"range": func(s *Server) error {
			_, err := s.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: handle, VolumePath: "/t", CapacityRange: &csi.CapacityRange{RequiredBytes: 2, LimitBytes: 1}})
			return err
		},
		"in flight": func(s *Server) error {
			if err := s.inFlight.insert(string(volumeID(handle)), "stage"); err != nil {
				return err
			}
			_, err := s.NodeStageVolume(t.Context(), stage)
			return err
		},
		"of the host": func(s *Server) error { _, err := s.NodeStageVolume(t.Context(), stage); return err },
		"panic": func(s *Server) error {
			return s.inFlight.run(t.Context(), handle, "stage", func(context.Context) error { panic("a defect") })
		},
	} {
		m := &fakeMachine{}
		m.err = volume.Errorf(volume.Failed, "stage volume %s: no", volumeID(handle))
		err := call(serverOf(m, Options{}))
		if err == nil || len(err.Error()) > 1000 || strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s: want a short message on one line, got %.300q", name, fmt.Sprint(err))
		}
		for _, c := range m.calls {
			if s, is := c.(host.StageSpec); is && s.Volume != volumeID(handle) {
				t.Errorf("%s: the host gets the handle %.100q", name, s.Volume)
			}
		}
	}
}

// An alert reads this. The probe asks the same questions as kubelet does, and proves nothing about kubelet.
// Once registered, a node stays so: metadata that cannot be read later must not make its pods unready.
func TestANodeThatWasRegisteredOnceDoesNotAskAgain(t *testing.T) {
	for _, topology := range []bool{true, false} {
		m := &fakeMachine{server: metadata.Server{ID: vol, Zone: "az1"}}
		s := newServer(m, Options{WithTopology: topology, Log: slog.New(slog.DiscardHandler)})
		if _, err := s.NodeGetInfo(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		m.err = volume.Errorf(volume.Unavailable, "no metadata")
		if err := s.Registered(t.Context()); err != nil {
			t.Errorf("topology %t: want it registered, got %v", topology, err)
		}
	}
}

func TestOnlyACallOfKubeletMakesTheMetricSayRegistered(t *testing.T) {
	t.Parallel()
	file, m := filepath.Join(t.TempDir(), "registered"), &fakeMachine{server: metadata.Server{ID: vol}, capacity: limit.Capacity{Bus: "virtio", Free: 25}}
	n := &numbers{}
	s := newServer(m, Options{Metrics: n, RegisteredFile: file, Log: slog.New(slog.DiscardHandler)})
	if err := s.Registered(t.Context()); err != nil || n.registered || n.limit["limit"] != 24 {
		t.Errorf("after the probe: want the limit and no registration, got %+v, %v", n, err)
	}
	for range 2 {
		if _, err := s.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}); err != nil || !n.registered {
			t.Errorf("after the call of kubelet: %+v, %v", n, err)
		}
	}
	restarted := &numbers{}
	newServer(m, Options{Metrics: restarted, RegisteredFile: file, Log: slog.New(slog.DiscardHandler)})
	if !restarted.registered {
		t.Error("a container that restarts alone forgets that kubelet has registered the driver")
	}
}

func TestWhatReadingTheUsageShowsIsAFindingUntilItIsGone(t *testing.T) {
	t.Parallel()
	readOnly := []volume.HealthIssue{{Reason: "FileSystemReadOnly"}}
	for name, c := range map[string]struct {
		stats host.Stats
		err   error
		want  []string
	}{
		"well":               {host.Stats{}, nil, nil},
		"read-only":          {host.Stats{Issues: readOnly}, nil, []string{"FileSystemReadOnly"}},
		"a disk that hangs":  {host.Stats{}, volume.Errorf(volume.Unavailable, "no answer"), []string{"NotResponding"}},
		"a dead disk":        {host.Stats{Issues: readOnly}, volume.Errorf(volume.Failed, "input/output error"), []string{"FileSystemReadOnly", "InputOutputError"}},
		"no longer mounted":  {host.Stats{}, volume.Errorf(volume.NotFound, "nothing is mounted"), nil},
		"the caller is gone": {host.Stats{}, volume.Errorf(volume.Canceled, "gone"), []string{"before"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &numbers{health: map[string][]string{vol: {"before"}}}
			s := newServer(&fakeMachine{stats: c.stats, err: c.err}, Options{Metrics: n, Log: slog.New(slog.DiscardHandler)})
			_, err := s.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: vol, VolumePath: "/p"})
			if !errors.Is(err, c.err) {
				t.Errorf("want %v, got %v", c.err, err)
			}
			if diff := cmp.Diff(c.want, n.health[vol]); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
	n := &numbers{health: map[string][]string{vol: {"before"}}}
	s := newServer(&fakeMachine{}, Options{Metrics: n, Log: slog.New(slog.DiscardHandler)})
	if _, err := s.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: vol, StagingTargetPath: "/s"}); err != nil || n.health[vol] != nil {
		t.Errorf("a volume that is gone has findings: %v, %v", n.health, err)
	}
	s = newServer(&fakeMachine{err: volume.Errorf(volume.Unavailable, "no answer")}, Options{Metrics: n, Log: slog.New(slog.DiscardHandler)})
	_, _ = s.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "any text", VolumePath: "/p"})
	if _, found := n.health["any text"]; found {
		t.Error("a text that is no volume ID becomes a series")
	}
}
