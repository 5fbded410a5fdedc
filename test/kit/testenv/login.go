package testenv

import (
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// Login logs in to a simulated cloud with its own cloud.conf, over memory.
func Login(t testing.TB, sim *openstacksim.Sim) *cloud.Cloud {
	t.Helper()
	conf, err := cloudconf.Parse(sim.CloudConf("http://cloud.test"))
	if err != nil {
		t.Fatal(err)
	}
	settings, err := cloud.FromConf(conf, "", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	c, err := cloud.Connect(t.Context(), settings, cloud.Options{Transport: memnet.Transport(sim.Handler())})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
