//go:build apiserver

// Package apiserver applies generated bundles to a real API server, as their README says, and removes them. There are no nodes: no pod runs.
// make test-apiserver runs it.
package apiserver

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// server is etcd, the API server, and of the controllers those that delete what belongs to a deleted object.
type server struct {
	repo, work string
	env        []string
}

// controllers create what every namespace has, and empty a namespace that is deleted.
const controllers = "namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,garbage-collector-controller," +
	"persistentvolumeclaim-protection-controller,persistentvolume-protection-controller"

// startServer starts a server for one test.
func startServer(t *testing.T) *server {
	t.Helper()
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{repo: repo, work: t.TempDir()}
	etcd, api := freeAddress(t), freeAddress(t)
	s.start(t, "etcd", "--data-dir="+s.path("etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls=http://"+etcd, "--advertise-client-urls=http://"+etcd, "--listen-peer-urls=http://"+freeAddress(t))
	s.write(t, "tokens.csv", "admin,admin,admin,system:masters\n")
	s.write(t, "accounts.key", privateKey(t))
	_, port, _ := net.SplitHostPort(api)
	s.start(t, "kube-apiserver", "--etcd-servers=http://"+etcd, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+s.path("certificates"),
		"--token-auth-file="+s.path("tokens.csv"), "--authorization-mode=RBAC", "--allow-privileged", "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=198.18.0.0/24", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+s.path("accounts.key"), "--service-account-signing-key-file="+s.path("accounts.key"))
	s.write(t, "kubeconfig", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
"clusters": [{"name": "a", "cluster": {"server": "https://%s", "certificate-authority": %q}}], "users": [{"name": "a", "user": {"token": "admin"}}]}`,
		api, s.path("certificates/apiserver.crt")))
	s.env = append(os.Environ(), "KUBECONFIG="+s.path("kubeconfig"), "PATH="+s.path("bin")+":"+filepath.Join(repo, "bin/tools")+":"+os.Getenv("PATH"),
		"HELM_CACHE_HOME="+s.work, "HELM_CONFIG_HOME="+s.work, "HELM_DATA_HOME="+s.work)
	s.wait(t, "kube-apiserver", "kubectl", "get", "--raw=/readyz")
	s.start(t, "kube-controller-manager", "--kubeconfig="+s.path("kubeconfig"), "--controllers="+controllers, "--leader-elect=false",
		"--secure-port=0", "--root-ca-file="+s.path("certificates/apiserver.crt"))
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
	if err := os.Symlink(filepath.Join(repo, "bin/cinder-csi-generator"), s.path("bin/cinder-csi-generator")); err != nil {
		t.Fatal(err)
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

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func privateKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// start runs a program of the cluster bed until the test ends.
func (s *server) start(t *testing.T, name string, args ...string) {
	t.Helper()
	programs := os.Getenv("CLUSTER_CACHE")
	if programs == "" {
		programs = filepath.Join(os.Getenv("HOME"), ".cache", "cluster-bed")
	}
	log, err := os.Create(s.path(name + ".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(programs, "bin", name), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.work, log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v; build the programs with make test-apiserver", name, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
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
			log, _ := os.ReadFile(s.path(program + ".log"))
			t.Fatalf("%s is not ready after two minutes: %v\n%s%s", program, err, messages, log[max(0, len(log)-2000):])
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
