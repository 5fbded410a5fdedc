package pullrequest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/cli"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// evil is a text that would begin lines of its own. In the log of a runner of GitHub they are commands.
const evil = "::notice title=cinder-csi::up to date\n::notice title=cinder-csi::up to date\n\u202e\u009b2J"

// inQuotes is a text as YAML and JSON write it.
func inQuotes(text string) string {
	quoted, _ := json.Marshal(text)
	return strings.NewReplacer("\u202e", `\u202e`, "\u009b", `\u009b`).Replace(string(quoted))
}

// Each kind of file that the author of a pull request writes, with such a text as key, as name and as value.
func TestNoTextOfAFileBeginsALineOfItsOwn(t *testing.T) {
	quoted := inQuotes(evil)
	inventory := testfile.Read(t, "../../../../overlays/inventory.yaml")
	const head = "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: "
	object := func(kind, name, more string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: cinder-csi}\n" + more
	}
	for name, file := range map[string]struct{ config, inventory, plan string }{
		"key of a configuration":       {config: "spec: {" + quoted + ": 1}\n"},
		"name in a configuration":      {config: "spec: {storageClasses: {overrides: {" + quoted + ": {fsType: xfs}}}}\n"},
		"pattern of a configuration":   {config: "spec: {storageClasses: {include: [" + quoted + "]}}\n"},
		"value of a configuration":     {config: "spec: {driver: {logLevel: " + quoted + "}}\n"},
		"text of a configuration":      {config: "spec: {clusterID: " + quoted + "}\n"},
		"default of a configuration":   {config: "spec: {storageClasses: {default: " + quoted + "}}\n"},
		"zone of a configuration":      {config: "spec: {topology: {zoneMap: {" + quoted + ": " + quoted + "}}}\n"},
		"version of a configuration":   {config: "apiVersion: generator.cinder-csi.io/" + strings.Trim(quoted, `"`) + "\n"},
		"escaped version":              {config: "apiVersion: \"generator.cinder-csi.io/" + quoted[1:] + "\n"},
		"kind of a configuration":      {config: "kind: " + quoted + "\n"},
		"key of an inventory":          {inventory: head + "Inventory\n" + quoted + ": 1\n"},
		"state of an inventory":        {inventory: strings.Replace(string(inventory), "state: known", "state: "+quoted, 1)},
		"volume type of an inventory":  {inventory: strings.Replace(string(inventory), "name: fast", "name: "+quoted, 1)},
		"default type of an inventory": {inventory: strings.Replace(string(inventory), "value: standard", "value: "+quoted, 1)},
		"zone of an inventory":         {inventory: strings.Replace(string(inventory), "name: az1", "name: "+quoted, 1)},
		"reason of an inventory":       {inventory: strings.Replace(string(inventory), "defaultVolumeType:\n  state: known", "defaultVolumeType:\n  state: denied\n  reason: "+quoted, 1)},
		"outage of an inventory":       {inventory: strings.Replace(string(inventory), "defaultVolumeType:\n  state: known", "defaultVolumeType:\n  state: failed\n  reason: "+quoted, 1)},
		"microversion of an inventory": {inventory: strings.Replace(string(inventory), `maxMicroversion: "3.70"`, "maxMicroversion: "+quoted, 1)},
		"key of plan.yaml":             {plan: quoted + ": 1\n"},
		"class of plan.yaml":           {plan: "decisions:\n  - id: storageClass." + strings.Trim(quoted, `"`) + "\n    value: {volumeType: {id: x, name: " + quoted + "}}\n"},
		"escaped class of plan.yaml":   {plan: "decisions:\n  - id: \"storageClass." + quoted[1:] + "\n    value: {volumeType: {id: " + quoted + ", name: " + quoted + "}, parameters: {type: " + quoted + "}}\n"},
		"decision of plan.yaml":        {plan: "decisions:\n  - id: " + quoted + "\n    value: " + quoted + "\n"},
		"driver of plan.yaml":          {plan: "decisions:\n  - id: driver.name\n    value: " + quoted + "\n    reason: " + quoted + "\n"},
		"command in a driver's name":   {plan: "decisions:\n  - id: driver.name\n    value: \"/x\\n::notice::y\"\n"},
		"command as a key":             {plan: "decisions:\n  - id: driver.name\n    value: {\"::notice::y\": x}\n"},
		"absolute base of plan.yaml":   {plan: "base: \"/x\\n::notice::y\"\n"},
		"fact of plan.yaml":            {plan: "decisions:\n  - id: topology.enabled\n    value: true\n    facts: [{name: " + quoted + ", value: " + quoted + "}]\n"},
		"warning of plan.yaml":         {plan: "warnings: [" + quoted + "]\n"},
		"generator of plan.yaml":       {plan: "generator: " + quoted + "\n"},
		"newer generator of plan.yaml": {plan: "generator: " + quoted + "\napiVersion: \"generator.cinder-csi.io/v9" + quoted[1:] + "\n"},
		"region of plan.yaml":          {plan: "cloud: {authURL: " + quoted + ", region: " + quoted + ", projectID: " + quoted + "}\n"},
		"target of plan.yaml":          {plan: "target: " + quoted + "\n"},
		"base of plan.yaml":            {plan: "base: " + quoted + "\n"},
		"file of plan.yaml":            {plan: "files: [{path: " + quoted + ", sha256: x}]\n"},
		"setting of plan.yaml":         {plan: "config: {storageClasses: {overrides: {" + quoted + ": {fsType: xfs}}}}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := bundleOf(t, "vanilla", "helm")
			in := "../../../../overlays/inventory.yaml"
			var more []string
			write := func(name, text string) string {
				path := filepath.Join(t.TempDir(), name)
				testfile.Write(t, path, text, 0o644)
				return path
			}
			if file.config != "" {
				more = []string{"--config", write("d.yaml", file.config)}
			}
			if file.inventory != "" {
				in = write("i.yaml", file.inventory)
			}
			if file.plan != "" {
				path := filepath.Join(dir, worktree.PlanFile)
				text := testfile.Read(t, path)
				key, _, _ := strings.Cut(file.plan, ":")
				var kept []string // the plan without what the attack has in its place
				inside := false
				for line := range strings.Lines(string(text)) {
					if line[0] != ' ' && line[0] != '-' {
						inside = strings.HasPrefix(line, key+":") || strings.HasPrefix(line, "apiVersion:") && strings.Contains(file.plan, "\napiVersion:")
					}
					if !inside {
						kept = append(kept, line)
					}
				}
				testfile.Write(t, path, strings.Join(kept, "")+file.plan, 0o644)
			}
			commands := [][]string{append([]string{"generate", "--inventory", in, "--output-dir", dir, "--check"}, more...)}
			if file.plan == "" {
				commands = append(commands, append([]string{"plan", "--inventory", in, "--target", "vanilla"}, more...), append([]string{"plan", "--inventory", in, "--target", "vanilla", "-o", "yaml"}, more...))
			} else {
				commands = append(commands, []string{"validate", dir}, []string{"explain", "storageclass.x", dir})
			}
			switch { // comparing plans takes seconds
			case strings.Contains(name, "class of plan.yaml"):
				commands[0] = []string{"generate", "--inventory", in, "--output-dir", dir}
			case strings.Contains(name, "generator of plan.yaml"), strings.HasPrefix(name, "fact"):
				commands[0] = []string{"plan", "--inventory", in, "--check", filepath.Join(dir, worktree.PlanFile)}
			}
			for _, args := range commands {
				noLineOfItsOwn(t, args)
			}
		})
	}
	for name, files := range map[string]map[string]string{
		"kind of an object":         {"own.yaml": object(quoted, "x", "")},
		"name of an object":         {"own.yaml": object("ConfigMap", quoted, "")},
		"key of an object":          {"own.yaml": object("ConfigMap", "x", quoted+": 1\n")},
		"data of an object":         {"own.yaml": object("ConfigMap", "x", "data: {"+quoted+": "+quoted+"}\n")},
		"two objects of a name":     {"own.yaml": object("ConfigMap", quoted, "") + "---\n" + object("ConfigMap", quoted, "")},
		"broken object":             {"own.yaml": object("ConfigMap", "x", "data: "+quoted+"\n")},
		"key of a kustomization":    {"kustomization.yaml": header + quoted + ": 1\n"},
		"name in a kustomization":   {"kustomization.yaml": header + "resources: [" + quoted + "]\n"},
		"value of a kustomization":  {"kustomization.yaml": header + "resources: " + quoted + "\n"},
		"order of a kustomization":  {"kustomization.yaml": header + "resources: [own.yaml]\nsortOptions: {order: " + quoted + "}\n", "own.yaml": object("ConfigMap", "x", "")},
		"patch of a kustomization":  {"kustomization.yaml": header + "resources: [own.yaml]\npatches: [{path: p.yaml, target: {kind: " + quoted + "}}]\n", "p.yaml": "[{op: test, path: " + quoted + ", value: " + quoted + "}]\n", "own.yaml": object("ConfigMap", "x", "")},
		"operation of a patch":      {"kustomization.yaml": header + "resources: [own.yaml]\npatches: [{path: p.yaml}]\n", "p.yaml": "[{op: " + quoted + "}]\n", "own.yaml": object("ConfigMap", "x", "")},
		"annotation of a namespace": {"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: cinder-csi, annotations: {" + quoted + ": " + quoted + "}}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := bundleOf(t, "vanilla", "kustomize")
			if _, own := files["kustomization.yaml"]; !own && files["own.yaml"] != "" {
				text := testfile.Read(t, filepath.Join(dir, "kustomization.yaml"))
				files["kustomization.yaml"] = strings.Replace(string(text), "resources:\n", "resources:\n  - own.yaml\n", 1)
			}
			forge(t, dir, files)
			for _, args := range [][]string{{"validate", dir}, {"explain", "configmap/nothing", "data", dir}, {"explain", "nothing/x", "data", dir}} {
				noLineOfItsOwn(t, args)
			}
		})
	}
	for name, text := range map[string]string{"name of a values": "chartVersion: " + quoted + "\n", "key of values": quoted + ": 1\n", "value of values": "driver: {logLevel: " + quoted + "}\n"} {
		t.Run(name, func(t *testing.T) {
			dir := bundleOf(t, "vanilla", "helm")
			forge(t, dir, map[string]string{"values.yaml": text})
			noLineOfItsOwn(t, []string{"validate", dir})
		})
	}
}

// Git and Linux allow a line feed in the name of a file.
func TestNoNameOfAFileBeginsALineOfItsOwn(t *testing.T) {
	const inventory = "../../../../overlays/inventory.yaml"
	line := strings.ReplaceAll(evil, "/", "")
	for _, name := range []string{".argocd-source" + line, "kustomization.yml"} {
		dir := bundleOf(t, "vanilla", "kustomize")
		testfile.Write(t, filepath.Join(dir, name), line, 0o644)
		for _, args := range [][]string{{"validate", dir}, {"adopt", dir}, {"generate", "--inventory", inventory, "--output-dir", dir}, {"generate", "--inventory", inventory, "--output-dir", dir, "--check"}} {
			noLineOfItsOwn(t, args)
		}
	}
	quoted := inQuotes(evil)
	for what, text := range map[string]string{
		"release": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: " + quoted + ", namespace: " + quoted + "}\nspec: {chart: {spec: {chart: openstack-cinder-csi}}, values: \"{{ a }}\"}\n",
		"class":   "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: " + quoted + "}\nprovisioner: cinder.csi.openstack.org\nmountOptions: 7\n",
		"key":     "[Global]\n" + "x=1\n",
		"IDs":     "clusterID: a\n",
	} {
		dir := t.TempDir()
		testfile.Write(t, filepath.Join(dir, "a"+line+".yaml"), text, 0o644)
		testfile.Write(t, filepath.Join(dir, "b"+line+".conf"), text, 0o644)
		testfile.Write(t, filepath.Join(dir, "c"+line+".yaml"), "clusterID: b\n", 0o644)
		_, stderr, _ := pipeline(t, "import", dir)
		if stderr == "" {
			t.Errorf("%s: nothing is said", what)
		}
		noLineOfItsOwn(t, []string{"import", dir})
		noLineOfItsOwn(t, []string{"import", filepath.Join(dir, "a"+line+".yaml"), filepath.Join(dir, "c"+line+".yaml")})
	}
}

func noLineOfItsOwn(t *testing.T, args []string) {
	t.Helper()
	stdout, stderr, _ := pipeline(t, args...)
	for line := range strings.Lines(stdout + "\n" + stderr) {
		begin := line
		if slices.Contains(args, "--check") || args[0] == "validate" { // what a pipeline runs; a runner skips spaces
			begin = strings.TrimLeft(line, " \t")
		}
		if strings.HasPrefix(begin, "::") || strings.ContainsAny(line, "\u202e\u009b") {
			t.Errorf("%.60q: got the line %q", args, line)
		}
	}
}

// The base of a checkout, which a check of its bundle reads.
func TestNoTextOfABaseBeginsALineOfItsOwn(t *testing.T) {
	quoted := inQuotes(evil)
	inventory := testenv.Value(filepath.Abs("../../../../overlays/inventory.yaml"))(t)
	checkout := t.TempDir()
	testenv.Must(t, os.CopyFS(filepath.Join(checkout, "src"), os.DirFS(manifests)))
	dir := bundle(t, filepath.Join(checkout, "out"), "vanilla", "kustomize", "--base", "../src")
	t.Chdir(checkout)
	for name, more := range map[string]string{
		"rbac.yaml":          "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + quoted + ", namespace: cinder-csi}\ndata: {a: " + quoted + "}\n",
		"kustomization.yaml": "\n" + quoted + ": 1\n",
	} {
		file := filepath.Join("src/vanilla", name)
		text := testfile.Read(t, file)
		testfile.Write(t, file, append(bytes.Clone(text), more...), 0o644)
		noLineOfItsOwn(t, []string{"generate", "--inventory", inventory, "--output-dir", dir, "--check"})
		noLineOfItsOwn(t, []string{"validate", dir, "--base", "../src"})
		testfile.Write(t, file, text, 0o644)
	}
}

// A link of a checkout shows no file of the machine, whose keys a message would repeat.
func TestALinkInTheCheckoutCannotShowAnotherFile(t *testing.T) {
	dir := bundleOf(t, "vanilla", "helm")
	home := filepath.Join(t.TempDir(), "config.json")
	inventory := testenv.Value(filepath.Abs("../../../../overlays/inventory.yaml"))(t)
	checkout := t.TempDir()
	t.Chdir(checkout)
	testenv.Must(t, errors.Join(os.WriteFile(home, []byte(`{"s3cret": {}}`), 0o600), os.Symlink(home, "link.yaml"), os.Symlink(filepath.Dir(home), "sub"), os.Mkdir("shared", 0o755),
		os.WriteFile("shared/d.yaml", []byte("spec: {size: large}\n"), 0o644), os.Symlink("shared/d.yaml", "inside.yaml")))
	named := filepath.Join(t.TempDir(), "named")
	testenv.Must(t, os.Symlink(checkout, named))
	for _, at := range [][2]string{
		{checkout, "link.yaml"},
		{checkout, "sub/config.json"},
		{checkout, filepath.Join(checkout, "link.yaml")},
		{checkout, "sub/../" + filepath.Base(filepath.Dir(home)) + "/config.json"},
		{checkout, "shared/../link.yaml"},
		{checkout, checkout + "//link.yaml"},
		{checkout, "../" + filepath.Base(checkout) + "/link.yaml"},
		{named, filepath.Join(checkout, "link.yaml")},
		{named, filepath.Join(named, "link.yaml")},
		{"/", strings.TrimPrefix(checkout, "/") + "/link.yaml"},
		{"/", "." + checkout + "/sub/config.json"},
	} {
		file := at[1]
		t.Chdir(at[0])
		for _, args := range [][]string{
			{"generate", "--inventory", inventory, "--output-dir", dir, "--check", "--config", file},
			{"plan", "--inventory", inventory, "--target", "vanilla", "--config", file},
			{"plan", "--inventory", file, "--target", "vanilla"},
			{"plan", "--inventory", inventory, "--check", file},
			{"import", file},
		} {
			stdout, stderr, code := pipeline(t, args...)
			if code != cli.Usage || !strings.Contains(stderr, "leads out of the checkout") || strings.Contains(stdout+stderr, "s3cret") {
				t.Errorf("in %s, %v: want exit 64, got %d: %s%s", at[0], args, code, stdout, stderr)
			}
		}
	}
	t.Chdir(checkout)
	for _, file := range []string{"inside.yaml", "shared/../inside.yaml", "./shared/../shared/d.yaml"} {
		if _, stderr, code := pipeline(t, "plan", "--inventory", inventory, "--target", "vanilla", "--config", file); code != cli.OK {
			t.Errorf("%s, within the checkout: want exit 0, got %d: %s", file, code, stderr)
		}
	}
	read, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	_, _ = written.WriteString("spec: {size: large}\n")
	written.Close()
	t.Chdir("/")
	if _, stderr, code := pipeline(t, "plan", "--inventory", inventory, "--target", "vanilla", "--config", "/dev/fd/"+fmt.Sprint(read.Fd())); code != cli.OK {
		t.Errorf("the substitution of a process: want exit 0, got %d: %s", code, stderr)
	}
}

// What the credential of a pipeline may not read comes from plan.yaml, which the author of the pull request writes.
func TestACheckShowsEachFactThatStaysFromPlanYAML(t *testing.T) {
	text := testfile.Read(t, "../../../../overlays/inventory.yaml")
	inv := testenv.Value(v1alpha1.DecodeInventory("inventory.yaml", text))(t)
	inv.DefaultVolumeType = v1alpha1.Fact[string]{State: v1alpha1.Denied, Reason: "HTTP 403"}
	inv.Backup = v1alpha1.Fact[v1alpha1.Backup]{State: v1alpha1.Denied, Reason: "HTTP 403"}
	cinder := inv.Services.Value["block-storage"]
	cinder.Versions, cinder.MaxMicroversion = v1alpha1.Denied, ""
	inv.Services.Value["block-storage"] = cinder
	for i := range inv.VolumeTypes.Value {
		inv.VolumeTypes.Value[i].Specs, inv.VolumeTypes.Value[i].Zones = v1alpha1.Denied, nil
	}
	text = testenv.Value(v1alpha1.YAML(inv))(t)
	poor := filepath.Join(t.TempDir(), "inventory.yaml")
	testfile.Write(t, poor, text, 0o644)
	dir := bundleOf(t, "vanilla", "kustomize")
	plan := filepath.Join(dir, worktree.PlanFile)
	check := []string{"generate", "--inventory", poor, "--output-dir", dir, "--check"}
	facts := map[string]string{"defaultVolumeType": "standard", "services.block-storage.snapshotInUse": "true", "backup": "known"}
	for _, args := range [][]string{check, append(slices.Clone(check), "-o", "markdown"), append(slices.Clone(check), "-o", "json"), {"plan", "--inventory", poor, "--check", plan}} {
		stdout, stderr, code := pipeline(t, args...)
		for name, value := range facts {
			if code != cli.OK || !strings.Contains(strings.ReplaceAll(stdout, "\\_", "_"), name+" stays as in the last plan ("+value+")") {
				t.Errorf("%v: want exit 0 and %s on stdout, got %d: %s%s", args[2:], name, code, stdout, stderr)
			}
		}
		if !strings.Contains(stdout, "the zones of volume types stay as in the last plan (") {
			t.Errorf("%v: want the zones on stdout, got %s", args[2:], stdout)
		}
	}
	whole := testfile.Read(t, plan)
	for name, value := range facts {
		for _, text := range []string{"run attacker first", "https://attacker.example", "az9", "\"x\\nattacker\"", "denied"} {
			forged := bytes.ReplaceAll(whole, []byte("- name: "+name+"\n        value: "+value), []byte("- name: "+name+"\n        value: "+text))
			if quotes := bytes.ReplaceAll(whole, []byte("- name: "+name+"\n        value: \""+value+"\""), []byte("- name: "+name+"\n        value: "+text)); bytes.Equal(forged, whole) {
				forged = quotes
			}
			if bytes.Equal(forged, whole) {
				t.Fatalf("plan.yaml has no fact %s: %s", name, whole)
			}
			testfile.Write(t, plan, forged, 0o644)
			forge(t, dir, nil)
			stdout, stderr, code := pipeline(t, check...)
			if code != cli.Different || strings.Contains(stdout, "kept: "+name) {
				t.Errorf("%s %q: want exit 2, and not that it is kept, got %d: %s%s", name, text, code, stdout, stderr)
			}
		}
	}
}
