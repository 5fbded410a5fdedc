package openstacksim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

func TestWhereAVolumeGoes(t *testing.T) {
	for _, test := range []struct {
		name, fields, zone, complaint string
		fallback                      bool
	}{
		{name: "the default zone", fields: `"size":1`, zone: "az1"},
		{name: "the zone asked for", fields: `"size":1,"availability_zone":"az2"`, zone: "az2"},
		{name: "no such zone", fields: `"size":1,"availability_zone":"az9"`, complaint: "Availability zone 'az9' is invalid."},
		{name: "fallback is silent", fields: `"size":1,"availability_zone":"az9"`, zone: "az1", fallback: true},
		{name: "a type's only zone", fields: `"size":1,"volume_type":"far"`, zone: "az2"},
		{name: "not the type's zone", fields: `"size":1,"volume_type":"far","availability_zone":"az1"`, complaint: "Availability zone 'az1' is invalid."},
		{name: "a type without a zone here", fields: `"size":1,"volume_type":"nowhere"`, complaint: "Volume type is only supported in these availability zones: ['az7']"},
	} {
		t.Run(test.name, func(t *testing.T) {
			sim := instant()
			sim.SetZoneFallback(test.fallback)
			sim.AddVolumeType(openstacksim.VolumeType{Name: "far", ExtraSpecs: map[string]string{"RESKEY:availability_zones": "az2"}})
			sim.AddVolumeType(openstacksim.VolumeType{Name: "nowhere", ExtraSpecs: map[string]string{"RESKEY:availability_zones": "az7"}})
			c := login(t, sim, "demo", "demo")
			a := c.do("POST", "/volume/volumes", "3.70", `{"volume":{`+test.fields+`}}`)
			if test.complaint != "" {
				if a.status != http.StatusBadRequest || a.message() != test.complaint {
					t.Errorf("want 400 %q, got %d %q", test.complaint, a.status, a.message())
				}
				return
			}
			if got := c.want(http.StatusAccepted, a).at("volume", "availability_zone"); got != test.zone {
				t.Errorf("want %s, got %v", test.zone, got)
			}
		})
	}
}

func TestQuotasAnswer413(t *testing.T) {
	for _, test := range []struct {
		name, resource string
		limit          int
		fields, want   string
	}{
		{"gigabytes", "gigabytes", 3, `"size":3`, "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested 3G, quota is 3G and 1G has been consumed."},
		{"gigabytes of a type", "gigabytes_fast", 1, `"size":2,"volume_type":"fast"`, "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes_fast quota. Requested 2G, quota is 1G and 0G has been consumed."},
		{"volumes", "volumes", 1, `"size":1`, "VolumeLimitExceeded: Maximum number of volumes allowed (1) exceeded for quota 'volumes'."},
		{"one volume", "per_volume_gigabytes", 5, `"size":6`, "VolumeSizeExceedsLimit: Requested volume size 6G is larger than maximum allowed limit 5G."},
	} {
		t.Run(test.name, func(t *testing.T) {
			sim := instant()
			c := login(t, sim, "demo", "demo")
			c.create(`"size":1`)
			sim.SetQuota("demo", test.resource, test.limit)
			a := c.want(http.StatusRequestEntityTooLarge, c.do("POST", "/volume/volumes", "3.70", `{"volume":{`+test.fields+`}}`))
			if a.message() != test.want || a.at("overLimit", "retryAfter") != "0" || a.header.Get("Retry-After") != "0" {
				t.Errorf("want %q, got %v", test.want, a.body)
			}
		})
	}
}

func TestPagingWalksEveryVolumeAndNoticesAVanishedMarker(t *testing.T) {
	c := login(t, instant(), "demo", "demo")
	want := map[string]bool{}
	for i := range 7 {
		want[c.create(fmt.Sprintf(`"size":1,"name":"v%d"`, i))] = true
	}
	seen, last := map[string]bool{}, ""
	path := "/volume/v3/" + c.ProjectID + "/volumes/detail?limit=3"
	pages := 0
	for path != "" {
		a := c.want(http.StatusOK, c.do("GET", path, "3.70", ""))
		for i := range a.at("volumes").([]any) {
			last = a.at("volumes", i, "id").(string)
			seen[last] = true
		}
		pages++
		next, _ := a.at("volumes_links", 0, "href").(string)
		path = strings.TrimPrefix(next, root)
	}
	if diff := cmp.Diff(want, seen); diff != "" || pages != 3 {
		t.Errorf("%d pages (-want +got):\n%s", pages, diff)
	}
	c.want(http.StatusAccepted, c.do("DELETE", "/volume/volumes/"+last, "", ""))
	if a := c.do("GET", "/volume/volumes?marker="+last, "3.70", ""); a.status != http.StatusNotFound {
		t.Errorf("want 404 for a marker that is gone, got %d", a.status)
	}
}

func TestFilters(t *testing.T) {
	c := login(t, instant(), "demo", "demo")
	c.create(`"size":1,"name":"one","metadata":{"k":"v","quote":"it's"}`)
	c.create(`"size":2,"name":"Two","availability_zone":"az2"`)
	for _, test := range []struct{ query, version, want string }{
		{"name=one", "3.70", "one"},
		{"name=two", "3.70", "Two"}, // the database does not mind case
		{"name=tw", "3.70", ""},
		{"metadata=%7B%27k%27:%27v%27%7D", "3.70", "one"},
		{"metadata=%7B%22k%22:%20%22v%22%7D", "3.70", "one"},
		{"metadata=%7B%22quote%22:%22it%27s%22%7D", "3.70", "one"},
		{"metadata=%7B%27k%27:%27w%27%7D", "3.70", ""},
		{"metadata=nonsense", "3.70", ""},
		{"size=2", "3.70", "Two"},
		{"availability_zone=az2", "3.70", "Two"},
		{"status=error", "3.70", ""},
		{"sort=name:desc", "3.70", "Two one"},
		{"sort=size:asc", "3.70", "one Two"},
		{"foo=bar", "3.70", "Invalid filters foo are found in query options."},
		{"foo=bar&sort=size:asc", "3.30", "one Two"},
		{"limit=-1", "3.70", "limit param must be positive"},
		{"sort=nothing", "3.70", "Invalid input received: Invalid sort key"},
	} {
		a := c.do("GET", "/volume/volumes?"+test.query, test.version, "")
		got := a.message()
		if a.status == http.StatusOK {
			var names []string
			for i := range a.at("volumes").([]any) {
				names = append(names, a.at("volumes", i, "name").(string))
			}
			got = strings.Join(names, " ")
		}
		if got != test.want {
			t.Errorf("%s at %s: want %q, got %q", test.query, test.version, test.want, got)
		}
	}
}

func TestWhoSeesWhatOfATypesExtraSpecs(t *testing.T) {
	sim := instant()
	fast := map[string]any{"volume_backend_name": "fast", "sim:tier": "fast"}
	for _, test := range []struct {
		name   string
		caller *caller
		fast   any
		multi  any
	}{
		{"member", login(t, sim, "demo", "demo"), map[string]any{}, map[string]any{"multiattach": "<is> True"}},
		{"reader", login(t, sim, "demo-reader", "demo"), map[string]any{}, map[string]any{"multiattach": "<is> True"}},
		{"admin", login(t, sim, "demo-admin", "demo"), fast, map[string]any{"multiattach": "<is> True", "volume_backend_name": "standard"}},
		{"a credential of the role member alone", loginAppCred(t, sim, openstacksim.Default().ApplicationCredentials[0]), nil, nil},
	} {
		a := test.caller.want(http.StatusOK, test.caller.do("GET", "/volume/types", "3.70", ""))
		got := map[string]any{}
		for i := range a.at("volume_types").([]any) {
			got[a.at("volume_types", i, "name").(string)] = a.at("volume_types", i, "extra_specs")
		}
		if diff := cmp.Diff([]any{test.fast, test.multi}, []any{got["fast"], got["multiattach"]}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestReadersMayCreateAndOthersSeeNothing(t *testing.T) {
	sim := instant()
	id := login(t, sim, "demo-reader", "demo").create(`"size":1`)
	if got := login(t, sim, "other", "other").state(id); got != "gone" {
		t.Errorf("another project sees it %s", got)
	}
	if got := login(t, sim, "admin", "admin").state(id); got != "available" {
		t.Errorf("an administrator sees it %s", got)
	}
}

func TestTypesComeAndGoOverTheAPI(t *testing.T) {
	sim := instant()
	admin, member := login(t, sim, "demo-admin", "demo"), login(t, sim, "demo", "demo")
	body := `{"volume_type":{"name":"new","extra_specs":{"multiattach":"<is> True"}}}`
	member.want(http.StatusForbidden, member.do("POST", "/volume/types", "3.70", body))
	id := admin.want(http.StatusOK, admin.do("POST", "/volume/types", "3.70", body)).at("volume_type", "id").(string)
	admin.want(http.StatusConflict, admin.do("POST", "/volume/types", "3.70", body))
	volume := member.create(`"size":1,"volume_type":"new"`)
	if a := admin.want(http.StatusBadRequest, admin.do("DELETE", "/volume/types/"+id, "3.70", "")); a.message() != "Target volume type is still in use." {
		t.Errorf("got %q", a.message())
	}
	member.want(http.StatusAccepted, member.do("DELETE", "/volume/volumes/"+volume, "", ""))
	admin.want(http.StatusAccepted, admin.do("DELETE", "/volume/types/"+id, "3.70", ""))
	member.want(http.StatusNotFound, member.do("GET", "/volume/types/"+id, "3.70", ""))
}

// As Cinder 26 answers with an encrypted type.
func TestAVolumeOfAnEncryptedTypeSaysSo(t *testing.T) {
	config := openstacksim.Default()
	config.VolumeTypes = append(config.VolumeTypes, openstacksim.VolumeType{Name: "encrypted", Encryption: &openstacksim.Encryption{Provider: "luks"}})
	c := login(t, openstacksim.New(config), "demo", "demo")
	for kind, want := range map[string]string{"standard": "false <nil> <nil>", "encrypted": "true <nil> string"} {
		id := c.create(`"size":1,"volume_type":"` + kind + `"`)
		show := func(version string) answer { return c.do("GET", "/volume/volumes/"+id, version, "") }
		if got := fmt.Sprintf("%v %T %T", show("3.63").at("volume", "encrypted"), show("3.63").at("volume", "encryption_key_id"), show("3.64").at("volume", "encryption_key_id")); got != want {
			t.Errorf("type %s: want %s, got %s", kind, want, got)
		}
	}
}

func TestSnapshotsHoldTheirVolume(t *testing.T) {
	c := login(t, instant(), "demo", "demo")
	volume := c.create(`"size":2,"availability_zone":"az2"`)
	snapshot := c.want(http.StatusAccepted, c.do("POST", "/volume/snapshots", "3.70", `{"snapshot":{"volume_id":"`+volume+`"}}`)).at("snapshot", "id").(string)
	c.want(http.StatusBadRequest, c.do("DELETE", "/volume/volumes/"+volume, "", ""))
	made := c.create(`"snapshot_id":"` + snapshot + `"`)
	a := c.do("GET", "/volume/volumes/"+made, "3.70", "")
	if fmt.Sprint(a.at("volume", "size"), a.at("volume", "availability_zone"), a.at("volume", "snapshot_id")) != fmt.Sprint("2", "az2", snapshot) {
		t.Errorf("got %v", a.body)
	}
	c.want(http.StatusAccepted, c.do("DELETE", "/volume/volumes/"+volume+"?cascade=true", "", ""))
	c.want(http.StatusNotFound, c.do("GET", "/volume/snapshots/"+snapshot, "", ""))
}

func TestAVolumeGrowsAndIsRetyped(t *testing.T) {
	bubble(t, map[openstacksim.Operation]time.Duration{openstacksim.ExtendVolume: time.Second, openstacksim.RetypeVolume: time.Second}, func(t *testing.T, _ *openstacksim.Sim, c *caller) {
		id := c.create(`"size":1`)
		action := func(body string) answer { return c.do("POST", "/volume/volumes/"+id+"/action", "3.70", body) }
		c.want(http.StatusAccepted, action(`{"os-extend":{"new_size":4}}`))
		if got := c.state(id); got != "extending" {
			t.Errorf("want extending, got %s", got)
		}
		time.Sleep(time.Second)
		c.want(http.StatusAccepted, action(`{"os-retype":{"new_type":"fast","migration_policy":"never"}}`))
		time.Sleep(time.Second)
		a := c.do("GET", "/volume/volumes/"+id, "3.70", "")
		if a.at("volume", "volume_type") != "standard" {
			t.Errorf("a retype to another backend that may not migrate must do nothing, got %v", a.at("volume", "volume_type"))
		}
		c.want(http.StatusAccepted, action(`{"os-retype":{"new_type":"fast","migration_policy":"on-demand"}}`))
		time.Sleep(time.Second)
		a = c.do("GET", "/volume/volumes/"+id, "3.70", "")
		if fmt.Sprint(a.at("volume", "status"), a.at("volume", "size"), a.at("volume", "volume_type")) != fmt.Sprint("available", "4", "fast") {
			t.Errorf("got %v", a.body)
		}
	})
}

func TestMicroversions(t *testing.T) {
	c := login(t, instant(), "demo", "demo")
	for _, test := range []struct {
		path, version string
		status        int
		echo          string
	}{
		{"/volume/types/default", "", 200, "volume 3.0"},
		{"/volume/types/default", "3.70", 200, "volume 3.70"},
		{"/volume/types/default", "latest", 200, "volume 3.70"},
		{"/volume/types/default", "3.71", 406, "volume 3.71"},
		{"/volume/types/default", "nonsense", 400, ""},
		{"/volume/attachments", "3.26", 404, "volume 3.26"},
		{"/volume/attachments", "3.27", 200, "volume 3.27"},
		{"/volume/group_types", "3.10", 404, "volume 3.10"},
		{"/compute/servers", "", 200, "compute 2.1"},
		{"/compute/servers", "2.93", 200, "compute 2.93"},
		{"/compute/servers", "2.94", 406, "compute 2.94"},
	} {
		a := c.do("GET", test.path, test.version, "")
		if got := a.header.Get("Openstack-Api-Version"); a.status != test.status || got != test.echo {
			t.Errorf("%s at %q: want %d %q, got %d %q", test.path, test.version, test.status, test.echo, a.status, got)
		}
		if test.status == 406 {
			if _, ok := a.body["computeFault"]; !ok {
				t.Errorf("%s at %q: want a computeFault, got %v", test.path, test.version, a.body)
			}
		}
	}
	if a := c.do("GET", "/volume/v3", "", ""); a.status != http.StatusFound || a.header.Get("Location") != root+"/volume/v3/" {
		t.Errorf("/v3: got %d to %s", a.status, a.header.Get("Location"))
	}
	for path, status := range map[string]int{"/volume/": 300, "/identity/": 300, "/compute/": 200} {
		response, err := c.client.Get(root + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("GET %s: want %d, got %d", path, status, response.StatusCode)
		}
	}
}
