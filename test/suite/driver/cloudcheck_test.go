package driver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// unavailable lists the services that the metric reports, each as "service reason". It reads one page: a scrape also counts the disks of this machine.
func unavailable(t *testing.T, d *instance) string {
	t.Helper()
	page, _ := d.Get(t, "/metrics")
	var found []string
	for _, service := range []string{"identity", "block-storage", "compute"} {
		for _, reason := range cloud.Failures {
			line := fmt.Sprintf(`cinder_csi_openstack_unavailable{cloud="",reason=%q,service=%q} `, reason, service)
			_, value, is := strings.Cut("\n"+string(page), "\n"+line)
			if !is {
				t.Fatalf("there is no %s in\n%s", line, page)
			}
			if !strings.HasPrefix(value, "0\n") {
				found = append(found, service+" "+reason)
			}
		}
	}
	return strings.Join(found, ", ")
}

// The alert about a cloud that does not answer reads this metric. No sidecar sends an RPC in these tests.
func TestTheMetricsSayWithinTwoMinutesThatTheCloudDoesNotAnswerAndWhy(t *testing.T) {
	fault := func(path string, status int) func(*openstacksim.Sim, *switched) func() {
		return func(sim *openstacksim.Sim, _ *switched) func() {
			return sim.SetFault(openstacksim.Fault{Path: path, Status: status})
		}
	}
	for name, c := range map[string]struct {
		begin func(*openstacksim.Sim, *switched) (repair func())
		want  string
	}{
		"no connection": {func(_ *openstacksim.Sim, wire *switched) func() {
			wire.set(true)
			return func() { wire.set(false) }
		}, "identity no_connection, block-storage no_connection, compute no_connection"},
		"Keystone is down": {fault("/identity/**", http.StatusServiceUnavailable), "identity server_error"},
		"Cinder is down":   {fault("/volume/**", http.StatusServiceUnavailable), "block-storage server_error"},
		"Nova is down":     {fault("/compute/**", http.StatusBadGateway), "compute server_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				wire := &switched{next: memnet.Transport(sim.Handler())}
				d := start(t, sim.CloudConf(inprocess.URL), wire)
				time.Sleep(5 * time.Minute) // virtual
				if got := unavailable(t, d); got != "" {
					t.Errorf("nothing is wrong: %s", got)
				}
				repair := c.begin(sim, wire)
				time.Sleep(2 * time.Minute)
				if got := unavailable(t, d); got != c.want {
					t.Errorf("want %q, got %q", c.want, got)
				}
				repair()
				time.Sleep(2 * time.Minute)
				if got := unavailable(t, d); got != "" {
					t.Errorf("after the repair: %s", got)
				}
			})
		})
	}
}

func TestAnIdleDriverSendsThreeChecksAMinute(t *testing.T) {
	for name, status := range map[string]int{"Keystone shows the credential": 0, "Keystone does not show it": http.StatusForbidden} {
		t.Run(name, func(t *testing.T) { checksOfAnHour(t, status) })
	}
}

// checksOfAnHour counts the requests of an idle hour in which Keystone answers questions about the credential with that status; 0 for its own.
func checksOfAnHour(t *testing.T, status int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		if status != 0 {
			sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/identity/v3/users/*/application_credentials/*", Status: status})
		}
		_ = startWith(t, sim)
		time.Sleep(15 * time.Second)
		sim.ResetRequests()
		time.Sleep(time.Hour)
		checks := map[string]int{}
		for _, r := range sim.Requests() {
			checks[r.Path]++
		}
		for _, path := range []string{"/identity/v3", "/volume/v3/", "/compute/v2.1/"} {
			if checks[path] != 60 {
				t.Errorf("want 60 checks of %s in an hour, got %d; all requests: %v", path, checks[path], checks)
			}
		}
		if n := sent(sim, http.MethodGet, "/application_credentials/"); n != 6 {
			t.Errorf("want the credential asked for six times in an hour, got %d", n)
		}
	})
}

// A credential in the file replaces the one that ends. The metric of the old one must go with it, also where Keystone does not say when the new one ends.
func TestTheExpiryOfACredentialGoesWithTheCredential(t *testing.T) {
	for name, shown := range map[string]bool{"Keystone shows the new one": true, "Keystone does not show the new one": false} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			end := time.Now().Add(72 * time.Hour).Truncate(time.Second)
			first := sim.AddApplicationCredential(openstacksim.ApplicationCredential{Name: "short", User: "demo", Project: "demo", Roles: []string{"member"}, ExpiresAt: end})
			second := sim.AddApplicationCredential(openstacksim.ApplicationCredential{Name: "long", User: "demo", Project: "demo", Roles: []string{"member"}})
			d := start(t, confOf(first), memnet.Transport(sim.Handler()))
			time.Sleep(time.Minute)
			if page, _ := d.Get(t, "/metrics"); !strings.Contains(string(page), "credential_expires_timestamp_seconds{") {
				t.Fatal("the driver does not know when the credential expires")
			}
			if !shown {
				sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/identity/v3/users/*/application_credentials/*", Status: http.StatusForbidden})
			}
			testfile.Write(t, d.CloudConf, confOf(second), 0o600)
			time.Sleep(3 * time.Minute)
			if page, _ := d.Get(t, "/metrics"); strings.Contains(string(page), "credential_expires_timestamp_seconds{") {
				t.Error("the metric is that of a credential that is not in use any more")
			}
		})
	}
}

// The driver is idle, so no RPC shows that the credential was revoked.
func TestTheMetricsSayWhenTheCredentialExpiresAndWhenItIsRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		end := time.Now().Add(72 * time.Hour).Truncate(time.Second)
		a := sim.AddApplicationCredential(openstacksim.ApplicationCredential{Name: "short", User: "demo", Project: "demo", Roles: []string{"member"}, ExpiresAt: end})
		conf := fmt.Sprintf("[Global]\nauth-url = %s/identity/v3\napplication-credential-id = %s\napplication-credential-secret = %s\n", inprocess.URL, a.ID, a.Secret)
		d := start(t, []byte(conf), memnet.Transport(sim.Handler()))
		time.Sleep(time.Minute)
		if got := d.Metric(t, `cinder_csi_openstack_credential_expires_timestamp_seconds{cloud=""}`); int64(got) != end.Unix() {
			t.Errorf("want %d, got %v", end.Unix(), got)
		}
		const refused = `cinder_csi_openstack_credentials_refused{cloud=""}`
		if d.Metric(t, refused) != 0 {
			t.Error("the credential works")
		}
		sim.DeleteApplicationCredential(a.ID)
		time.Sleep(15 * time.Minute)
		if d.Metric(t, refused) != 1 {
			t.Error("an idle driver does not notice that its credential was revoked")
		}
	})
}
