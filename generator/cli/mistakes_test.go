package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each message names what is wrong and what to do next. The bundle is in out, and clouds.yaml, inventory.yaml and a plan of a merge beside it.
func TestAMistakeIsNamedWithWhatToDo(t *testing.T) {
	b := newBed(t)
	t.Chdir(b.dir)
	b.ok(t, "generate", "--simulated", "--target", "vanilla", "--format", "kustomize", "--output-dir", "out")
	b.ok(t, "inspect", "--simulated", "--save", "inventory.yaml")
	b.file(t, "typo.conf", "[Globl]\nauth-url=x\n")
	b.file(t, "chart.yaml", "chartVersion: 0.1.0\nclusterID: prod\n")
	b.file(t, "config.yaml", "kind: Distribution\nspec: {clusterID: prod}\n")
	b.file(t, "typo.yaml", "clusterID: prod\n")
	b.file(t, "pod.yaml", "apiVersion: v1\nkind: Pod\n")
	b.file(t, "empty.yaml", "\n")
	content, err := os.ReadFile("out/plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"merged", "theirs"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.file(t, filepath.Join("theirs", "plan.yaml"), "tasks: []\n")
	b.file(t, filepath.Join("theirs", "cloud.conf"), "[Metadata]\nsearch-order=configDrive\n")
	b.file(t, filepath.Join("merged", "plan.yaml"), "<<<<<<< HEAD\nkind: Plan\n=======\n"+string(content)+">>>>>>> other\n")
	if err := os.CopyFS("edited", os.DirFS("out")); err != nil {
		t.Fatal(err)
	}
	b.file(t, filepath.Join("edited", "storageclasses.yaml"), "# mine\n")
	b.ok(t, "generate", "--simulated", "--target", "vanilla", "--format", "kustomize", "--output-dir", "based", "--base", "../nowhere")

	for _, c := range []struct {
		command string
		code    int
		want    string
	}{
		{"genrate --simulated", Usage, `unknown command "genrate" for "cinder-csi-generator"; did you mean generate?`},
		{"generate", Usage, "--output-dir is missing: the directory to write. A new one needs --target (vanilla, standalone, hypershift) and --format (kustomize, helm) too"},
		{"generate --simulated --target vanila --format helm --output-dir x", Usage, `--target "vanila": want one of vanilla, standalone, hypershift; did you mean vanilla?`},
		{"generate --inventory none.yaml --output-dir out", Usage, "--inventory: none.yaml does not exist; cinder-csi-generator inspect --os-cloud NAME --save none.yaml makes it"},
		{"generate --inventory clouds.yaml --output-dir out", Usage, "--inventory clouds.yaml is a clouds.yaml; name its cloud with --os-cloud and the file with OS_CLIENT_CONFIG_FILE=clouds.yaml"},
		{"generate --config inventory.yaml --simulated --output-dir out", Usage, "--config inventory.yaml is an inventory; give it as --inventory inventory.yaml"},
		{"generate --simulated --target vanilla --format helm --output-dir inventory.yaml", Usage, "--output-dir: inventory.yaml is not a directory; name a directory"},
		{
			"generate --simulated --output-dir merged", Refused,
			"merged was not changed: nobody can read its target and format in plan.yaml. Restore that file as the warning says. Or build the bundle again with --target, --format and --force; " +
				"then nothing compares it with what is installed",
		},
		{"generate --check --simulated --output-dir none", Usage, "none does not exist, so there is no bundle to check"},
		{"generate --check --simulated --output-dir .", Usage, ". holds no bundle (no plan.yaml), and a new one needs --target (vanilla, standalone, hypershift) and --format (kustomize, helm)"},
		{"generate --check out --simulated", Usage, "generate takes no argument; name the directory as --output-dir out"},
		{"generate --simulated --outputdir out", Usage, "unknown flag: --outputdir; did you mean --output-dir?"},
		{"generate --simulated --output-dir out --accept clas-removed", Usage, "did you mean class-removed?"},
		{"explain sc/fast volumeBindingMod out", Usage, "did you mean volumeBindingMode?"},
		{"explain sc/fasst volumeBindingMode out", Usage, "the bundle has no sc/fasst; there are fast, multiattach, standard; did you mean fast?"},
		{"explain storagclass/fast volumeBindingMode out", Usage, "did you mean storageclass?"},
		{"explain topology.enable out", Usage, "the bundle has no decision topology.enable; there are driver.topologyKey, topology.enabled; did you mean topology.enabled?"},
		{"explain sc/fast", Usage, `explain sc/fast: FIELD is missing: a path in the object, such as explain sc/fast metadata.name`},
		{"explain topology.enabled", Usage, "the current directory holds no bundle (no plan.yaml): name that of a bundle as the last argument"},
		{"explain volumetype/fast volumetype/slow out", Usage, "want one DIR after it, got volumetype/slow out; run explain once for each object"},
		{"validate", Usage, "validate: want one DIR with a bundle, got 0 arguments"},
		{"validate none", Usage, "none does not exist: name the directory of a bundle"},
		{"validate out/plan.yaml", Usage, "out/plan.yaml is not a directory: name the directory of a bundle, such as out"},
		{"validate edited", Failure, "storageclasses.yaml differs from what generate wrote; restore it, or run generate --force, which drops the edit"},
		{"validate based", Failure, "based was made with --base ../nowhere, and nothing outside of the directory is read unless the command line names it: give --base ../nowhere too"},
		{"plan --simulated --check out", Usage, "--check out is a directory: name out/plan.yaml"},
		{"plan --simulated --target vanilla --config none.yaml", Usage, "--config: none.yaml does not exist"},
		{"import inventory.yaml", Usage, "inventory.yaml is an inventory of a cloud; give it as --inventory inventory.yaml, beside the files of the other installation"},
		{"import typo.conf", Usage, "there is no key auth-url in section [Globl] of cloud.conf; did you mean [Global]?"},
		{"inspect --simulated --save none/inventory.yaml", Usage, "--save none/inventory.yaml: the directory none does not exist"},
		{"inspect --simulated --timeout 5", Usage, "--timeout 5: want a number with a unit, such as 30s or 2m"},
		{"completion fsh", Usage, `completion "fsh": want one of bash, zsh, fish, powershell`},
		{"generate --simulated --target openshift --format helm --output-dir x", Usage, `--target "openshift": want one of vanilla, standalone, hypershift; OpenShift is standalone, or hypershift if its control plane is hosted`},
		{"generate --simulated --target K8s --format helm --output-dir x", Usage, "any other Kubernetes is vanilla"},
		{"generate --simulated --target vanilla --format yaml --output-dir x", Usage, `--format "yaml": want one of kustomize, helm; write kustomize; kubectl kustomize DIR then prints the manifests`},
		{"generate --simulated --target vanilla --format helm -o x", Usage, "-o x: -o is the form of the changes (text, json, markdown); name the directory as --output-dir x"},
		{"generate --simulated=yes --output-dir out", Usage, "--simulated=yes: want true or false, or --simulated alone, which is true"},
		{"generate --simulated yes --output-dir out", Usage, "generate takes no argument, got yes; write the value of a flag such as --simulated as --simulated=true, or leave it out"},
		{"generate --simulated --output-dir out --accept all", Usage, "accept each change by its own name"},
		{"inspect --simulated --timeout=fast", Usage, "--timeout fast: want a number with a unit, such as 30s or 2m"},
		{"help genrate", Usage, `unknown command "genrate" for "cinder-csi-generator"; did you mean generate?`},
		{"help generate", OK, ""},
		{"version foo", Usage, "cinder-csi-generator version takes no argument, got foo"},
		{"schema Plan Inventory", Usage, "schema prints one schema, got Plan Inventory; run it once for each"},
		{"doctor volume", Usage, "cinder-csi-generator doctor volume: want NAMESPACE/CLAIM|TYPE/NAME|ID, got nothing"},
		{"validate --output-dir out", Usage, "unknown flag: --output-dir; validate takes the directory as an argument: validate DIR"},
		{"plan --simulated --target vanilla --output-dir out", Usage, "unknown flag: --output-dir; it is a flag of generate"},
		{"doctor --inventory inventory.yaml", Usage, "unknown flag: --inventory; it is a flag of generate, import, inspect, plan"},
		{"validate inventory.yaml", Usage, "inventory.yaml is not a directory: name the directory of a bundle, which generate --output-dir DIR makes"},
		{"explain", Usage, "name what to explain: KIND/NAME FIELD, such as storageclass/fast volumeBindingMode; or volumetype/NAME; or the ID of a decision, as plan prints it"},
		{"explain storageclass fast", Usage, "explain storageclass fast: write the kind and the name as one word: storageclass/fast"},
		{"explain storageclass fast volumeBindingMode out", Usage, "write the kind and the name as one word: storageclass/fast"},
		{"explain volumetype fast out", Usage, "write the kind and the name as one word: volumetype/fast"},
		{"explain volumetype out", Usage, "explain volumetype: NAME is missing: want volumetype/NAME"},
		{"explain sc", Usage, "explain sc: NAME is missing: want sc/NAME"},
		{"explain sc/fast/parameters/type out", Usage, "write the field as a word of its own: explain sc/fast parameters.type"},
		{"explain sc/fast out", Usage, "explain sc/fast: FIELD is missing"},
		{"explain out topology.enabled", Usage, "the directory comes last: explain topology.enabled out"},
		{
			"explain deploy/cinder-csi-controller containers[drivr].image out", Usage,
			"has no field containers[drivr].image; there are [attacher], [driver], [livenessprobe], [provisioner], [resizer], [snapshotter] in spec.template.spec.containers; did you mean [driver]?",
		},
		{"explain sc/fast parameters.typ out", Usage, "has no field parameters.typ; there are type in parameters; did you mean type?"},
		{"import chart.yaml", Usage, "chart.yaml holds values of this project's chart, and import reads those of upstream's chart, openstack-cinder-csi. The plan.yaml of the bundle has its configuration"},
		{"import out", Usage, "out is a bundle of this generator, and import reads other installations. out/plan.yaml has its configuration"},
		{"import out/plan.yaml", Usage, "out/plan.yaml is the plan of a bundle of this generator. It has the configuration of the bundle below config"},
		{"import out/storageclasses.yaml", Usage, "out/storageclasses.yaml is a file of a bundle of this generator. The plan.yaml of the bundle has its configuration"},
		{"import theirs", OK, "theirs/cloud.conf: [Metadata] search-order: is now spec.driver.metadata"},
		{"import config.yaml", Usage, "config.yaml is a configuration of this generator already; give it as --config config.yaml"},
		{"import clouds.yaml", Usage, "clouds.yaml is a clouds.yaml, which the generator reads as it is; name its cloud with --os-cloud"},
		{"import empty.yaml", Usage, "empty.yaml is empty: there is nothing to import"},
		{"import pod.yaml", Usage, "pod.yaml: it has Pod, and no setting of a Cinder driver. Import reads cloud.conf, the values of the chart"},
		{"plan --simulated --target vanilla --config clouds.yaml", Usage, "--config clouds.yaml is a clouds.yaml, and the configuration holds no credentials; name its cloud with --os-cloud"},
		{"plan --simulated --target vanilla --config out/plan.yaml", Usage, "--config out/plan.yaml is the plan of a bundle. Copy what stands there below config to below spec of a new file"},
		{"plan --simulated --target vanilla --config chart.yaml", Usage, "--config chart.yaml holds values of this project's chart, which is for helm or kubectl"},
		{"plan --simulated --target vanilla --config pod.yaml", Usage, "--config pod.yaml holds an object of Kubernetes (Pod); to make a configuration of an installation's objects: cinder-csi-generator import pod.yaml"},
		{"plan --target vanilla --inventory config.yaml", Usage, "--inventory config.yaml is a configuration; give it as --config config.yaml"},
		{"plan --target vanilla --inventory out/plan.yaml", Usage, "--inventory out/plan.yaml is the plan of a bundle, which has no inventory"},
		{"plan --target vanilla --inventory typo.yaml", Usage, "typo.yaml:1: has no apiVersion; want apiVersion: generator.cinder-csi.io/v1alpha1 and kind: Inventory"},
		{"plan --simulated --check inventory.yaml", Usage, "--check inventory.yaml is an inventory; give it as --inventory inventory.yaml, and the plan.yaml of a bundle to --check"},
		{"plan --simulated --check config.yaml", Usage, "--check config.yaml is a configuration; give it as --config config.yaml"},
		{"schema Distributoin", Usage, "did you mean Distribution?"},
	} {
		_, stderr, code := b.run(t, strings.Fields(c.command)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: want exit %d and %q, got %d:\n%s", c.command, c.code, c.want, code, stderr)
		}
	}
}
