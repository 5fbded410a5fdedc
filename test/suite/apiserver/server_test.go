//go:build apiserver

package apiserver

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/controlplane"
)

// server is etcd, the API server, and of the controllers those that delete what belongs to a deleted object.
type server struct {
	repo, work string
	env        []string
	plane      *controlplane.Server
}

// controllers create what every namespace has, and empty a namespace that is deleted.
const controllers = "namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,garbage-collector-controller," +
	"persistentvolumeclaim-protection-controller,persistentvolume-protection-controller"

// startServer starts a server for one test.
func startServer(t *testing.T) *server {
	t.Helper()
	repo, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{repo: repo, work: t.TempDir()}
	const host = "127.0.0.1"
	s.plane = controlplane.Start(t, controlplane.Options{Dir: s.work, Host: host, Admin: "admin", ServiceRange: "198.18.0.0/24"})
	certificate := s.path("apiserver.crt")
	s.write(t, "kubeconfig", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
"clusters": [{"name": "a", "cluster": {"server": "https://%s:%s", "certificate-authority": %q}}], "users": [{"name": "a", "user": {"token": "admin"}}]}`,
		host, s.plane.Port, certificate))
	s.env = append(os.Environ(), "KUBECONFIG="+s.path("kubeconfig"), "PATH="+s.path("bin")+":"+filepath.Join(repo, "bin/tools")+":"+os.Getenv("PATH"),
		"HELM_CACHE_HOME="+s.work, "HELM_CONFIG_HOME="+s.work, "HELM_DATA_HOME="+s.work)
	s.wait(t, "kube-apiserver", "kubectl", "get", "--raw=/readyz")
	s.plane.Controllers(t, s.path("kubeconfig"), controllers, certificate)
	s.wait(t, "kube-controller-manager", "kubectl", "get", "serviceaccount", "default")
	s.run(t, "kubectl", "create", "-f", filepath.Join(repo, "bin/crds"))
	s.run(t, "kubectl", "wait", "--for=condition=Established", "customresourcedefinitions", "--all")
	// Documents name the chart, the programs and the credentials by these paths.
	s.write(t, "clouds.yaml", "clouds: {openstack: {auth: {auth_url: http://cloud.example}}}\n")
	if err := os.Symlink(filepath.Join(repo, "charts"), s.path("charts")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.path("bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	// What the documents ask of oc, kubectl does in the same way.
	for name, program := range map[string]string{"cinder-csi-generator": "bin/cinder-csi-generator", "oc": "bin/tools/kubectl"} {
		if err := os.Symlink(filepath.Join(repo, program), s.path("bin/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *server) path(name string) string { return filepath.Join(s.work, name) }

func (s *server) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wait runs a command until it succeeds.
func (s *server) wait(t *testing.T, program string, command ...string) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		_, messages, err := s.try(command...)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready after two minutes: %v\n%s%s", program, err, messages, s.plane.LogTail(program))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// try runs a command in the work directory.
func (s *server) try(command ...string) (stdout, stderr string, err error) {
	// The shell finds the program with the PATH of the server, not with that of this process.
	cmd := exec.Command("bash", append([]string{"-c", `exec "$@"`, "bash"}, command...)...)
	var out, messages bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.work, s.env, &out, &messages
	err = cmd.Run()
	return out.String(), messages.String(), err
}

// run is try for a command that must succeed without a warning of the API server.
func (s *server) run(t *testing.T, command ...string) string {
	t.Helper()
	out, messages, err := s.try(command...)
	warned := command[0] != "cinder-csi-generator" && strings.Contains("\n"+messages, "\nWarning:")
	if err != nil || warned {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, out, messages)
	}
	return out
}

// shell is run for a line or a script of the shell.
func (s *server) shell(t *testing.T, script string) string {
	t.Helper()
	return s.run(t, "bash", "-eo", "pipefail", "-c", script)
}
