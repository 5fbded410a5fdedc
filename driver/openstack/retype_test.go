package openstack

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	attachment "github.com/cinder-csi/cinder-csi/driver/attach"
	"github.com/cinder-csi/cinder-csi/driver/openstack/status"
	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

var typeOperations = []operation{
	{"retype", true, answer{status: 202}, func(ctx context.Context, c *Cloud) error { return c.Retype(ctx, volumeID, "t", false) }},
	{"types", false, answer{status: 200, body: `{"volume_types": []}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.Types(ctx)
		return err
	}},
	{"default type", false, answer{status: 200, body: `{"volume_type": {}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.DefaultType(ctx)
		return err
	}},
	{"quotas", false, answer{status: 200, body: `{"quota_set": {}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.Quotas(ctx)
		return err
	}},
}

func TestARetypeMovesNothingUnlessItMay(t *testing.T) {
	t.Parallel()
	for migrate, policy := range map[bool]string{false: "never", true: "on-demand"} {
		c, f := connect(t, answer{status: 202})
		if err := c.Retype(t.Context(), volumeID, "t1", migrate); err != nil {
			t.Error(err)
		}
		want := []seen{{"POST", "/v3/p/volumes/" + volumeID + "/action", "", "", `{"os-retype":{"new_type":"t1","migration_policy":"` + policy + `"}}`}}
		if diff := cmp.Diff(want, f.seen); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// Each RPC keeps all types, so what Cinder cannot have is left out.
func TestTypesAreReadPageByPage(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	c, f := connect(t, answer{status: 200, body: `{"volume_types": [{"id": "1", "name": "a", "extra_specs": {"multiattach": "<is> True", "one": "that the driver does not read"}}], "volume_type_links": [{"rel": "next"}]}`},
		answer{status: 200, body: `{"volume_types": [{"id": "2", "name": "b"}, {"id": "3", "name": "c", "extra_specs": {"multiattach": "` + long + `"}}, {"id": "4", "name": "` + long + `"}]}`})
	got, err := c.Types(t.Context())
	want := []volume.Type{{ID: "1", Name: "a", Specs: map[string]string{"multiattach": "<is> True"}}, {ID: "2", Name: "b"}, {ID: "3", Name: "c", Specs: map[string]string{}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || f.seen[1].Query != "limit=1000&marker=1" {
		t.Errorf("%v, asked %v (-want +got):\n%s", err, f.seen, diff)
	}
}

func TestQuotasAreRead(t *testing.T) {
	t.Parallel()
	c, f := connect(t, answer{status: 200, body: `{"quota_set": {"id": "p", "gigabytes": {"limit": 1000, "in_use": 3, "reserved": 2}, "gigabytes_fast": {"limit": -1, "in_use": 0, "reserved": 0}, "odd": 7}}`})
	got, err := c.Quotas(t.Context())
	if diff := cmp.Diff(map[string]volume.Quota{"gigabytes": {Limit: 1000, InUse: 3, Reserved: 2}, "gigabytes_fast": {Limit: -1}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]seen{{"GET", "/v3/p/os-quota-sets/p", "usage=true", "", ""}}, f.seen); diff != "" {
		t.Error(diff)
	}
}

func TestMoreQuotasThanThereCanBeAreRefused(t *testing.T) {
	t.Parallel()
	text := `{"quota_set": {"id": "p"`
	for i := range 4000 {
		text += fmt.Sprintf(`, "volumes_%d": {"limit": 1}`, i)
	}
	c, _ := connect(t, answer{status: 200, body: text + "}}"})
	if _, err := c.Quotas(t.Context()); !volume.Is(err, volume.Unavailable) {
		t.Errorf("error %v", err)
	}
}

func TestAVolumeIsRetypedOnASimulatedCloud(t *testing.T) {
	t.Parallel()
	config := openstacksim.Default()
	simulated(t, config, func(t *testing.T, a *Cloud, hub *status.Hub, sim *openstacksim.Sim) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		volumes := provision.New(a, hub, provision.Options{})
		attachments := attachment.New(a, hub, attachment.Options{})
		v, err := volumes.Create(ctx, provision.CreateSpec{Name: "pvc"})
		if err != nil {
			t.Fatal(err)
		}
		modify := func(change provision.Change) error { return volumes.Modify(ctx, v.ID, change) }
		typeIs := func(want string) {
			t.Helper()
			if got, err := volumes.Get(ctx, v.ID); err != nil || got.Type != want {
				t.Errorf("want type %s, got %v, %v", want, got, err)
			}
		}
		if err := modify(provision.Change{Type: "fast"}); !volume.Is(err, volume.InvalidArgument) || !strings.Contains(err.Error(), "policy: on-demand") || volume.MayHaveWritten(err) {
			t.Errorf("a move that is not allowed: %v", err)
		}
		typeIs("standard")
		if err := modify(provision.Change{Type: "multiattach"}); err != nil { // in the same backend
			t.Error(err)
		}
		typeIs("multiattach")
		if _, err = attachments.Attach(ctx, v.ID, volume.ServerID(config.Servers[0].ID)); err != nil {
			t.Fatal(err)
		}
		if err := modify(provision.Change{Type: "standard"}); !volume.Is(err, volume.Conflict) || !strings.Contains(err.Error(), "only allowed on available") {
			t.Errorf("multiattach taken from a volume in use: %v", err)
		}
		if err := attachments.Detach(ctx, v.ID, ""); err != nil {
			t.Fatal(err)
		}
		sim.SetQuota("demo", "gigabytes_fast", 0)
		if err := modify(provision.Change{Type: "fast", Migrate: true}); !volume.Is(err, volume.Exhausted) {
			t.Errorf("beyond the type's quota: %v", err)
		}
		sim.SetQuota("demo", "gigabytes_fast", 10)
		sim.ResetRequests()
		if err := modify(provision.Change{Type: "fast", Migrate: true, Metadata: map[string]string{"team": "a"}}); err != nil {
			t.Error(err)
		}
		typeIs("fast")
		writes := sim.RequestCount()
		if err := modify(provision.Change{Type: "fast", Metadata: map[string]string{"team": "a"}}); err != nil || sim.RequestCount()-writes != 1 {
			t.Errorf("a change that is done: %v after %d requests", err, sim.RequestCount()-writes)
		}
	})
}

func TestCapacityOnASimulatedCloud(t *testing.T) {
	t.Parallel()
	simulated(t, openstacksim.Default(), func(t *testing.T, a *Cloud, hub *status.Hub, sim *openstacksim.Sim) {
		volumes := provision.New(a, hub, provision.Options{})
		if _, err := volumes.Create(t.Context(), provision.CreateSpec{Name: "pvc", Type: "fast", Size: volume.Range{Required: volume.GiB(7)}}); err != nil {
			t.Fatal(err)
		}
		sim.SetQuota("demo", "per_volume_gigabytes", 500)
		for _, test := range []struct {
			request provision.CreateSpec
			want    provision.Capacity
		}{
			{provision.CreateSpec{}, provision.Capacity{Available: volume.GiB(20000 - 7), Largest: volume.GiB(500)}},
			{provision.CreateSpec{Type: "fast", Zones: []string{"az2"}}, provision.Capacity{Available: volume.GiB(1000 - 7), Largest: volume.GiB(500)}},
			{provision.CreateSpec{Zones: []string{"moon"}}, provision.Capacity{}},
		} {
			got, err := volumes.Capacity(t.Context(), test.request)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%+v: %v (-want +got):\n%s", test.request, err, diff)
			}
		}
	})
}
