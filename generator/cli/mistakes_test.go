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
	content, err := os.ReadFile("out/plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("merged", 0o755); err != nil {
		t.Fatal(err)
	}
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
		{"explain sc/fast", Usage, `explain sc/fast: FIELD is missing: a path in the object, such as explain sc/fast metadata.name. An empty text ("") is the whole object`},
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
		{"inspect --simulated --timeout 5", Usage, "write it with a unit, such as 30s or 2m"},
		{"completion fsh", Usage, `completion "fsh": want one of bash, zsh, fish, powershell`},
		{"schema Distributoin", Usage, "did you mean Distribution?"},
	} {
		_, stderr, code := b.run(t, strings.Fields(c.command)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: want exit %d and %q, got %d:\n%s", c.command, c.code, c.want, code, stderr)
		}
	}
}
