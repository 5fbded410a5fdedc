package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

func TestInspectAndPlanPrintWhatTheGoldensShow(t *testing.T) {
	b := newBed(t)
	for _, output := range []string{"table", "yaml", "json"} {
		golden(t, "inspect."+output, b.ok(t, "inspect", "--simulated", "-o", output))
	}
	for _, columns := range []string{"80", "120", "200"} {
		b.env["COLUMNS"] = columns
		golden(t, "inspect-"+columns+".table", b.ok(t, "inspect", "--simulated"))
		golden(t, "plan-vanilla-"+columns+".table", b.ok(t, "plan", "--simulated", "--target", "vanilla"))
	}
	delete(b.env, "COLUMNS")
	for _, target := range targets {
		golden(t, "plan-"+target+".table", b.ok(t, "plan", "--simulated", "--target", target))
	}
	golden(t, "plan-vanilla.yaml", b.ok(t, "plan", "--simulated", "--target", "vanilla", "-o", "yaml"))
	golden(t, "schema.json", b.ok(t, "schema"))
}

func TestThePlanTableFitsTheTerminal(t *testing.T) {
	b := newBed(t)
	for _, c := range []struct {
		columns  string
		terminal int
		want     int
	}{{"", 0, 80}, {"", 132, 132}, {"100", 132, 100}, {"wide", 90, 90}, {"-1", 90, 90}} {
		b.env["COLUMNS"], b.Columns = c.columns, c.terminal
		for _, args := range [][]string{{"plan", "--simulated", "--target", "hypershift"}, {"inspect", "--simulated"}} {
			widest := 0
			for line := range strings.Lines(b.ok(t, args...)) {
				widest = max(widest, len(strings.TrimSuffix(line, "\n")))
				if strings.Contains(line, `{"`) {
					t.Errorf("want words, got JSON: %s", line)
				}
			}
			if widest > c.want {
				t.Errorf("%s: want at most %d columns, got %d", args[0], c.want, widest)
			}
		}
	}
}

func TestTheHTMLPagesAreSelfContainedAndTheSameEachTime(t *testing.T) {
	b := newBed(t)
	for _, args := range [][]string{{"inspect", "--simulated", "-o", "html"}, {"plan", "--simulated", "--target", "hypershift", "-o", "html"}} {
		page := b.ok(t, args...)
		if !strings.HasPrefix(page, "<!doctype html>") || !strings.Contains(page, "Simulated cloud.") || strings.Contains(page, "<script") {
			t.Errorf("%s: want a page of a simulated cloud without script", args[0])
		}
		if again := b.ok(t, args...); page != again {
			t.Errorf("%s: want the same bytes again", args[0])
		}
	}
	if _, stderr, code := b.run(t, "version", "-o", "html"); code != Usage || !strings.Contains(stderr, "html") {
		t.Errorf("want version without a page, got exit %d: %s", code, stderr)
	}
}

func TestExitCodes(t *testing.T) {
	b := newBed(t)
	inventory := filepath.Join(b.dir, "inventory.yaml")
	b.ok(t, "inspect", "--simulated", "--save", inventory)
	outage := filepath.Join(b.dir, "outage.yaml")
	text, err := os.ReadFile(inventory)
	if err != nil {
		t.Fatal(err)
	}
	b.file(t, "outage.yaml", strings.Replace(string(text), "volumeTypes:\n  state: known", "volumeTypes:\n  state: failed\n  reason: HTTP 503", 1))
	typo := b.file(t, "typo.yaml", "spec: {topolgy: {}}")
	impossible := b.file(t, "impossible.yaml", "spec: {openshift: {coexistence: adopt}, hypershift: {platform: OpenStack}}")
	newer := b.file(t, "newer.yaml", "apiVersion: generator.cinder-csi.io/v1\nkind: Distribution\n")
	foreign := filepath.Join(b.dir, "foreign")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	b.file(t, "foreign/values.yaml", "mine")
	out := filepath.Join(b.dir, "out")
	generate := func(args ...string) []string {
		return append([]string{"generate", "--target", "vanilla", "--format", "helm", "--output-dir", out}, args...)
	}
	cases := []struct {
		name string
		args []string
		want int
		says string
	}{
		{"help", []string{"--help"}, OK, ""},
		{"version", []string{"version"}, OK, ""},
		{"completion", []string{"completion", "bash"}, OK, ""},
		{"schema", []string{"schema", "Plan"}, OK, ""},
		{"no command", []string{}, Usage, "Available Commands"},
		{"unknown command", []string{"inspekt"}, Usage, "inspekt"},
		{"unknown flag", []string{"inspect", "--simulted"}, Usage, "--simulted"},
		{"unknown shell", []string{"completion", "tcsh"}, Usage, "tcsh"},
		{"no shell", []string{"completion"}, Usage, "name a shell"},
		{"unknown kind", []string{"schema", "plan"}, Usage, "plan"},
		{"unknown output", []string{"inspect", "--simulated", "-o", "xml"}, Usage, "want one of table, yaml, json, html"},
		{"too many arguments", []string{"inspect", "x"}, Usage, "x"},
		{"no directory to validate", []string{"validate"}, Usage, "arg"},
		{"a directory without a bundle", []string{"validate", b.dir}, Usage, "holds no bundle"},
		{"no source", []string{"inspect"}, Usage, "--os-cloud"},
		{"two sources", []string{"inspect", "--simulated", "--os-cloud", "sim-demo"}, Usage, "--simulated"},
		{"two offline sources", []string{"inspect", "--simulated", "--inventory", inventory}, Usage, "two sources"},
		{"no time", []string{"inspect", "--simulated", "--timeout", "0s"}, Usage, "--timeout"},
		{"no such cloud", []string{"inspect", "--os-cloud", "sim-dmeo"}, Usage, "sim-dmeo"},
		{"no such inventory", []string{"inspect", "--inventory", "/nowhere.yaml"}, Usage, "/nowhere.yaml does not exist"},
		{"an inventory that is none", []string{"inspect", "--inventory", typo}, Usage, "apiVersion"},
		{"no such configuration", generate("--simulated", "--config", "/nowhere.yaml"), Usage, "/nowhere.yaml does not exist"},
		{"an unknown key", generate("--simulated", "--config", typo), Usage, "unknown key spec.topolgy; did you mean topology?"},
		{"a configuration of a newer generator", generate("--simulated", "--config", newer), Failure, "made by newer"},
		{"what cannot be", []string{"plan", "--simulated", "--target", "hypershift", "--config", impossible}, Usage, "adopt is refused"},
		{"unknown target", []string{"plan", "--simulated", "--target", "nomad"}, Usage, "want one of vanilla, standalone, hypershift"},
		{"no target", []string{"plan", "--simulated"}, Usage, "--target is missing"},
		{"unknown format", []string{"generate", "--simulated", "--target", "vanilla", "--format", "jsonnet", "--output-dir", out}, Usage, "want one of kustomize, helm"},
		{"a base of Helm values", generate("--simulated", "--base", "../manifests"), Usage, "--base is for --format kustomize"},
		{"no directory", []string{"generate", "--simulated", "--target", "vanilla", "--format", "helm"}, Usage, "--output-dir is missing"},
		{"unknown acceptance", generate("--simulated", "--accept", "everything"), Usage, "--accept \"everything\""},
		{"an outage", generate("--inventory", outage), Failure, "volumeTypes: HTTP 503"},
		{"an outage while checking", generate("--inventory", outage, "--check"), Failure, "volumeTypes: HTTP 503"},
		{"foreign files", []string{"generate", "--simulated", "--target", "vanilla", "--format", "helm", "--output-dir", foreign, "--force"}, Refused, "this generator did not write"},
		{"an unknown key while inspecting", []string{"inspect", "--simulated", "--config", typo}, Usage, "unknown key spec.topolgy; did you mean topology?"},
		{"an unknown key where nothing is decided", []string{"version", "--config", typo}, Usage, "unknown key spec.topolgy"},
		{"no time where no cloud is asked", []string{"validate", b.dir, "--timeout", "0s"}, Usage, "--timeout"},
		{"a file for a directory", []string{"generate", "--simulated", "--target", "vanilla", "--format", "helm", "--output-dir", typo}, Usage, "is not a directory"},
		{"a check of a file", []string{"generate", "--simulated", "--target", "vanilla", "--format", "helm", "--output-dir", typo, "--check"}, Usage, "is not a directory"},
		{"a check below a file", []string{"generate", "--simulated", "--target", "vanilla", "--format", "helm", "--output-dir", filepath.Join(typo, "x"), "--check"}, Usage, "is not a directory"},
		{"a file to validate", []string{"validate", typo}, Usage, "is not a directory"},
		{"both from stdin", []string{"plan", "--target", "vanilla", "--config", "-", "--inventory", "-"}, Usage, "cannot both be stdin"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, code := b.run(t, c.args...)
			if code != c.want || !strings.Contains(stderr, c.says) {
				t.Errorf("want exit %d and a message with %q, got %d: %s", c.want, c.says, code, stderr)
			}
			if code != OK && stdout != "" {
				t.Errorf("want nothing on stdout, got %q", stdout)
			}
			if n := strings.Count(stderr, "Error: "); code != OK && len(c.args) > 0 && n != 1 {
				t.Errorf("want one error, got %d: %s", n, stderr)
			}
			if got := files(t, out); len(got) > 0 {
				t.Errorf("want nothing written, got %v", got)
			}
		})
	}
	if diff := cmp.Diff(map[string]string{"values.yaml": "mine"}, files(t, foreign)); diff != "" {
		t.Errorf("a foreign directory changed (-want +got):\n%s", diff)
	}
}

func TestEveryCommandTakesTheCommonFlags(t *testing.T) {
	b := newBed(t)
	config := b.file(t, "config.yaml", "spec: {clusterID: prod}")
	bundle := filepath.Join(b.dir, "out")
	for _, args := range [][]string{
		{"inspect", "--simulated"},
		{"plan", "--simulated", "--target", "vanilla"},
		{"generate", "--simulated", "--target", "vanilla", "--format", "helm", "--output-dir", bundle},
		{"explain", "storageclass/fast", "volumeBindingMode", bundle},
		{"validate", bundle},
		{"schema"},
		{"version"},
		{"completion", "bash"},
	} {
		b.ok(t, append(args, "--config", config, "--timeout", "1m", "-v")...)
	}
	b.stdin.WriteString("spec: {clusterID: prod}")
	b.ok(t, "inspect", "--simulated", "--config", "-")
}

func TestWrongCredentialsAndUnreachableCloudsFailWithoutASecret(t *testing.T) {
	b := newBed(t)
	clouds, err := os.ReadFile(b.env["OS_CLIENT_CONFIG_FILE"])
	if err != nil {
		t.Fatal(err)
	}
	b.env["OS_CLIENT_CONFIG_FILE"] = b.file(t, "wrong.yaml", strings.ReplaceAll(string(clouds), "password: sim-demo\n", "password: hunter2\n"))
	_, stderr, code := b.run(t, "inspect", "--os-cloud", "sim-demo", "-v")
	if code != Failure || !strings.Contains(stderr, "refuses the credentials") || strings.Contains(stderr, "hunter2") {
		t.Errorf("want exit 1 without the password, got %d: %s", code, stderr)
	}
	b.Connect = cloud.Connect
	b.env = map[string]string{
		"OS_AUTH_URL": "http://127.0.0.1:1/v3", "OS_USERNAME": "u", "OS_PASSWORD": "hunter2", "OS_PROJECT_NAME": "p",
		"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default",
	}
	_, stderr, code = b.run(t, "inspect")
	if code != Failure || !strings.Contains(stderr, "cannot reach Keystone") || strings.Contains(stderr, "hunter2") {
		t.Errorf("want exit 1 without the password, got %d: %s", code, stderr)
	}
}

func TestAPanicIsExitOne(t *testing.T) {
	b := newBed(t)
	b.Simulate = func(context.Context) (*cloud.Cloud, error) { panic("at the disco") }
	_, stderr, code := b.run(t, "inspect", "--simulated")
	if code != Failure || !strings.Contains(stderr, "at the disco") {
		t.Errorf("want exit 1 and the reason, got %d: %s", code, stderr)
	}
}

func TestAFullDiskBehindStdoutIsAFailure(t *testing.T) {
	b := newBed(t)
	w := b.World
	w.Stdout, w.Stderr = full{}, full{}
	if code := Run(t.Context(), w, []string{"inspect", "--simulated", "-o", "json"}); code != Failure {
		t.Errorf("want exit 1, got %d", code)
	}
	if code := Run(t.Context(), w, []string{"inspect", "--simulated"}); code != Failure {
		t.Errorf("table: want exit 1, got %d", code)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestASavedInventoryIsASourceThatAsksNoCloud(t *testing.T) {
	b := newBed(t)
	inventory := filepath.Join(b.dir, "inventory.yaml")
	printed := b.ok(t, "inspect", "--simulated", "-o", "yaml", "--save", inventory)
	saved, err := os.ReadFile(inventory)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(printed, string(saved)); diff != "" {
		t.Errorf("(-printed +saved):\n%s", diff)
	}
	want := b.ok(t, "plan", "--simulated", "--target", "standalone", "-o", "yaml")
	served := b.served.Load()
	if diff := cmp.Diff(want, b.ok(t, "plan", "--inventory", inventory, "--target", "standalone", "-o", "yaml")); diff != "" {
		t.Errorf("(-cloud +inventory):\n%s", diff)
	}
	b.stdin.Write(saved)
	if diff := cmp.Diff(want, b.ok(t, "plan", "--inventory", "-", "--target", "standalone", "-o", "yaml")); diff != "" {
		t.Errorf("(-cloud +stdin):\n%s", diff)
	}
	if now := b.served.Load(); now != served {
		t.Errorf("want no request to the cloud, got %d", now-served)
	}
}

func TestVerboseShowsRequestsAndNoSecret(t *testing.T) {
	b := newBed(t)
	_, stderr, code := b.run(t, "inspect", "--os-cloud", "sim-demo", "-v")
	if code != OK || !strings.Contains(stderr, "GET "+address+"/volume/v3/") || strings.Contains(stderr, "sim-demo\n") {
		t.Errorf("want the requests, got %d: %s", code, stderr)
	}
}

func TestProgressIsForTerminalsOnly(t *testing.T) {
	b := newBed(t)
	if _, stderr, _ := b.run(t, "inspect", "--simulated"); stderr != "" {
		t.Errorf("want silence, got %q", stderr)
	}
	b.Terminal = true
	if _, stderr, _ := b.run(t, "inspect", "--simulated"); !strings.Contains(stderr, "9 of 9") {
		t.Errorf("want progress, got %q", stderr)
	}
}

func TestVersionAndPlanAreDataForPipelines(t *testing.T) {
	b := newBed(t)
	var about map[string]string
	if err := yaml.Unmarshal([]byte(b.ok(t, "version", "-o", "json")), &about); err != nil || about["version"] != "v0-test" {
		t.Errorf("want the version, got %v, %v", about, err)
	}
	if _, err := v1alpha1.DecodePlan("plan", []byte(b.ok(t, "plan", "--simulated", "--target", "vanilla", "-o", "json"))); err != nil {
		t.Error(err)
	}
}

func TestEveryUserOfAProjectGetsTheSamePlan(t *testing.T) {
	b := newBed(t)
	b.sim.AddVolumeType(openstacksim.VolumeType{Name: "secret", Private: true})
	for _, target := range targets {
		want := b.ok(t, "plan", "--os-cloud", "sim-demo-admin", "--target", target, "-o", "yaml")
		for _, user := range []string{"sim-demo", "sim-reader", "sim-appcred"} {
			if diff := cmp.Diff(want, b.ok(t, "plan", "--os-cloud", user, "--target", target, "-o", "yaml")); diff != "" {
				t.Errorf("%s %s (-admin +user):\n%s", target, user, diff)
			}
		}
	}
}
