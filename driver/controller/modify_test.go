package controller

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

const (
	manyWriters = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	manyReaders = csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
)

// withFlags is a capability with mount flags.
func withFlags(flags ...string) *csi.VolumeCapability {
	c := capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, false)
	c.GetMount().MountFlags = flags
	return c
}

func TestControllerModifyVolume(t *testing.T) {
	f := &fake{}
	_, err := server(f).ControllerModifyVolume(t.Context(), &csi.ControllerModifyVolumeRequest{
		VolumeId: first, MutableParameters: map[string]string{"type": "fast", "policy": "on-demand", "metadata.team": "storage"},
	})
	want := provision.Change{Type: "fast", Migrate: true, Metadata: map[string]string{"team": "storage"}}
	if diff := cmp.Diff(want, f.change); diff != "" || err != nil || !slices.Equal(f.calls, []string{"modify " + first}) {
		t.Errorf("%v, %v (-want +got):\n%s", err, f.calls, diff)
	}
	for name, test := range map[string]struct {
		req  *csi.ControllerModifyVolumeRequest
		text string
	}{
		"no volume":         {&csi.ControllerModifyVolumeRequest{MutableParameters: map[string]string{"type": "fast"}}, "volume ID"},
		"unknown parameter": {&csi.ControllerModifyVolumeRequest{VolumeId: first, MutableParameters: map[string]string{"tpye": "fast"}}, "did you mean type?"},
		"unknown cloud":     {&csi.ControllerModifyVolumeRequest{VolumeId: first, Secrets: map[string]string{"cloud": "moon"}}, `"moon"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			_, err := server(f).ControllerModifyVolume(t.Context(), test.req)
			kindIs(t, err, volume.InvalidArgument, test.text)
			if len(f.calls) != 0 {
				t.Errorf("the domain was asked: %v", f.calls)
			}
		})
	}
	f.err = volume.Errorf(volume.Conflict, "no")
	_, err = server(f).ControllerModifyVolume(t.Context(), &csi.ControllerModifyVolumeRequest{VolumeId: first})
	kindIs(t, err, volume.Conflict, "no")
}

func TestMutableParametersOverrideTheStorageClass(t *testing.T) {
	f := &fake{}
	_, err := server(f).CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: "a", VolumeCapabilities: oneWriter,
		Parameters:        map[string]string{"type": "slow", "appendVolumeMetadata": `{"team":"a","other":"stays"}`},
		MutableParameters: map[string]string{"type": "fast", "metadata.team": "b"},
	})
	want := provision.CreateSpec{Name: "a", Type: "fast", Metadata: map[string]string{"team": "b", "other": "stays", "cinder.csi.openstack.org/volume-mode": "Filesystem"}}
	if diff := cmp.Diff(want, f.spec); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestGetCapacity(t *testing.T) {
	segment := zone("az2")[0]
	for name, test := range map[string]struct {
		req      *csi.GetCapacityRequest
		capacity provision.Capacity
		change   func(*Options)
		request  provision.CreateSpec
		want     *csi.GetCapacityResponse
		asked    bool
	}{
		"nothing said": {
			req: &csi.GetCapacityRequest{}, capacity: provision.Capacity{Available: 7}, asked: true, want: &csi.GetCapacityResponse{AvailableCapacity: 7},
		},
		"all said": {
			req: &csi.GetCapacityRequest{
				Parameters: map[string]string{"type": "fast"}, AccessibleTopology: segment, VolumeCapabilities: []*csi.VolumeCapability{capability(manyWriters, true)},
			},
			capacity: provision.Capacity{Available: 7, Smallest: 2, Largest: 5}, asked: true, request: provision.CreateSpec{Type: "fast", Zones: []string{"az2"}, Multiattach: true},
			want: &csi.GetCapacityResponse{AvailableCapacity: 7, MinimumVolumeSize: wrapperspb.Int64(2), MaximumVolumeSize: wrapperspb.Int64(5)},
		},
		"the class's zone is the segment's": {
			req:     &csi.GetCapacityRequest{Parameters: map[string]string{"availability": "az2"}, AccessibleTopology: segment},
			request: provision.CreateSpec{Zone: "az2", Zones: []string{"az2"}}, asked: true, want: &csi.GetCapacityResponse{},
		},
		"the class's zone is another": {
			req: &csi.GetCapacityRequest{Parameters: map[string]string{"availability": "az1"}, AccessibleTopology: segment}, want: &csi.GetCapacityResponse{},
		},
		"the class's zone is another, and zones do not matter": {
			req:    &csi.GetCapacityRequest{Parameters: map[string]string{"availability": "az1"}, AccessibleTopology: segment},
			change: func(o *Options) { o.IgnoreZone = func() bool { return true } }, request: provision.CreateSpec{Zone: "az1", Zones: []string{"az2"}, AnyZone: true}, asked: true, want: &csi.GetCapacityResponse{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			f.capacity = test.capacity
			s := server(f, func(o *Options) {
				if o.WithCapacity = true; test.change != nil {
					test.change(o)
				}
			})
			got, err := s.GetCapacity(t.Context(), test.req)
			if diff := cmp.Diff(test.want, got, protocmp.Transform()); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff(test.request, f.request); diff != "" || len(f.calls) == 1 != test.asked {
				t.Errorf("%v (-want +got):\n%s", f.calls, diff)
			}
		})
	}
	_, err := server(&fake{}).GetCapacity(t.Context(), &csi.GetCapacityRequest{})
	kindIs(t, err, volume.Unimplemented, "--with-capacity")
	strict := server(&fake{}, func(o *Options) { o.WithCapacity, o.Strict = true, true })
	_, err = strict.GetCapacity(t.Context(), &csi.GetCapacityRequest{Parameters: map[string]string{"tpye": "x"}})
	kindIs(t, err, volume.InvalidArgument, "tpye")
	_, err = strict.GetCapacity(t.Context(), &csi.GetCapacityRequest{VolumeCapabilities: []*csi.VolumeCapability{capability(manyWriters, false)}})
	kindIs(t, err, volume.InvalidArgument, "MULTI_NODE_MULTI_WRITER")
}

func TestGetCapacityIsACapabilityOnlyWithCapacity(t *testing.T) {
	got, err := server(&fake{}, func(o *Options) { o.WithCapacity = true }).ControllerGetCapabilities(t.Context(), &csi.ControllerGetCapabilitiesRequest{})
	if err != nil || !strings.Contains(got.String(), "GET_CAPACITY") {
		t.Errorf("got %v, %v", got, err)
	}
}

// sick gives two clouds of which two volumes and one are ill.
func sick() *Server {
	s := twoClouds()
	ill := []volume.HealthIssue{{Severity: volume.Inaccessible, Reason: "Error", Message: "broken"}, {Severity: volume.Degraded, Reason: "Other", Message: "slow"}}
	plain, east := s.o.Clouds[""].Volumes.(*fake), s.o.Clouds["east"].Volumes.(*fake)
	plain.issues = map[volume.ID][]volume.HealthIssue{plain.list[1].ID: ill, plain.list[4].ID: ill[:1]}
	east.issues = map[volume.ID][]volume.HealthIssue{east.list[0].ID: ill[1:]}
	return s
}

func TestControllerListVolumeHealthOfAllClouds(t *testing.T) {
	for maxEntries := range int32(5) {
		s, ids, request := sick(), []string{}, &csi.ControllerListVolumeHealthRequest{MaxEntries: maxEntries}
		for {
			got, err := s.ControllerListVolumeHealth(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if maxEntries > 0 && len(got.GetEntries()) > int(maxEntries) {
				t.Errorf("max_entries %d: got %d", maxEntries, len(got.GetEntries()))
			}
			for _, entry := range got.GetEntries() {
				ids = append(ids, entry.GetVolumeId()[35:])
			}
			if request.StartingToken = got.GetNextToken(); request.GetStartingToken() == "" {
				break
			}
		}
		if !slices.Equal(ids, []string{"2", "5", "6"}) {
			t.Errorf("max_entries %d: got volumes %v", maxEntries, ids)
		}
		if plain := s.o.Clouds[""].Volumes.(*fake).calls; maxEntries == 0 && len(plain) != 1 {
			t.Errorf("the driver asked a cloud with one page as often as %v", plain)
		}
	}
	_, err := sick().ControllerListVolumeHealth(t.Context(), &csi.ControllerListVolumeHealthRequest{MaxEntries: -1})
	kindIs(t, err, volume.InvalidArgument, "max_entries")
	for _, token := range []string{"x", first + ":moon", first + ",1"} {
		_, err := sick().ControllerListVolumeHealth(t.Context(), &csi.ControllerListVolumeHealthRequest{StartingToken: token})
		kindIs(t, err, volume.Busy, "from the beginning")
	}
}

func TestControllerGetVolumeHealth(t *testing.T) {
	s := sick()
	at := func(n string, secrets map[string]string) (*csi.ControllerGetVolumeHealthResponse, error) {
		return s.ControllerGetVolumeHealth(t.Context(), &csi.ControllerGetVolumeHealthRequest{VolumeId: first[:35] + n, Secrets: secrets})
	}
	want := &csi.ControllerGetVolumeHealthResponse{VolumeHealth: &csi.VolumeHealth{VolumeId: first[:35] + "6", HealthStatuses: []*csi.VolumeHealth_VolumeHealthEntry{
		{Status: csi.VolumeHealthErrorType_DEGRADED, Reason: "Other", Message: "slow"},
	}}}
	for _, secrets := range []map[string]string{nil, {"cloud": "east"}} {
		got, err := at("6", secrets)
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	_, err := at("6", map[string]string{"cloud": ""})
	kindIs(t, err, volume.NotFound, "")
	_, err = at("6", map[string]string{"cloud": "moon"})
	kindIs(t, err, volume.InvalidArgument, "moon")
	_, err = s.ControllerGetVolumeHealth(t.Context(), &csi.ControllerGetVolumeHealthRequest{})
	kindIs(t, err, volume.InvalidArgument, "volume ID")
	s.o.Clouds["east"].Volumes.(*fake).err = volume.Errorf(volume.Unavailable, "out")
	_, err = at("9", nil)
	kindIs(t, err, volume.Unavailable, "out") // it may be there
}

func TestMountFlags(t *testing.T) {
	for flags, refused := range map[string]string{
		"":                "",
		"noatime":         "",
		"bind":            "bind",
		"BIND":            "BIND",
		"noatime, move":   "move",
		"ro,remount":      "remount",
		"loop":            "loop",
		"offset=4096":     "offset=4096",
		"x-binding":       "",
		"rbind":           "rbind", // this one and those below the node alone refused, after the volume was attached
		"logdev=/dev/vdc": "logdev=/dev/vdc",
		"x-mount.mkdir":   "x-mount.mkdir",
		"looping":         "looping",
		`context="system_u:object_r:container_file_t:s0:c1,loop"`: "",
		`context="a,b",loop`: "loop",
	} {
		err := validateMountFlags([]string{"rw", flags})
		if refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), `"`+refused+`"`)) {
			t.Errorf("%q: want %q refused, got %v", flags, refused, err)
		}
	}
}

func TestControllerPublishVolumeValidatesTheCapability(t *testing.T) {
	for name, test := range map[string]struct {
		capability *csi.VolumeCapability
		lenient    bool // taken, and counted
		taken      bool
		strict     bool // taken if strict
	}{
		"one writer":                    {capability: oneWriter[0], taken: true, strict: true},
		"many readers of a file system": {capability: capability(manyReaders, false), taken: true, strict: true},
		"many writers of a file system": {capability: capability(manyWriters, false), taken: true, lenient: true},
		"many writers of a disk":        {capability: capability(manyWriters, true), taken: true, strict: true},
		"a mount flag":                  {capability: withFlags("bind")},
		"neither disk nor file system":  {capability: &csi.VolumeCapability{}, taken: true, strict: true}, // as upstream
	} {
		t.Run(name, func(t *testing.T) {
			for _, strict := range []bool{false, true} {
				var log bytes.Buffer
				var counted []string
				f := &fake{}
				s := server(f, func(o *Options) {
					o.Strict, o.Log = strict, slog.New(slog.NewTextHandler(&log, nil))
					o.Lenient = func(what string) { counted = append(counted, what) }
				})
				want := test.taken
				if strict {
					want = test.strict
				}
				for range 2 {
					_, err := s.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: first, NodeId: second, VolumeCapability: test.capability})
					if !want {
						kindIs(t, err, volume.InvalidArgument, "")
					} else if err != nil {
						t.Error(err)
					}
				}
				if attached := len(f.calls) == 2; attached != want {
					t.Errorf("strict %v: calls %v", strict, f.calls)
				}
				wantCount, wantWarnings := 0, 0
				if test.lenient && !strict {
					wantCount, wantWarnings = 2, 1
				}
				if len(counted) != wantCount || strings.Count(log.String(), "several writers") != wantWarnings {
					t.Errorf("strict %v: counted %v, log %s", strict, counted, log.String())
				}
			}
		})
	}
}

func TestValidateVolumeCapabilitiesComparesMutableParameters(t *testing.T) {
	v := volume.Volume{ID: first, Type: "fast", Metadata: map[string]string{"team": "a"}, CreatedAt: time.Now()}
	for name, test := range map[string]struct {
		parameters, mutable map[string]string
		capability          *csi.VolumeCapability
		message             string
	}{
		"as it is":                   {mutable: map[string]string{"type": "fast", "policy": "never", "metadata.team": "a"}},
		"a class of another type":    {parameters: map[string]string{"type": "slow"}}, // which may have been changed since
		"a type in another case":     {mutable: map[string]string{"type": "FAST"}},
		"a type's id":                {mutable: map[string]string{"type": second}},
		"another type":               {mutable: map[string]string{"type": "slow"}, message: "type is fast instead of slow"},
		"other metadata":             {mutable: map[string]string{"metadata.team": "b"}, message: `team is "a" instead of "b"`},
		"an unknown parameter":       {mutable: map[string]string{"iops": "3"}, message: "iops"},
		"class metadata of nonsense": {parameters: map[string]string{"appendVolumeMetadata": "x"}, message: "JSON"},
		"a mount flag":               {capability: withFlags("bind"), message: "bind"},
	} {
		t.Run(name, func(t *testing.T) {
			c := oneWriter
			if test.capability != nil {
				c = []*csi.VolumeCapability{test.capability}
			}
			got, err := server(&fake{volume: v}).ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{
				VolumeId: first, VolumeCapabilities: c, Parameters: test.parameters, MutableParameters: test.mutable,
			})
			if err != nil || (got.GetConfirmed() == nil) != (test.message != "") || !strings.Contains(got.GetMessage(), test.message) {
				t.Errorf("got %v, %v", got, err)
			}
			if test.message == "" && !cmp.Equal(got.GetConfirmed().GetMutableParameters(), test.mutable) {
				t.Errorf("confirmed %v", got.GetConfirmed())
			}
		})
	}
}
