package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// candidates are what the shell is offered for a command line.
func candidates(t *testing.T, b *bed, args ...string) []string {
	t.Helper()
	return strings.Split(strings.TrimSpace(b.ok(t, append([]string{"__complete"}, args...)...)), "\n")
}

func TestCompletionKnowsCloudsObjectsFieldsAndAcceptNames(t *testing.T) {
	b := newBed(t)
	t.Chdir(vanillaBundle(t, b, "kustomize"))
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"inspect", "--os-cloud", ""}, "sim-demo"},
		{[]string{"doctor", "--os-cloud", "sim-a"}, "sim-appcred"},
		{[]string{"explain", ""}, "storageclass/fast"},
		{[]string{"explain", "deploy"}, "deployment/cinder-csi-controller"},
		{[]string{"explain", "volumetype/"}, "volumetype/fast"},
		{[]string{"explain", "storageclass/fast", ""}, "volumeBindingMode"},
		{[]string{"explain", "storageclass/fast", "param"}, "parameters.type"},
		{[]string{"generate", "--accept", ""}, "class-removed"},
		{[]string{"doctor", "--target", ""}, "vanilla"},
	} {
		if got := candidates(t, b, test.args...); !slices.Contains(got, test.want) {
			t.Errorf("%q: want %s among %q", test.args, test.want, got)
		}
	}
	for _, args := range [][]string{{"explain", "storageclass/fast", "volumeBindingMode", ""}, {"explain", "volumetype/fast", ""}, {"validate", ""}, {"adopt", ""}} {
		if got := candidates(t, b, args...); !slices.Contains(got, ":16") { // cobra: directories
			t.Errorf("%q: want directories, got %q", args, got)
		}
	}
}

func TestCompletionWithoutCloudsOrBundleOffersNothingAndIsNoError(t *testing.T) {
	b := newBed(t)
	b.env["OS_CLIENT_CONFIG_FILE"] = "/nowhere.yaml"
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"inspect", "--os-cloud", ""}, {"explain", ""}} {
		if got := candidates(t, b, args...); len(got) != 1 || got[0] != ":4" {
			t.Errorf("%q: want nothing, got %q", args, got)
		}
	}
}

func TestVersionIsAFlagToo(t *testing.T) {
	b := newBed(t)
	want := b.ok(t, "version")
	if got := b.ok(t, "--version"); got != want || !strings.HasPrefix(got, "cinder-csi-generator v0-test (") {
		t.Errorf("want %q, got %q", want, got)
	}
}

func TestAnUnknownCommandGetsTheNearestOne(t *testing.T) {
	b := newBed(t)
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"inspekt"}, `unknown command "inspekt" for "cinder-csi-generator"; did you mean inspect?`},
		{[]string{"docter"}, "did you mean doctor?"},
		{[]string{"frobnicate"}, `unknown command "frobnicate" for "cinder-csi-generator"` + "\n"},
	} {
		if stdout, stderr, code := b.run(t, test.args...); code != Usage || stdout != "" || !strings.Contains(stderr, test.says) {
			t.Errorf("%q: want exit 64 and %q, got %d: %s", test.args, test.says, code, stderr)
		}
	}
}

// The next TAB runs the line, with what the shell wrote into it.
func TestCompletionOffersNothingThatAShellRuns(t *testing.T) {
	b := newBed(t)
	b.env["OS_CLIENT_CONFIG_FILE"] = b.file(t, "odd.yaml", "clouds: {'`id`': {}, '$(id)': {}, 'a b': {}, good: {}}\n")
	if got := candidates(t, b, "inspect", "--os-cloud", ""); got[0] != "good" || len(got) != 2 {
		t.Errorf("got %q", got)
	}
	dir := vanillaBundle(t, b, "kustomize")
	name := filepath.Join(dir, "plan.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.ReplaceAll(text, []byte("fast"), []byte("`id`")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, got := range candidates(t, b, "explain", "") {
		if strings.Contains(got, "`") {
			t.Errorf("explain: %q", got)
		}
	}
}
