package driver_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// The driver knows when its credential ends, for a metric. Who reads an event has to learn it too.
func TestAnExpiredCredentialIsCalledExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		a := sim.AddApplicationCredential(openstacksim.ApplicationCredential{
			Name: "short", User: "demo", Project: "demo", Roles: []string{"member"}, ExpiresAt: time.Now().Add(30 * time.Hour),
		})
		sim.SetTokenLifetime(time.Hour)
		d := start(t, confOf(a), memnet.Transport(sim.Handler()))
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
		time.Sleep(5 * time.Minute)
		if page, _ := d.Get(t, "/metrics"); !strings.Contains(string(page), "credential_expires_timestamp_seconds{") {
			t.Fatal("the driver does not know when the credential expires")
		}
		time.Sleep(31 * time.Hour)
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-2"))
		if err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("want an error that says that the credential has expired, and when; got %v", err)
		}
		if !strings.Contains(d.Log.String(), "expired") {
			t.Error("the log does not say it either")
		}
	})
}
