//go:build apiserver

package apiserver

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// as is a kubeconfig of the administrator who acts as another user.
func (l *life) as(user string) string {
	l.t.Helper()
	var config object
	text, err := os.ReadFile(l.server.Path("kubeconfig"))
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	config["users"].([]any)[0].(object)["user"].(object)["as"] = user
	if text, err = json.Marshal(config); err != nil {
		l.t.Fatal(err)
	}
	l.server.Write(l.t, "kubeconfig-"+user, string(text))
	return l.server.Path("kubeconfig-" + user)
}

// plugin runs the plugin as a user, and waits until the API server knows the rights.
func (l *life) plugin(user string, enough func(diagnosis.Report) bool) diagnosis.Report {
	l.t.Helper()
	var report diagnosis.Report
	for range 20 {
		cmd := exec.Command(filepath.Join(l.server.Repo, "bin/kubectl-cinder"), "volume", l.namespace+"/data", "--driver-namespace", l.namespace, "--kubeconfig", l.as(user), "--os-cloud", "sim-demo", "-o", "json")
		cmd.Env = append(l.server.Env, "OS_CLIENT_CONFIG_FILE="+l.cloudsFile())
		out, _ := cmd.Output()
		report = diagnosis.Report{}
		if err := json.Unmarshal(out, &report); err != nil {
			l.t.Fatalf("%v: %s", err, out)
		}
		if enough(report) {
			return report
		}
		time.Sleep(200 * time.Millisecond)
	}
	l.t.Fatalf("as %s: %+v", user, report)
	return report
}

func (l *life) grant(kind, user string) {
	l.t.Helper()
	l.create("/apis/rbac.authorization.k8s.io/v1/namespaces/"+l.namespace+"/rolebindings", object{
		"metadata": object{"name": kind},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": kind}, "subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
	})
}

func TestVolumeIsDiagnosedWithTheRightsOfItsReader(t *testing.T) {
	s := startServer(t)
	l := &life{rest: newREST(t, s), server: s, namespace: "rights", kubelet: startKubelet(t), nodes: map[string]string{}}
	l.create("/api/v1/namespaces", object{"metadata": object{"name": l.namespace}})
	l.startDriver()
	l.moving()
	l.controllerPod("True")

	t.Run("a user of the namespace sees the pods, and what it did not see", func(t *testing.T) {
		l.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", object{
			"metadata": object{"name": "reader"},
			"rules":    []object{{"apiGroups": []string{""}, "resources": []string{"persistentvolumeclaims", "pods", "events"}, "verbs": []string{"get", "list"}}},
		})
		l.grant("reader", "developer")
		report := l.plugin("developer", func(r diagnosis.Report) bool { return len(r.Steps) > 2 })
		if report.Cause != "attach.elsewhere" {
			t.Errorf("want attach.elsewhere by the event of the pod, got %+v", report.Steps)
		}
		unseen, _ := json.Marshal(report.Unseen)
		for _, want := range []string{"the PersistentVolume", "the StorageClass", "the VolumeAttachments", "operations in progress"} {
			if !strings.Contains(string(unseen), want) {
				t.Errorf("want %s in what was not seen: %s", want, unseen)
			}
		}
	})
	t.Run("the ClusterRole of the page is enough", func(t *testing.T) {
		page := testfile.Read(t, filepath.Join(s.Repo, "docs/reference/kubectl-cinder.md"))
		_, text, _ := strings.Cut(string(page), "```yaml\n")
		text, _, found := strings.Cut(text, "```")
		var role object
		if err := yaml.Unmarshal([]byte(text), &role); err != nil || !found {
			t.Fatalf("the page has no ClusterRole: %v", err)
		}
		l.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
		name := role["metadata"].(object)["name"].(string)
		l.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", object{
			"metadata": object{"name": name},
			"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}, "subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "doctor"}},
		})
		report := l.plugin("doctor", func(r diagnosis.Report) bool { return len(r.Unseen) == 0 })
		if report.Cause != "attach.elsewhere" {
			t.Errorf("want attach.elsewhere, got %+v", report)
		}
	})
	t.Run("node, list and report need no other right, and report has no secret", func(t *testing.T) {
		const planted = "planted-password-0123"
		l.patch(l.path("pods/cinder-csi-controller-0"), object{"metadata": object{"annotations": object{"example.com/password": planted}}})
		archive := filepath.Join(t.TempDir(), "report.tar.gz")
		for _, args := range [][]string{{"node", l.name("a"), "--driver-namespace", l.namespace}, {"list"}, {"report", "--driver-namespace", l.namespace, "--file", archive}} {
			cmd := exec.Command(filepath.Join(s.Repo, "bin/kubectl-cinder"), append(args, "--kubeconfig", l.as("doctor"), "--os-cloud", "sim-demo")...)
			cmd.Env = append(s.Env, "OS_CLIENT_CONFIG_FILE="+l.cloudsFile())
			out, _ := cmd.CombinedOutput()
			if text := string(out); cmd.ProcessState.ExitCode() > 1 || strings.Contains(text, "orbidden") || strings.Contains(text, planted) {
				t.Errorf("%q: exit code %d: %s", args, cmd.ProcessState.ExitCode(), text)
			}
			t.Logf("%q:\n%s", args, out)
		}
		files, err := exec.Command("tar", "-xzOf", archive).Output()
		if err != nil || !strings.Contains(string(files), "example.com/password") || !strings.Contains(string(files), "REDACTED") || strings.Contains(string(files), planted) {
			t.Errorf("want the pod without its password in the archive: %v: %d bytes", err, len(files))
		}
	})
}
