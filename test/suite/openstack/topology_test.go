//go:build openstack

package openstack

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// placed requests a volume for nodes with those labels, preferred first. The end of the test deletes it.
func placed(t *testing.T, d *driver, source *csi.VolumeContentSource, parameters map[string]string, labels ...string) (*csi.Volume, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient(time.Minute))
	defer cancel()
	r := csitest.Claim("bed-"+rand.Text(), csitest.As(csitest.Single("ext4")), csitest.Wanted(labels...))
	r.Parameters, r.VolumeContentSource = parameters, source
	made, err := d.controller.CreateVolume(ctx, r)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patient(time.Minute))
		defer cancel()
		if _, err := d.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: made.GetVolume().GetVolumeId()}); err != nil {
			t.Errorf("volume %s stays: %v", made.GetVolume().GetVolumeId(), err)
		}
	})
	return made.GetVolume(), nil
}

// The zones, limits and hints of a real Cinder, with a compute zone that only cloud.conf knows.
func TestZonesAndHintsOnTheBed(t *testing.T) {
	dir := bed(t)
	zones := filepath.Join(t.TempDir(), "zones.conf")
	testfile.Write(t, zones, "[Zone \"rack 1\"]\nvolume-zone = az2\n", 0o600)
	d := startDriver(t, dir, "--cloud-config="+zones)
	inZones := func(labels ...string) func(*csi.Volume, error) *csi.Volume {
		return func(v *csi.Volume, err error) *csi.Volume {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			if got := labelsOf(v); !slices.Equal(got, labels) {
				t.Errorf("want zones %q, got %q", labels, got)
			}
			return v
		}
	}
	answers := func(code codes.Code) func(*csi.Volume, error) {
		return func(_ *csi.Volume, err error) {
			t.Helper()
			if status.Code(err) != code {
				t.Errorf("want %s, got %v", code, err)
			}
		}
	}

	first := inZones("az1")(placed(t, d, nil, nil, "az1"))
	inZones("az2", "rack-1")(placed(t, d, nil, nil, "moon", "az2"))
	inZones("az2", "rack-1")(placed(t, d, nil, nil, "rack-1"))
	answers(codes.ResourceExhausted)(placed(t, d, nil, nil, "moon"))
	answers(codes.InvalidArgument)(placed(t, d, nil, map[string]string{"availability": "moon"}, "az1"))

	clone := &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: first.GetVolumeId()}}}
	answers(codes.ResourceExhausted)(placed(t, d, clone, nil, "az2"))
	inZones("az1")(placed(t, d, clone, nil, "az2", "az1"))

	hints := map[string]string{"scheduler-hints": `{"different_host": "` + first.GetVolumeId() + `", "query": ["=", "$backend_id", "a"]}`, "metadata.team": "storage"}
	inZones("az1")(placed(t, d, nil, hints, "az1"))
	answers(codes.InvalidArgument)(placed(t, d, nil, map[string]string{"scheduler-hints": `{"same_host": "bed-not-there"}`}, "az1"))
}
