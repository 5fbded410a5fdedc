package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// The programs are stand-ins: what is tested is that Start runs them, waits for both, and leaves the kubeconfig of an administrator.
func TestStartReturnsWhenTheAPIServerAndTheControllersAnswer(t *testing.T) {
	w := NewWorkdir(t)
	t.Setenv("CLUSTER_CACHE", w.Dir)
	t.Setenv("KUBE_APISERVER", "")
	if err := os.Mkdir(w.Path("bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"etcd": "exec sleep 600", "kube-apiserver": "exec sleep 600", "kube-controller-manager": "touch controllers; echo \"$@\"; exec sleep 600",
		"kubectl": `echo "$@" >>asked; grep -q token "$KUBECONFIG" || exit 1; case "$1 $2" in "get serviceaccount") test -e controllers;; esac`,
	} {
		w.Write(t, "bin/"+name, "#!/bin/sh\n"+text+"\n")
		if err := os.Chmod(w.Path("bin/"+name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.Start(t, "namespace-controller")
	asked := testfile.Read(t, w.Path("asked"))
	if lines := strings.Split(string(asked), "\n"); lines[0] != "get --raw=/readyz" || !strings.Contains(string(asked), "get serviceaccount default") {
		t.Errorf("want both to be asked, got %q", asked)
	}
	kubeconfig, err := os.ReadFile(w.Path("kubeconfig"))
	if err != nil || !strings.Contains(string(kubeconfig), "https://127.0.0.1:"+w.Plane.Port) {
		t.Errorf("want the address of the API server, got %v: %s", err, kubeconfig)
	}
}

func TestACommandFindsProgramsAndFilesOfItsDirectory(t *testing.T) {
	w := NewWorkdir(t)
	w.Env = append(w.Env, "GREETING=hello")
	if err := os.Mkdir(w.Path("bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.Write(t, "file", "text")
	w.Write(t, "bin/kubectl", "#!/bin/sh\necho \"$GREETING $(cat file) $KUBECONFIG\"; echo message >&2; exit \"$1\"\n")
	if err := os.Chmod(w.Path("bin/kubectl"), 0o755); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := w.Try("kubectl", "0")
	if want := "hello text " + w.Path("kubeconfig") + "\n"; err != nil || stdout != want || stderr != "message\n" {
		t.Errorf("want %q, got %q, %q, %v", want, stdout, stderr, err)
	}
	if stdout, _, err := w.Try("kubectl", "3"); err == nil || !strings.HasPrefix(stdout, "hello") {
		t.Errorf("want what it printed and an error, got %q, %v", stdout, err)
	}
	if _, err := os.Stat(filepath.Join(w.Repo, "go.mod")); err != nil {
		t.Error(err)
	}
}
