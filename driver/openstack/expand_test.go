package openstack

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	attachment "github.com/cinder-csi/cinder-csi/driver/attach"
	"github.com/cinder-csi/cinder-csi/driver/openstack/status"
	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

var expandOperations = []operation{
	{"extend", true, answer{status: 202}, func(ctx context.Context, c *Cloud) error { return c.Extend(ctx, volumeID, volume.GiB(2), false) }},
	{"extend attached", true, answer{status: 202}, func(ctx context.Context, c *Cloud) error { return c.Extend(ctx, volumeID, volume.GiB(2), true) }},
}

func TestOnlyAttachedVolumesAreExtendedAtAMicroversion(t *testing.T) {
	t.Parallel()
	for attached, version := range map[bool]string{false: "", true: "3.42"} {
		c, f := connect(t, answer{status: 202})
		if err := c.Extend(t.Context(), volumeID, volume.GiB(1)+1, attached); err != nil {
			t.Error(err)
		}
		want := []seen{{"POST", "/v3/p/volumes/" + volumeID + "/action", "", version, `{"os-extend":{"new_size":2}}`}}
		if diff := cmp.Diff(want, f.seen); diff != "" {
			t.Errorf("attached %v (-want +got):\n%s", attached, diff)
		}
	}
}

func TestAVolumeGrowsOnASimulatedCloud(t *testing.T) {
	t.Parallel()
	config := openstacksim.Default()
	simulated(t, config, func(t *testing.T, a *Cloud, hub *status.Hub, sim *openstacksim.Sim) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		sim.SetQuota("demo", "gigabytes", 4)
		volumes := provision.New(a, hub, provision.Options{})
		attachments := attachment.New(a, hub, attachment.Options{})
		v, err := volumes.Create(ctx, provision.CreateSpec{Name: "pvc"})
		if err != nil {
			t.Fatal(err)
		}
		if v, err = volumes.Expand(ctx, v.ID, volume.Range{Required: volume.GiB(2)}); err != nil || v.Size != volume.GiB(2) || v.Status != volume.Available {
			t.Errorf("got %v, %v", v, err)
		}
		if _, err = attachments.Attach(ctx, v.ID, volume.ServerID(config.Servers[0].ID)); err != nil {
			t.Fatal(err)
		}
		if v, err = volumes.Expand(ctx, v.ID, volume.Range{Required: volume.GiB(3)}); err != nil || v.Size != volume.GiB(3) || v.Status != volume.InUse {
			t.Errorf("got %v, %v", v, err)
		}
		if _, err := volumes.Expand(ctx, v.ID, volume.Range{Required: volume.GiB(5)}); !volume.Is(err, volume.Exhausted) || volume.MayHaveWritten(err) {
			t.Errorf("beyond the quota: %v", err)
		}
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.ExtendVolume})
		if _, err := volumes.Expand(ctx, v.ID, volume.Range{Required: volume.GiB(4)}); !volume.Is(err, volume.Failed) {
			t.Errorf("a backend that fails: %v", err)
		}
	})
}
