package cloudfile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

func TestAnEmptyFileIsTheDemoCloud(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "{}"} {
		got, err := Parse("cloud.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(openstacksim.Default(), got.Config, cmpopts.IgnoreUnexported(openstacksim.ApplicationCredential{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestEachPartOfTheCloudCanBeShaped(t *testing.T) {
	for _, test := range []struct {
		name, text string
		got        func(Cloud) any
		want       any
	}{
		{"zones", "zones: {compute: [a, {name: ü b, available: false}], volume: [a]}", func(c Cloud) any {
			return [][]string{c.Config.ComputeZones, c.Config.UnavailableComputeZones, c.Config.VolumeZones, c.Config.UnavailableVolumeZones}
		}, [][]string{{"a", "ü b"}, {"ü b"}, {"a"}, nil}},
		{"a server in each zone", "zones: {compute: [a, b]}", func(c Cloud) any {
			return []string{c.Config.Servers[0].Name, c.Config.Servers[1].Zone}
		}, []string{"node-a", "b"}},
		{"extra specs of a type", "volumeTypes: [{name: x, zones: [a, b], multiattach: true, replication: true, extraSpecs: {k: v}}]", func(c Cloud) any {
			return c.Config.VolumeTypes[0].ExtraSpecs
		}, map[string]string{"RESKEY:availability_zones": "a,b", "multiattach": "<is> True", "replication_enabled": "<is> True", "k": "v"}},
		{"encryption", "volumeTypes: [{name: x, encryption: {provider: luks, keySize: 256, location: front-end}}]", func(c Cloud) any {
			return *c.Config.VolumeTypes[0].Encryption
		}, openstacksim.Encryption{Provider: "luks", KeySize: 256, Location: "front-end"}},
		{"IDs that a file names", "volumeTypes: [{name: x, id: i}]", func(c Cloud) any { return c.Config.VolumeTypes[0].ID }, "i"},
		{"many types", "volumeTypes: [{name: x, count: 3}]", func(c Cloud) any {
			return []any{len(c.Config.VolumeTypes), c.Config.VolumeTypes[2].Name, c.Config.VolumeTypes[2].ID}
		}, []any{3, "x-3", openstacksim.FixedID("type", "x-3")}},
		{"other types without the standard one have no default", "volumeTypes: [{name: x}]", func(c Cloud) any { return c.Config.DefaultVolumeType }, ""},
		{"a default type", "volumeTypes: [{name: x}]\ndefaultVolumeType: x", func(c Cloud) any { return c.Config.DefaultVolumeType }, "x"},
		{"no default type", `defaultVolumeType: ""`, func(c Cloud) any { return c.Config.DefaultVolumeType }, ""},
		{"quotas", "projects: [{name: demo, quota: {volumes: 7, gigabytes_fast: -1}}, {name: admin}, {name: other}]", func(c Cloud) any {
			return c.Config.Projects[0].Quota
		}, map[string]int{"volumes": 7, "gigabytes_fast": -1}},
		{"users", "users: [{name: jane, roles: {demo: [reader]}}]\napplicationCredentials: []", func(c Cloud) any {
			return []string{c.Config.Users[0].Password, c.Config.Users[0].Roles["demo"][0]}
		}, []string{"sim-jane", "reader"}},
		{"an application credential with access rules", "applicationCredentials: [{name: narrow, user: demo, accessRules: [{service: volumev3, path: /v3/*/types}]}]", func(c Cloud) any {
			a := c.Config.ApplicationCredentials[0]
			return []any{a.Project, a.Roles[0], a.AccessRules[0]}
		}, []any{"demo", "member", openstacksim.AccessRule{Service: "volumev3", Method: "GET", Path: "/v3/*/types"}}},
		{"services", "services: {blockStorage: {maxMicroversion: '3.0'}, compute: {missing: true}, backup: {missing: true}}", func(c Cloud) any {
			return []any{c.Config.VolumeMicroversion, c.Config.MissingServices, c.Config.NoBackupService}
		}, []any{"3.0", []string{"compute"}, true}},
		{"faults", "faults: [{service: block-storage, method: GET, path: /v3/*/types, status: 503, delay: 1s, times: 2}]", func(c Cloud) any { return c.Faults[0] }, openstacksim.Fault{
			Method: "GET", Path: "/volume/v3/*/types", Status: 503, Delay: time.Second, Times: 2,
		}},
		{"latency, pages, tokens", "latency: {answer: 20ms}\npageSize: 2\ntokenLifetime: 5m", func(c Cloud) any {
			return []any{c.Config.Latency[openstacksim.Answer], c.Config.PageSize, c.Config.TokenLifetime}
		}, []any{20 * time.Millisecond, 2, 5 * time.Minute}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := Parse("cloud.yaml", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, test.got(c), cmpopts.IgnoreUnexported(openstacksim.Fault{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			c.New()
		})
	}
}

func TestWhatNoCloudCanBeIsRefusedByName(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"region: a\nzonez: {}", "cloud.yaml:2: unknown key zonez"},
		{"zones: {volume: [{name: a, available: true, size: 1}]}", "cloud.yaml:1: unknown key size"},
		{"zones: [a]", "cloud.yaml:1: cannot unmarshal"},
		{"{", "cloud.yaml:1: "},
		{"region: a\n---\nregion: b", "more than one document"},
		{"latency: {answer: fast}", `cloud.yaml:1: "fast" is not a duration`},
		{"latency: {answer: -1s}", `"-1s" is not a duration`},
		{"latency: {reply: 1s}", "latency: unknown operation reply; known are answer, "},
		{"zones: {volume: []}", "zones.volume is empty"},
		{"zones: {compute: [a, a]}", `zones.compute has "a" twice`},
		{"zones: {compute: ['']}", "zones.compute[0]: the name is empty"},
		{"region: 'true'", `region: "true"`},
		{"region: 'a: b'", `region: "a: b"`},
		{"users: [{name: jane, password: '123', roles: {demo: [member]}}]\napplicationCredentials: []", "user jane: password"},
		{"volumeTypes: [{name: x}, {name: x}]", `volumeTypes has "x" twice`},
		{"volumeTypes: [{name: x, id: i}, {name: y, id: i}]", `volumeTypes (id) has "i" twice`},
		{"volumeTypes: [{name: x, count: 20000}]", "count is 20000"},
		{"volumeTypes: [{name: x, count: 2, id: i}]", "no id"},
		{"volumeTypes: [{name: x, projects: [demo]}]", "only for a private type"},
		{"volumeTypes: [{name: x, private: true, projects: [nobody]}]", `there is no project "nobody"`},
		{"volumeTypes: [{name: x, encryption: {provider: luks}}]", "encryption needs a provider, and a location"},
		{"defaultVolumeType: gone", `there is no volume type "gone"`},
		{"users: [{name: jane, roles: {nowhere: [member]}}]\napplicationCredentials: []", `user jane: there is no project "nowhere"`},
		{"users: [{name: jane, roles: {demo: [owner]}}]\napplicationCredentials: []", `unknown role "owner"`},
		{"users: [{name: jane}]\napplicationCredentials: []", "user jane: has no role in any project"},
		{"users: []", `application credential csi: there is no user "demo"`},
		{"projects: [{name: p, id: x}]", `project p: the ID "x"`},
		{"projects: [{name: demo, quota: {disks: 1}}, {name: admin}, {name: other}]", `project demo: unknown quota "disks"`},
		{"applicationCredentials: [{name: c, user: demo, accessRules: [{path: v3}]}]", "an access rule needs a service"},
		{"services: {blockStorage: {maxMicroversion: '3.71'}}", "the simulation has 3.70 at most"},
		{"services: {compute: {maxMicroversion: '2.x'}}", "the simulation has 2.93 at most"},
		{"faults: [{service: glance, status: 500}]", `faults[0]: unknown service "glance"`},
		{"faults: [{service: compute, path: v2.1}]", "does not begin with /"},
		{"faults: [{service: compute, status: 200}]", "status 200 is not an error"},
		{"faults: [{service: compute}]", "has no effect"},
		{"faults: [{service: compute, status: 500, times: -1}]", "want 0 or more"},
		{"pageSize: 0", "pageSize is 0"},
	} {
		if _, err := Parse("cloud.yaml", []byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: want %q, got %v", test.text, test.want, err)
		} else if strings.Contains(err.Error(), "cloudfile") {
			t.Errorf("%s: the message names a Go type: %v", test.text, err)
		}
	}
}

// FuzzParse: any file is refused or makes a cloud; nothing panics.
func FuzzParse(f *testing.F) {
	f.Add([]byte("zones: {volume: [a]}\nvolumeTypes: [{name: x, count: 2}]\n"))
	f.Add([]byte("users: [{name: jane, roles: {demo: [reader]}}]\napplicationCredentials: [{name: a, user: jane}]\n"))
	f.Add([]byte("faults: [{service: compute, drop: true}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		if c, err := Parse("cloud.yaml", text); err == nil {
			c.New().CloudsYAML("http://127.0.0.1:1")
		}
	})
}
