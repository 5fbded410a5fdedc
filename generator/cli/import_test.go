package cli

import (
	"os"
	"strings"
	"testing"
)

func TestTheProposalOfImportIsAConfigurationThatPlanTakes(t *testing.T) {
	b := newBed(t)
	conf := b.file(t, "cloud.conf", "[Global]\nauth-url=x\npassword=hunter2\n[BlockStorage]\nnode-volume-attach-limit=20\n")
	values := b.file(t, "values.yaml", "clusterID: prod\ncsi: {plugin: {image: {tag: v1.36.0}, controllerPlugin: {replicas: 3}}}\nlogVerbosityLevel: 4\nstorageClass: {delete: {isDefault: true}}\n")
	stdout, stderr, code := b.run(t, "import", conf, values)
	if code != OK || strings.Contains(stdout+stderr, "hunter2") || !strings.Contains(stderr, values+": csi.plugin.image.tag: left out: it is the image of upstream's plugin\n") {
		t.Fatalf("want a proposal, got %d: %s%s", code, stdout, stderr)
	}
	config := b.file(t, "distribution.yaml", stdout)
	got := b.ok(t, "plan", "--simulated", "--target", "vanilla", "--config", config, "-o", "yaml")
	for _, want := range []string{"clusterID: prod", "default: none", `volumeAttachLimit: "20"`, "replicas: 3"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in the plan:\n%s", want, got)
		}
	}
	b.stdin.WriteString(stdout)
	if _, stderr, code := b.run(t, "import", "-"); code != Usage || !strings.Contains(stderr, "stdin is a configuration of this generator already; give it as --config -") {
		t.Errorf("want exit 64 for a Distribution, got %d: %s", code, stderr)
	}
}

// clusterFiles copies files of the tests of import to where a page has them.
func clusterFiles(t *testing.T, b *bed) {
	t.Helper()
	const from = "../migrate/testdata"
	if err := os.CopyFS(b.dir+"/must-gather", os.DirFS(from+"/must-gather")); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"config.yaml":        "must-gather/namespaces/openshift-config/core/configmaps.yaml",
		"cloud-conf.yaml":    "must-gather/namespaces/openshift-cluster-csi-drivers/core/configmaps.yaml",
		"hostedcluster.yaml": "hosted/hostedcluster.yaml", "controlplane.yaml": "hosted/controlplane.yaml", "secrets.json": "hosted/secrets.yaml",
	} {
		content, err := os.ReadFile(from + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		b.file(t, name, string(content))
	}
	var objects []string
	for _, path := range []string{
		"config.openshift.io/infrastructures/cluster", "config.openshift.io/proxies/cluster", "config.openshift.io/networks/cluster", "config.openshift.io/apiservers/cluster",
		"operator.openshift.io/clustercsidrivers/cinder.csi.openstack.org",
	} {
		content, err := os.ReadFile(from + "/must-gather/cluster-scoped-resources/" + path + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, string(content))
	}
	b.file(t, "cluster.yaml", strings.Join(objects, ""))
}

func TestTheCommandsOfTheImportPageRunAndTellNoValueOfASecret(t *testing.T) {
	b := newBed(t)
	clusterFiles(t, b)
	page, err := os.ReadFile("../../docs/how-to/import.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(b.dir)
	ran := map[string]int{}
	for _, line := range commands(string(page), "    ") {
		command, found := strings.CutPrefix(line, "bin/cinder-csi-generator ")
		if !found {
			continue
		}
		command, output, _ := strings.Cut(command, " > ")
		args := strings.Fields(strings.ReplaceAll(command, "mycloud", "sim-demo"))
		stdout, stderr, code := b.run(t, args...)
		if code != OK {
			t.Fatalf("%s: exit %d: %s", command, code, stderr)
		}
		for _, secret := range []string{"hunter2", "Y2FuYXJ5"} {
			if strings.Contains(stdout+stderr, secret) {
				t.Errorf("%s: the value of a Secret is told: %s%s", command, stdout, stderr)
			}
		}
		if output != "" {
			b.file(t, output, stdout)
		}
		ran[args[0]]++
	}
	if ran["import"] != 4 || ran["plan"] != 2 {
		t.Errorf("want 4 imports and 2 plans, got %v", ran)
	}
}

func TestADirectoryIsReadWholeAndWhatIsLeftOutIsNamed(t *testing.T) {
	b := newBed(t)
	clusterFiles(t, b)
	b.file(t, "must-gather/large.yaml", strings.Repeat("#", largestInput+1))
	dir := b.dir + "/must-gather"
	stdout, stderr, code := b.run(t, "import", dir)
	if code != OK || !strings.Contains(stdout, "clusterID: shop-x7k2p") {
		t.Fatalf("want a proposal, got %d: %s%s", code, stdout, stderr)
	}
	for _, want := range []string{
		dir + "/large.yaml: the file: left out: it is larger than", dir + ": 1 other files: left out: import reads files that end in", dir + ": Pod (2): left out",
		dir + "/namespaces/openshift-cluster-csi-drivers/core/events.yaml: the file: left out: it is neither cloud.conf",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("want %q in:\n%s", want, stderr)
		}
	}
	if _, stderr, code := b.run(t, "import", dir+"/namespaces/openshift-cluster-csi-drivers/pods"); code != Usage || !strings.Contains(stderr, "pods has no file that import reads") {
		t.Errorf("want exit 64 for a directory without anything to read, got %d: %s", code, stderr)
	}
}
