package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/command"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// run runs the plugin against an API server that has one Bound claim, without a cloud.
func run(t *testing.T, env map[string]string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/namespaces/shop/persistentvolumeclaims/data":
			fmt.Fprint(w, `{"metadata": {"name": "data", "uid": "u"}, "spec": {"volumeName": "pvc-u"}, "status": {"phase": "Bound"}}`)
		case "/api/v1/namespaces/shop/persistentvolumeclaims/evil":
			fmt.Fprint(w, "{\"metadata\": {\"name\": \"evil\", \"uid\": \"u\"}, \"spec\": {\"volumeName\": \"pvc\u202e\u009b2J\"}, \"status\": {\"phase\": \"Bound\"}}")
		default:
			http.Error(w, `{"message": "not found"}`, http.StatusNotFound)
		}
	}))
	defer server.Close()
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var out, messages bytes.Buffer
	code = command.Run(t.Context(), command.World{
		Columns: 400, // a row has each text
		Stdout:  &out, Stderr: &messages, Env: func(name string) string { return env[name] }, Version: "v0-test",
		Kubernetes: func(s cluster.Source) (*cluster.Cluster, error) {
			if s.Context == "nowhere" {
				return nil, cluster.ErrNoKubeconfig
			}
			return cluster.New("test", base, server.Client()), nil
		},
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	}, args)
	return out.String(), messages.String(), code
}

func TestThePluginTellsTheStoryAndWhatItCouldNotSee(t *testing.T) {
	stdout, stderr, code := run(t, nil, "volume", "shop/data")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "Claim shop/data") || !strings.Contains(stdout, "Cause: none") || !strings.Contains(stdout, "no credentials are given") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

func TestThePluginExitsOneIfTheVolumeHangs(t *testing.T) {
	stdout, stderr, code := run(t, nil, "volume", "shop/other", "-o", "json")
	var report diagnosis.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || report.Cause != "claim.missing" || code != 1 || !strings.Contains(stderr, "claim.missing") {
		t.Errorf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
}

func TestATextOfATenantSteersNoTerminalInADocumentEither(t *testing.T) {
	for _, form := range []string{"json", "yaml", "table"} {
		stdout, stderr, _ := run(t, nil, "volume", "shop/evil", "-o", form)
		if !strings.Contains(stdout, "PersistentVolume pvc\ufffd\ufffd2J") || strings.ContainsAny(stdout+stderr, "\u202e\u009b") {
			t.Errorf("%s: want the characters replaced, got %q%q", form, stdout, stderr)
		}
	}
}

func TestACloudThatIsNotConfiguredIsNotSeenAndNoFailure(t *testing.T) {
	stdout, stderr, code := run(t, map[string]string{"OS_CLIENT_CONFIG_FILE": "/nowhere/clouds.yaml"}, "volume", "shop/data", "--os-cloud", "x")
	if code != 0 || !strings.Contains(stdout, "Not seen:") || !strings.Contains(stdout, "/nowhere/clouds.yaml") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

func TestWrongUsageOfThePluginExits64(t *testing.T) {
	for _, args := range [][]string{
		{"volume"},
		{"volume", "a/b/c"},
		{"volume", "shop/"},
		{"volume", "deployment", "data"},
		{"volume", "cinder/data"},
		{"volume", "pod/$(id)"},
		{"volume", "data", "-n", "Shop"},
		{"volume", "data", "--controller-kubeconfig", "management"},
		{"volume", "shop/data", "extra"},
		{"volume", "shop/data", "-o", "wide"},
		{"volume", "shop/data", "--context", "nowhere"},
		{"volume", "shop/data", "--no-such-flag"},
		{"volumes"},
	} {
		if stdout, stderr, code := run(t, nil, args...); code != 64 || stdout != "" || !strings.HasPrefix(stderr, "Error: ") {
			t.Errorf("%v: exit %d: %s%s", args, code, stdout, stderr)
		}
	}
}

func TestHelpOfThePluginNamesItAsKubectlDoes(t *testing.T) {
	stdout, _, code := run(t, nil, "volume", "--help")
	if code != 0 || !strings.Contains(stdout, "kubectl cinder volume NAMESPACE/CLAIM") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

func TestCompletionOfThePluginKnowsCommandsAndClouds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	testfile.Write(t, file, "clouds: {production: {}, rehearsal: {}, '$(id)': {}, '`id`': {}, -v: {}}\n", 0o600)
	env := map[string]string{"OS_CLIENT_CONFIG_FILE": file}
	for _, test := range []struct {
		args []string
		want string // cobra's answer: candidates, then the directive; 4 means no files
	}{
		{[]string{"vol"}, "volume\tSay where the volume of a claim hangs, and what to do\n:4\n"},
		{[]string{"volume", ""}, ":4\n"},
		{[]string{"volume", "--os-cloud", ""}, "production\nrehearsal\n:4\n"},
		{[]string{"volume", "-o", ""}, "table\njson\nyaml\n:4\n"},
	} {
		stdout, stderr, code := run(t, env, append([]string{"__complete"}, test.args...)...)
		if diff := cmp.Diff(test.want, stdout); diff != "" || code != 0 {
			t.Errorf("%q: exit %d, %s(-want +got):\n%s", test.args, code, stderr, diff)
		}
	}
}
