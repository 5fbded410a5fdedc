package main

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
)

// simulation has everything that the checks need except devices.
func simulation(t *testing.T) (*openstacksim.Sim, *inprocess.Driver, settings) {
	t.Helper()
	sim := openstacksim.New(openstacksim.Default())
	sim.SetAllLatency(2 * time.Second)
	sim.SetLatency(openstacksim.Answer, 20*time.Millisecond)
	servers := openstacksim.Default().Servers
	return sim, inprocess.Start(t, sim, "--with-capacity", "--strict"), settings{
		nodes: []string{servers[0].ID, servers[1].ID}, zones: []string{"az1", "az2"}, parameters: map[string]string{"type": "standard"},
		shared: map[string]string{"type": "multiattach"}, backup: map[string]string{"type": "backup"},
		mutable: map[string]string{"type": "multiattach", "metadata.purpose": "conformance"},
	}
}

func TestTheDriverConforms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d, set := simulation(t)
		results, err := conform(t.Context(), d, set, "")
		if err != nil {
			t.Fatal(err)
		}
		var skipped []string
		for _, r := range results {
			if r.err != nil {
				t.Errorf("%s: %v", r.name, r.err)
			}
			if r.skip != "" {
				skipped = append(skipped, r.name)
			}
		}
		if want := []string{"a volume is staged, measured, expanded and unstaged"}; !slices.Equal(skipped, want) { // there are no devices
			t.Errorf("want %v skipped, got %v", want, skipped)
		}
		admin := inprocess.NewAdmin(t, sim)
		for _, kind := range []string{"volumes", "snapshots", "backups"} {
			if left := admin.IDs(kind); len(left) > 0 {
				t.Errorf("%s are left: %v", kind, left)
			}
		}
	})
}

func TestEveryAdvertisedCapabilityHasACase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d, _ := simulation(t)
		advertised, err := capabilities(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		var covered []string
		for _, c := range checks {
			covered = append(covered, c.covers...)
		}
		for _, capability := range advertised {
			if !slices.Contains(covered, capability) {
				t.Errorf("no case covers %s", capability)
			}
		}
		for _, capability := range covered {
			if !slices.Contains(advertised, capability) {
				t.Errorf("a case covers %s, which the driver does not advertise", capability)
			}
		}
	})
}

// The checks must find the faults of a cloud, or they could not fail.
func TestADriverThatDoesNotConformFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d, set := simulation(t)
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateSnapshot, Times: 1})
		sim.SetFault(openstacksim.Fault{Method: "GET", Path: "/volume/v3/*/volumes/detail", Contains: "limit=2", Status: 403})
		results, err := conform(t.Context(), d, set, "s")
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if report(&text, results) || !strings.Contains(text.String(), "FAIL") || !strings.Contains(text.String(), "pages survive deletions") {
			t.Errorf("want failures, got\n%s", text.String())
		}
	})
}
