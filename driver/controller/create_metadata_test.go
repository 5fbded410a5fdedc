package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Terminals and logs of the cloud show what a request puts into the body of one to Cinder.
func TestNoTextOfARequestReachesTheCloudUnchecked(t *testing.T) {
	parameter := func(key string) func(*csi.CreateVolumeRequest, string) {
		return func(r *csi.CreateVolumeRequest, text string) { r.Parameters = map[string]string{key: text} }
	}
	quoted := func(key, format string) func(*csi.CreateVolumeRequest, string) {
		return func(r *csi.CreateVolumeRequest, text string) {
			value, _ := json.Marshal(text)
			r.Parameters = map[string]string{key: fmt.Sprintf(format, value)}
		}
	}
	create := map[string]func(*csi.CreateVolumeRequest, string){
		"name": func(r *csi.CreateVolumeRequest, text string) { r.Name = text },
		"file system": func(r *csi.CreateVolumeRequest, text string) {
			r.VolumeCapabilities[0].GetMount().FsType = text
		},
		"type of an attributes class": func(r *csi.CreateVolumeRequest, text string) { r.MutableParameters = map[string]string{"type": text} },
		"metadata of an attributes class": func(r *csi.CreateVolumeRequest, text string) {
			r.MutableParameters = map[string]string{"metadata.a": text}
		},
		"zone of the topology": func(r *csi.CreateVolumeRequest, text string) {
			r.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: zone(text)}
		},
		"type":                  parameter("type"),
		"zone":                  parameter("availability"),
		"template":              parameter("metadata.a"),
		"claim":                 parameter("csi.storage.k8s.io/pvc/name"),
		"namespace":             parameter("csi.storage.k8s.io/pvc/namespace"),
		"volume":                parameter("csi.storage.k8s.io/pv/name"),
		"metadata":              quoted("appendVolumeMetadata", `{"a": %s}`),
		"hint, the same host":   quoted("scheduler-hints", `{"same_host": %s}`),
		"hint, different hosts": quoted("scheduler-hints", `{"different_host": ["x", %s]}`),
		"hint, a server":        quoted("scheduler-hints", `{"local_to_instance": %s}`),
	}
	snapshot := map[string]func(*csi.CreateSnapshotRequest, string){
		"name": func(r *csi.CreateSnapshotRequest, text string) { r.Name = text },
		"zone": func(r *csi.CreateSnapshotRequest, text string) {
			r.Parameters = map[string]string{"type": "backup", "availability": text}
		},
		"metadata": func(r *csi.CreateSnapshotRequest, text string) { r.Parameters = map[string]string{"metadata.a": text} },
		"snapshot": func(r *csi.CreateSnapshotRequest, text string) {
			r.Parameters = map[string]string{"csi.storage.k8s.io/volumesnapshot/name": text}
		},
		"namespace": func(r *csi.CreateSnapshotRequest, text string) {
			r.Parameters = map[string]string{"csi.storage.k8s.io/volumesnapshot/namespace": text}
		},
		"content": func(r *csi.CreateSnapshotRequest, text string) {
			r.Parameters = map[string]string{"csi.storage.k8s.io/volumesnapshotcontent/name": text}
		},
	}
	for _, text := range []string{"a\x1b[2J", "a\nb", "a\u009b2J", strings.Repeat("x", 256)} {
		for name, set := range create {
			f, req := &fake{}, &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: []*csi.VolumeCapability{capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, false)}}
			set(req, text)
			if _, err := server(f).CreateVolume(t.Context(), req); volume.KindOf(err) != volume.InvalidArgument || len(f.calls) != 0 {
				t.Errorf("CreateVolume, %s %.8q: calls %v, %v", name, text, f.calls, err)
			}
		}
		for name, set := range snapshot {
			req := &csi.CreateSnapshotRequest{Name: "a", SourceVolumeId: first}
			set(req, text)
			_, err := server(nil, func(o *Options) { o.Clouds[""] = Cloud{Snapshots: &fakeSnapshots{}} }).CreateSnapshot(t.Context(), req)
			if volume.KindOf(err) != volume.InvalidArgument {
				t.Errorf("CreateSnapshot, %s %.8q: %v", name, text, err)
			}
		}
	}
	f, req := &fake{}, &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: oneWriter, Parameters: map[string]string{"scheduler-hints": "{\"query\": [\"=\", \"a\u009b\"]}"}}
	if _, err := server(f).CreateVolume(t.Context(), req); volume.KindOf(err) != volume.InvalidArgument || len(f.calls) != 0 {
		t.Errorf("a query: calls %v, %v", f.calls, err)
	}
}

// Another cluster's lists show the volume, and end where it is larger than an object may be.
func TestMetadataOfARequestHasABound(t *testing.T) {
	many := map[string]string{}
	for i := range 22 {
		many[fmt.Sprintf("metadata.%d", i)] = strings.Repeat("本", 255)
	}
	f := &fake{}
	_, err := server(f).CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: oneWriter, Parameters: many})
	if volume.KindOf(err) != volume.InvalidArgument || len(f.calls) != 0 {
		t.Errorf("CreateVolume: calls %v, %v", f.calls, err)
	}
	_, err = server(nil, func(o *Options) { o.Clouds[""] = Cloud{Snapshots: &fakeSnapshots{}} }).CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "a", SourceVolumeId: first, Parameters: many})
	if volume.KindOf(err) != volume.InvalidArgument {
		t.Errorf("CreateSnapshot: %v", err)
	}
}

// Cinder removes blanks around a name. The object would have the name of another cluster's, and the driver would not find it again.
func TestANameThatCinderWouldChangeIsRefused(t *testing.T) {
	for _, name := range []string{" a", "a ", "a\u00a0", "\u3000a", "a\u2028", " "} {
		f := &fake{}
		_, err := server(f).CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: oneWriter})
		if volume.KindOf(err) != volume.InvalidArgument || len(f.calls) != 0 {
			t.Errorf("CreateVolume %q: calls %v, %v", name, f.calls, err)
		}
		_, err = server(nil, func(o *Options) { o.Clouds[""] = Cloud{Snapshots: &fakeSnapshots{}} }).CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: first})
		if volume.KindOf(err) != volume.InvalidArgument {
			t.Errorf("CreateSnapshot %q: %v", name, err)
		}
	}
}

// Who recovers a lost cluster has nothing but the metadata. A class cannot change what it says about the disk.
func TestTheMetadataSaysHowTheVolumeIsUsed(t *testing.T) {
	const mode, fs = "cinder.csi.openstack.org/volume-mode", "cinder.csi.openstack.org/fs-type"
	mounted := func(fsType string) *csi.VolumeCapability {
		c := capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, false)
		c.GetMount().FsType = fsType
		return c
	}
	block := capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, true)
	for name, test := range map[string]struct {
		capabilities []*csi.VolumeCapability
		want         map[string]string
	}{
		"a file system":                  {[]*csi.VolumeCapability{mounted("xfs")}, map[string]string{mode: "Filesystem", fs: "xfs"}},
		"a file system without a name":   {[]*csi.VolumeCapability{mounted("")}, map[string]string{mode: "Filesystem"}},
		"a disk":                         {[]*csi.VolumeCapability{block}, map[string]string{mode: "Block"}},
		"the same twice":                 {[]*csi.VolumeCapability{mounted("xfs"), mounted("xfs")}, map[string]string{mode: "Filesystem", fs: "xfs"}},
		"capabilities that differ":       {[]*csi.VolumeCapability{mounted("xfs"), block}, map[string]string{}},
		"file systems that differ, back": {[]*csi.VolumeCapability{mounted("xfs"), mounted("ext4"), mounted("xfs")}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			if _, err := server(f).CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: test.capabilities}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, f.spec.Metadata); diff != "" {
				t.Error("-want +got\n", diff)
			}
		})
	}
}

func TestAFileSystemWithControlCharactersIsRefused(t *testing.T) {
	for _, fsType := range []string{"ext4\x1b[2J", "ext4\n", strings.Repeat("x", 256)} {
		f, c := &fake{}, capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, false)
		c.GetMount().FsType = fsType
		_, err := server(f).CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: []*csi.VolumeCapability{c}})
		if !volume.Is(err, volume.InvalidArgument) || f.spec.Name != "" {
			t.Errorf("%.10q: %v", fsType, err)
		}
	}
}

// Anybody who writes a claim chooses its annotations.
func TestAHintThatALenientDriverDropsIsCutInTheLog(t *testing.T) {
	var log strings.Builder
	s := server(&fake{}, func(o *Options) { o.Claims, o.Log = noClaims{}, slog.New(slog.NewTextHandler(&log, nil)) })
	s.dropHint("shop", "data")(t.Context(), "\x1b[2J"+strings.Repeat("x", 1<<18))
	if text := log.String(); !strings.Contains(text, "claim=shop/data") || len(text) > 1000 || strings.Contains(text, "\x1b") {
		t.Errorf("want a short line, got %d bytes: %.300q", len(text), text)
	}
}

type noClaims struct{}

func (noClaims) Annotations(context.Context, string, string) (map[string]string, error) {
	return nil, nil
}
