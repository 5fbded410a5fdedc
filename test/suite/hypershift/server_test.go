//go:build hypershift

package hypershift

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/controlplane"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// cluster is one API server with its etcd and controllers. It has no kubelet.
type cluster struct {
	*controlplane.Server
	name, dir, work string // dir: of its data; work: where commands run
	pki             *authority
}

// controllersOff would take the nodes for lost, since no kubelet reports them.
const controllersOff = "*,-node-lifecycle-controller,-taint-eviction-controller,-certificatesigningrequest-signing-controller"

// auditPolicy records every request, and no content.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}`

// startCluster starts a cluster until the test ends, and writes NAME.kubeconfig of an administrator into the work directory.
func startCluster(t *testing.T, name, work string) *cluster {
	t.Helper()
	c := &cluster{name: name, dir: t.TempDir(), work: work, pki: newAuthority(t)}
	write(t, c.path("ca.crt"), string(c.pki.certificate))
	certificate, key := c.pki.issue(t, "kube-apiserver", "", gateway)
	write(t, c.path("server.crt"), string(certificate))
	write(t, c.path("server.key"), string(key))
	write(t, c.path("audit-policy.json"), auditPolicy)
	c.Server = controlplane.Start(t, controlplane.Options{
		Dir: c.dir, Host: gateway, Admin: "test-admin", ServiceRange: "198.18.200.0/24", Args: []string{
			"--advertise-address=" + gateway, "--tls-cert-file=" + c.path("server.crt"), "--tls-private-key-file=" + c.path("server.key"),
			"--client-ca-file=" + c.path("ca.crt"), "--audit-policy-file=" + c.path("audit-policy.json"), "--audit-log-path=" + c.path("audit.log"),
		},
	})
	write(t, filepath.Join(work, name+".kubeconfig"), c.kubeconfig("token: admin"))
	c.wait(t, "kube-apiserver", "get", "--raw=/readyz")
	c.Controllers(t, c.admin(), controllersOff, c.path("ca.crt"), "--use-service-account-credentials", "--attach-detach-reconcile-sync-period=2s")
	c.Run(t, "kube-scheduler", "--kubeconfig="+c.admin(), "--leader-elect=false", "--secure-port=0")
	c.wait(t, "kube-controller-manager", "get", "serviceaccount", "default")
	return c
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) admin() string { return filepath.Join(c.work, c.name+".kubeconfig") }

// kubeconfig is a kubeconfig of this cluster for a user.
func (c *cluster) kubeconfig(user string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"+
		"clusters: [{name: a, cluster: {server: 'https://%s:%s', certificate-authority-data: %s}}]\nusers: [{name: a, user: {%s}}]\n",
		gateway, c.Port, base64.StdEncoding.EncodeToString(c.pki.certificate), user)
}

// hostedKubeconfig is the kubeconfig that HyperShift keeps in service-network-admin-kubeconfig: a client certificate of a cluster administrator.
func (c *cluster) hostedKubeconfig(t *testing.T) string {
	t.Helper()
	certificate, key := c.pki.issue(t, hostedAdmin, "system:masters")
	return c.kubeconfig("client-certificate-data: " + base64.StdEncoding.EncodeToString(certificate) + ", client-key-data: " + base64.StdEncoding.EncodeToString(key))
}

// hostedAdmin is the name of the user in that certificate.
const hostedAdmin = "system:admin"

func write(t *testing.T, path, text string) {
	t.Helper()
	testfile.Write(t, path, text, 0o600)
}

func (c *cluster) wait(t *testing.T, program string, args ...string) {
	t.Helper()
	eventually(t, time.Minute, program+" of "+c.name, func() error {
		_, err := c.try("", args...)
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, c.LogTail(program))
		}
		return err
	})
}

// try runs kubectl as the administrator of this cluster.
func (c *cluster) try(stdin string, args ...string) (string, error) {
	return command(c.work, stdin, "kubectl", append([]string{"--kubeconfig=" + c.admin()}, args...)...)
}

// kubectl is try for what must succeed.
func (c *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out := testenv.Value(c.try("", args...))(t)
	return strings.TrimSpace(out)
}

func (c *cluster) apply(t *testing.T, manifest string) {
	t.Helper()
	testenv.Value(c.try(manifest, "apply", "-f", "-"))(t)
}

// command runs a program in a directory, with the built programs and tools first in PATH. The error has what it printed.
func command(dir, stdin, name string, args ...string) (string, error) {
	// The shell finds the program with our PATH, not with that of this process.
	cmd := exec.Command("bash", append([]string{"-eo", "pipefail", "-c", `exec "$@"`, "bash", name}, args...)...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = []string{"HOME=" + dir, "PATH=" + filepath.Join(repo, "bin/tools") + ":" + filepath.Join(repo, "bin") + ":" + os.Getenv("PATH")}
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), messages.String())
	} else if kubectl := !strings.Contains(strings.Join(args, " "), "cinder-csi-generator"); kubectl && // the generator warns, too
		strings.Contains("\n"+messages.String(), "\nWarning:") && !strings.Contains(messages.String(), "Immediate deletion") { // which has no other way without a kubelet
		err = fmt.Errorf("%s %s: the API server warns: %s", name, strings.Join(args, " "), messages.String())
	}
	return out.String(), err
}
