//go:build apiserver

package apiserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/controlplane"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// server is etcd, the API server, and of the controllers those that delete what belongs to a deleted object.
type server struct{ *controlplane.Workdir }

// controllers create what every namespace has, and empty a namespace that is deleted.
const controllers = "namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,garbage-collector-controller," +
	"persistentvolumeclaim-protection-controller,persistentvolume-protection-controller"

// startServer starts a server for one test.
func startServer(t *testing.T) *server {
	t.Helper()
	return startServerWith(t, controllers)
}

func startServerWith(t *testing.T, controllers string) *server {
	t.Helper()
	s := &server{controlplane.NewWorkdir(t)}
	s.Env = append(s.Env, "HELM_CACHE_HOME="+s.Dir, "HELM_CONFIG_HOME="+s.Dir, "HELM_DATA_HOME="+s.Dir)
	s.Start(t, controllers)
	s.run(t, "kubectl", "create", "-f", filepath.Join(s.Repo, "bin/crds"))
	s.run(t, "kubectl", "wait", "--for=condition=Established", "customresourcedefinitions", "--all")
	// Documents name the chart, the programs and the credentials by these paths.
	s.Write(t, "driver-clouds.yaml", "clouds: {openstack: {auth: {auth_url: http://cloud.example}}}\n")
	testenv.Must(t, os.Symlink(filepath.Join(s.Repo, "charts"), s.Path("charts")))
	testenv.Must(t, os.Mkdir(s.Path("bin"), 0o755))
	// What the documents ask of oc, kubectl does in the same way.
	for name, program := range map[string]string{"cinder-csi-generator": "bin/cinder-csi-generator", "oc": "bin/tools/kubectl"} {
		testenv.Must(t, os.Symlink(filepath.Join(s.Repo, program), s.Path("bin/"+name)))
	}
	return s
}

// run is Try for a command that must succeed without a warning of the API server.
func (s *server) run(t *testing.T, command ...string) string {
	t.Helper()
	out, messages, err := s.Try(command...)
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
