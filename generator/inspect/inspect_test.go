package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

const address = "http://openstack.simulated"

// bed is a simulated cloud whose answers a test may replace.
type bed struct {
	sim    *openstacksim.Sim
	config openstacksim.Config
	// answer replaces an answer, where it gives one.
	answer func(*http.Request) *http.Response

	lock sync.Mutex
	seen []*http.Request
}

func newBed() *bed {
	config := openstacksim.Default()
	return &bed{sim: openstacksim.New(config), config: config}
}

func (b *bed) RoundTrip(r *http.Request) (*http.Response, error) {
	b.lock.Lock()
	b.seen = append(b.seen, r)
	b.lock.Unlock()
	if b.answer != nil {
		if resp := b.answer(r); resp != nil {
			resp.Request = r
			return resp, nil
		}
	}
	return memnet.Transport(b.sim.Handler()).RoundTrip(r)
}

func respond(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader([]byte(body)))}
}

// as logs in as one of the cloud's users.
func (b *bed) as(t *testing.T, user string) *cloud.Cloud {
	t.Helper()
	s := cloud.Settings{Name: user, AuthURL: address + "/identity/v3", Username: user, UserDomainName: "Default", ProjectName: "demo", ProjectDomainName: "Default"}
	for _, u := range b.config.Users {
		if u.Name == user {
			s.Password = cloud.Secret(u.Password)
		}
	}
	c, err := cloud.Connect(t.Context(), s, cloud.Options{Transport: b})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (b *bed) inspect(t *testing.T, user string) v1alpha1.Inventory {
	t.Helper()
	inv, err := Inspect(t.Context(), b.as(t, user), nil)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func TestAMemberSeesZonesTypesLimitsAndQuota(t *testing.T) {
	inv := newBed().inspect(t, "demo")
	zones := []v1alpha1.Zone{{Name: "az1", Available: true}, {Name: "az2", Available: true}}
	if diff := cmp.Diff(v1alpha1.Zones{Compute: factOf(zones, nil), Volume: factOf(zones, nil)}, inv.Zones); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
	var names []string
	for _, v := range inv.VolumeTypes.Value {
		names = append(names, v.Name)
		if v.Encryption.State != v1alpha1.Denied || v.Encryption.Reason != "policy volume_extension:volume_type_encryption:get" {
			t.Errorf("%s: want the encryption denied by its policy, got %+v", v.Name, v.Encryption)
		}
		if want := v.Name == "multiattach"; v.Multiattach != want {
			t.Errorf("%s: want multiattach %t", v.Name, want)
		}
	}
	if diff := cmp.Diff([]string{"__DEFAULT__", "fast", "multiattach", "standard"}, names); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if inv.DefaultVolumeType.Value != "standard" || inv.Limits.Value.Volumes != 300 || inv.Quota.Value["gigabytes_fast"].Limit != 1000 {
		t.Errorf("want default standard, 300 volumes, 1000 GB of fast, got %+v %+v %+v", inv.DefaultVolumeType, inv.Limits, inv.Quota.Value["gigabytes_fast"])
	}
	block := inv.Services.Value["block-storage"]
	if want := (v1alpha1.Service{Present: true, MinMicroversion: "3.0", MaxMicroversion: "3.70", Endpoint: address + "/volume/v3", Port: 80}); block != want {
		t.Errorf("block storage: want %+v, got %+v", want, block)
	}
	if inv.Cloud.AuthURL != address+"/identity/v3" || inv.Cloud.Region != "RegionOne" || inv.Cloud.ProjectID == "" {
		t.Errorf("cloud: %+v", inv.Cloud)
	}
}

func TestAnAdministratorIsToldNoMoreThatMatters(t *testing.T) {
	b := newBed()
	b.sim.AddVolumeType(openstacksim.VolumeType{Name: "secret", Private: true})
	member, admin := b.inspect(t, "demo"), b.inspect(t, "demo-admin")
	for i := range admin.VolumeTypes.Value {
		if admin.VolumeTypes.Value[i].Encryption.State != v1alpha1.Known {
			t.Errorf("want the administrator to know the encryption, got %+v", admin.VolumeTypes.Value[i].Encryption)
		}
		admin.VolumeTypes.Value[i].Encryption = member.VolumeTypes.Value[i].Encryption
	}
	if service := admin.Backup.Value.Service; service.Value != "up" {
		t.Errorf("want the administrator to know that cinder-backup is up, got %+v", service)
	}
	admin.Backup.Value.Service = member.Backup.Value.Service
	if diff := cmp.Diff(member, admin); diff != "" {
		t.Errorf("(-member +admin):\n%s", diff)
	}
}

func TestEveryRequestIsADeclaredGETAndEveryDeclaredOneIsSent(t *testing.T) {
	b := newBed()
	b.answer = withoutSpecs(b)
	b.inspect(t, "demo-admin")
	sent := map[cloud.Call]bool{}
	for _, r := range b.seen {
		if strings.Contains(r.URL.Path, "/auth/tokens") {
			continue
		}
		i := slices.IndexFunc(Calls, func(c cloud.Call) bool { return matches(c, r) })
		if i < 0 {
			t.Errorf("%s %s (%s) is not declared", r.Method, r.URL.Path, r.Header.Get("OpenStack-API-Version"))
			continue
		}
		sent[Calls[i]] = true
	}
	for _, c := range Calls {
		if !sent[c] {
			t.Errorf("%+v is declared and was not sent", c)
		}
	}
}

func matches(c cloud.Call, r *http.Request) bool {
	service, path := blockStorage, r.URL.Path
	if strings.HasPrefix(path, "/compute/") {
		service = compute
	}
	if c.Path == "/" {
		return service == c.Service && (strings.HasSuffix(path, "/v3/") || strings.HasSuffix(path, "/v2.1/"))
	}
	_, microversion, _ := strings.Cut(r.Header.Get("OpenStack-API-Version"), " ")
	if id, _, ok := strings.Cut(c.Path, "{id}"); ok && !strings.Contains(path, id) {
		return false
	}
	return service == c.Service && c.Is(r.Method, path, microversion) && !(c.Path == "/types/{id}/encryption" && !strings.HasSuffix(path, "/encryption"))
}

// withoutSpecs leaves extra specs out of the list, as Cinder does for the role member without reader.
func withoutSpecs(b *bed) func(*http.Request) *http.Response {
	return func(r *http.Request) *http.Response {
		if !strings.HasSuffix(r.URL.Path, "/types") {
			return nil
		}
		resp, err := memnet.Transport(b.sim.Handler()).RoundTrip(r)
		if err != nil {
			return nil
		}
		var body map[string][]map[string]any
		_ = json.NewDecoder(resp.Body).Decode(&body)
		for _, v := range body["volume_types"] {
			delete(v, "extra_specs")
		}
		text, _ := json.Marshal(body)
		return respond(http.StatusOK, string(text))
	}
}

func TestExtraSpecsLeftOutOfTheListAreAskedForOneByOne(t *testing.T) {
	b := newBed()
	want := b.inspect(t, "demo")
	b.answer = withoutSpecs(b)
	if diff := cmp.Diff(want, b.inspect(t, "demo")); diff != "" {
		t.Errorf("(-listed +asked):\n%s", diff)
	}
	leave := b.answer
	b.answer = func(r *http.Request) *http.Response {
		if strings.HasSuffix(r.URL.Path, "/extra_specs") {
			return respond(http.StatusForbidden, `{"forbidden": {"code": 403, "message": "Policy doesn't allow volume_extension:types_extra_specs:index to be performed."}}`)
		}
		return leave(r)
	}
	for _, v := range b.inspect(t, "demo").VolumeTypes.Value {
		if v.Specs != v1alpha1.Denied {
			t.Errorf("%s: want its extra specs denied, got %q", v.Name, v.Specs)
		}
	}
}

// wallaby answers as the last Cinder that shows extra specs to administrators only. The list of types for a member has none, and
// Cinder refuses a member that asks for the extra specs of one type.
func wallaby(b *bed, highest string, admin bool) func(*http.Request) *http.Response {
	leave := withoutSpecs(b)
	return func(r *http.Request) *http.Response {
		switch {
		case strings.HasSuffix(r.URL.Path, "/volume/v3/"):
			return respond(http.StatusMultipleChoices, `{"versions": [{"id": "v3.0", "version": "`+highest+`", "min_version": "3.0"}]}`)
		case admin:
			return nil
		case strings.HasSuffix(r.URL.Path, "/extra_specs"):
			return respond(http.StatusForbidden, `{"forbidden": {"message": "Policy doesn't allow volume_extension:types_extra_specs:index to be performed."}}`)
		}
		return leave(r)
	}
}

func TestBeforeXenaAnAdministratorIsToldNoMoreThanAMember(t *testing.T) {
	b := newBed()
	b.sim.AddVolumeType(openstacksim.VolumeType{Name: "zoned", ExtraSpecs: map[string]string{specZones: "az1", specReplication: "<is> True"}})
	for _, highest := range []string{"3.27", "3.64", ""} {
		b.answer = wallaby(b, highest, false)
		member := b.inspect(t, "demo").VolumeTypes
		b.answer = wallaby(b, highest, true)
		admin := b.inspect(t, "demo-admin").VolumeTypes
		if admin.State != v1alpha1.Known || len(admin.Value) != 5 {
			t.Fatalf("%s: want five types, got %+v", highest, admin)
		}
		for i := range admin.Value {
			admin.Value[i].Encryption = member.Value[i].Encryption
			if v := admin.Value[i]; v.Specs != v1alpha1.Unsupported || v.Multiattach || v.Replication || v.Zones != nil {
				t.Errorf("%s: %s: want its extra specs unsupported and none of them told, got %+v", highest, v.Name, v)
			}
		}
		if diff := cmp.Diff(member, admin); diff != "" {
			t.Errorf("%s: (-member +admin):\n%s", highest, diff)
		}
	}
	b.answer = wallaby(b, "3.66", true)
	types := b.inspect(t, "demo-admin").VolumeTypes.Value
	i := slices.IndexFunc(types, func(v v1alpha1.VolumeType) bool { return v.Name == "zoned" })
	if v := types[i]; v.Specs != "" || !v.Replication || !slices.Equal(v.Zones, []string{"az1"}) {
		t.Errorf("3.66: want the extra specs told, got %+v", v)
	}
}

func TestTypesOfACloudWhoseVersionsFailAreNotKnown(t *testing.T) {
	b := newBed()
	b.answer = func(r *http.Request) *http.Response {
		if strings.HasSuffix(r.URL.Path, "/volume/v3/") {
			return respond(http.StatusServiceUnavailable, "later")
		}
		return nil
	}
	if got := b.inspect(t, "demo").VolumeTypes; got.State != v1alpha1.Failed || got.Reason != "block-storage: GET "+address+"/volume/v3/: HTTP 503: Service Unavailable" {
		t.Errorf("want the types failed, got %s: %s", got.State, got.Reason)
	}
}

func TestARefusalOrOutageOfOneQuestionIsItsOwnFactsAlone(t *testing.T) {
	limits := address + "/volume/v3/" + openstacksim.FixedHex("project", "demo") + "/limits"
	cases := []struct {
		name   string
		status int
		body   string
		want   v1alpha1.State
		reason string
	}{
		{"policy", http.StatusForbidden, `{"forbidden": {"message": "Policy doesn't allow limits:show to be performed."}}`, v1alpha1.Denied, "policy limits:show"},
		{"forbidden without a policy", http.StatusForbidden, "no", v1alpha1.Denied, "HTTP 403"},
		{"an access rule or a clock", http.StatusUnauthorized, "", v1alpha1.Denied, RefusedToken},
		{"not there", http.StatusNotFound, "", v1alpha1.Unsupported, "HTTP 404"},
		{"a microversion too high", http.StatusNotAcceptable, "", v1alpha1.Unsupported, "HTTP 406"},
		{"an outage", http.StatusServiceUnavailable, `{"computeFault": {"message": "try\nagain"}}`, v1alpha1.Failed, "block-storage: GET " + limits + ": HTTP 503: try again"},
		{"a bad request", http.StatusBadRequest, "gibberish", v1alpha1.Failed, "block-storage: GET " + limits + ": HTTP 400: Bad Request"},
		{"no JSON", http.StatusOK, "<html>", v1alpha1.Failed, "block-storage: GET " + limits + ": invalid character '<' looking for beginning of value"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBed()
			want := b.inspect(t, "demo")
			b.answer = func(r *http.Request) *http.Response {
				if strings.HasSuffix(r.URL.Path, "/limits") {
					return respond(c.status, c.body)
				}
				return nil
			}
			got := b.inspect(t, "demo")
			if got.Limits.State != c.want || got.Limits.Reason != c.reason {
				t.Errorf("want %s (%s), got %s (%s)", c.want, c.reason, got.Limits.State, got.Limits.Reason)
			}
			got.Limits = want.Limits
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("other facts changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAccessRulesLeaveOutIsDenied(t *testing.T) {
	b := newBed()
	credential := b.sim.AddApplicationCredential(openstacksim.ApplicationCredential{
		Name: "narrow", Secret: "s3cret", User: "demo", Project: "demo", Roles: []string{"member"},
		AccessRules: []openstacksim.AccessRule{
			{Service: b.config.VolumeServiceType, Method: "GET", Path: "/v3/*/types"},
			{Service: b.config.VolumeServiceType, Method: "GET", Path: "/v3/*/types/**"},
			{Service: b.config.ComputeServiceType, Method: "GET", Path: "/v2.1/os-availability-zone"},
		},
	})
	c, err := cloud.Connect(t.Context(), cloud.Settings{
		Name: "narrow", AuthURL: address + "/identity/v3",
		ApplicationCredentialID: credential.ID, ApplicationCredentialSecret: cloud.Secret(credential.Secret),
	}, cloud.Options{Transport: b})
	if err != nil {
		t.Fatal(err)
	}
	inv, err := Inspect(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]v1alpha1.State{
		"services":         inv.Services.State,
		"versions of Nova": inv.VersionsOf("compute").State, "versions of Cinder": inv.VersionsOf("block-storage").State,
		"compute zones": inv.Zones.Compute.State, "volume zones": inv.Zones.Volume.State, "types": inv.VolumeTypes.State,
		"default": inv.DefaultVolumeType.State, "limits": inv.Limits.State, "quota": inv.Quota.State, "group types": inv.GroupTypes.State,
	}
	want := map[string]v1alpha1.State{
		"services":         v1alpha1.Known,
		"versions of Nova": v1alpha1.Known, "versions of Cinder": v1alpha1.Denied,
		"compute zones": v1alpha1.Known, "volume zones": v1alpha1.Denied, "types": v1alpha1.Known,
		"default": v1alpha1.Known, "limits": v1alpha1.Denied, "quota": v1alpha1.Denied, "group types": v1alpha1.Denied,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestACloudWithoutADefaultTypeHasNone(t *testing.T) {
	b := newBed()
	b.answer = func(r *http.Request) *http.Response {
		if strings.HasSuffix(r.URL.Path, "/types/default") {
			return respond(http.StatusNotFound, `{"itemNotFound": {"message": "Default volume type can not be found."}}`)
		}
		return nil
	}
	if got := b.inspect(t, "demo").DefaultVolumeType; got.State != v1alpha1.Unsupported {
		t.Errorf("want unsupported, got %+v", got)
	}
}

func TestAnInspectionThatIsCutShortIsAnErrorAndNoInventory(t *testing.T) {
	b := newBed()
	c := b.as(t, "demo")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the reason")
	cancel(cause)
	if _, err := Inspect(ctx, c, nil); !errors.Is(err, cause) {
		t.Errorf("want the context's cause, got %v", err)
	}
}

func TestProgressIsToldEachStepOnce(t *testing.T) {
	seen := map[string]int{}
	if _, err := Inspect(t.Context(), newBed().as(t, "demo"), func(done string) { seen[done]++ }); err != nil {
		t.Fatal(err)
	}
	if len(seen) != Steps {
		t.Errorf("want %d steps, got %v", Steps, seen)
	}
}

func TestPagesEndAndAreWalkedByMarkers(t *testing.T) {
	type item struct{ id string }
	id := func(i item) string { return i.id }
	var asked []string
	got, err := pages(func(query string) ([]item, bool, error) {
		asked = append(asked, query)
		switch query {
		case "":
			return []item{{"a"}, {"b b"}}, true, nil
		case "?marker=b+b":
			return []item{{"b b"}, {"c"}}, true, nil // a type added meanwhile moved the page
		}
		return nil, false, nil
	}, id)
	if err != nil || len(got) != 3 {
		t.Errorf("want a, b b, c, got %v, %v", got, err)
	}
	if diff := cmp.Diff([]string{"", "?marker=b+b", "?marker=c"}, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := pages(func(string) ([]item, bool, error) { return []item{{"a"}}, true, nil }, id); err == nil {
		t.Error("want a list that never ends to be an error")
	}
}

func TestEndpoint(t *testing.T) {
	for _, c := range []struct {
		url, want string
		port      int
	}{
		{"https://cinder.example/v3/p1", "https://cinder.example/v3", 443},
		{"http://cinder.example/v3/p1/", "http://cinder.example/v3", 80},
		{"https://cinder.example:8776/volume/v3/AUTH_p1", "https://cinder.example:8776/volume/v3", 8776},
		{"https://[2001:db8::1]:8774/v2.1", "https://[2001:db8::1]:8774/v2.1", 8774},
	} {
		if got, port := endpoint(c.url, "p1"); got != c.want || port != c.port {
			t.Errorf("%s: want %s %d, got %s %d", c.url, c.want, c.port, got, port)
		}
	}
}

func TestZoneList(t *testing.T) {
	if diff := cmp.Diff([]string{"az1", "az2"}, zoneList(" az2, az1 ,,az2")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := zoneList(""); got != nil {
		t.Errorf("want none, got %v", got)
	}
}

// A proxy, or a service that is not up yet, answers 200 with nothing in it. That says nothing about the cloud.
func TestAnAnswerWithoutItsKeyFails(t *testing.T) {
	for _, body := range []string{"", "{}", "null", "[]", "<html></html>"} {
		b := newBed()
		b.answer = func(r *http.Request) *http.Response {
			if strings.Contains(r.URL.Path, "/identity/") {
				return nil
			}
			return respond(http.StatusOK, body)
		}
		inv := b.inspect(t, "demo")
		for name, state := range map[string]v1alpha1.State{
			"versions of Nova": inv.VersionsOf("compute").State, "versions of Cinder": inv.VersionsOf("block-storage").State,
			"compute zones": inv.Zones.Compute.State, "volume zones": inv.Zones.Volume.State, "types": inv.VolumeTypes.State,
			"default": inv.DefaultVolumeType.State, "limits": inv.Limits.State, "quota": inv.Quota.State,
			"group types": inv.GroupTypes.State, "backups": inv.Backup.State,
		} {
			if state != v1alpha1.Failed {
				t.Errorf("%q: %s: want failed, got %s", body, name, state)
			}
		}
	}
}
