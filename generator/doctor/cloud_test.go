package doctor

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/generator/inspect"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

const address = "http://openstack.simulated"

// bed is a simulated cloud, the way to it, and what the bundle wants of it.
type bed struct {
	t       *testing.T
	sim     *openstacksim.Sim
	config  openstacksim.Config
	user    string
	through http.RoundTripper
	now     time.Time
	address string
	caFile  string
	want    Want
}

func newBed(t *testing.T) *bed {
	config := openstacksim.Default()
	sim := openstacksim.New(config)
	b := &bed{t: t, sim: sim, config: config, user: "sim-demo", now: time.Now(), address: address}
	b.want = Want{Zones: true, Snapshots: true}
	b.through = roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := memnet.Transport(sim.Handler()).RoundTrip(r)
		if err == nil {
			resp.Header.Set("Date", b.now.UTC().Format(http.TimeFormat))
		}
		return resp, err
	})
	return b
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer replaces the answer to GETs of a path.
func (b *bed) answer(end string, status int, body string) {
	b.sim.SetFault(openstacksim.Fault{Method: "GET", Path: end, Status: status, Body: body})
}

// credential makes the bed log in with an application credential.
func (b *bed) credential(a openstacksim.ApplicationCredential) {
	a.Name, a.User, a.Project, a.Roles = "doctor", "demo", "demo", []string{"member", "reader"}
	b.sim.AddApplicationCredential(a)
	b.user = "sim-appcred-doctor"
}

func (b *bed) report() *Report {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(file, b.sim.CloudsYAML(b.address), 0o600); err != nil {
		b.t.Fatal(err)
	}
	settings, err := cloud.FromSource(cloud.Source{CloudName: b.user, CloudsFile: file, CACert: b.caFile, Env: func(string) string { return "" }})
	if err != nil {
		b.t.Fatal(err)
	}
	traffic := &Traffic{Now: func() time.Time { return b.now }}
	r := NewReport("test")
	c, err := cloud.Connect(b.t.Context(), settings, cloud.Options{Transport: b.through, Wrap: traffic.Watch})
	if err != nil {
		r.LoginFailed(err)
		return r
	}
	inventory, err := inspect.Inspect(context.WithoutCancel(b.t.Context()), c, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.want.Weaknesses = settings.Weaknesses()
	r.CheckCloud(b.t.Context(), c, traffic, inventory, b.want)
	r.Sort()
	return r
}

// has reports whether a finding has the ID, the severity, and the text in what it saw.
func has(r *Report, id string, severity Severity, text string) bool {
	for _, f := range r.Findings {
		if f.ID == id && f.Severity == severity && strings.Contains(f.What, text) && (severity == OK) == (f.Why == "" && f.Do == "") {
			return true
		}
	}
	return false
}

func TestACloudWithoutFaultsHasNoWarning(t *testing.T) {
	b := newBed(t)
	b.secure(365 * 24 * time.Hour)
	b.want.CABundle = true
	b.credential(openstacksim.ApplicationCredential{})
	r := b.report()
	if r.Count(Error)+r.Count(Warning) != 0 || !has(r, "cloud.tls", OK, "") || !has(r, "cloud.access-rules", OK, "") || !has(r, "cloud.credential", OK, "") {
		t.Errorf("want only ok, got %+v", r.Findings)
	}
	b.user = "sim-demo-admin" // sees whether there is a backup service
	r = b.report()
	for _, id := range idsOf("cloud.") {
		if id != "cloud.tls" && id != "cloud.access-rules" && id != "cloud.credential" && !has(r, id, OK, "") {
			t.Errorf("want %s ok, got %+v", id, r.Findings)
		}
	}
}

// faults has at least one row for each check of a cloud; TestEveryCheckOfTheCloudHasARow holds that.
var faults = []struct {
	name     string
	fault    func(*bed)
	id       string
	severity Severity
	says     string
}{
	{"wrong password", func(b *bed) { b.answerAll(http.StatusUnauthorized) }, "cloud.login", Error, "refuses the credentials"},
	{"Keystone is down", func(b *bed) { b.through = refuse{} }, "cloud.login", Error, "cannot reach Keystone"},
	{"Cinder is down", func(b *bed) { b.answer("/volume/**", http.StatusServiceUnavailable, "later") }, "cloud.endpoints", Error, "HTTP 503"},
	{"Cinder and Nova have plain HTTP behind a Keystone with https", func(b *bed) { b.plainCatalog() }, "cloud.endpoints", Warning, "is not encrypted"},
	{"the clock is half a minute ahead", func(b *bed) { b.skew(31 * time.Second) }, "cloud.clock", Warning, "ahead of that of this machine"},
	{"the clock is an hour behind", func(b *bed) { b.skew(-time.Hour) }, "cloud.clock", Error, "behind that of this machine"},
	{"administrator", func(b *bed) { b.user = "sim-demo-admin" }, "cloud.credential", Warning, "the role admin"},
	{"unrestricted credential", func(b *bed) { b.credential(openstacksim.ApplicationCredential{Unrestricted: true}) }, "cloud.credential", Warning, "unrestricted"},
	{"credential of this week", func(b *bed) {
		b.credential(openstacksim.ApplicationCredential{ExpiresAt: b.now.Add(6 * 24 * time.Hour)})
	}, "cloud.credential", Warning, "application credential doctor expires at"},
	{"credential of today", func(b *bed) { b.credential(openstacksim.ApplicationCredential{ExpiresAt: b.now.Add(time.Hour)}) }, "cloud.credential", Error, "application credential doctor expires at"},
	{"the snapshots are forbidden", func(b *bed) {
		b.answer("/volume/v3/*/snapshots/detail", http.StatusForbidden, `{"forbidden": {"message": "Policy doesn't allow volume:get_all_snapshots to be performed."}}`)
	}, "cloud.rights.read", Error, "GET /snapshots/detail of block-storage is refused: policy volume:get_all_snapshots"},
	{"the messages are forbidden", func(b *bed) { b.answer("/volume/v3/*/messages", http.StatusForbidden, "no") }, "cloud.rights.read", Warning, "GET /messages"},
	{"the attachments of servers fail", func(b *bed) {
		b.answer("/compute/v2.1/servers/*/os-volume_attachments", http.StatusInternalServerError, "x")
	}, "cloud.rights.read", Error, "os-volume_attachments of compute fails: HTTP 500"},
	{"reader", func(b *bed) { b.user = "sim-reader" }, "cloud.rights.write", Error, "the only role of the token is reader"},
	{"a rule is missing", func(b *bed) {
		b.credential(openstacksim.ApplicationCredential{AccessRules: []openstacksim.AccessRule{{Service: "volumev3", Method: "GET", Path: "/v3/**"}}})
	}, "cloud.access-rules", Error, "volumev3 POST /v3/*/volumes"},
	{"Cinder is of Queens", func(b *bed) {
		b.answer("/volume/v3/", http.StatusMultipleChoices, `{"versions": [{"id": "v3.0", "version": "3.50", "min_version": "3.0"}]}`)
	}, "cloud.microversions", Warning, "block-storage has 3.50 and not 3.66"},
	{"Cinder has 3.0 only", func(b *bed) {
		b.answer("/volume/v3/", http.StatusMultipleChoices, `{"versions": [{"id": "v3.0", "version": "", "min_version": ""}]}`)
	}, "cloud.microversions", Error, "block-storage has no microversion and not 3.27"},
	{"the zones do not match", func(b *bed) { b.sim.SetVolumeZones("nova"); b.want.Zones = false }, "cloud.zones", Warning, "compute zones az1, az2 have no volume zone of the same name (nova)"},
	{"a zone is down", func(b *bed) { b.sim.SetZoneAvailable("az2", false) }, "cloud.zones", Warning, "zone az2 is not available"},
	{"the zones fail", func(b *bed) { b.answer("/compute/v2.1/os-availability-zone", http.StatusServiceUnavailable, "x") }, "cloud.zones", Error, "the compute zones cannot be read"},
	{"no types", func(b *bed) { b.answer("/volume/v3/*/types", http.StatusOK, `{"volume_types": []}`) }, "cloud.types", Error, "no volume type"},
	{"the types fail", func(b *bed) { b.answer("/volume/v3/*/types", http.StatusServiceUnavailable, "x") }, "cloud.types", Error, "the volume types cannot be read"},
	{"no default type", func(b *bed) { b.answer("/volume/v3/*/types/default", http.StatusNotFound, "{}") }, "cloud.default-type", Warning, "no default volume type"},
	{"Cinder's own type is the default", func(b *bed) { b.sim.SetDefaultVolumeType("__DEFAULT__") }, "cloud.default-type", Warning, "__DEFAULT__"},
	{"no volume is left", func(b *bed) { b.sim.SetQuota("demo", "volumes", 0) }, "cloud.quota", Error, "the quota volumes is used up: 0 of 0"},
	{"no backup is left", func(b *bed) { b.sim.SetQuota("demo", "backups", 0) }, "cloud.quota", Warning, "the quota backups is used up"},
	{"a type is forbidden by quota", func(b *bed) { b.sim.SetQuota("demo", "gigabytes_fast", 0) }, "cloud.quota", Warning, "gigabytes_fast"},
	{"the backup service is down", func(b *bed) {
		b.user = "sim-demo-admin"
		b.answer("/volume/v3/*/os-services", http.StatusOK, `{"services": [{"binary": "cinder-backup", "status": "enabled", "state": "down"}]}`)
	}, "cloud.backup", Warning, "the backup service (cinder-backup) is down"},
	{"plain HTTP", func(*bed) {}, "cloud.tls", Warning, "not encrypted"},
	{"a private CA", func(b *bed) { b.secure(time.Hour * 24 * 365) }, "cloud.tls", Error, "not from a public CA"},
	{"a certificate that ends next week", func(b *bed) { b.secure(time.Hour * 24 * 7) }, "cloud.tls", Warning, "expires at"},
	{"a certificate that ended", func(b *bed) { b.secure(-time.Hour) }, "cloud.tls", Error, "expired"},
	{"an unknown CA", func(b *bed) { b.secure(time.Hour * 24 * 365); b.caFile = "" }, "cloud.tls", Error, "unknown authority"},
	{"a certificate of another host", func(b *bed) {
		b.secure(time.Hour * 24 * 365)
		b.address = strings.Replace(b.address, "127.0.0.1", "localhost", 1)
	}, "cloud.tls", Error, "localhost"},
}

func TestEachFaultOfACloudIsAFindingThatSaysWhatToDo(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			b := newBed(t)
			f.fault(b)
			if r := b.report(); !has(r, f.id, f.severity, f.says) {
				t.Errorf("want %s %s with %q, why and what to do, got %+v", f.severity, f.id, f.says, r.Findings)
			}
		})
	}
}

func TestEveryCheckOfTheCloudHasARow(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range faults {
		seen[f.id] = true
	}
	for _, id := range idsOf("cloud.") {
		if !seen[id] {
			t.Errorf("%s has no row", id)
		}
	}
}

func TestAPrivateCAThatTheConfigurationNamesIsFine(t *testing.T) {
	b := newBed(t)
	b.secure(time.Hour * 24 * 365)
	b.want.CABundle = true
	if r := b.report(); !has(r, "cloud.tls", OK, "a private CA, which the configuration names") || r.Count(Error) != 0 {
		t.Errorf("want no error, got %+v", r.Findings)
	}
}

// The operator and HyperShift put the CA into the Secret: nothing to do, and nothing that doctor can see from here.
func TestAPrivateCAThatAnOperatorBringsIsFine(t *testing.T) {
	b := newBed(t)
	b.secure(time.Hour * 24 * 365)
	b.want.CAOwner, b.want.Secret = "HyperShift", "prod-cloud-credentials"
	if r := b.report(); !has(r, "cloud.tls", OK, "HyperShift puts it into the key cacert of Secret prod-cloud-credentials") || r.Count(Error) != 0 {
		t.Errorf("want no error, got %+v", r.Findings)
	}
}

func TestNothingButGETIsSentAfterTheLogin(t *testing.T) {
	b := newBed(t)
	b.report()
	for _, r := range b.sim.Requests() {
		if r.Method != http.MethodGet && !strings.HasSuffix(r.Path, "/v3/auth/tokens") {
			t.Errorf("%s %s was sent", r.Method, r.Path)
		}
	}
}

func TestTheDocumentedAccessRulesAreEnoughForTheProbes(t *testing.T) {
	b := newBed(t)
	b.credential(openstacksim.ApplicationCredential{AccessRules: documentedRules(t)})
	r := b.report()
	if !has(r, "cloud.access-rules", OK, "") || !has(r, "cloud.rights.read", OK, "") {
		t.Errorf("want access rules and rights ok, got %+v", r.Findings)
	}
	found := false
	for _, g := range r.NotChecked {
		found = found || strings.Contains(g.What, "when the application credential doctor expires")
	}
	if !found {
		t.Errorf("want the expiry not checked, because the rules do not allow that, got %+v", r.NotChecked)
	}
}

func TestNoFindingHoldsASecret(t *testing.T) {
	b := newBed(t)
	b.credential(openstacksim.ApplicationCredential{Secret: "hunter2"})
	for _, f := range b.report().Findings {
		if strings.Contains(f.What+f.Why+f.Do, "hunter2") {
			t.Errorf("%+v", f)
		}
	}
}

func TestARightThatEveryMemberHasIsAnErrorWhereItIsMissing(t *testing.T) {
	for _, c := range []struct{ id, path, what string }{
		{"cloud.zones", "/compute/v2.1/os-availability-zone", "compute zones"},
		{"cloud.zones", "/volume/v3/*/os-availability-zone", "volume zones"},
		{"cloud.types", "/volume/v3/*/types", "volume types"},
	} {
		b := newBed(t)
		b.answer(c.path, http.StatusForbidden, "")
		if r := b.report(); !has(r, c.id, Error, c.what) {
			t.Errorf("%s: want an error of %s, got %v", c.path, c.id, r.Findings)
		}
	}
}
