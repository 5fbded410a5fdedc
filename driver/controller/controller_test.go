package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

const (
	zoneKey = "topology.cinder.csi.openstack.org/zone"
	first   = "00000000-0000-4000-8000-000000000001"
	second  = "00000000-0000-4000-8000-000000000002"
)

// fake is the services of a cloud: it returns what a test sets, and keeps the arguments of the last call.
type fake struct {
	spec   provision.CreateSpec
	volume volume.Volume
	err    error
	list   []volume.Volume
	page   int // of a list without a limit; 0 is all of it
	calls  []string

	change   provision.Change
	request  provision.CreateSpec
	capacity provision.Capacity
	issues   map[volume.ID][]volume.HealthIssue
}

func (f *fake) Create(_ context.Context, spec provision.CreateSpec) (volume.Volume, error) {
	f.spec, f.calls = spec, append(f.calls, "create "+spec.Name)
	return f.volume, f.err
}

func (f *fake) Delete(_ context.Context, id volume.ID) error {
	f.calls = append(f.calls, "delete "+string(id))
	return f.err
}

func (f *fake) Attach(_ context.Context, id volume.ID, server volume.ServerID) (volume.Volume, error) {
	f.calls = append(f.calls, "attach "+string(id)+" to "+string(server))
	return f.volume, f.err
}

func (f *fake) Detach(_ context.Context, id volume.ID, server volume.ServerID) error {
	f.calls = append(f.calls, "detach "+string(id)+" from "+string(server))
	return f.err
}

func (f *fake) Get(_ context.Context, id volume.ID) (volume.Volume, error) {
	switch {
	case f.err != nil:
		return volume.Volume{}, f.err
	case f.volume.ID != id:
		return volume.Volume{}, volume.NoVolume(id)
	}
	return f.volume, nil
}

func (f *fake) Expand(_ context.Context, id volume.ID, size volume.Range) (volume.Volume, error) {
	f.calls = append(f.calls, "expand "+string(id)+" to "+size.Required.String())
	return f.volume, f.err
}

// List returns at most two volumes in a page, and all of them without a limit.
func (f *fake) List(_ context.Context, p volume.Position, limit int) ([]volume.Volume, bool, error) {
	rest := f.list
	if p.After != "" {
		i := slices.IndexFunc(f.list, func(v volume.Volume) bool { return v.ID == p.After && v.CreatedAt.Equal(p.Created) })
		if i < 0 {
			return nil, false, volume.Errorf(volume.NotFound, "no volume %s", p.After)
		}
		rest = f.list[i+1:]
	}
	if limit == 0 {
		page := rest
		if f.page > 0 {
			page = rest[:min(f.page, len(rest))]
		}
		return page, len(page) < len(rest), f.err
	}
	return rest[:min(2, limit, len(rest))], len(rest) > 0, f.err
}

func (f *fake) Modify(_ context.Context, id volume.ID, c provision.Change) error {
	f.change, f.calls = c, append(f.calls, "modify "+string(id))
	return f.err
}

func (f *fake) Capacity(_ context.Context, r provision.CreateSpec) (provision.Capacity, error) {
	f.request, f.calls = r, append(f.calls, "capacity")
	return f.capacity, f.err
}

func (f *fake) Health(ctx context.Context, id volume.ID) (volume.Health, error) {
	v, err := f.Get(ctx, id)
	return volume.Health{Volume: v, Issues: f.issues[id]}, err
}

func (f *fake) ListHealth(ctx context.Context, p volume.Position, _ map[volume.ServerID]bool) ([]volume.Health, bool, error) {
	f.calls = append(f.calls, "list health")
	page, more, err := f.List(ctx, p, 0)
	var all []volume.Health
	for _, v := range page {
		all = append(all, volume.Health{Volume: v, Issues: f.issues[v.ID]})
	}
	return all, more, err
}

func server(f *fake, change ...func(*Options)) *Server {
	o := Options{Clouds: map[string]Cloud{"": {Volumes: f, Attachments: f}}, TopologyKey: zoneKey, WithTopology: true, Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&o)
	}
	return New(o)
}

func capability(mode csi.VolumeCapability_AccessMode_Mode, block bool) *csi.VolumeCapability {
	c := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode}}
	if block {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	} else {
		c.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}
	}
	return c
}

var oneWriter = []*csi.VolumeCapability{capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, false)}

func zone(names ...string) []*csi.Topology {
	var all []*csi.Topology
	for _, name := range names {
		all = append(all, &csi.Topology{Segments: map[string]string{zoneKey: name, "topology.kubernetes.io/region": "R"}})
	}
	return all
}

func kindIs(t *testing.T, err error, want volume.Kind, text string) {
	t.Helper()
	if err == nil || volume.KindOf(err) != want || !strings.Contains(err.Error(), text) {
		t.Errorf("want kind %s with %q, got %v (kind %s)", want, text, err, volume.KindOf(err))
	}
}

func TestCreateVolume(t *testing.T) {
	f := &fake{volume: volume.Volume{ID: first, Size: volume.GiB(3), Zone: "az 3"}}
	got, err := server(f).CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: "pvc-1", VolumeCapabilities: oneWriter, CapacityRange: &csi.CapacityRange{RequiredBytes: 5, LimitBytes: 9},
		Parameters: map[string]string{"type": "fast", "csi.storage.k8s.io/pvc/name": "claim", "csi.storage.k8s.io/pvc/namespace": "shop", "csi.storage.k8s.io/pv/name": "pvc-1", "appendVolumeMetadata": `{"team":"storage"}`},
		AccessibilityRequirements: &csi.TopologyRequirement{
			Preferred: append([]*csi.Topology{{Segments: map[string]string{"other": "x"}}}, zone("az2")...), Requisite: zone("az1", "az2"),
		},
		VolumeContentSource: &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: second}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	wantSpec := provision.CreateSpec{
		Name: "pvc-1", Size: volume.Range{Required: 5, Limit: 9}, Type: "fast", Zones: []string{"az2", "az1"}, Source: second,
		Metadata: map[string]string{"team": "storage", "csi.storage.k8s.io/pvc/name": "claim", "csi.storage.k8s.io/pvc/namespace": "shop", "csi.storage.k8s.io/pv/name": "pvc-1", "cinder.csi.openstack.org/volume-mode": "Filesystem"},

		ClaimNamespace: "shop",
	}
	if diff := cmp.Diff(wantSpec, f.spec); diff != "" {
		t.Error("spec, -want +got\n", diff)
	}
	want := &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: first, CapacityBytes: 3 << 30, VolumeContext: map[string]string{"cinder.csi.openstack.org/resizeRequired": "true"},
		ContentSource:      &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: second}}},
		AccessibleTopology: []*csi.Topology{{Segments: map[string]string{zoneKey: "az-3", "topology.kubernetes.io/region": "R"}}}, // the zone it really is in, as a label
	}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error("answer, -want +got\n", diff)
	}
}

func TestCreateVolumeValidatesTheRequest(t *testing.T) {
	ok := func() *csi.CreateVolumeRequest {
		return &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: oneWriter}
	}
	for name, test := range map[string]struct {
		change func(*csi.CreateVolumeRequest)
		kind   volume.Kind
		text   string
	}{
		"no name":             {func(r *csi.CreateVolumeRequest) { r.Name = "" }, volume.InvalidArgument, "name"},
		"a long name":         {func(r *csi.CreateVolumeRequest) { r.Name = strings.Repeat("a", 256) }, volume.InvalidArgument, "255 characters"},
		"a name of two lines": {func(r *csi.CreateVolumeRequest) { r.Name = "a\nb" }, volume.InvalidArgument, "control character"},
		"no capabilities":     {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = nil }, volume.InvalidArgument, "capabilities"},
		"no access type":      {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = []*csi.VolumeCapability{{}} }, volume.InvalidArgument, "access type"},
		"unknown cloud":       {func(r *csi.CreateVolumeRequest) { r.Secrets = map[string]string{"cloud": "moon"} }, volume.InvalidArgument, `"moon"`},
		"mutable parameters":  {func(r *csi.CreateVolumeRequest) { r.MutableParameters = map[string]string{"a": "b"} }, volume.InvalidArgument, "VolumeAttributesClass"},
		"a mount flag": {func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities = []*csi.VolumeCapability{withFlags("noatime,loop=/dev/loop0")}
		}, volume.InvalidArgument, `"loop=/dev/loop0"`},
		"bad metadata": {func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"appendVolumeMetadata": "x"} }, volume.InvalidArgument, "JSON"},
		"a snapshot without id": {func(r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{}}}
		}, volume.InvalidArgument, "snapshot"},
		"a source without id": {func(r *csi.CreateVolumeRequest) { r.VolumeContentSource = &csi.VolumeContentSource{} }, volume.InvalidArgument, "source"},
	} {
		t.Run(name, func(t *testing.T) {
			f, req := &fake{}, ok()
			test.change(req)
			_, err := server(f).CreateVolume(t.Context(), req)
			kindIs(t, err, test.kind, test.text)
			if len(f.calls) != 0 {
				t.Errorf("the domain was asked: %v", f.calls)
			}
		})
	}
}

// Every access mode of the CSI specification, for a file system and for raw block: refused, for one server, for several. Many
// readers ask for no more than upstream's driver gives them.
func TestAccessModes(t *testing.T) {
	for number, name := range csi.VolumeCapability_AccessMode_Mode_name {
		mode := csi.VolumeCapability_AccessMode_Mode(number)
		several := strings.HasPrefix(name, "MULTI_NODE") && mode != csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
		for _, block := range []bool{false, true} {
			f := &fake{}
			_, err := server(f).CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: []*csi.VolumeCapability{capability(mode, block)}})
			if refuse := name == "UNKNOWN" || several && !block; refuse {
				kindIs(t, err, volume.InvalidArgument, name)
				continue
			}
			if err != nil || f.spec.Multiattach != several {
				t.Errorf("%s, block %v: got %v, shared %v", name, block, err, f.spec.Multiattach)
			}
		}
	}
}

func TestUnknownParametersAreLoggedOnceOrRefused(t *testing.T) {
	var log bytes.Buffer
	req := &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: oneWriter, Parameters: map[string]string{"tpye": "fast"}}
	lenient := server(&fake{}, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for range 2 {
		if _, err := lenient.CreateVolume(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "did you mean type?"); n != 1 {
		t.Errorf("warned %d times: %s", n, log.String())
	}
	strict := server(&fake{}, func(o *Options) { o.Strict = true })
	_, err := strict.CreateVolume(t.Context(), req)
	kindIs(t, err, volume.InvalidArgument, `"tpye"; did you mean type?`)
	req.Parameters = map[string]string{"csi.storage.k8s.io/of-tomorrow": "x"}
	if _, err := strict.CreateVolume(t.Context(), req); err != nil {
		t.Errorf("a newer sidecar is refused: %v", err)
	}
}

// A request names a volume or a parameter with up to a megabyte.
func TestAWarningIsShort(t *testing.T) {
	var log bytes.Buffer
	s := server(&fake{}, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for range 2 {
		s.tolerate(t.Context(), "a volume", strings.Repeat("x", 1<<20), "too long", "volume", strings.Repeat("x", 1<<20))
	}
	if got := log.String(); strings.Count(got, "too long") != 1 || len(got) > 2*longestText {
		t.Errorf("%d bytes: %.100s", len(got), got)
	}
}

func TestWarningsAreBounded(t *testing.T) {
	var w warnings
	for n := range 10 * mostWarnings {
		if key := strconv.Itoa(n); !w.first(key) || w.first(key) {
			t.Fatalf("%s: want one warning", key)
		}
		if len(w.keys) > mostWarnings {
			t.Fatalf("%d warnings are remembered", len(w.keys))
		}
	}
}

func TestPublishAndUnpublish(t *testing.T) {
	f := &fake{volume: volume.Volume{ID: first, Attachments: []volume.Attachment{{Server: "x", Device: "/dev/vdb"}, {Server: second, Device: "/dev/vdc"}}}}
	s := server(f)
	published, err := s.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: first, NodeId: second, VolumeCapability: oneWriter[0]})
	if err != nil || published.GetPublishContext()["DevicePath"] != "/dev/vdc" {
		t.Errorf("got %v, %v", published, err)
	}
	for _, node := range []string{second, ""} {
		if _, err := s.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: first, NodeId: node}); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: first}); err != nil {
		t.Error(err)
	}
	want := []string{"attach " + first + " to " + second, "detach " + first + " from " + second, "detach " + first + " from ", "delete " + first}
	if diff := cmp.Diff(want, f.calls); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

func TestRequestsWithoutARequiredFieldAreInvalid(t *testing.T) {
	s, moon := server(&fake{}), map[string]string{"cloud": "moon"}
	for name, call := range map[string]func(context.Context) error{
		"publish, no volume": func(ctx context.Context) error {
			return csitest.Outcome(s.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{NodeId: second, VolumeCapability: oneWriter[0]}))
		},
		"publish, no node": func(ctx context.Context) error {
			return csitest.Outcome(s.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: first, VolumeCapability: oneWriter[0]}))
		},
		"publish, no capability": func(ctx context.Context) error {
			return csitest.Outcome(s.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: first, NodeId: second}))
		},
		"publish, read-only": func(ctx context.Context) error {
			return csitest.Outcome(s.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: first, NodeId: second, VolumeCapability: oneWriter[0], Readonly: true}))
		},
		"publish, cloud": func(ctx context.Context) error {
			return csitest.Outcome(s.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{Secrets: moon}))
		},
		"unpublish": func(ctx context.Context) error {
			return csitest.Outcome(s.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{}))
		},
		"unpublish, cloud": func(ctx context.Context) error {
			return csitest.Outcome(s.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: first, Secrets: moon}))
		},
		"delete": func(ctx context.Context) error { _, err := s.DeleteVolume(ctx, &csi.DeleteVolumeRequest{}); return err },
		"delete, cloud": func(ctx context.Context) error {
			return csitest.Outcome(s.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: first, Secrets: moon}))
		},
		"get": func(ctx context.Context) error {
			return csitest.Outcome(s.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{}))
		},
		"validate, no volume": func(ctx context.Context) error {
			return csitest.Outcome(s.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{VolumeCapabilities: oneWriter}))
		},
		"validate, nothing": func(ctx context.Context) error {
			return csitest.Outcome(s.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{VolumeId: first}))
		},
		"list, negative": func(ctx context.Context) error {
			return csitest.Outcome(s.ListVolumes(ctx, &csi.ListVolumesRequest{MaxEntries: -1}))
		},
	} {
		t.Run(name, func(t *testing.T) { kindIs(t, call(t.Context()), volume.InvalidArgument, "") })
	}
}

func TestErrorsOfVolumesAndAttachmentsStayUnchanged(t *testing.T) {
	want := errors.New("as it is")
	f := &fake{err: want, volume: volume.Volume{ID: first}}
	s := server(f)
	for name, call := range map[string]func() error{
		"create": func() error {
			return csitest.Outcome(s.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: oneWriter}))
		},
		"delete": func() error {
			return csitest.Outcome(s.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: first}))
		},
		"publish": func() error {
			return csitest.Outcome(s.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: first, NodeId: second, VolumeCapability: oneWriter[0]}))
		},
		"unpublish": func() error {
			return csitest.Outcome(s.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: first}))
		},
		"get": func() error {
			return csitest.Outcome(s.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{VolumeId: first}))
		},
		"validate": func() error {
			return csitest.Outcome(s.ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{VolumeId: first, VolumeCapabilities: oneWriter}))
		},
		"list": func() error { _, err := s.ListVolumes(t.Context(), &csi.ListVolumesRequest{}); return err },
	} {
		if err := call(); !errors.Is(err, want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestValidateVolumeCapabilities(t *testing.T) {
	for name, test := range map[string]struct {
		volume     volume.Volume
		capability *csi.VolumeCapability
		confirmed  bool
	}{
		"one writer":               {volume.Volume{ID: first}, oneWriter[0], true},
		"shared, plain type":       {volume.Volume{ID: first}, capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, true), false},
		"shared, multiattach type": {volume.Volume{ID: first, Multiattach: true}, capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, true), true},
		"shared file system":       {volume.Volume{ID: first, Multiattach: true}, capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, false), false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := server(&fake{volume: test.volume}).ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{
				VolumeId: first, VolumeCapabilities: []*csi.VolumeCapability{test.capability}, Parameters: map[string]string{"type": "fast"},
			})
			if err != nil || (got.GetConfirmed() != nil) != test.confirmed || (got.GetMessage() == "") != test.confirmed {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	_, err := server(&fake{}).ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{VolumeId: first, VolumeCapabilities: oneWriter})
	kindIs(t, err, volume.NotFound, first)
}

// two clouds with five and one volumes.
func twoClouds() *Server {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	plain, east := &fake{}, &fake{}
	for n := range 6 {
		v := volume.Volume{ID: volume.ID(first[:35] + string(rune('1'+n))), Size: volume.GiB(n), CreatedAt: start.Add(-time.Duration(n) * time.Second)}
		if n == 5 {
			east.list, east.volume = []volume.Volume{v}, v
			continue
		}
		v.Attachments = []volume.Attachment{{Server: volume.ServerID(second)}}
		plain.list, plain.volume = append(plain.list, v), v
	}
	return New(Options{Clouds: map[string]Cloud{"east": {Volumes: east, Attachments: east}, "": {Volumes: plain, Attachments: plain}}, Log: slog.New(slog.DiscardHandler)})
}

func TestListVolumesOfAllClouds(t *testing.T) {
	for maxEntries := range int32(8) {
		s, sizes, request := twoClouds(), []int64{}, &csi.ListVolumesRequest{MaxEntries: maxEntries}
		for {
			got, err := s.ListVolumes(t.Context(), request)
			if err != nil {
				t.Fatalf("max_entries %d, token %q: %v", maxEntries, request.GetStartingToken(), err)
			}
			if maxEntries > 0 && len(got.GetEntries()) > int(maxEntries) {
				t.Errorf("max_entries %d: got %d", maxEntries, len(got.GetEntries()))
			}
			for _, entry := range got.GetEntries() {
				sizes = append(sizes, entry.GetVolume().GetCapacityBytes()>>30)
				if published := len(entry.GetStatus().GetPublishedNodeIds()) == 1; published == (entry.GetVolume().GetCapacityBytes() == 5<<30) {
					t.Errorf("published nodes of %v", entry)
				}
			}
			if request.StartingToken = got.GetNextToken(); request.GetStartingToken() == "" {
				break
			}
		}
		if !slices.Equal(sizes, []int64{0, 1, 2, 3, 4, 5}) {
			t.Errorf("max_entries %d: got volumes %v", maxEntries, sizes)
		}
	}
}

func TestListVolumesWithAnInvalidTokenIsBusy(t *testing.T) {
	for _, token := range []string{"x", "x:", ":moon", first + ":moon", first + ",soon", first + ",1", second + ":east", "../" + first} {
		_, err := twoClouds().ListVolumes(t.Context(), &csi.ListVolumesRequest{StartingToken: token})
		kindIs(t, err, volume.Busy, "from the beginning")
	}
}

func FuzzToken(f *testing.F) {
	for _, seed := range []string{"", ":", "a,1:b", first + ",1767225600000000:east", first + ",-9:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := twoClouds()
		parsed, err := s.parseToken(text)
		if err != nil || text == "" || parsed.String() == "" {
			return
		}
		again, err := s.parseToken(parsed.String())
		if err != nil || again != parsed {
			t.Errorf("%q is %+v, and that is %+v, %v", text, parsed, again, err)
		}
	})
}

func TestControllerGetVolumeReadsEveryCloud(t *testing.T) {
	s := twoClouds()
	got, err := s.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{VolumeId: first[:35] + "6"})
	if err != nil || got.GetVolume().GetCapacityBytes() != 5<<30 {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = s.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{VolumeId: first[:35] + "9"})
	kindIs(t, err, volume.NotFound, "")
	s.o.Clouds["east"].Volumes.(*fake).err = volume.Errorf(volume.Unavailable, "out")
	_, err = s.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{VolumeId: first[:35] + "9"})
	kindIs(t, err, volume.Unavailable, "out") // it may be there
}

func TestControllerExpandVolume(t *testing.T) {
	attached := []volume.Attachment{{ID: "a", Server: "server"}}
	for _, test := range []struct {
		name        string
		block       bool
		attachments []volume.Attachment
		onNode      bool
	}{
		{"a file system", false, nil, true},
		{"an attached file system", false, attached, true},
		{"a block device that no server has", true, nil, false},
		{"an attached block device, which grows later than the volume", true, attached, true},
	} {
		f := &fake{volume: volume.Volume{ID: first, Size: volume.GiB(3), Attachments: test.attachments}}
		got, err := server(f).ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{
			VolumeId: first, CapacityRange: &csi.CapacityRange{RequiredBytes: 3 << 30}, VolumeCapability: capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, test.block),
		})
		if err != nil || got.GetCapacityBytes() != 3<<30 || got.GetNodeExpansionRequired() != test.onNode || !slices.Equal(f.calls, []string{"expand " + first + " to 3 GiB"}) {
			t.Errorf("%s: got %v, %v, %v", test.name, got, err, f.calls)
		}
	}
	for _, req := range []*csi.ControllerExpandVolumeRequest{{CapacityRange: &csi.CapacityRange{}}, {VolumeId: first}, {VolumeId: first, Secrets: map[string]string{"cloud": "moon"}}} {
		_, err := server(&fake{}).ControllerExpandVolume(t.Context(), req)
		kindIs(t, err, volume.InvalidArgument, "")
	}
}

func TestControllerGetCapabilities(t *testing.T) {
	want := []string{"CREATE_DELETE_VOLUME", "PUBLISH_UNPUBLISH_VOLUME", "LIST_VOLUMES", "LIST_VOLUMES_PUBLISHED_NODES", "GET_VOLUME", "CLONE_VOLUME", "CREATE_DELETE_SNAPSHOT", "LIST_SNAPSHOTS", "GET_SNAPSHOT", "MODIFY_VOLUME", "SINGLE_NODE_MULTI_WRITER", "GET_VOLUME_HEALTH", "LIST_VOLUME_HEALTH", "EXPAND_VOLUME"}
	got, err := server(&fake{}).ControllerGetCapabilities(t.Context(), &csi.ControllerGetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range got.GetCapabilities() {
		names = append(names, c.GetRpc().GetType().String())
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

// A caller without a limit gets the volumes of a large project in answers of a page, as every sidecar reads them.
func TestAListWithoutALimitIsReadInPages(t *testing.T) {
	s := twoClouds()
	plain := s.o.Clouds[""].Volumes.(*fake)
	plain.list, plain.page = nil, 400
	for n := range 2500 {
		plain.list = append(plain.list, volume.Volume{ID: volume.ID(fmt.Sprintf("%s%04d", first[:32], n)), CreatedAt: time.Unix(int64(9000-n), 0).UTC()})
	}
	var sizes []int
	request := &csi.ListVolumesRequest{}
	for {
		got, err := s.ListVolumes(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if sizes = append(sizes, len(got.GetEntries())); got.GetNextToken() == "" {
			break
		}
		request.StartingToken = got.GetNextToken()
	}
	if want := []int{1200, 1200, 101}; !slices.Equal(sizes, want) {
		t.Errorf("want answers of %v, got %v", want, sizes)
	}
	endless := fmt.Sprintf("%s,%d,listed=%d", plain.list[9].ID, plain.list[9].CreatedAt.UnixMicro(), paging.MaxItems-399)
	_, err := s.ListVolumes(t.Context(), &csi.ListVolumesRequest{StartingToken: endless})
	kindIs(t, err, volume.Unavailable, "does not end")
	if _, err = s.ListVolumes(t.Context(), &csi.ListVolumesRequest{StartingToken: endless, MaxEntries: 1}); err != nil {
		t.Errorf("a caller with a limit counts himself: %v", err)
	}
	_, err = s.ControllerListVolumeHealth(t.Context(), &csi.ControllerListVolumeHealthRequest{StartingToken: endless})
	kindIs(t, err, volume.Unavailable, "does not end")
	for _, token := range []string{first + ",listed=x", first + ",listed=-1", first + ",listed="} {
		_, err := s.ListVolumes(t.Context(), &csi.ListVolumesRequest{StartingToken: token})
		kindIs(t, err, volume.Busy, "from the beginning")
	}
}
