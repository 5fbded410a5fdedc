package cloudparity

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// openSelected opens the bed that the command line names.
func openSelected(t *testing.T) *Bed {
	t.Helper()
	open := openReal
	if *bedDir == "" {
		open = func(string) (*Bed, error) { return openSimulation(t) }
	}
	b := testenv.Value(open(*bedDir))(t)
	return b
}

// openSimulation starts the default simulated cloud with a short latency.
func openSimulation(t *testing.T) (*Bed, error) { return openSimulationOf(t, release{}) }

// openSimulationOf starts one whose services have the highest microversions of a release.
func openSimulationOf(t *testing.T, r release) (*Bed, error) {
	config := openstacksim.Default()
	config.VolumeMicroversion, config.ComputeMicroversion = r.volume, r.compute
	sim := openstacksim.New(config)
	sim.SetAllLatency(time.Millisecond)
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(server.Close)
	b, err := openBed(sim.CloudsYAML(server.URL), "sim-")
	if err != nil {
		return nil, err
	}
	b.sim, b.faults = sim, simulatedFaults{sim}
	return b, nil
}

// simulatedFaults are the faults of the simulated backend.
type simulatedFaults struct{ sim *openstacksim.Sim }

func (s simulatedFaults) inject(op operation, slow bool) (func() error, error) {
	simulated, ok := map[operation]openstacksim.Operation{
		createOperation: openstacksim.CreateVolume, deleteOperation: openstacksim.DeleteVolume,
		createSnapshotOperation: openstacksim.CreateSnapshot, deleteSnapshotOperation: openstacksim.DeleteSnapshot,
		extendOperation: openstacksim.ExtendVolume, attachOperation: openstacksim.Attach, detachOperation: openstacksim.Detach,
		retypeOperation: openstacksim.RetypeVolume,
	}[op]
	if !ok {
		return nil, fmt.Errorf("the simulation has no operation %s", op)
	}
	fault := openstacksim.Fault{Operation: simulated, Slow: slow}
	if slow {
		fault.Delay = time.Hour // until the case lets it go on
	}
	remove := s.sim.SetFault(fault)
	return func() error {
		remove()
		if slow {
			s.sim.FinishOperations()
		}
		return nil
	}, nil
}

// simulatorCases are about documented answers that the real bed never gives. Its policies allow a member all of these calls. It has a default
// type, and its Keystone has no rule that forbids a login.
func simulatorCases() []Case {
	var all []Case
	for _, call := range calls() {
		if call.Path == "/" || call == encryption || call == quotaSet || call == listServices { // the real bed refuses these
			continue
		}
		as := Member
		if call == createToken {
			as = Nobody
		}
		all = append(all, Case{
			Name: title(call) + " where a policy refuses it", Call: call, Status: http.StatusForbidden, As: as,
			Run: func(t *testing.T, b *Bed) Answer {
				t.Cleanup(b.simulation(t).SetFault(openstacksim.Fault{Method: call.Method, Path: b.simulatedPath(call), Status: http.StatusForbidden}))
				a := b.do(t, blank(call, as))
				key := "forbidden"
				if call.Service == "identity" {
					key = "error"
				}
				if code := fmt.Sprint(a.At(key, "code")); code != "403" {
					t.Errorf("%s: no error body of this service", a)
				}
				return a
			},
		})
	}
	return append(all, Case{Name: "no default type", Call: defaultType, Status: http.StatusNotFound, As: Member, Run: func(t *testing.T, b *Bed) Answer {
		sim := b.simulation(t)
		sim.SetDefaultVolumeType("")
		t.Cleanup(func() { sim.SetDefaultVolumeType(openstacksim.Default().DefaultVolumeType) })
		a := b.do(t, Request{Call: defaultType, As: Member})
		if code := fmt.Sprint(a.At("itemNotFound", "code")); code != "404" {
			t.Errorf("%s: no error body of Cinder", a)
		}
		return a
	}})
}

// simulation is the simulated cloud, for cases that configure it.
func (b *Bed) simulation(t *testing.T) *openstacksim.Sim {
	t.Helper()
	if b.sim == nil {
		t.Fatal("the case needs the simulation; list it in testdata/simulatoronly.txt")
	}
	return b.sim
}

// simulatedPath is the path of a call in the faults of the simulation.
func (b *Bed) simulatedPath(call cloud.Call) string {
	prefix := map[string]string{"block-storage": "/volume/v3/*", "compute": "/compute/v2.1", "identity": "/identity/v3"}[call.Service]
	return prefix + variable.ReplaceAllString(call.Path, "*")
}
