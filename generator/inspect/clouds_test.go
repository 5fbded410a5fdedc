package inspect

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim/cloudfile"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// states are those of the facts, by name. A part that is not named in a row of the table is known.
type states map[string]v1alpha1.State

func statesOf(inv v1alpha1.Inventory) states {
	return states{
		"versions of Cinder": inv.VersionsOf("block-storage").State, "compute zones": inv.Zones.Compute.State, "volume zones": inv.Zones.Volume.State,
		"types": inv.VolumeTypes.State, "default type": inv.DefaultVolumeType.State, "limits": inv.Limits.State, "quota": inv.Quota.State,
		"group types": inv.GroupTypes.State, "backups": inv.Backup.State, "backup service": inv.Backup.Value.Service.State,
	}
}

// asMember are the states that differ from known when a member of the project asks.
func asMember(more states) states {
	all := states{"backup service": v1alpha1.Denied}
	for name, state := range more {
		all[name] = state
	}
	return all
}

func typesOf(inv v1alpha1.Inventory) []string {
	var names []string
	for _, t := range inv.VolumeTypes.Value {
		names = append(names, t.Name)
	}
	return names
}

func typeOf(inv v1alpha1.Inventory, name string) v1alpha1.VolumeType {
	i := slices.IndexFunc(inv.VolumeTypes.Value, func(t v1alpha1.VolumeType) bool { return t.Name == name })
	if i < 0 {
		return v1alpha1.VolumeType{}
	}
	return inv.VolumeTypes.Value[i]
}

// kindsOfCloud are clouds as people have them. want are the states as a member sees them. holds is what else the inventory must say.
var kindsOfCloud = []struct {
	name, file string
	want       states
	undecided  bool // no decision is made: a fact that it needs failed
	holds      func(v1alpha1.Inventory) bool
}{
	{name: "the demo cloud"},
	{
		name: "one type", file: "volumeTypes: [{name: only}]\ndefaultVolumeType: only",
		holds: func(inv v1alpha1.Inventory) bool { return slices.Equal(typesOf(inv), []string{"only"}) },
	},
	{
		name: "1,100 types: more than a page of 1,000", file: "volumeTypes: [{name: tier, count: 1100}]\ndefaultVolumeType: tier-7",
		holds: func(inv v1alpha1.Inventory) bool { return len(inv.VolumeTypes.Value) == 1100 },
	},
	{
		name: "100 types in pages of 7", file: "volumeTypes: [{name: tier, count: 100}]\ndefaultVolumeType: tier-7\npageSize: 7",
		holds: func(inv v1alpha1.Inventory) bool { return len(inv.VolumeTypes.Value) == 100 },
	},
	{
		name: "pages of one", file: "pageSize: 1",
		holds: func(inv v1alpha1.Inventory) bool {
			return len(inv.VolumeTypes.Value) == 4 && len(inv.GroupTypes.Value) == 2
		},
	},
	{
		name: "zones that do not match", file: "zones: {compute: [rack-a, rack-b], volume: [nova]}",
		holds: func(inv v1alpha1.Inventory) bool {
			return len(inv.Zones.Compute.Value) == 2 && inv.Zones.Volume.Value[0].Name == "nova"
		},
	},
	{
		name: "one zone", file: "zones: {compute: [nova], volume: [nova]}",
		holds: func(inv v1alpha1.Inventory) bool { return len(inv.Zones.Compute.Value) == 1 },
	},
	{
		name: "unavailable zones", file: "zones: {compute: [az1, {name: az2, available: false}], volume: [{name: az1, available: false}, az2]}",
		holds: func(inv v1alpha1.Inventory) bool {
			return !inv.Zones.Compute.Value[1].Available && inv.Zones.Compute.Value[0].Available && !inv.Zones.Volume.Value[0].Available
		},
	},
	{
		name: "blanks and other letters in names",
		file: "zones: {compute: ['az 1', Zürich], volume: ['az 1', Zürich]}\nvolumeTypes: [{name: 'schnell, groß'}, {name: 高速}]\ndefaultVolumeType: 高速",
		holds: func(inv v1alpha1.Inventory) bool {
			return inv.DefaultVolumeType.Value == "高速" && inv.Zones.Volume.Value[0].Name == "Zürich" && typeOf(inv, "schnell, groß").ID != ""
		},
	},
	{
		name: "types bound to zones", file: "volumeTypes: [{name: standard}, {name: local, zones: [az2, az1]}]",
		holds: func(inv v1alpha1.Inventory) bool {
			return slices.Equal(typeOf(inv, "local").Zones, []string{"az1", "az2"}) && typeOf(inv, "standard").Zones == nil
		},
	},
	{
		name: "types with multiattach, encryption and restricted use",
		file: `volumeTypes: [{name: standard}, {name: shared, multiattach: true}, {name: secret, encryption: {provider: luks, location: front-end}},
  {name: mine, private: true, projects: [demo]}, {name: theirs, private: true, projects: [other]}]`,
		holds: func(inv v1alpha1.Inventory) bool {
			return typeOf(inv, "shared").Multiattach && slices.Equal(typesOf(inv), []string{"mine", "secret", "shared", "standard"}) && !typeOf(inv, "mine").Public
		},
	},
	{name: "no default type", file: `defaultVolumeType: ""`, want: states{"default type": v1alpha1.Unsupported}},
	{
		name: "no backup service", file: "services: {backup: {missing: true}}",
		holds: func(inv v1alpha1.Inventory) bool {
			return inv.Backup.Value.Service.State == v1alpha1.Denied || inv.Backup.Value.Service.Value == "absent"
		},
	},
	{
		name: "Cinder 3.0 only", file: "services: {blockStorage: {maxMicroversion: '3.0'}}", want: states{"group types": v1alpha1.Unsupported},
		holds: func(inv v1alpha1.Inventory) bool {
			return inv.Services.Value[blockStorage].MaxMicroversion == "3.0" && typeOf(inv, "multiattach").Specs == v1alpha1.Unsupported
		},
	},
	{
		name: "endpoints without a version", file: "unversionedEndpoints: true",
		holds: func(inv v1alpha1.Inventory) bool { return inv.Services.Value[compute].MaxMicroversion == "2.93" },
	},
	{
		name: "types that fail", file: "faults: [{service: block-storage, path: /v3/*/types, status: 503}]", want: states{"types": v1alpha1.Failed}, undecided: true,
		holds: func(inv v1alpha1.Inventory) bool {
			return strings.HasPrefix(inv.VolumeTypes.Reason, "block-storage: GET http://") && strings.HasSuffix(inv.VolumeTypes.Reason, "/types: HTTP 503: Service Unavailable")
		},
	},
	{
		name: "Cinder fails", file: "faults: [{service: block-storage, status: 503}]", undecided: true,
		want: states{
			"versions of Cinder": v1alpha1.Failed, "volume zones": v1alpha1.Failed, "types": v1alpha1.Failed, "default type": v1alpha1.Failed, "limits": v1alpha1.Failed,
			"quota": v1alpha1.Failed, "group types": v1alpha1.Failed, "backups": v1alpha1.Failed, "backup service": "",
		},
	},
	{name: "quota that fails", file: "faults: [{service: block-storage, path: '/v3/*/os-quota-sets/*', status: 500}]", want: states{"quota": v1alpha1.Failed}},
	{
		name: "Nova is not in the catalog", file: "services: {compute: {missing: true}}", want: states{"compute zones": v1alpha1.Unsupported}, undecided: true,
	},
	{
		name: "quota that answers 401 to a fresh token", file: "faults: [{service: block-storage, path: '/v3/*/os-quota-sets/*', status: 401}]", want: states{"quota": v1alpha1.Denied},
	},
}

// connectAs logs in by the entry of a user in the clouds.yaml of the cloud.
func connectAs(t *testing.T, sim *openstacksim.Sim, entry, base string, transport http.RoundTripper) *cloud.Cloud {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	testfile.Write(t, file, sim.CloudsYAML(base), 0o600)
	settings, err := cloud.FromSource(cloud.Source{CloudName: entry, CloudsFile: file, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cloud.Connect(t.Context(), settings, cloud.Options{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func inspectAs(t *testing.T, sim *openstacksim.Sim, entry string) v1alpha1.Inventory {
	t.Helper()
	inv, err := Inspect(t.Context(), connectAs(t, sim, entry, address, memnet.Transport(sim.Handler())), nil)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// decisions are the bytes of what is decided for an inventory, or the error that says why nothing is.
func decisions(t *testing.T, inv v1alpha1.Inventory) (text string, decided bool) {
	t.Helper()
	r, err := plan.Decide(inv, v1alpha1.Distribution{}, v1alpha1.Vanilla, v1alpha1.Kustomize, "test")
	if err != nil {
		return err.Error(), false
	}
	document, err := v1alpha1.YAML(r.Document(nil))
	if err != nil {
		t.Fatal(err)
	}
	return string(document), true
}

func TestEveryKindOfCloudIsReadAndDecidedAlikeForAdministratorMemberAndReader(t *testing.T) {
	for _, kind := range kindsOfCloud {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			shaped, err := cloudfile.Parse("cloud.yaml", []byte(kind.file))
			if err != nil {
				t.Fatal(err)
			}
			want, decided := "", false
			for _, entry := range []string{"sim-demo", "sim-reader", "sim-demo-admin", "sim-appcred"} {
				inv := inspectAs(t, shaped.New(), entry)
				wanted := asMember(kind.want)
				if entry == "sim-demo-admin" && kind.want["backup service"] == "" {
					wanted["backup service"] = v1alpha1.Known
				}
				if inv.Backup.State == v1alpha1.Failed {
					wanted["backup service"] = ""
				}
				for name, state := range statesOf(inv) {
					if w, named := wanted[name]; named && state != w || !named && state != v1alpha1.Known {
						t.Errorf("%s: %s: want %q, got %q", entry, name, w, state)
					}
				}
				if kind.holds != nil && !kind.holds(inv) {
					t.Errorf("%s: the inventory does not say what the cloud has: %+v", entry, inv)
				}
				got, ok := decisions(t, inv)
				got = strings.ReplaceAll(got, "cloud "+entry, "cloud sim-demo") // an error names the cloud as the person does
				if entry == "sim-demo" {
					want, decided = got, ok
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s decides otherwise than a member (-member +%s):\n%s", entry, entry, diff)
				}
			}
			if decided == kind.undecided {
				t.Errorf("want decided %t, got %s", !kind.undecided, want)
			}
		})
	}
}

// TestAccessRulesDenyFactsAndChangeNoDecision: a credential with the rules for the facts that decisions need decides as a member.
func TestAccessRulesDenyFactsAndChangeNoDecision(t *testing.T) {
	const file = `applicationCredentials:
- name: narrow
  user: demo
  accessRules:
  - {service: volumev3, path: /v3/}
  - {service: volumev3, path: /v3/*/os-availability-zone}
  - {service: volumev3, path: /v3/*/types}
  - {service: volumev3, path: /v3/*/types/default}
  - {service: volumev3, path: /v3/*/types/*/extra_specs}
  - {service: volumev3, path: /v3/*/backups}
  - {service: compute, path: /v2.1/os-availability-zone}
- name: none
  user: demo
  accessRules: [{service: compute, path: /nothing}]
`
	shaped, err := cloudfile.Parse("cloud.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	sim := shaped.New()
	narrow := inspectAs(t, sim, "sim-appcred")
	want := statesOf(narrow)
	for name, state := range map[string]v1alpha1.State{"limits": v1alpha1.Denied, "quota": v1alpha1.Denied, "group types": v1alpha1.Denied, "backups": v1alpha1.Known} {
		if want[name] != state {
			t.Errorf("%s: want %s, got %s", name, state, want[name])
		}
	}
	member, _ := decisions(t, inspectAs(t, sim, "sim-demo"))
	got, decided := decisions(t, narrow)
	if diff := cmp.Diff(member, got); diff != "" || !decided {
		t.Errorf("decided %t (-member +narrow):\n%s", decided, diff)
	}
	nothing := statesOf(inspectAs(t, sim, "sim-appcred-none"))
	for name, state := range nothing {
		if name != "backup service" && state != v1alpha1.Denied {
			t.Errorf("without any right: %s: want denied, got %s", name, state)
		}
	}
}

// TestTheEndOfTheContextStopsEveryRequest: no collector waits for a cloud that does not answer.
func TestTheEndOfTheContextStopsEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shaped, err := cloudfile.Parse("cloud.yaml", []byte("faults: [{service: block-storage, delay: 1h}, {service: compute, delay: 1h}]"))
		if err != nil {
			t.Fatal(err)
		}
		sim := shaped.New()
		c := connectAs(t, sim, "sim-demo", address, memnet.Transport(sim.Handler()))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err = Inspect(ctx, c, nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("want the end of the context, got %v", err)
		}
		if text := err.Error(); !strings.Contains(text, "no answer to GET "+address+"/compute/v2.1/") || !strings.Contains(text, "more") {
			t.Errorf("want the requests without an answer, got %s", text)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("want an end after 3s, it took %s", took)
		}
	})
}

// TestIndependentRequestsDoNotWaitForEachOther: with the same latency for each request, a member's inspection takes as long as one.
func TestIndependentRequestsDoNotWaitForEachOther(t *testing.T) {
	for entry, want := range map[string]time.Duration{
		"sim-demo":       time.Second,
		"sim-demo-admin": 2 * time.Second, // the encryption of each type, after the list of types
		"sim-appcred":    2 * time.Second, // the extra specs of each type, which the list leaves out for this role
	} {
		synctest.Test(t, func(t *testing.T) {
			shaped, err := cloudfile.Parse("cloud.yaml", []byte("latency: {answer: 1s}"))
			if err != nil {
				t.Fatal(err)
			}
			sim := shaped.New()
			c := connectAs(t, sim, entry, address, memnet.Transport(sim.Handler()))
			began := time.Now()
			if _, err := Inspect(t.Context(), c, nil); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("%s: want %s, it took %s", entry, want, took)
			}
		})
	}
}

// TestACloudWithAPrivateCAIsRead needs real TLS: the CA comes from a file, as clouds.yaml names it.
func TestACloudWithAPrivateCAIsRead(t *testing.T) {
	sim := openstacksim.New(openstacksim.Default())
	server := httptest.NewUnstartedServer(sim.Handler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // one client is meant to refuse the certificate
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	testfile.Write(t, ca, text, 0o600)
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	testfile.Write(t, file, sim.CloudsYAML(server.URL), 0o600)
	source := cloud.Source{CloudName: "sim-demo", CloudsFile: file, CACert: ca, Env: func(string) string { return "" }}
	settings, err := cloud.FromSource(source)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cloud.Connect(t.Context(), settings, cloud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	inv, err := Inspect(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := inv.Services.Value[blockStorage].Endpoint; inv.VolumeTypes.State != v1alpha1.Known || !strings.HasPrefix(got, "https://") {
		t.Errorf("want types over https, got %s from %s", inv.VolumeTypes.State, got)
	}
	source.CACert = ""
	if settings, err = cloud.FromSource(source); err != nil {
		t.Fatal(err)
	}
	if _, err = cloud.Connect(t.Context(), settings, cloud.Options{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the CA: want an error about the certificate, got %v", err)
	}
}
