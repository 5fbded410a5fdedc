//go:build hypershift

// Package hypershift proves a hypershift bundle on two real API servers, those of the management cluster and of the guest cluster. The namespace of
// the hosted control plane enforces Pod Security "restricted". The pod of the controller is the one that the management cluster admits. Its
// containers run as processes, with the volumes, the user and the network of the pod. They are the driver and the real CSI sidecars, and the cloud is
// a real OpenStack.
// `make test-hypershift` runs it.
package hypershift

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	hostedNamespace = "clusters-tenant-a" // of the hosted control plane, in the management cluster
	guestNamespace  = "cinder-csi"
	infraID         = "tenant-a-x7k2p"
	driverName      = "cinder-csi.io"
	topologyKey     = "topology.cinder-csi.io/zone"

	modeAdmin = "adminKubeconfig"
)

const modeToken = "serviceAccountToken"

var repo, _ = filepath.Abs("../../..")

func background() context.Context { return context.Background() }

// hosted is the hosted cluster of a test.
type hosted struct {
	management, guest *cluster
	openstack         *openstack
	servers           []server
	work              string
	authority         *authority // of OpenStack's certificates
	credential        credential
	pod               *pod // of the controller
}

// configuration is the Distribution of a test.
func configuration(mode string) string {
	access := ""
	if mode != modeToken { // the default
		access = "\n    guestAccess: " + mode
	}
	return `apiVersion: generator.cinder-csi.io/v1alpha1
kind: Distribution
metadata: {name: tenant-a}
spec:
  namespaces: {controller: clusters-tenant-a, node: cinder-csi}
  credentials: {caConfigMap: openstack-trusted-ca/ca-bundle.pem}
  hypershift:
    infraID: tenant-a-x7k2p
    platform: OpenStack` + access + `
  images: {driver: {registry: registry.example, repository: cinder-csi-driver, tag: test}}
  roles: {controller: {replicas: 1}}
`
}

// startHosted starts both clusters and makes what HyperShift makes before anybody installs the driver.
func startHosted(t *testing.T) *hosted {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("run as root: pods get network namespaces")
	}
	h := &hosted{work: t.TempDir()}
	network(t)
	h.openstack = connect(t)
	h.servers = h.openstack.servers(t)
	for _, s := range h.servers {
		h.openstack.tag(t, s.ID, infraID)
	}
	h.authority = newAuthority(t)
	h.openstack.serve(t, h.authority)
	h.credential = h.openstack.newCredential(t)
	h.openstack.sweep(t)
	h.management, h.guest = startCluster(t, "management", h.work), startCluster(t, "guest", h.work)
	write(t, filepath.Join(h.work, "clouds.yaml"), strings.Replace(h.openstack.cloudsYAML(h.credential), "\n  openstack:\n", "\n  mycloud:\n    cacert: "+filepath.Join(h.work, "ca-bundle.pem")+"\n", 1))
	h.hostedControlPlane(t)
	for _, crd := range []string{"volumesnapshotclasses", "volumesnapshotcontents", "volumesnapshots"} {
		h.guest.kubectl(t, "create", "-f", filepath.Join(repo, "bin/crds/snapshot.storage.k8s.io_"+crd+".yaml"))
	}
	h.guest.Run(t, "snapshot-controller", "--kubeconfig="+h.guest.admin())
	for _, s := range h.servers {
		h.node(t, s)
	}
	return h
}

// hostedControlPlane is the namespace that HyperShift makes, with its Secrets, its CA and its priority class.
func (h *hosted) hostedControlPlane(t *testing.T) {
	t.Helper()
	h.management.apply(t, `
apiVersion: v1
kind: Namespace
metadata:
  name: `+hostedNamespace+`
  labels:
    hypershift.openshift.io/hosted-control-plane: "true"
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/audit: restricted
    pod-security.kubernetes.io/warn: restricted
    security.openshift.io/scc.podSecurityLabelSync: "false"
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: hypershift-control-plane}
value: 100000000
`)
	h.secrets(t)
	h.trust(t, h.authority)
	h.adminKubeconfig(t)
}

// adminKubeconfig writes HyperShift's Secret with a new kubeconfig of an administrator of the guest.
func (h *hosted) adminKubeconfig(t *testing.T) {
	t.Helper()
	write(t, filepath.Join(h.work, "kubeconfig"), h.guest.hostedKubeconfig(t))
	h.management.apply(t, h.management.kubectl(t, "create", "secret", "generic", "service-network-admin-kubeconfig", "--namespace="+hostedNamespace,
		"--from-file=kubeconfig", "--dry-run=client", "-o", "yaml"))
}

// secrets writes the Secret of the identity as HyperShift does: it is replaced as a whole.
func (h *hosted) secrets(t *testing.T) {
	t.Helper()
	write(t, filepath.Join(h.work, "identity.yaml"), h.openstack.cloudsYAML(h.credential))
	secret := h.management.kubectl(t, "create", "secret", "generic", "tenant-a-cloud-credentials", "--namespace="+hostedNamespace,
		"--from-file=clouds.yaml=identity.yaml", "--dry-run=client", "-o", "yaml")
	h.management.apply(t, secret)
}

// trust writes HyperShift's ConfigMap with the CA of OpenStack.
func (h *hosted) trust(t *testing.T, authorities ...*authority) {
	t.Helper()
	var bundle strings.Builder
	for _, a := range authorities {
		bundle.Write(a.certificate)
	}
	write(t, filepath.Join(h.work, "ca-bundle.pem"), bundle.String())
	h.management.apply(t, h.management.kubectl(t, "create", "configmap", "openstack-trusted-ca", "--namespace="+hostedNamespace, "--from-file=ca-bundle.pem", "--dry-run=client", "-o", "yaml"))
}

// node registers a server as kubelet and the registrar would.
func (h *hosted) node(t *testing.T, s server) {
	t.Helper()
	h.guest.apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata:
  name: %[1]s
  labels: {kubernetes.io/os: linux, kubernetes.io/hostname: %[1]s, %[2]s: %[3]s}
  annotations: {volumes.kubernetes.io/controller-managed-attach-detach: "true"}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: %[1]s}
spec: {drivers: [{name: %[4]s, nodeID: %[5]s, topologyKeys: [%[2]s]}]}
`, s.Name, topologyKey, s.Zone, driverName, s.ID))
	h.guest.kubectl(t, "patch", "node", s.Name, "--subresource=status", "--type=merge", "-p",
		`{"status":{"capacity":{"cpu":"8","memory":"16Gi","pods":"110"},"allocatable":{"cpu":"8","memory":"16Gi","pods":"110"},"conditions":[{"type":"Ready","status":"True"}]}}`)
	if _, err := h.guest.try("", "taint", "node", s.Name, "node.kubernetes.io/not-ready:NoSchedule-"); err != nil && !strings.Contains(err.Error(), "not found") {
		t.Fatal(err)
	}
}

// install generates a bundle and applies it with the commands of the how-to, and starts the pod that the management cluster admits.
func (h *hosted) install(t *testing.T, mode string, number int) *pod {
	t.Helper()
	write(t, filepath.Join(h.work, "tenant-a.yaml"), configuration(mode))
	h.follow(t, "Generate the bundle")
	h.follow(t, "Install")
	p := startPod(t, h.management, h.admitted(t), number)
	t.Cleanup(func() { p.diagnose(t) })
	h.pod = p
	return p
}

// admitted is the controller's pod: Pod Security of the namespace has accepted it.
func (h *hosted) admitted(t *testing.T) corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	eventually(t, time.Minute, "a pod of the controller in the management cluster", func() error {
		out, err := h.management.try("", "get", "pods", "--namespace="+hostedNamespace, "--selector=app=cinder-csi-controller", "-o", "json")
		if err != nil {
			return err
		}
		pods = corev1.PodList{}
		if err := json.Unmarshal([]byte(out), &pods); err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].DeletionTimestamp != nil {
			return fmt.Errorf("there are %d pods", len(pods.Items))
		}
		return nil
	})
	p := pods.Items[0]
	if p.Spec.AutomountServiceAccountToken == nil || *p.Spec.AutomountServiceAccountToken {
		t.Error("the pod has a token of the management cluster")
	}
	if _, err := h.management.try(privileged, "create", "--dry-run=server", "-f", "-"); err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
		t.Errorf("a privileged pod in namespace %s: %v; want it refused", hostedNamespace, err)
	}
	return p
}

const privileged = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "privileged", "namespace": "` + hostedNamespace + `"}, "spec": {"containers":
[{"name": "c", "image": "none", "securityContext": {"privileged": true}}]}}`
