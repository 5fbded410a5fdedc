package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAServiceThatCannotBeUsedHasOneReason(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, reasons := NewChecks(registry), []string{"no_connection", "tls"}
	m.Unavailable("", "identity", "", reasons)
	wantOn(t, registry, `cinder_csi_openstack_unavailable{cloud="",reason="no_connection",service="identity"} 0`,
		`cinder_csi_openstack_unavailable{cloud="",reason="tls",service="identity"} 0`)
	m.Unavailable("", "identity", "no_connection", reasons)
	m.Unavailable("", "identity", "tls", reasons)
	wantOn(t, registry, `cinder_csi_openstack_unavailable{cloud="",reason="no_connection",service="identity"} 0`,
		`cinder_csi_openstack_unavailable{cloud="",reason="tls",service="identity"} 1`)
}

func TestACredentialThatNeverExpiresHasNoSeries(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := NewChecks(registry)
	m.Expires("east", time.Unix(1_800_000_000, 0))
	wantOn(t, registry, `cinder_csi_openstack_credential_expires_timestamp_seconds{cloud="east"} 1.8e+09`)
	m.Expires("east", time.Time{})
	if got := page(registry); strings.Contains(got, "east") {
		t.Errorf("got\n%s", got)
	}
}
