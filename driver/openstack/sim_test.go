package openstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/openstack/status"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// simulated runs a story on a simulated cloud in virtual time, logged in by its cloud.conf.
func simulated(t *testing.T, config openstacksim.Config, story func(t *testing.T, a *Cloud, hub *status.Hub, sim *openstacksim.Sim)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim := openstacksim.New(config)
		a := New(testenv.Login(t, sim), slog.New(slog.DiscardHandler))
		hub := status.NewHub(a)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = hub.Run(ctx) }()
		story(t, a, hub, sim)
	})
}

func is(want volume.Status) func(volume.Volume, bool) (bool, error) {
	return func(v volume.Volume, ok bool) (bool, error) { return ok && v.Status == want, nil }
}

func gone(_ volume.Volume, ok bool) (bool, error) { return !ok, nil }

func TestAVolumesLifeOnASimulatedCloud(t *testing.T) {
	t.Parallel()
	for _, unversioned := range []bool{false, true} {
		config := openstacksim.Default()
		config.UnversionedEndpoints = unversioned
		config.TokenLifetime = time.Minute // expires in the middle of the story
		one, two := volume.ServerID(config.Servers[0].ID), volume.ServerID(config.Servers[1].ID)
		simulated(t, config, func(t *testing.T, a *Cloud, hub *status.Hub, _ *openstacksim.Sim) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			v, err := a.CreateVolume(ctx, volume.CreateOptions{Name: "pvc", Size: volume.GiB(1), Type: "multiattach", Zone: "az1"})
			must(err)
			v, err = hub.Await(ctx, v.ID, is(volume.Available))
			must(err)
			if !v.Multiattach || v.Zone != "az1" || v.Type != "multiattach" || v.Size != volume.GiB(1) || v.CreatedAt.IsZero() {
				t.Errorf("volume %+v", v)
			}
			must(a.Attach(ctx, one, v))
			v, err = hub.Await(ctx, v.ID, is(volume.InUse))
			must(err)
			time.Sleep(2 * time.Minute)
			must(a.Attach(ctx, two, v))
			v, err = hub.Await(ctx, v.ID, func(v volume.Volume, _ bool) (bool, error) { return v.AttachedTo(one) && v.AttachedTo(two), nil })
			must(err)
			if named, err := a.VolumesNamed(ctx, "pvc"); err != nil || len(named) != 1 || named[0].ID != v.ID {
				t.Errorf("named: %v, %v", named, err)
			}
			if err := a.DeleteVolume(ctx, v.ID); !volume.Is(err, volume.Conflict) {
				t.Errorf("delete in use: %v", err)
			}
			for _, server := range []volume.ServerID{one, two} {
				must(a.Detach(ctx, server, v.ID))
				_, err = hub.Await(ctx, v.ID, func(v volume.Volume, _ bool) (bool, error) {
					return !v.AttachedTo(server) && v.Status != "detaching", nil
				})
				must(err)
			}
			if err := a.Detach(ctx, one, v.ID); !volume.Is(err, volume.NotFound) {
				t.Errorf("detach again: %v", err)
			}
			time.Sleep(2 * time.Minute)
			must(a.DeleteVolume(ctx, v.ID))
			_, err = hub.Await(ctx, v.ID, gone)
			must(err)
			if err := a.DeleteVolume(ctx, v.ID); !volume.Is(err, volume.NotFound) {
				t.Errorf("delete again, with a token that had expired meanwhile: %v", err)
			}
		})
	}
}

func TestAHundredVolumesAtOnceCostFewReads(t *testing.T) {
	t.Parallel()
	config := openstacksim.Default()
	config.Latency = map[openstacksim.Operation]time.Duration{openstacksim.CreateVolume: 10 * time.Second}
	simulated(t, config, func(t *testing.T, a *Cloud, hub *status.Hub, sim *openstacksim.Sim) {
		sim.ResetRequests()
		begin := time.Now()
		errs := make([]error, 100)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				v, err := a.CreateVolume(t.Context(), volume.CreateOptions{Name: fmt.Sprint("pvc-", i), Size: volume.GiB(1)})
				if err == nil {
					_, err = hub.Await(t.Context(), v.ID, is(volume.Available))
				}
				errs[i] = err
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 13*time.Second {
			t.Errorf("took %v for volumes that take 10 s", took)
		}
		if reads := sim.RequestCount() - 100; reads > 45 {
			t.Errorf("%d reads for 100 creates of 10 s", reads)
		}
	})
}

func TestARequestThatAccessRulesForbidIsDeniedAndNoWrongPassword(t *testing.T) {
	t.Parallel()
	config := openstacksim.Default()
	config.ApplicationCredentials[0].AccessRules = []openstacksim.AccessRule{{Service: "volumev3", Method: "GET", Path: "/v3/*/volumes/detail"}}
	simulated(t, config, func(t *testing.T, a *Cloud, _ *status.Hub, _ *openstacksim.Sim) {
		if _, _, err := a.Select(t.Context(), volume.Selection{}); err != nil {
			t.Errorf("allowed, but %v", err)
		}
		_, err := a.CreateVolume(t.Context(), volume.CreateOptions{Name: "n", Size: volume.GiB(1)})
		var failure *volume.Error
		if !errors.As(err, &failure) || failure.Kind != volume.PermissionDenied || failure.Sent {
			t.Errorf("error %v, want permission denied", err)
		}
	})
}
