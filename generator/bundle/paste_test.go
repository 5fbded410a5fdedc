package bundle_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// hostile are names that run a command where a shell reads them as more than a part of one word.
var hostile = []string{"a; ran", "a'; ran '", "$(ran)", "a\"`ran`\"", "a && ran #", "-x\nran"}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// Whatever the names in a bundle are, the commands of its README run nothing else when a person pastes them.
func TestNoNameInAReadmeIsMoreThanAWordOfACommand(t *testing.T) {
	for _, name := range hostile {
		for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
			for _, format := range []v1alpha1.Format{v1alpha1.Helm} { // the chart refuses such names
				spec := v1alpha1.Spec{KubernetesVersion: "1.34"}
				spec.Snapshots.Classes = map[string]v1alpha1.SnapshotClass{"weekly": {}}
				spec.AttributesClasses = map[string]v1alpha1.AttributesClass{"gold": {Type: "fast"}}
				r := result(t, target, format, spec, v1alpha1.VolumeType{ID: "1", Name: "fast"})
				rename(&r, name)
				tree := render(t, r)
				checkPasted(t, fmt.Sprintf("%s %s %q", target, format, name), string(tree["README.md"]))
			}
		}
	}
}

// rename gives everything that the commands name a hostile name.
func rename(r *plan.Result, name string) {
	for _, d := range []*plan.Decision[string]{&r.Driver, &r.ControllerNamespace, &r.NodeNamespace, &r.CAKey} {
		d.Value = name
	}
	r.Credentials.Value.SecretName, r.Credentials.Value.Key = name, name
	r.SnapshotClass.Value.Name, r.BackupClass.Value.Name, r.BackupClass.Value.Enabled = name, name, true
	r.DriftCheck.Value.Schedule = "@daily"
	for i := range r.StorageClasses {
		r.StorageClasses[i].Value.Name = name
	}
	for i := range r.SnapshotClasses {
		r.SnapshotClasses[i].Value.Name = name
	}
	for i := range r.AttributesClasses {
		r.AttributesClasses[i].Value.Name = name
	}
}

// checkPasted runs the commands of a README in a shell where the programs that they call do nothing.
func checkPasted(t *testing.T, of, readme string) {
	t.Helper()
	blocks := shellBlock.FindAllStringSubmatch(readme, -1)
	if len(blocks) < 3 {
		t.Fatalf("%s: want the commands to create the Secret, to apply and to remove, got %d blocks", of, len(blocks))
	}
	for _, block := range blocks {
		script := "kubectl() { :; }; helm() { :; }; oc() { :; }; ran() { echo RAN; }\n" + block[1]
		out, err := exec.CommandContext(t.Context(), "sh", "-euc", script).CombinedOutput()
		if err != nil || strings.Contains(string(out), "RAN") {
			t.Errorf("%s: %v\n%s\n%s", of, err, block[1], out)
		}
	}
}
