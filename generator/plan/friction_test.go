package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Each test of this file is named after what a person sees who configured something that cannot have the meant effect.

// warnsOnce checks that a warning is there, and only once.
func warnsOnce(t *testing.T, r Result, want string) {
	t.Helper()
	n := 0
	for _, w := range r.Warnings {
		if strings.Contains(w, want) {
			n++
		}
	}
	if n != 1 {
		t.Errorf("want one warning with %q, got %d in %q", want, n, r.Warnings)
	}
}

// refusal is the one error of a configuration.
func refusal(t *testing.T, inv v1alpha1.Inventory, spec string, target v1alpha1.Target) string {
	t.Helper()
	_, err := Decide(inv, configured(t, spec), target, v1alpha1.Kustomize, "test")
	var wrong *ConfigError
	if !errors.As(err, &wrong) {
		t.Fatalf("%s: want a ConfigError, got %v", spec, err)
	}
	return strings.Join(wrong.Problems, "\n")
}

func TestTheInfraIDOfAHostedClusterIsItsClusterIDAlsoWithAName(t *testing.T) {
	const both = "{metadata: {name: prod}, spec: {hypershift: {infraID: prod-x7k2p}}}"
	if got := decide(t, cloudOf("fast"), both, v1alpha1.HostedControlPlane).ClusterID.Value; got != "prod-x7k2p" {
		t.Errorf("want the infrastructure ID, got %q", got)
	}
	named := decide(t, cloudOf("fast"), "metadata: {name: prod}", v1alpha1.HostedControlPlane)
	if named.ClusterID.Value != "prod" {
		t.Errorf("want the name without an infrastructure ID, got %q", named.ClusterID.Value)
	}
	warnsOnce(t, named, "spec.hypershift.infraID is not set")
	if got := decide(t, cloudOf("fast"), both, v1alpha1.Vanilla).ClusterID.Value; got != "prod" {
		t.Errorf("want the name on vanilla, got %q", got)
	}
}

func TestAFileSystemThatTheDriverDoesNotMakeIsAnErrorNow(t *testing.T) {
	got := refusal(t, cloudOf("fast"), "spec: {storageClasses: {overrides: {fast: {fsType: ntfs}}}}", v1alpha1.Vanilla)
	if !strings.Contains(got, `spec.storageClasses.overrides.fast.fsType: the driver does not create file system "ntfs"`) {
		t.Errorf("got %s", got)
	}
}

func TestAPatternThatMatchesNoTypeIsWarnedAbout(t *testing.T) {
	r := decide(t, cloudOf("fast", "slow"), `spec: {storageClasses: {default: none, include: ["nope", "f*"], exclude: ["sloww"]}}`, v1alpha1.Vanilla)
	warnsOnce(t, r, `spec.storageClasses.include: "nope" matches no volume type`)
	warnsOnce(t, r, `spec.storageClasses.exclude: "sloww" matches no volume type; did you mean slow?`)
	if names := classNames(r); !slices.Equal(names, []string{"fast"}) {
		t.Errorf("want the class of the pattern that matches, got %q", names)
	}
	for _, w := range decide(t, cloudOf("fast"), "", v1alpha1.Vanilla).Warnings {
		if strings.Contains(w, "matches no volume type") {
			t.Errorf("nobody configured a pattern: %s", w)
		}
	}
}

func TestAnOverrideOfNoTypeIsWarnedAbout(t *testing.T) {
	r := decide(t, cloudOf("standard", "fast"), "spec: {storageClasses: {overrides: {fsat: {reclaimPolicy: Retain}}}}", v1alpha1.Vanilla)
	warnsOnce(t, r, "spec.storageClasses.overrides.fsat changes nothing: the cloud has no volume type of this ID or name; did you mean fast?")
}

func TestAnExtraClassOfATypeThatIsGoneIsLeftOutWithAWarning(t *testing.T) {
	r := decide(t, cloudOf("standard"), "spec: {storageClasses: {extra: [{name: keep, type: gone, reclaimPolicy: Retain}]}}", v1alpha1.Vanilla)
	warnsOnce(t, r, `spec.storageClasses.extra[0]: the class keep is left out, because the cloud has no volume type "gone"`)
	if names := classNames(r); !slices.Equal(names, []string{"standard"}) {
		t.Errorf("want no class of that type, got %q", names)
	}
}

func TestATypeWhoseNameCannotBeWrittenNeverStopsTheBundle(t *testing.T) {
	inv := cloudOf("x ${X}", "fast") // it is the cloud's default type too
	r := decide(t, inv, "", v1alpha1.Vanilla)
	warnsOnce(t, r, `volume type "x ${X}" (id-of-x ${X}) has no class`)
	if names := classNames(r); !slices.Equal(names, []string{"fast"}) {
		t.Errorf("want the class of the other type, got %q", names)
	}
	for _, d := range r.Document(nil).Decisions {
		if strings.Contains(d.Reason+fmt.Sprint(d.Facts), "${") {
			t.Errorf("%s: the name is in the plan: %s %q", d.ID, d.Reason, d.Facts)
		}
	}
}

func TestTopologyThatIsOffBecauseZonesDoNotMatchIsWarnedAboutWithTheZones(t *testing.T) {
	inv := cloudOf("fast")
	inv.Zones.Volume = zonesNamed("nova", "spare")
	r := decide(t, inv, "", v1alpha1.Vanilla)
	warnsOnce(t, r, `topology is off: compute zone "az1", "az2" has no volume zone of the same name; the volume zones are "nova", "spare"`)
	for _, w := range decide(t, inv, "spec: {topology: {mode: disabled}}", v1alpha1.Vanilla).Warnings {
		if strings.Contains(w, "topology is off") {
			t.Errorf("topology is off because the configuration says so: %s", w)
		}
	}
}

func TestCoexistenceOnVanillaIsWarnedAbout(t *testing.T) {
	warnsOnce(t, decide(t, cloudOf("fast"), "spec: {openshift: {coexistence: adopt}}", v1alpha1.Vanilla), "spec.openshift.coexistence: adopt has no effect on vanilla")
}

func TestAPrefixThatGivesInvalidNamesIsOneErrorThatNamesThePrefix(t *testing.T) {
	got := refusal(t, cloudOf("fast", "slow", "other"), "spec: {storageClasses: {namePrefix: Cinder_}}", v1alpha1.Vanilla)
	if strings.Contains(got, "\n") || !strings.Contains(got, `spec.storageClasses.namePrefix: "Cinder_" cannot begin the name of a class`) {
		t.Errorf("want one problem with the prefix, got:\n%s", got)
	}
}

func TestTheSameWarningIsThereOnce(t *testing.T) {
	d := &decider{}
	d.warn("the same %s", "line")
	d.warn("the same line")
	d.warn("another line")
	if want := []string{"the same line", "another line"}; !slices.Equal(want, d.warnings) {
		t.Errorf("want %q, got %q", want, d.warnings)
	}
}

func TestTwoTypesOfOneNameAreToldWithTheirIDs(t *testing.T) {
	inv := cloudOf("same")
	inv.VolumeTypes.Value = append(inv.VolumeTypes.Value, v1alpha1.VolumeType{ID: "another-id", Name: "same"})
	if got := refusal(t, inv, "", v1alpha1.Vanilla); !strings.Contains(got, `"same" (ID id-of-same)`) || !strings.Contains(got, `"same" (ID another-id)`) {
		t.Errorf("want both IDs, got %s", got)
	}
}

func TestAKnownAndEmptyDefaultTypeIsNone(t *testing.T) {
	inv := cloudOf("fast")
	inv.DefaultVolumeType = knownFact("")
	r := decide(t, inv, "", v1alpha1.Vanilla)
	warnsOnce(t, r, "no class is the default: the cloud has no default volume type")
}

func TestAMicroversionThatIsNoNumberIsWarnedAbout(t *testing.T) {
	inv := cloudOf("fast")
	service := inv.Services.Value[blockStorage]
	service.MaxMicroversion = "latest"
	inv.Services.Value[blockStorage] = service
	r := decide(t, inv, "", v1alpha1.Vanilla)
	warnsOnce(t, r, `Cinder reports the microversion "latest", which is not a number`)
	if r.SnapshotClass.Value.InUse {
		t.Error("want force for volumes in use")
	}
}

func TestAPatternMayHoldADollarAndABrace(t *testing.T) {
	r := decide(t, cloudOf("fast"), `spec: {storageClasses: {exclude: ["*${X}*"]}}`, v1alpha1.Vanilla)
	warnsOnce(t, r, `spec.storageClasses.exclude: "*${X}*" matches no volume type`)
}

func TestAnAttributesClassIsCheckedByTheDriversOwnParser(t *testing.T) {
	const spec = "spec: {kubernetesVersion: '1.34', attributesClasses: {gold: %}}"
	class := func(fields string) string { return strings.Replace(spec, "%", fields, 1) }
	r := decide(t, cloudOf("fast"), class("{type: id-of-fast, policy: on-demand, metadata: {tier: gold}}"), v1alpha1.Vanilla)
	want := map[string]string{"type": "id-of-fast", "policy": "on-demand", "metadata.tier": "gold"}
	if len(r.AttributesClasses) != 1 || !maps.Equal(want, r.AttributesClasses[0].Value.Parameters) {
		t.Errorf("want %v, got %+v", want, r.AttributesClasses)
	}
	for fields, want := range map[string]string{
		"{}":                              "spec.attributesClasses.gold: changes nothing",
		"{policy: never}":                 "needs a new volume type",
		"{type: fast, policy: sometimes}": `spec.attributesClasses.gold.policy: "sometimes" is not one of never, on-demand`,
		"{metadata: {'csi.storage.k8s.io/pv/name': x}}": "spec.attributesClasses.gold",
	} {
		if got := refusal(t, cloudOf("fast"), class(fields), v1alpha1.Vanilla); !strings.Contains(got, want) {
			t.Errorf("%s: want %q, got %s", fields, want, got)
		}
	}
	if got := refusal(t, cloudOf("fast"), "spec: {attributesClasses: {gold: {type: fast}}}", v1alpha1.Vanilla); !strings.Contains(got, "set spec.kubernetesVersion to 1.34 or later") {
		t.Errorf("got %s", got)
	}
	gone := decide(t, cloudOf("fast"), class("{type: slow}"), v1alpha1.Vanilla)
	warnsOnce(t, gone, `spec.attributesClasses.gold: the class is left out, because the cloud has no volume type "slow"`)
	if len(gone.AttributesClasses) != 0 {
		t.Errorf("want no class, got %+v", gone.AttributesClasses)
	}
}

func TestABackupClassIsThereWhereTheCloudListsBackups(t *testing.T) {
	for _, c := range []struct {
		state v1alpha1.State
		spec  string
		want  bool
	}{
		{v1alpha1.Known, "", true},
		{v1alpha1.Denied, "", false},
		{v1alpha1.Unsupported, "", false},
		{"", "", false}, // an older inventory
		{v1alpha1.Known, "spec: {snapshots: {backup: disabled}}", false},
		{v1alpha1.Known, "spec: {snapshots: {enabled: false}}", false},
		{v1alpha1.Denied, "spec: {snapshots: {backup: enabled}}", true},
	} {
		inv := cloudOf("fast")
		inv.Backup.State = c.state
		r := decide(t, inv, c.spec, v1alpha1.Vanilla)
		if r.BackupClass.Value.Enabled != c.want || r.BackupClass.Reason == "" {
			t.Errorf("%q, %q: want %t with a reason, got %+v", c.state, c.spec, c.want, r.BackupClass)
		}
	}
	inv := cloudOf("fast")
	inv.Backup.State = v1alpha1.Failed
	if _, err := Decide(inv, configured(t, ""), v1alpha1.Vanilla, v1alpha1.Helm, "test"); err == nil || !strings.Contains(err.Error(), "backup") {
		t.Errorf("want a question that failed to end the run, got %v", err)
	}
	if got := refusal(t, cloudOf("fast"), "spec: {snapshots: {enabled: false, backup: enabled}}", v1alpha1.Vanilla); !strings.Contains(got, "spec.snapshots.backup") {
		t.Errorf("got %s", got)
	}
}

func TestABackupClassWithoutQuotaIsSaidOnTheTerminalAlone(t *testing.T) {
	inv := cloudOf("fast")
	inv.Backup.State = v1alpha1.Known
	plain, err := Decide(inv, configured(t, ""), v1alpha1.Vanilla, v1alpha1.Helm, "test")
	if err != nil {
		t.Fatal(err)
	}
	inv.Quota = v1alpha1.Fact[map[string]v1alpha1.Quota]{State: v1alpha1.Known, Value: map[string]v1alpha1.Quota{"backups": {Limit: 0}}}
	r, err := Decide(inv, configured(t, ""), v1alpha1.Vanilla, v1alpha1.Helm, "test")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Notices) != len(plain.Notices)+1 || !strings.Contains(strings.Join(r.Notices, "\n"), "allows no backup") {
		t.Errorf("want a notice about the quota, got %q", r.Notices)
	}
	if diff := cmp.Diff(plain.Document(nil), r.Document(nil)); diff != "" {
		t.Errorf("want nothing in the plan that follows from a quota (-without +with):\n%s", diff)
	}
}
