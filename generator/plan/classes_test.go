package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func TestClassNamesAreSlugsAndLossyOnesCarryTheTypesHash(t *testing.T) {
	cases := []struct{ prefix, name, want string }{
		{"", "fast", "fast"},
		{"cinder-", "fast", "cinder-fast"},
		{"", "ssd.high-iops", "ssd.high-iops"},
		{"", "a--b", "a--b"},
		{"", "SSD", "ssd-19fe50"},
		{"", "__DEFAULT__", "default-19fe50"},
		{"", "ssd_fast", "ssd-fast-19fe50"},
		{"", "über schnell", "ber-schnell-19fe50"},
		{"", "日本", "type-19fe50"},
		{"", "a..b", "a-b-19fe50"},
		{"", "a.-b", "a-b-19fe50"},
		{"", "-a-", "a-19fe50"},
		{"", "a/b", "a-b-19fe50"},
		{"", strings.Repeat("x", 64), strings.Repeat("x", 56) + "-19fe50"},
		{"", strings.Repeat("x", 63), strings.Repeat("x", 63)},
		{"pre-", strings.Repeat("x", 63), "pre-" + strings.Repeat("x", 52) + "-19fe50"},
	}
	for _, c := range cases {
		if got := className(c.prefix, c.name, "the-id"); got != c.want {
			t.Errorf("ClassName(%q, %q): want %q, got %q", c.prefix, c.name, c.want, got)
		}
	}
}

func FuzzClassNameIsAlwaysValidAndShort(f *testing.F) {
	for _, name := range []string{"fast", "__DEFAULT__", "", "a.b", ".", "-", "日本", strings.Repeat("x.", 60)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if got := className("", name, "id"); !isSubdomain(got) || len(got) > maxClassName {
			t.Errorf("ClassName(%q) = %q is no class name", name, got)
		}
	})
}

func TestAnotherTypeNeverRenamesAClass(t *testing.T) {
	before := classNames(decide(t, cloudOf("fast"), "", v1alpha1.Vanilla))
	after := classNames(decide(t, cloudOf("fast", "FAST", "fast_"), "", v1alpha1.Vanilla))
	if !slices.Contains(after, before[0]) || len(after) != 3 {
		t.Errorf("want %v to stay among three, got %v", before, after)
	}
}

func TestWhichTypesGetAClassAndWhichIsTheDefault(t *testing.T) {
	cases := []struct {
		name        string
		types       []string
		spec        string
		target      v1alpha1.Target
		want        []string
		wantDefault string
	}{
		{"one each, the cloud's default is the default", []string{"standard", "fast"}, "", v1alpha1.Vanilla, []string{"fast", "standard"}, "standard"},
		{"Cinder's own type is skipped", []string{"standard", "__DEFAULT__"}, "", v1alpha1.Vanilla, []string{"standard"}, "standard"},
		{
			"Cinder's own type is the effective default",
			[]string{"__DEFAULT__", "fast"},
			"", v1alpha1.Vanilla,
			[]string{className("", "__DEFAULT__", "id-of-__DEFAULT__"), "fast"},
			className("", "__DEFAULT__", "id-of-__DEFAULT__"),
		},
		{"Cinder's own type is not, where another is chosen", []string{"__DEFAULT__", "fast"}, "spec: {storageClasses: {default: fast}}", v1alpha1.Vanilla, []string{"fast"}, "fast"},
		{"none by choice", []string{"standard"}, "spec: {storageClasses: {default: none}}", v1alpha1.Vanilla, []string{"standard"}, ""},
		{"by id", []string{"standard", "fast"}, "spec: {storageClasses: {default: id-of-fast}}", v1alpha1.Vanilla, []string{"fast", "standard"}, "fast"},
		{"none beside OpenShift's driver", []string{"standard"}, "", v1alpha1.Standalone, []string{"standard"}, ""},
		{"none beside HyperShift's driver", []string{"standard"}, "", v1alpha1.HostedControlPlane, []string{"standard"}, ""},
		{"by choice beside OpenShift's driver", []string{"standard", "fast"}, "spec: {storageClasses: {default: fast}}", v1alpha1.Standalone, []string{"fast", "standard"}, "fast"},
		{"in place of OpenShift's driver", []string{"standard"}, "spec: {openshift: {coexistence: adopt}}", v1alpha1.Standalone, []string{"standard"}, "standard"},
		{"include and exclude are globs", []string{"ssd-1", "ssd-2", "hdd"}, "spec: {storageClasses: {include: ['ssd-*', hdd], exclude: ['ssd-?']}}", v1alpha1.Vanilla, []string{"hdd"}, ""},
		{"a prefix", []string{"standard"}, "spec: {storageClasses: {namePrefix: cinder-}}", v1alpha1.Vanilla, []string{"cinder-standard"}, "cinder-standard"},
		{"a name of one's own", []string{"standard"}, "spec: {storageClasses: {overrides: {standard: {name: mine}}}}", v1alpha1.Vanilla, []string{"mine"}, "mine"},
		{"no type at all", nil, "", v1alpha1.Vanilla, nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := decide(t, cloudOf(c.types...), c.spec, c.target)
			if diff := cmp.Diff(c.want, classNames(r)); diff != "" {
				t.Errorf("classes (-want +got):\n%s", diff)
			}
			if r.DefaultClass.Value != c.wantDefault {
				t.Errorf("default: want %q, got %q: %s", c.wantDefault, r.DefaultClass.Value, r.DefaultClass.Reason)
			}
			for _, class := range r.StorageClasses {
				if want := class.Value.Name == c.wantDefault; class.Value.Default != want {
					t.Errorf("class %s: want default %t", class.Value.Name, want)
				}
			}
		})
	}
}

func TestAnOverrideChangesTheClassOfItsType(t *testing.T) {
	spec := `spec: {storageClasses: {overrides: {id-of-fast: {reclaimPolicy: Retain, fsType: xfs, mountOptions: [noatime],
	  parameters: {availability: az1, blockSize: "2048", inodeSize: "1024"}, annotations: {a: b}}}}}`
	got := classNamed(t, decide(t, cloudOf("standard", "fast"), spec, v1alpha1.Vanilla), "fast")
	want := StorageClass{
		Name: "fast", VolumeType: VolumeType{"id-of-fast", "fast"},
		Parameters:  map[string]string{"type": "fast", "availability": "az1", "csi.storage.k8s.io/fstype": "xfs", "blockSize": "2048", "inodeSize": "1024"},
		Provisioner: "cinder.csi.openstack.org", OwnReclaimPolicy: true,
		ReclaimPolicy: "Retain", VolumeBindingMode: v1alpha1.WaitForFirstConsumer, MountOptions: []string{"noatime"},
		Annotations: map[string]string{"a": "b"}, AllowVolumeExpansion: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBindingModeAndExpansionOfAllClassesAndOfOne(t *testing.T) {
	spec := `spec: {storageClasses: {volumeBindingMode: Immediate, allowVolumeExpansion: false, overrides: {fast: {volumeBindingMode: WaitForFirstConsumer, allowVolumeExpansion: true}},
	  extra: [{name: keep, type: fast}]}}`
	r := decide(t, cloudOf("standard", "fast"), spec, v1alpha1.Vanilla)
	for name, want := range map[string]struct {
		mode  string
		grows bool
	}{"standard": {v1alpha1.Immediate, false}, "fast": {v1alpha1.WaitForFirstConsumer, true}, "keep": {v1alpha1.Immediate, false}} {
		if got := classNamed(t, r, name); got.VolumeBindingMode != want.mode || got.AllowVolumeExpansion != want.grows {
			t.Errorf("class %s: want %v, got %s, %t", name, want, got.VolumeBindingMode, got.AllowVolumeExpansion)
		}
	}
	if r.BindingMode.Source != FromConfig || r.Expansion.Source != FromConfig {
		t.Errorf("want both from the configuration, got %s, %s", r.BindingMode.Source, r.Expansion.Source)
	}
}

func TestExtraClasses(t *testing.T) {
	spec := `spec: {storageClasses: {extra: [{name: keep, reclaimPolicy: Retain}, {name: keep-fast, type: fast}, {name: pinned, parameters: {type: gone}}]}}`
	r := decide(t, cloudOf("standard", "fast"), spec, v1alpha1.Vanilla)
	for name, want := range map[string]string{"keep": "standard", "keep-fast": "fast", "pinned": "gone"} {
		if got := classNamed(t, r, name).Parameters["type"]; got != want {
			t.Errorf("class %s: want type %s, got %s", name, want, got)
		}
	}
	if classNamed(t, r, "keep").Default {
		t.Error("want no second default class")
	}
}

func TestAClassNamesTheComputeZonesThatItsTypeCanServe(t *testing.T) {
	inv := cloudOf("standard", "local", "all", "far")
	inv.Zones.Compute = zonesNamed("az1", "zone two")
	inv.Zones.Volume = zonesNamed("az1", "zone two", "az3")
	inv.VolumeTypes.Value[1].Zones = []string{"zone two", "az3"}
	inv.VolumeTypes.Value[2].Zones = []string{"az1", "zone two"}
	inv.VolumeTypes.Value[3].Zones = []string{"az3"}
	r := decide(t, inv, "metadata: {name: c}", v1alpha1.Vanilla)
	if diff := cmp.Diff([]string{"zone-two"}, classNamed(t, r, "local").AllowedZones); diff != "" {
		t.Errorf("local (-want +got):\n%s", diff)
	}
	if got := classNamed(t, r, "all").AllowedZones; got != nil {
		t.Errorf("all: want no restriction, got %v", got)
	}
	if slices.Contains(classNames(r), "far") || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "far") {
		t.Errorf("want no class far and a warning about it, got %v and %q", classNames(r), r.Warnings)
	}
	r = decide(t, inv, "spec: {topology: {mode: disabled}}", v1alpha1.Vanilla)
	if got := classNamed(t, r, "local").AllowedZones; got != nil {
		t.Errorf("want no zones without topology, got %v", got)
	}
}

func TestDecisionsDoNotDependOnWhatOnlyAdministratorsSee(t *testing.T) {
	member := cloudOf("standard", "fast")
	admin := cloudOf("standard", "fast")
	for i := range admin.VolumeTypes.Value {
		member.VolumeTypes.Value[i].Encryption = without[v1alpha1.Encryption](v1alpha1.Denied)
		admin.VolumeTypes.Value[i].Encryption = knownFact(v1alpha1.Encryption{Provider: "luks"})
		admin.VolumeTypes.Value[i].Description = "another text"
	}
	admin.Quota = knownFact(map[string]v1alpha1.Quota{"volumes": {Limit: 10, InUse: 9}})
	admin.Limits = knownFact(v1alpha1.Limits{Volumes: 10})
	member.GroupTypes = without[[]string](v1alpha1.Failed)
	slices.Reverse(admin.VolumeTypes.Value)
	slices.Reverse(admin.Zones.Volume.Value)
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
		if diff := cmp.Diff(decide(t, member, "", target), decide(t, admin, "", target)); diff != "" {
			t.Errorf("%s (-member +admin):\n%s", target, diff)
		}
	}
}

func TestFailedFactsThatClassesNeedEndTheRun(t *testing.T) {
	types := cloudOf("standard")
	types.VolumeTypes = without[[]v1alpha1.VolumeType](v1alpha1.Failed)
	defaults := cloudOf("standard")
	defaults.DefaultVolumeType = without[string](v1alpha1.Failed)
	services := cloudOf("standard")
	services.Services = without[map[string]v1alpha1.Service](v1alpha1.Failed)
	for name, inv := range map[string]v1alpha1.Inventory{"volumeTypes": types, "defaultVolumeType": defaults, "services": services, "": {}} {
		_, err := Decide(inv, v1alpha1.Distribution{}, v1alpha1.Vanilla, v1alpha1.Helm, "test")
		var failed *FactError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: want a FactError that names it, got %v", name, err)
		}
	}
	if _, err := Decide(defaults, v1alpha1.Distribution{}, v1alpha1.Standalone, v1alpha1.Helm, "test"); err != nil {
		t.Errorf("want no need of the default type beside OpenShift's driver, got %v", err)
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true},
		{"*", "a/b", true},
		{"a*c", "abbc", true},
		{"a*c", "abb", false},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"**", "x", true},
		{"", "", true},
		{"", "x", false},
		{"*a*b*", "xaybz", true},
		{"ssd-*", "hdd-1", false},
		{"[a]", "a", false},
		{"日?", "日本", true},
	} {
		if got := glob(c.pattern, c.name); got != c.want {
			t.Errorf("glob(%q, %q): want %t", c.pattern, c.name, c.want)
		}
	}
}

func TestTypesWhoseZonesAreNotToldAreWarnedAboutByWhatHelps(t *testing.T) {
	cases := []struct {
		state v1alpha1.State
		want  []string
	}{
		{v1alpha1.Denied, []string{`volume type "fast"`, `volume type "standard"`}},
		{v1alpha1.Unsupported, []string{"older than Xena"}},
	}
	for _, c := range cases {
		inv := cloudOf("standard", "fast")
		for i := range inv.VolumeTypes.Value {
			inv.VolumeTypes.Value[i].Specs = c.state
		}
		got := decide(t, inv, "metadata: {name: c}", v1alpha1.Vanilla).Warnings
		if len(got) != len(c.want) {
			t.Errorf("%s: want %d warnings, got %q", c.state, len(c.want), got)
			continue
		}
		for i, want := range c.want {
			if reader := strings.Contains(got[i], "reader"); !strings.Contains(got[i], want) || reader != (c.state == v1alpha1.Denied) {
				t.Errorf("%s: want a warning about %s, got %q", c.state, want, got[i])
			}
		}
		if got := decide(t, inv, "{metadata: {name: c}, spec: {topology: {mode: disabled}}}", v1alpha1.Vanilla).Warnings; len(got) > 0 {
			t.Errorf("%s: want no warning without topology, got %q", c.state, got)
		}
	}
}

// Each placeholder that the driver documents, in each place where a class comes from; everywhere else ${ is a variable that nobody filled in.
func TestAClassMayHaveThePlaceholdersOfItsDriver(t *testing.T) {
	for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
		for _, value := range []string{"${pvc.namespace}/${pvc.name}", "${pv.name}", "5 $$ a month"} {
			for _, place := range []string{
				"storageClasses: {overrides: {fast: {parameters: {metadata.claim: %q}}}}",
				"storageClasses: {extra: [{name: twin, type: fast, parameters: {metadata.claim: %q}}]}",
			} {
				r, err := Decide(cloudOf("fast"), configured(t, "spec: {"+fmt.Sprintf(place, value)+"}"), v1alpha1.Vanilla, format, "test")
				if err != nil {
					t.Errorf("%s in %s: %v", value, place, err)
					continue
				}
				of := slices.IndexFunc(r.StorageClasses, func(c Decision[StorageClass]) bool { return c.Value.Parameters["metadata.claim"] == value })
				if of < 0 {
					t.Errorf("%s in %s: no class has it", value, place)
				} else if kept := r.StorageClasses[of].Value.Annotations[notByFlux] == "disabled"; kept != strings.Contains(value, "${") {
					t.Errorf("%s in %s: kept from Flux: %v", value, place, kept)
				}
			}
		}
	}
	for _, spec := range []string{
		"storageClasses: {overrides: {fast: {parameters: {metadata.claim: '${namespace}'}}}}",
		"storageClasses: {overrides: {fast: {parameters: {availability: '${pv.name}'}}}}",
		"storageClasses: {overrides: {fast: {annotations: {example.com/a: '${pv.name}'}}}}",
		"snapshots: {classes: {own: {parameters: {description: '${pv.name}'}}}}",
		"attributesClasses: {gold: {type: fast, metadata: {a: '${pv.name}'}}}",
		"driver: {volumeMetadata: {a: '${pv.name}'}}",
	} {
		if _, err := Decide(cloudOf("fast"), configured(t, "spec: {"+spec+"}"), v1alpha1.Vanilla, v1alpha1.Helm, "test"); err == nil {
			t.Errorf("%s: want an error", spec)
		}
	}
}

// The operations of CSI that take a Secret, and the way in which each object of the class would fail.
func TestAClassWithASecretThatNoSidecarMayReadIsRefused(t *testing.T) {
	for _, operation := range []string{"provisioner", "controller-publish", "controller-expand", "controller-modify", "node-stage", "node-publish", "node-expand"} {
		spec := "spec: {storageClasses: {overrides: {fast: {parameters: {csi.storage.k8s.io/" + operation + "-secret-name: a, csi.storage.k8s.io/" + operation + "-secret-namespace: b}}}}}"
		r, err := Decide(cloudOf("fast"), configured(t, spec), v1alpha1.Vanilla, v1alpha1.Helm, "test")
		if slices.Contains(readByKubelet, operation) {
			if err != nil || !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, operation+"-secret-name") }) {
				t.Errorf("%s: want a warning, got %v %v", operation, r.Warnings, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), operation+"-secret-name") {
			t.Errorf("%s: want an error that names the parameter, got %v", operation, err)
		}
	}
	for _, key := range []string{"snapshotter", "snapshotter-list"} {
		spec := "spec: {snapshots: {classes: {own: {parameters: {csi.storage.k8s.io/" + key + "-secret-name: a}}}}}"
		if _, err := Decide(cloudOf("fast"), configured(t, spec), v1alpha1.Vanilla, v1alpha1.Helm, "test"); err == nil {
			t.Errorf("%s: want an error", key)
		}
	}
}
