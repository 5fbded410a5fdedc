package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// The volume type that most rows change.
const (
	typeID   = "11111111-2222-4333-8444-555555555555"
	typeName = "ssd"
	otherID  = "22222222-2222-4333-8444-555555555555"
)

// written is a bed with a bundle of its cloud in the directory "out".
func written(t *testing.T) (*bed, []string) {
	t.Helper()
	b := newBed(t)
	b.sim.AddVolumeType(openstacksim.VolumeType{ID: typeID, Name: typeName})
	args := generation("vanilla", "helm", filepath.Join(b.dir, "out"))
	b.ok(t, args...)
	return b, args
}

func TestDriftOfACloudIsReportedInOneLineForEachChange(t *testing.T) {
	testenv.NotShort(t)
	cases := []struct {
		name   string
		change func(b *bed)
		check  int    // exit code of generate --check
		write  int    // exit code of generate
		want   string // on stdout of --check
	}{
		{"a quota changed", func(b *bed) { b.sim.SetQuota("demo", "volumes", 7) }, OK, OK, ""},
		{"a server was added", func(b *bed) { b.sim.AddServer(openstacksim.Server{Name: "worker-9"}) }, OK, OK, ""},
		{"a description changed", func(b *bed) {
			b.sim.AddVolumeType(openstacksim.VolumeType{ID: typeID, Name: typeName, Description: "changed"})
		}, OK, OK, ""},
		{"a zone is unavailable", func(b *bed) { b.sim.SetZoneAvailable("az1", false) }, OK, OK, ""},
		{
			"a type was added", func(b *bed) { b.sim.AddVolumeType(openstacksim.VolumeType{Name: "archive"}) },
			Different, OK, "cloud: volume type \"archive\" is new: StorageClass archive is added\n",
		},
		{
			"the default type changed", func(b *bed) { b.sim.SetDefaultVolumeType(typeName) },
			Different, OK, "cloud: defaultVolumeType changes from standard to ssd: defaultClass changes from standard to ssd [StorageClass/ssd, StorageClass/standard]\n",
		},
		{
			"a type was bound to a zone", func(b *bed) { bind(b, "az2") },
			Different, OK, "cloud: volumeTypes[ssd].zones changes from none to az2: StorageClass ssd: allowedZones changes from none to az2\n",
		},
		{
			"a type was bound to another zone", func(b *bed) { bind(b, "az1") },
			Different, OK, "cloud: volumeTypes[ssd].zones changes from az2 to az1: StorageClass ssd: allowedZones changes from az2 to az1\n",
		},
		{
			"a zone was added on both sides", func(b *bed) { b.sim.SetComputeZones("az1", "az2", "az3"); b.sim.SetVolumeZones("az1", "az2", "az3") },
			OK, OK, "",
		},
		{
			"a type was removed", func(b *bed) { b.sim.RemoveVolumeType(typeName) },
			Different, Refused, "cloud: volume type \"ssd\" is gone: StorageClass ssd is removed (generate refuses this without --accept class-removed)\n",
		},
		{
			"a type was renamed", func(b *bed) {
				b.sim.RemoveVolumeType(typeName)
				b.sim.AddVolumeType(openstacksim.VolumeType{ID: typeID, Name: "nvme"})
			},
			Different, Refused, "cloud: volume type \"ssd\" is renamed to \"nvme\": StorageClass ssd is replaced by nvme (generate refuses this without --accept class-removed)\n",
		},
		{
			"a type was made again under its name", func(b *bed) {
				b.sim.RemoveVolumeType(typeName)
				b.sim.AddVolumeType(openstacksim.VolumeType{ID: otherID, Name: typeName})
			},
			Different, OK, "cloud: volume type \"ssd\" is another one now (ID " + otherID + " instead of " + typeID + "): new volumes of StorageClass ssd go there\n",
		},
		{
			"a compute zone has no volume zone", func(b *bed) { b.sim.SetComputeZones("az1", "az2", "az3") },
			Different, Refused, "cloud: zones.compute changes from az1, az2 to az1, az2, az3: topology.enabled changes from true to false [ConfigMap/cinder-csi-controller-settings, ConfigMap/cinder-csi-node-settings, DaemonSet/cinder-csi-node, Deployment/cinder-csi-controller] (generate refuses this without --accept topology)\n",
		},
		{
			"the service does not list its types", func(b *bed) {
				b.sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/volume/v3/*/types", Status: http.StatusServiceUnavailable})
			}, Failure, Failure, "",
		},
		{
			"an access rule for the types is missing", func(b *bed) {
				b.sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/volume/v3/*/types", Status: http.StatusUnauthorized})
			}, Failure, Failure, "",
		},
		{
			"a gateway hides the types", func(b *bed) {
				b.sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/volume/v3/*/types", Status: http.StatusNotFound})
			}, Failure, Failure, "",
		},
		{
			"the policy denies the compute zones", func(b *bed) {
				b.sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/compute/v2.1/os-availability-zone", Status: http.StatusForbidden})
			}, Failure, Failure, "",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, args := written(t)
			if strings.Contains(c.name, "another zone") {
				bind(b, "az2")
				b.ok(t, args...)
			}
			before := files(t, filepath.Join(b.dir, "out"))
			c.change(b)
			stdout, stderr, code := b.run(t, append(args, "--check")...)
			if code != c.check {
				t.Fatalf("--check: want exit %d, got %d: %s", c.check, code, stderr)
			}
			if diff := cmp.Diff(c.want, stdout); diff != "" {
				t.Errorf("--check (-want +got):\n%s", diff)
			}
			stdout, stderr, code = b.run(t, "plan", "--os-cloud", "sim-demo", "--check", filepath.Join(b.dir, "out", "plan.yaml"))
			if diff := cmp.Diff(c.want, stdout); code != c.check || diff != "" {
				t.Errorf("plan --check: want exit %d, got %d: %s (-want +got):\n%s", c.check, code, stderr, diff)
			}
			_, stderr, code = b.run(t, args...)
			if code != c.write {
				t.Errorf("generate: want exit %d, got %d: %s", c.write, code, stderr)
			}
			line, _, _ := strings.Cut(strings.TrimSpace(c.want), " (generate refuses") // a refusal names the flag in a line of its own
			if !strings.Contains(stderr, line) {
				t.Errorf("generate: want %q on stderr, got %s", line, stderr)
			}
			if diff := cmp.Diff(before, files(t, filepath.Join(b.dir, "out"))); code != OK && diff != "" {
				t.Errorf("generate wrote although it failed (-before +after):\n%s", diff)
			}
		})
	}
}

// bind makes the type exist in one zone alone.
func bind(b *bed, zone string) {
	b.sim.AddVolumeType(openstacksim.VolumeType{ID: typeID, Name: typeName, ExtraSpecs: map[string]string{"RESKEY:availability_zones": zone}})
}

// The facts of plan.yaml, and the warnings and reasons that name them, change with the cloud. What the bundle is does not, and that is what a
// check compares.
func TestAFactThatChangesWithoutItsDecisionIsNoDrift(t *testing.T) {
	testenv.NotShort(t)
	added := func(b *bed) {
		b.sim.SetComputeZones("az1", "az2", "az3")
		b.sim.SetVolumeZones("az1", "az2", "az3")
	}
	const zones = "cloud: zones.compute changes from az1, az2 to az1, az2, az3; zones.volume changes from az1, az2 to az1, az2, az3: topology.enabled stays true"
	for name, c := range map[string]struct {
		config        string
		before, after func(b *bed)
		want          string // in the note of a check
	}{
		"a zone on both sides": {"", func(*bed) {}, added, zones},
		"in the plan of a drift check too": {
			"spec: {driftCheck: {schedule: '0 6 * * *'}, images: {generator: {registry: r.example, repository: generator, tag: v1}}}", func(*bed) {}, added, zones,
		},
		"a zone that a warning names": {
			"", func(b *bed) { b.sim.SetComputeZones("az1", "other") }, func(b *bed) { b.sim.SetComputeZones("az1", "third") },
			"zones.compute changes from az1, other to az1, third",
		},
	} {
		for _, format := range formats {
			t.Run(name+", "+format, func(t *testing.T) {
				b := newBed(t)
				c.before(b)
				dir := filepath.Join(b.dir, "out")
				config := b.file(t, "config.yaml", c.config+"\n")
				args := generation("vanilla", format, dir, "--config", config)
				b.ok(t, args...)
				c.after(b)
				for _, check := range [][]string{append(args, "--check"), append(args, "--check", "-o", "json"), {"plan", "--os-cloud", "sim-demo", "--config", config, "--check", filepath.Join(dir, "plan.yaml")}} {
					stdout, stderr, code := b.run(t, check...)
					if code != OK || strings.Contains(stdout, "zones") || !strings.Contains(stderr, "no decision did. That is no difference; the next generate records it:\n") || !strings.Contains(stderr, c.want) {
						t.Errorf("%q: want exit 0 and a note about %q, got %d: %s%s", check, c.want, code, stdout, stderr)
					}
				}
				stdout, stderr, code := b.run(t, append(args, "--diff")...)
				if code != OK || !strings.Contains(stdout, "+++ b/plan.yaml") {
					t.Errorf("--diff: want exit 0 and what generate would record, got %d: %s%s", code, stdout, stderr)
				}
				// An edited file is found beside changed facts.
				file := map[string]string{"kustomize": "storageclasses.yaml", "helm": "values.yaml"}[format]
				edited := files(t, dir)[file]
				b.file(t, filepath.Join("out", file), edited+"# mine\n")
				if stdout, _, code := b.run(t, append(args, "--check")...); code != Different || !strings.Contains(stdout, "handEdit: "+file) {
					t.Errorf("with an edit: want exit 2, got %d: %s", code, stdout)
				}
				b.file(t, filepath.Join("out", file), edited)
				other := generation("vanilla", format, dir, "--config", b.file(t, "other.yaml", "metadata: {name: kubernetes}\n"+c.config+"\n"))
				if stdout, _, code := b.run(t, append(other, "--check")...); code != Different || !strings.Contains(stdout, "config: ") {
					t.Errorf("with another configuration: want exit 2, got %d: %s", code, stdout)
				}
				b.ok(t, args...)
				if !strings.Contains(files(t, dir)["plan.yaml"], "third") && !strings.Contains(files(t, dir)["plan.yaml"], "az3") {
					t.Error("generate did not record the facts")
				}
			})
		}
	}
}

func TestAReaderInsteadOfAnAdministratorIsNoDrift(t *testing.T) {
	b, args := written(t)
	args[2] = "sim-demo-admin"
	b.ok(t, append(args, "--force")...)
	args[2] = "sim-reader"
	b.ok(t, append(args, "--check")...)
}

func TestAMicroversionIsDriftOnlyWhenItDecidesSomething(t *testing.T) {
	b := newBed(t)
	saved := b.ok(t, "inspect", "--simulated", "-o", "yaml")
	args := []string{"generate", "--inventory", "-", "--target", "vanilla", "--format", "helm", "--output-dir", filepath.Join(b.dir, "out")}
	run := func(version string, more ...string) (string, int) {
		b.stdin.Reset()
		b.stdin.WriteString(strings.Replace(saved, "maxMicroversion: \"3.70\"", "maxMicroversion: \""+version+"\"", 1))
		stdout, _, code := b.run(t, append(args, more...)...)
		return stdout, code
	}
	if _, code := run("3.70"); code != OK {
		t.Fatalf("want exit 0, got %d", code)
	}
	if stdout, code := run("3.71", "--check"); code != OK || stdout != "" {
		t.Errorf("3.71: want exit 0 and no line, got %d: %s", code, stdout)
	}
	want := "cloud: services.block-storage.snapshotInUse changes from true to false: snapshotClass: snapshotInUse changes from true to false [VolumeSnapshotClass/cinder-csi, VolumeSnapshotClass/cinder-csi-backup]\n"
	if stdout, code := run("3.60", "--check"); code != Different || stdout != want {
		t.Errorf("3.60: want exit 2 and %q, got %d: %q", want, code, stdout)
	}
}

func TestSnapshotsTurnedOffAreRefusedUntilAccepted(t *testing.T) {
	b, args := written(t)
	config := b.file(t, "config.yaml", "spec: {snapshots: {enabled: false}}\n")
	args = append(args, "--config", config)
	stdout, _, code := b.run(t, append(args, "--check")...)
	want := "config: spec.snapshots.enabled changes from true to false\n" +
		"config: snapshotClass: enabled changes from true to false [ClusterRole/cinder-csi-provisioner-snapshots, ClusterRole/cinder-csi-snapshotter, " +
		"ClusterRoleBinding/cinder-csi-provisioner-snapshots, and 7 more] (generate refuses this without --accept snapshots)\n" +
		"config: snapshotClass.backup: enabled changes from true to false [VolumeSnapshotClass/cinder-csi-backup] (generate refuses this without --accept snapshots)\n"
	if code != Different || stdout != want {
		t.Errorf("--check: want exit 2 and %q, got %d: %q", want, code, stdout)
	}
	if _, stderr, code := b.run(t, args...); code != Refused || !strings.Contains(stderr, "spec:\n      snapshots:\n        enabled: true") {
		t.Errorf("want exit 3 with the lines to paste, got %d: %s", code, stderr)
	}
	b.ok(t, append(args, "--accept", "snapshots")...)
}

func TestARefusalNamesWhatAllowsItOnceInEachForm(t *testing.T) {
	b, args := written(t)
	b.sim.RemoveVolumeType(typeName)
	const change = "cloud: volume type \"ssd\" is gone: StorageClass ssd is removed"
	_, stderr, code := b.run(t, args...)
	want := filepath.Join(b.dir, "out") + " was not changed:\n" + change + "\n  why it is refused: "
	if code != Refused || !strings.Contains(stderr, want) || strings.Count(stderr, "\n  to allow it: --accept class-removed\n") != 1 || strings.Contains(stderr, "generate refuses this") {
		t.Errorf("want exit 3, %q, and the flag once; got %d: %s", want, code, stderr)
	}
	stdout, stderr, code := b.run(t, append(args, "--check")...)
	if code != Different || strings.Count(stdout+stderr, change) != 1 || !strings.Contains(stderr, "would refuse 1 of these changes:\n  claims that name StorageClass ssd would find no class (--accept class-removed)\n") {
		t.Errorf("--check: want exit 2, and the change once; got %d: %s%s", code, stdout, stderr)
	}
	if _, stderr, code = b.run(t, append(args, "--accept", "class-removed")...); code != OK || strings.Contains(stderr, "refuses") {
		t.Errorf("want nothing about a refusal once the change is accepted, got %d: %s", code, stderr)
	}
}

func TestSeveralRefusalsEndWithOnePinThatGenerateTakes(t *testing.T) {
	b, args := written(t)
	b.sim.RemoveVolumeType(typeName)
	b.sim.SetComputeZones("az1", "az2", "az3")
	args = append(args, "--config", b.file(t, "asked.yaml", "spec: {storageClasses: {overrides: {fast: {fsType: xfs}}}}\n"))
	_, stderr, code := b.run(t, args...)
	_, pin, _ := strings.Cut(stderr, "add this to the configuration:\n")
	if code != Refused || strings.Count(stderr, "to the configuration:") != 1 || !strings.Contains(stderr, "remove these keys from the configuration:\n    spec.storageClasses.overrides.fast.fsType\n") {
		t.Fatalf("want exit 3, one pin, and the key to remove, got %d: %s", code, stderr)
	}
	args[len(args)-1] = b.file(t, "pinned.yaml", strings.ReplaceAll(pin, "\n    ", "\n")[4:])
	b.ok(t, args...)
	if classes := files(t, filepath.Join(b.dir, "out"))["values.yaml"]; !strings.Contains(classes, "name: "+typeName) {
		t.Errorf("want the class kept, got %s", classes)
	}
}

func TestATypeRenamedKeepsItsClassWithTheLinesOfTheRefusal(t *testing.T) {
	b, args := written(t)
	b.sim.RemoveVolumeType(typeName)
	b.sim.AddVolumeType(openstacksim.VolumeType{ID: typeID, Name: "nvme"})
	_, stderr, code := b.run(t, args...)
	_, pin, found := strings.Cut(stderr, "add this to the configuration:\n")
	if code != Refused || !found || strings.Contains(pin, "type: ssd") || !strings.Contains(pin, "type: "+typeID) {
		t.Fatalf("want exit 3 and a pin that names the type by ID, got %d: %s", code, stderr)
	}
	args = append(args, "--config", b.file(t, "config.yaml", strings.ReplaceAll(pin, "\n    ", "\n")[4:]))
	if _, stderr, code := b.run(t, args...); code != OK || !strings.Contains(stderr, "kubectl delete storageclass ssd") {
		t.Errorf("want exit 0 and the command that replaces the class, got %d: %s", code, stderr)
	}
	b.ok(t, "validate", filepath.Join(b.dir, "out"))
}

func TestAnotherFormatIsOneChangeAndNotOneForEachFile(t *testing.T) {
	b, args := written(t)
	args[6] = "kustomize"
	stdout, _, code := b.run(t, append(args, "--check")...)
	want := "config: the directory holds a bundle in format helm, and this run writes kustomize (generate refuses this without --force)\n"
	if code != Different || stdout != want {
		t.Errorf("want exit 2 and %q, got %d: %q", want, code, stdout)
	}
	b.ok(t, append(args, "--force")...)
}

func TestTheChangesAreJSONOrAPullRequestComment(t *testing.T) {
	b, args := written(t)
	b.sim.RemoveVolumeType(typeName)
	b.sim.AddVolumeType(openstacksim.VolumeType{ID: typeID, Name: "nvme"})
	for _, form := range []string{"json", "markdown"} {
		stdout, stderr, code := b.run(t, append(args, "--check", "-o", form)...)
		if code != Different {
			t.Fatalf("%s: want exit 2, got %d: %s", form, code, stderr)
		}
		golden(t, "changes."+form, stdout)
	}
	if _, stderr, code := b.run(t, append(args, "-o", "json")...); code != Usage || !strings.Contains(stderr, "--check") {
		t.Errorf("want -o without --check to be wrong usage, got %d: %s", code, stderr)
	}
	if _, stderr, code := b.run(t, append(args, "--check", "-o", "html")...); code != Usage || !strings.Contains(stderr, "text, json, markdown") {
		t.Errorf("want exit 64 that names the forms, got %d: %s", code, stderr)
	}
}

func TestABundleThatIsUpToDateIsADocumentToo(t *testing.T) {
	b, args := written(t)
	want := `{
  "apiVersion": "generator.cinder-csi.io/v1alpha1",
  "kind": "Changes",
  "upToDate": true,
  "changes": []
}
`
	if diff := cmp.Diff(want, b.ok(t, append(args, "--check", "-o", "json")...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASavedPlanIsComparedWithTheDecisionsOfNow(t *testing.T) {
	b := newBed(t)
	b.sim.AddVolumeType(openstacksim.VolumeType{ID: typeID, Name: typeName})
	saved := b.file(t, "saved.yaml", b.ok(t, "plan", "--os-cloud", "sim-demo", "--target", "standalone", "-o", "yaml"))
	args := []string{"plan", "--os-cloud", "sim-demo", "--check", saved}
	if stdout := b.ok(t, args...); stdout != "" {
		t.Errorf("want no line, got %q", stdout)
	}
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("standalone", "kustomize", dir)...)
	b.ok(t, "plan", "--os-cloud", "sim-demo", "--target", "standalone", "--check", filepath.Join(dir, "plan.yaml"))

	b.Version = "v1-test" // another version that decides the same is no difference
	b.ok(t, args...)
	level := b.file(t, "config.yaml", "spec: {driver: {logLevel: 4}}\n")
	if stdout, _, code := b.run(t, append(args, "--config", level)...); code != Different || !strings.Contains(stdout, "config: driver.logLevel changes from 2 to 4 [") {
		t.Errorf("want exit 2 for a setting that a decision follows, got %d: %s", code, stdout)
	}
	b.Version = "v0-test"

	b.sim.RemoveVolumeType(typeName)
	want := "cloud: volume type \"ssd\" is gone: StorageClass ssd is removed (generate refuses this without --accept class-removed)\n"
	if stdout, stderr, code := b.run(t, args...); code != Different || stdout != want {
		t.Errorf("want exit 2 and %q, got %d: %q, %s", want, code, stdout, stderr)
	}
	if stdout, _, code := b.run(t, append(args, "-o", "json")...); code != Different || !strings.Contains(stdout, "\"kind\": \"Changes\"") || strings.Contains(stdout, "\"files\"") {
		t.Errorf("want exit 2 and a document without files, got %d: %s", code, stdout)
	}
	b.sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/volume/v3/*/types", Status: http.StatusServiceUnavailable})
	if _, stderr, code := b.run(t, args...); code != Failure {
		t.Errorf("want exit 1 for an outage, got %d: %s", code, stderr)
	}
	for name, args := range map[string][]string{
		"no such file":    {"plan", "--simulated", "--check", "nowhere.yaml"},
		"no plan":         {"plan", "--simulated", "--check", level},
		"a page":          append(args, "-o", "html"),
		"both from stdin": {"plan", "--check", "-", "--inventory", "-"},
		"another form":    append(args, "-o", "yaml"),
	} {
		if _, stderr, code := b.run(t, args...); code != Usage {
			t.Errorf("%s: want exit 64, got %d: %s", name, code, stderr)
		}
	}
}
