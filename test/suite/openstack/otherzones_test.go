//go:build openstack

package openstack

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// The cloud has other volume zones than compute zones, as many clouds with one storage system have: CINDER_AZS=nova. With CINDER_AZ_FALLBACK=true,
// Cinder makes a volume in its own zone if a request names a zone that it does not have. Otherwise it refuses.
func TestVolumeZonesThatAreNoComputeZones(t *testing.T) {
	s := settingsOf(t, bed(t))
	if s.VolumeZones != "nova" {
		t.Skip("the compute zones of the cloud are its volume zones")
	}
	x := newTenant(t, bed(t), zonesOfBed...)
	one, two := x.servers[0], x.servers[1]
	conf := func(t *testing.T, text string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "more.conf")
		testfile.Write(t, path, text, 0o600)
		return "--cloud-config=" + path
	}
	empty := func(t *testing.T) {
		t.Helper()
		if held := x.holds(t); len(held) > 0 {
			t.Errorf("the project holds %v, want nothing", held)
		}
	}

	t.Run("with a map every node has the volume", func(t *testing.T) {
		d := x.start(t, one, conf(t, "[Zone \"az1\"]\nvolume-zone = nova\n[Zone \"az2\"]\nvolume-zone = nova\n"))
		v := testenv.Value(placed(t, d, nil, nil, "az1"))(t)
		if got := labelsOf(v); !slices.Contains(got, "az1") || !slices.Contains(got, "az2") {
			t.Errorf("want the volume in both compute zones, got %v", got)
		}
		m := mount(t, d, v, "")
		data := []byte("written in az1")
		testenv.Must(t, writeAt(m.file(), data))
		m.down(t, t.Context())
		testenv.Must(t, publish(t, d, v.GetVolumeId(), two.id))
		x.wantOn(t, two, v.GetVolumeId(), data)
		testenv.Check(t, unpublish(t, d, v.GetVolumeId(), two.id))
	})
	t.Run("without a map no zone serves the node", func(t *testing.T) {
		d := x.start(t, one)
		if v, err := placed(t, d, nil, nil, "az1"); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("want ResourceExhausted, got %v %v", v, err)
		}
		empty(t)
	})
	t.Run("a zone of the class that Cinder does not have", func(t *testing.T) {
		d := x.start(t, one)
		v, err := placed(t, d, nil, map[string]string{"availability": "az1"}, "az1")
		if !s.ZoneFallback {
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("want InvalidArgument, got %v %v", v, err)
			}
			empty(t)
			return
		}
		if err != nil || !slices.Equal(labelsOf(v), []string{"nova"}) {
			t.Errorf("want the volume in zone nova, got %v %v", v, err)
		}
		if log, err := os.ReadFile(d.log); err != nil || !strings.Contains(string(log), "availability=az1 zone=nova") {
			t.Errorf("want a warning with both zones, got %v %s", err, log)
		}
	})
	t.Run("ignore-volume-az", func(t *testing.T) {
		if !s.ZoneFallback {
			t.Skip("Cinder refuses a zone that it does not have")
		}
		d := x.start(t, one, conf(t, "[BlockStorage]\nignore-volume-az = true\n"))
		v := testenv.Value(placed(t, d, nil, nil, "az1"))(t)
		m := mount(t, d, v, "ext4")
		m.down(t, t.Context())
	})
	t.Run("the generator", func(t *testing.T) {
		for config, want := range map[string]bool{"{}": false, "spec: {topology: {zoneMap: {az1: nova, az2: nova}}}": true} {
			file := filepath.Join(t.TempDir(), "distribution.yaml")
			testfile.Write(t, file, config+"\n", 0o600)
			out, messages, code := run(t, cloudsFile(bed(t)), program(t, "cinder-csi-generator"), "plan",
				"--target", "vanilla", "--os-cloud", users[0], "--config", file, "-o", "json")
			if code != 0 {
				t.Fatalf("plan: exit %d: %s", code, messages)
			}
			var plan struct {
				Decisions []struct {
					ID, Reason string
					Value      any
				}
			}
			testenv.Must(t, json.Unmarshal([]byte(out), &plan))
			found := false
			for _, d := range plan.Decisions {
				if d.ID != "topology.enabled" {
					continue
				}
				found = true
				t.Logf("%s: topology.enabled is %v: %s", config, d.Value, d.Reason)
				if d.Value != want {
					t.Errorf("%s: want topology.enabled %t, got %v", config, want, d.Value)
				}
			}
			if !found {
				t.Errorf("%s: the plan has no decision topology.enabled", config)
			}
		}
	})
}

// labelsOf are the zones of the topology of a volume.
func labelsOf(v *csi.Volume) (labels []string) {
	for _, topology := range v.GetAccessibleTopology() {
		labels = append(labels, topology.GetSegments()[contract.TopologyKey])
	}
	return labels
}
