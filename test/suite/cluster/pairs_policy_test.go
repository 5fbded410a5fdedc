//go:build cluster

package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// prepare does what all rows share: the CRDs, the image of Prometheus, and nodes that enforce NetworkPolicies. The end of the test undoes it.
func (p *pairs) prepare(t *testing.T) {
	t.Helper()
	undo := func(program string, args ...string) {
		t.Cleanup(func() {
			if _, _, err := p.try(context.Background(), "", program, args...); err != nil {
				t.Error(err)
			}
		})
	}
	crds := filepath.Join(p.repo, "bin", "crds")
	for _, name := range []string{
		"monitoring.coreos.com_podmonitors", "monitoring.coreos.com_servicemonitors", "monitoring.coreos.com_prometheusrules",
		"0000_03_cloud-credential-operator_01_crd", "0000_03_config-operator_01_securitycontextconstraints.crd",
	} {
		file := filepath.Join(crds, name+".yaml")
		p.kubectl(t, "apply", "--server-side", "-f", file)
		undo("kubectl", "delete", "--ignore-not-found", "-f", file)
	}
	p.kubectl(t, "wait", "--for=condition=Established", "customresourcedefinitions", "--all", atMost)
	p.importPrometheus(t)
	t.Cleanup(func() { p.switchTLS(t, false) })
	script := filepath.Join(p.repo, "test", "bed", "cluster", "network-policies.sh")
	undo(script, "off")
	p.run(t, script, "on")
}

// importPrometheus gives the nodes an image of Debian's Prometheus, with busybox to try connections.
func (p *pairs) importPrometheus(t *testing.T) {
	t.Helper()
	archive := filepath.Join(p.work, "prometheus.tar")
	args := []string{"-output", archive, "-name", "cluster-bed/prometheus:1", "-busybox", "/bin/busybox"}
	for line := range strings.Lines(p.run(t, "ldd", "/usr/bin/prometheus")) {
		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "/") {
				args = append(args, "-file", word)
			}
		}
	}
	p.run(t, filepath.Join(cache(), "bin", "static-image"), append(args, "/usr/bin/prometheus")...)
	for _, node := range nodes {
		p.onNode(t, node, "ctr", "--namespace=k8s.io", "images", "import", archive)
	}
}

// checkPolicies has a stranger's pod refused by the ports of the controllers. A pod without a policy shows that the same stranger reaches others.
func (c *cluster) checkPolicies(t *testing.T, bundles []*pairBundle) {
	t.Helper()
	c.apply(t, fmt.Sprintf(stranger, "stranger", c.namespace)+"---"+fmt.Sprintf(stranger, "open", c.namespace))
	c.kubectl(t, "wait", "--namespace="+c.namespace, "--for=condition=Ready", "pod/stranger", "pod/open", atMost)
	address := func(namespace, name string) string {
		return c.kubectl(t, "get", "pod", name, "--namespace="+namespace, "-o", "jsonpath={.status.podIP}")
	}
	eventually(t, time.Minute, "a pod without a policy reached", func() error { return c.connect(t, address(c.namespace, "open"), "9999") })
	for _, b := range bundles {
		for _, name := range strings.Fields(c.kubectl(t, "get", "pods", "--namespace="+b.controller, "--selector=app=cinder-csi-controller", "-o", "jsonpath={.items[*].metadata.name}")) {
			ports := c.kubectl(t, "get", "pod", name, "--namespace="+b.controller, "-o", "jsonpath={.spec.containers[*].ports[*].containerPort}")
			if ports == "" {
				t.Fatalf("pod %s/%s names no port", b.controller, name)
			}
			for _, port := range strings.Fields(ports) {
				if err := c.connect(t, address(b.controller, name), port); err == nil {
					t.Errorf("a pod of another namespace reaches port %s of pod %s/%s, although the policy allows none", port, b.controller, name)
				}
			}
		}
	}
	c.kubectl(t, "delete", "pod", "stranger", "open", "--namespace="+c.namespace, "--wait=false")
}

const stranger = `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  nodeSelector: {kubernetes.io/hostname: node-az1}
  containers: [{name: c, image: cluster-bed/prometheus:1, imagePullPolicy: Never, command: [/bin/busybox, httpd, -f, -p, "9999", -h, /]}]
`

// connect opens a connection from the stranger's pod.
func (c *cluster) connect(t *testing.T, address, port string) error {
	t.Helper()
	_, _, err := c.try(t.Context(), "", "kubectl", "exec", "stranger", "--namespace="+c.namespace, "--", "/bin/busybox", "timeout", "5", "/bin/busybox", "nc", "-w", "1", address, port)
	return err
}

// checkRefused reads the list of what cannot stand beside each other. The generator must refuse it, with the reason in the list.
func (p *pairs) checkRefused(t *testing.T) {
	t.Helper()
	text := testfile.Text(t, "pairs-refused.txt")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(line, "|", 3)
		if len(parts) != 3 {
			t.Fatalf("pairs-refused.txt: %q; want TARGET | SPEC | REASON", line)
		}
		target, spec, reason := strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1]), strings.TrimSpace(parts[2])
		config := filepath.Join(p.work, "refused.yaml")
		testfile.Write(t, config, "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Distribution\nmetadata: {name: pairs}\nspec: "+spec+"\n", 0o600)
		_, messages, err := p.try(t.Context(), "", "cinder-csi-generator", "generate", "--simulated", "--config", config, "--target", target, "--format", "kustomize", "--output-dir", filepath.Join(p.work, "refused"))
		if err == nil {
			err = errors.New("it is accepted")
		}
		if !strings.Contains(messages, reason) {
			t.Errorf("%s with %s: want it refused with %q, got %v", target, spec, reason, err)
		}
	}
}
