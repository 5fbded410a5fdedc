package command_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/command"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/support"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestAReportIsListedBeforeItIsWritten(t *testing.T) {
	_, env, volume := simulated(t)
	servers := map[string]map[string]string{"": worker(volume, "True")}
	file := filepath.Join(t.TempDir(), "report.tar.gz")

	stdout, stderr, code, _ := pluginWith(t, env, servers, "report")
	if _, err := os.Stat(file); err == nil || !strings.Contains(stdout, "list.json") || !strings.Contains(stdout, "lost.json") || code != 1 {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	stdout, stderr, _, _ = pluginWith(t, env, servers, "report", "-o", "json", "--file", file)
	var b support.Archive
	if err := json.Unmarshal([]byte(stdout), &b); err != nil || len(b.Entries) < 5 {
		t.Errorf("%v: %s%s", err, stdout, stderr)
	}
	written, err := os.Stat(file)
	if err != nil || written.Mode().Perm() != 0o600 || written.Size() < 500 {
		t.Fatalf("%v: %+v", err, written)
	}
	_, stderr, code, _ = pluginWith(t, env, servers, "report", "--file", file)
	if again, err := os.Stat(file); err != nil || again.Size() != written.Size() || code != 64 || !strings.Contains(stderr, "exists already") {
		t.Errorf("want that the file stays, got exit %d: %s", code, stderr)
	}
}

// A page or a log may have the token of the person who makes the report, in a form that no rule knows.
func TestAReportHasNoCredentialsOfItsKubeconfig(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			_, password, _ := r.BasicAuth()
			_ = json.NewEncoder(w).Encode(map[string]string{"gitVersion": "v1 " + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + " " + password})
			return
		}
		http.Error(w, `{"message": "not found"}`, http.StatusNotFound)
	}))
	defer server.Close()
	for name, user := range map[string]string{
		"token":      `{"token": "own-kube-secret"}`,
		"token file": `{"tokenFile": "TOKENFILE"}`,
		"password":   `{"username": "u", "password": "own-kube-secret"}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			kubeconfig, token, archive := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "token"), filepath.Join(dir, "report.tar.gz")
			text := `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
				"clusters": [{"name": "c", "cluster": {"insecure-skip-tls-verify": true, "server": "` + server.URL + `"}}], "users": [{"name": "u", "user": ` + strings.Replace(user, "TOKENFILE", token, 1) + `}]}`
			for file, content := range map[string]string{kubeconfig: text, token: "own-kube-secret\n"} {
				testfile.Write(t, file, content, 0o600)
			}
			var stdout, stderr bytes.Buffer
			command.Run(t.Context(), command.World{
				Stdout: &stdout, Stderr: &stderr, Env: func(string) string { return "" }, Version: "v0-test", Connect: cloud.Connect, Now: time.Now, Kubernetes: cluster.Connect,
			}, []string{"report", "--kubeconfig", kubeconfig, "--file", archive})
			written := unpacked(t, archive)
			if !strings.Contains(written, `"gitVersion": "v1 `) || strings.Contains(written, "own-kube-secret") {
				t.Errorf("got %s%s%q", stdout.String(), stderr.String(), written)
			}
		})
	}
}

// unpacked is the text of an archive.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The reference of kubectl cinder has the ClusterRole of people who may look. A verb of Kubernetes that is missing there shows as "not seen".
func TestTheRoleOfThePageCoversWhatTheCommandsRead(t *testing.T) {
	page := testfile.Read(t, "../../../docs/reference/kubectl-cinder.md")
	_, text, _ := strings.Cut(string(page), "```yaml\napiVersion: rbac")
	text, _, found := strings.Cut(text, "```")
	var role struct {
		Rules []struct{ APIGroups, Resources, Verbs []string }
	}
	if err := yaml.Unmarshal([]byte("apiVersion: rbac"+text), &role); err != nil || !found {
		t.Fatalf("the page has no ClusterRole: %v", err)
	}
	_, env, volume := simulated(t)
	objects := worker(volume, "True")
	objects["/api/v1/namespaces/x/pods/node-x"] = `{"metadata": {"name": "node-x"}, "status": {"containerStatuses": [{"name": "driver", "restartCount": 1}]}}`
	seen := 0
	for _, args := range [][]string{{"node", "n1"}, {"report"}, {"list"}, {"lost"}, {"operations"}, {"version"}} {
		_, _, _, asked := pluginWith(t, env, map[string]map[string]string{"": objects}, args...)
		for _, request := range asked {
			group, resource, verb := rightFor(strings.TrimPrefix(request, " GET "))
			if resource == "" {
				continue // everybody may read /version
			}
			seen++
			if !slices.ContainsFunc(role.Rules, func(r struct{ APIGroups, Resources, Verbs []string }) bool {
				return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
			}) {
				t.Errorf("kubectl cinder %s needs %s of %s in group %q", args[0], verb, resource, group)
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d requests were compared", seen)
	}
}

// rightFor is what a GET of a path needs.
func rightFor(path string) (group, resource, verb string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	case parts[0] == "api":
		parts = parts[2:]
	default:
		return "", "", ""
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	switch len(parts) {
	case 1:
		return group, parts[0], "list"
	case 2:
		return group, parts[0], "get"
	}
	return group, parts[0] + "/" + parts[2], "get"
}
