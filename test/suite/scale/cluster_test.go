//go:build scale

package scale

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/manifests"
	"github.com/cinder-csi/cinder-csi/test/kit/controlplane"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const driverName = "cinder.csi.openstack.org"

// controllers are those of kube-controller-manager that pods and volumes need.
const controllers = "persistentvolume-binder-controller,persistentvolume-attach-detach-controller,persistentvolumeclaim-protection-controller," +
	"persistentvolume-protection-controller,node-lifecycle-controller,taint-eviction-controller,pod-garbage-collector-controller," +
	"namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller"

// cluster is the control plane.
type cluster struct {
	*rest
	dir   string
	plane *controlplane.Server
}

// startCluster starts etcd and the API server, and applies what the bundle has beside its pods.
func startCluster(t *testing.T, dir string) *cluster {
	t.Helper()
	c := &cluster{dir: dir}
	// Pods of a real cluster need a token, and these do not.
	c.plane = controlplane.Start(t, controlplane.Options{
		Dir: dir, Host: "127.0.0.1", Admin: "admin", ServiceRange: "198.18.0.0/24",
		Args: []string{"--disable-admission-plugins=ServiceAccount", "--event-ttl=10m"},
	})
	c.rest = newREST(c.plane.Port)
	c.wait(t, "API server", func() bool { return c.send(http.MethodGet, "/readyz", nil, nil) == nil })
	c.writeKubeconfig(t, "admin.kubeconfig", "admin")
	c.create(t, "/api/v1/namespaces", object{"metadata": object{"name": "cinder-csi"}})
	c.create(t, "/api/v1/namespaces/cinder-csi/serviceaccounts", object{"metadata": object{"name": "cinder-csi-controller"}})
	c.applyRights(t)
	var token struct{ Status struct{ Token string } }
	request := object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": object{"expirationSeconds": 86400}}
	testenv.Must(t, c.insist(http.MethodPost, "/api/v1/namespaces/cinder-csi/serviceaccounts/cinder-csi-controller/token", request, &token))
	c.writeKubeconfig(t, "controller.kubeconfig", token.Status.Token)
	for _, class := range []string{"standard", "fast"} {
		c.create(t, "/apis/storage.k8s.io/v1/storageclasses", object{
			"metadata": object{"name": class}, "provisioner": driverName, "volumeBindingMode": "WaitForFirstConsumer", "parameters": object{"type": class},
		})
	}
	return c
}

// applyRights creates the CSIDriver and the roles of the sidecars, from the files of the bundle.
func (c *cluster) applyRights(t *testing.T) {
	t.Helper()
	for _, name := range []string{"vanilla/csidriver.yaml", "vanilla/rbac.yaml"} {
		text := testenv.Value(manifests.Files.ReadFile(name))(t)
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var o object
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c.create(t, pathOf(o), o)
		}
	}
}

// pathOf is the collection of an object of the bundle.
func pathOf(o object) string {
	path := "/apis/" + o["apiVersion"].(string)
	if namespace, ok := o["metadata"].(object)["namespace"].(string); ok {
		path += "/namespaces/" + namespace
	}
	return path + "/" + strings.ToLower(o["kind"].(string)) + "s"
}

func (c *cluster) create(t *testing.T, path string, o object) {
	t.Helper()
	testenv.Must(t, c.insist(http.MethodPost, path, o, nil))
}

// startControllers starts the controllers and the scheduler, with the request rates of the flag.
func (c *cluster) startControllers(t *testing.T) {
	t.Helper()
	kubeconfig := filepath.Join(c.dir, "admin.kubeconfig")
	var rates []string
	if *kubeQPS > 0 {
		rates = []string{fmt.Sprint("--kube-api-qps=", *kubeQPS), fmt.Sprint("--kube-api-burst=", 2**kubeQPS)}
	}
	// Kubernetes declares a node lost after 50 s without a lease; the hollow nodes renew theirs less often.
	c.plane.Controllers(t, kubeconfig, controllers, filepath.Join(c.dir, "apiserver.crt"), append(rates, "--node-monitor-grace-period=3m")...)
	c.plane.Run(t, "kube-scheduler", append(rates, "--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port="+controlplane.FreePort(t, "127.0.0.1"),
		"--authentication-skip-lookup")...)
}

func (c *cluster) writeKubeconfig(t *testing.T, name, token string) {
	t.Helper()
	text := testenv.Value(json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "a",
		"contexts": []object{{"name": "a", "context": object{"cluster": "a", "user": "a"}}},
		"clusters": []object{{"name": "a", "cluster": object{"server": c.base, "certificate-authority": filepath.Join(c.dir, "apiserver.crt")}}},
		"users":    []object{{"name": "a", "user": object{"token": token}}},
	}))(t)
	testfile.Write(t, filepath.Join(c.dir, name), text, 0o600)
}

// wait polls until done, for two minutes.
func (c *cluster) wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	waitFor(t, what, 2*time.Minute, done)
}

func waitFor(t *testing.T, what string, limit time.Duration, done func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for !done() {
		if time.Since(begin) > limit {
			t.Fatalf("%s: not after %s", what, limit)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(begin)
}

func nodeName(n int) string { return fmt.Sprintf("node-%04d", n) }
