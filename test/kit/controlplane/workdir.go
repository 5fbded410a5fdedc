package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// Workdir is a directory in which commands run against a control plane, as those of a person would.
type Workdir struct {
	Repo, Dir string   // the root of the repository; where commands run
	Env       []string // of the commands; the last one of a name counts
	Plane     *Server  // nil before Start
	// ServerArgs and ControllerArgs are further flags of kube-apiserver and of kube-controller-manager.
	ServerArgs, ControllerArgs []string
}

// Start starts etcd, the API server on loopback and the named controllers, and returns when they work.
func (w *Workdir) Start(t testing.TB, controllers string) {
	t.Helper()
	const host = "127.0.0.1"
	w.Plane = Start(t, Options{Dir: w.Dir, Host: host, Admin: "admin", ServiceRange: "198.18.0.0/24", Args: w.ServerArgs})
	certificate := w.Path("apiserver.crt")
	w.Write(t, "kubeconfig", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
"clusters": [{"name": "a", "cluster": {"server": "https://%s:%s", "certificate-authority": %q}}], "users": [{"name": "a", "user": {"token": "admin"}}]}`,
		host, w.Plane.Port, certificate))
	w.wait(t, "kube-apiserver", "kubectl", "get", "--raw=/readyz")
	w.Plane.Controllers(t, w.Path("kubeconfig"), controllers, certificate, w.ControllerArgs...)
	w.wait(t, "kube-controller-manager", "kubectl", "get", "serviceaccount", "default")
}

// NewWorkdir is a new directory. Its commands find kubectl and Helm of the repository after the programs in its own directory bin.
func NewWorkdir(t testing.TB) *Workdir {
	t.Helper()
	repo, err := filepath.Abs("../../..") // of a suite, and of this package
	if err != nil {
		t.Fatal(err)
	}
	w := &Workdir{Repo: repo, Dir: t.TempDir()}
	w.Env = append(os.Environ(), "KUBECONFIG="+w.Path("kubeconfig"), "PATH="+strings.Join([]string{w.Path("bin"), filepath.Join(repo, "bin/tools"), os.Getenv("PATH")}, ":"))
	return w
}

// Path is the path of a file of the directory.
func (w *Workdir) Path(name string) string { return filepath.Join(w.Dir, name) }

// Write writes a file of the directory.
func (w *Workdir) Write(t testing.TB, name, text string) {
	t.Helper()
	testfile.Write(t, w.Path(name), text, 0o600)
}

// Try runs a command in the directory.
func (w *Workdir) Try(command ...string) (stdout, stderr string, err error) {
	// env finds the program with the PATH of the commands, not with that of this process.
	cmd := exec.Command("env", command...)
	var out, messages bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.Dir, w.Env, &out, &messages
	err = cmd.Run()
	return out.String(), messages.String(), err
}

// wait runs a command until it succeeds.
func (w *Workdir) wait(t testing.TB, program string, command ...string) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		_, messages, err := w.Try(command...)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready after two minutes: %v\n%s%s", program, err, messages, w.Plane.LogTail(program))
		}
		time.Sleep(200 * time.Millisecond)
	}
}
