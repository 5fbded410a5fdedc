package sanity

import (
	"crypto/rand"
	"net/rpc"
	"net/rpc/jsonrpc"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

// shell runs scripts in the guest, by a socket of the test that started the driver there.
type shell struct{ *rpc.Client }

func (s shell) run(script, path string) (output string, err error) {
	return output, s.Call("Guest.Shell", "p='"+path+"'; "+script, &output)
}

// inGuest gives the suite the addresses of a driver that runs, with its node role in a guest. The directories of pods are there, too.
func inGuest(t *testing.T, config *sanity.TestConfig, dir string) {
	t.Helper()
	client, err := jsonrpc.Dial("unix", filepath.Join(dir, "shell"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	s := shell{client}
	config.ControllerAddress, config.Address = "unix://"+filepath.Join(dir, "controller"), "unix://"+filepath.Join(dir, "node")
	place := "/var/lib/kubelet/sanity-" + rand.Text() // the guest may be older than this run
	config.TargetPath, config.StagingPath = place+"-target", place+"-staging"
	create := func(path string) (string, error) { return path, second(s.run(`mkdir "$p"`, path)) }
	remove := func(path string) error { return second(s.run(`rmdir "$p"`, path)) }
	config.CreateTargetDir, config.CreateStagingDir = create, create
	config.RemoveTargetPath, config.RemoveStagingPath = remove, remove
	config.CheckPath = func(path string) (sanity.PathKind, error) {
		kind, err := s.run(`if [ -d "$p" ]; then echo directory; elif [ -f "$p" ]; then echo file; elif [ -e "$p" ]; then echo other; else echo not_found; fi`, path)
		return sanity.PathKind(kind), err
	}
}

func second[T any](_ T, err error) error { return err }
