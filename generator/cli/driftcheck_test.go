package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const driftCheck = `
metadata: {name: prod}
spec:
  credentials: {cloud: sim-demo}
  driftCheck: {schedule: "0 6 * * *"}
`

// cronJobArgs are the arguments of the CronJob of a bundle, with the files of its ConfigMap in the directory of the bed.
func cronJobArgs(t *testing.T, b *bed, dir string) []string {
	t.Helper()
	bundle, tree, _, err := readBundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	objects, _, err := verify.BundleAt(bundle.Path, nil, tree, bundle.Plan.Target, bundle.Plan.Format)
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	replace := []string{}
	for _, o := range objects {
		data, _ := o.Fields["data"].(map[string]any)
		switch o.Kind() + "/" + o.Name() {
		case "ConfigMap/cinder-csi-drift-check":
			for name, text := range data {
				replace = append(replace, "/etc/cinder-csi/drift-check/"+name, b.file(t, name, text.(string)))
			}
		case "ConfigMap/cinder-csi-drift-check-settings":
			for name, text := range data {
				replace = append(replace, "$("+name+")", text.(string))
			}
		case "CronJob/cinder-csi-drift-check":
			template := o.Fields["spec"].(map[string]any)["jobTemplate"].(map[string]any)["spec"].(map[string]any)["template"]
			containers := template.(map[string]any)["spec"].(map[string]any)["containers"].([]any)
			for _, arg := range containers[0].(map[string]any)["args"].([]any) {
				args = append(args, arg.(string))
			}
		}
	}
	if len(args) == 0 || len(replace) != 10 {
		t.Fatalf("want a CronJob with arguments, and two ConfigMaps with five entries, got %q and %q", args, replace)
	}
	return strings.Split(strings.NewReplacer(replace...).Replace(strings.Join(args, "\n")), "\n")
}

// TestTheCronJobFailsWhenTheCloudDrifts runs the command of the CronJob: 0 for a new bundle, 2 and one line for a change, 1 for an outage.
func TestTheCronJobFailsWhenTheCloudDrifts(t *testing.T) {
	testenv.NotShort(t)
	for _, format := range formats {
		for _, target := range targets {
			t.Run(format+"/"+target, func(t *testing.T) {
				b := newBed(t)
				dir := filepath.Join(b.dir, "out")
				b.ok(t, generation(target, format, dir, "--config", b.file(t, "config.yaml", driftCheck))...)
				b.ok(t, "validate", dir)
				args := cronJobArgs(t, b, dir)
				if stdout := b.ok(t, args...); stdout != "" {
					t.Errorf("want no line, got %s", stdout)
				}
				b.sim.AddVolumeType(openstacksim.VolumeType{Name: "archive"})
				stdout, stderr, code := b.run(t, args...)
				if want := "cloud: volume type \"archive\" is new: StorageClass archive is added\n"; code != Different || stdout != want {
					t.Errorf("want exit 2 and %q, got %d: %q, %s", want, code, stdout, stderr)
				}
				b.sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/volume/v3/*/types", Status: http.StatusServiceUnavailable})
				if _, stderr, code := b.run(t, args...); code != Failure {
					t.Errorf("want exit 1 for an outage, got %d: %s", code, stderr)
				}
			})
		}
	}
}

// TestTheCommandsOfTheDriftPageRun runs the commands of the page for a pipeline, after the bundle was written.
func TestTheCommandsOfTheDriftPageRun(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/check-for-drift.md")
	if err != nil {
		t.Fatal(err)
	}
	b := newBed(t)
	b.file(t, "distribution.yaml", driftCheck)
	t.Chdir(b.dir)
	b.ok(t, generation("vanilla", "kustomize", "cinder-csi", "--config", "distribution.yaml")...)
	ran := 0
	for line := range strings.Lines(string(page)) {
		command, found := strings.CutPrefix(strings.TrimSpace(line), "bin/cinder-csi-generator ")
		if !found {
			continue
		}
		command, file, saved := strings.Cut(strings.ReplaceAll(command, "mycloud", "sim-demo"), " > ")
		stdout := b.ok(t, strings.Fields(command)...)
		if saved {
			b.file(t, file, stdout)
		} else if stdout != "" {
			t.Errorf("%s: want no difference, got %s", command, stdout)
		}
		ran++
	}
	if ran != 3 {
		t.Errorf("want three commands, ran %d", ran)
	}
}

func TestAnAcceptThatNoChangeNeedsIsAWarningThatNamesIt(t *testing.T) {
	b, args := written(t)
	_, stderr, code := b.run(t, append(args, "--accept", "topology")...)
	if want := "Warning: --accept topology: no change of this run needs it\n"; code != OK || !strings.Contains(stderr, want) {
		t.Errorf("want exit 0 and %q, got %d: %s", want, code, stderr)
	}
	b.sim.RemoveVolumeType(typeName)
	_, stderr, code = b.run(t, append(args, "--accept", "class-removed,snapshots")...)
	if code != OK || strings.Contains(stderr, "--accept class-removed:") || !strings.Contains(stderr, "Warning: --accept snapshots: no change of this run needs it\n") {
		t.Errorf("want a warning of snapshots alone, got %d: %s", code, stderr)
	}
}

func TestATypeWhoseNameCannotBeWrittenIsLeftOutAndTheRestIsEmitted(t *testing.T) {
	b := newBed(t)
	b.sim.AddVolumeType(openstacksim.VolumeType{Name: "x ${X}"})
	dir := filepath.Join(b.dir, "out")
	_, stderr, code := b.run(t, generation("vanilla", "helm", dir)...)
	if code != OK || !strings.Contains(stderr, "Warning: ") || !strings.Contains(stderr, "x ${X}") {
		t.Errorf("want a bundle, and a warning that names the type, got %d: %s", code, stderr)
	}
	b.ok(t, "explain", "storageclass/standard", "volumeBindingMode", dir)
}

func TestMonitoringAndTrustedCAThatPlanAcceptsAreGenerated(t *testing.T) {
	testenv.NotShort(t)
	for _, spec := range []string{"monitoring: {kind: PodMonitor}", "monitoring: {kind: ServiceMonitor}", "trustedCA: true"} {
		b := newBed(t)
		config := b.file(t, "config.yaml", "spec: {"+spec+"}")
		b.ok(t, "plan", "--os-cloud", "sim-demo", "--target", "standalone", "--config", config)
		for _, format := range formats {
			b.ok(t, generation("standalone", format, filepath.Join(b.dir, format), "--config", config)...)
		}
	}
}
