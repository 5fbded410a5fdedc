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
)

// cluster is one API server with its etcd and controllers. It has no kubelet.
type cluster struct {
	name, dir, work string // dir: of its data; work: where commands run
	port            string
	pki             *authority
}

// controllersOff would take the nodes for lost, since no kubelet reports them.
const controllersOff = "*,-node-lifecycle-controller,-taint-eviction-controller,-certificatesigningrequest-signing-controller"

// auditPolicy records every request, and no content.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}`

// startCluster starts a cluster until the test ends, and writes NAME.kubeconfig of an administrator into the work directory.
func startCluster(t *testing.T, name, work string) *cluster {
	t.Helper()
	c := &cluster{name: name, dir: t.TempDir(), work: work, port: freePort(t), pki: newAuthority(t)}
	etcd, peer := gateway+":"+freePort(t), gateway+":"+freePort(t)
	c.start(t, "etcd", "--data-dir="+c.path("etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls=http://"+etcd, "--advertise-client-urls=http://"+etcd, "--listen-peer-urls=http://"+peer)
	write(t, c.path("tokens.csv"), "admin,test-admin,test-admin,system:masters\n")
	write(t, c.path("accounts.key"), string(c.pki.key))
	write(t, c.path("ca.crt"), string(c.pki.certificate))
	certificate, key := c.pki.issue(t, "kube-apiserver", "", gateway)
	write(t, c.path("server.crt"), string(certificate))
	write(t, c.path("server.key"), string(key))
	write(t, c.path("audit-policy.json"), auditPolicy)
	c.start(t, "kube-apiserver", "--etcd-servers=http://"+etcd, "--bind-address="+gateway, "--advertise-address="+gateway, "--secure-port="+c.port,
		"--cert-dir="+c.dir, "--tls-cert-file="+c.path("server.crt"), "--tls-private-key-file="+c.path("server.key"),
		"--client-ca-file="+c.path("ca.crt"), "--token-auth-file="+c.path("tokens.csv"), "--authorization-mode=RBAC", "--allow-privileged",
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=198.18.200.0/24", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.path("accounts.key"), "--service-account-signing-key-file="+c.path("accounts.key"),
		"--audit-policy-file="+c.path("audit-policy.json"), "--audit-log-path="+c.path("audit.log"))
	write(t, filepath.Join(work, name+".kubeconfig"), c.kubeconfig("token: admin"))
	c.wait(t, "kube-apiserver", "get", "--raw=/readyz")
	c.start(t, "kube-controller-manager", "--kubeconfig="+c.admin(), "--controllers="+controllersOff, "--leader-elect=false",
		"--secure-port=0", "--root-ca-file="+c.path("ca.crt"), "--use-service-account-credentials", "--service-account-private-key-file="+c.path("accounts.key"),
		"--attach-detach-reconcile-sync-period=2s")
	c.start(t, "kube-scheduler", "--kubeconfig="+c.admin(), "--leader-elect=false", "--secure-port=0")
	c.wait(t, "kube-controller-manager", "get", "serviceaccount", "default")
	return c
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) admin() string { return filepath.Join(c.work, c.name+".kubeconfig") }

// kubeconfig is a kubeconfig of this cluster for a user.
func (c *cluster) kubeconfig(user string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"+
		"clusters: [{name: a, cluster: {server: 'https://%s:%s', certificate-authority-data: %s}}]\nusers: [{name: a, user: {%s}}]\n",
		gateway, c.port, base64.StdEncoding.EncodeToString(c.pki.certificate), user)
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
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// bin is the path of a program of test/cluster, which are built once and kept.
func bin(name string) string {
	dir := os.Getenv("CLUSTER_CACHE")
	if dir == "" {
		dir = filepath.Join(os.Getenv("HOME"), ".cache", "cluster-bed")
	}
	return filepath.Join(dir, "bin", name)
}

// start runs a program of the cluster until the test ends.
func (c *cluster) start(t *testing.T, name string, args ...string) {
	t.Helper()
	log, err := os.Create(c.path(name + ".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin(name), args...)
	// csi-provisioner prefers the variable KUBECONFIG to its flag; here nothing may inherit one.
	cmd.Env = []string{"HOME=" + c.dir, "PATH=" + os.Getenv("PATH")}
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v; `make test-hypershift` builds it", name, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
}

func (c *cluster) wait(t *testing.T, program string, args ...string) {
	t.Helper()
	eventually(t, time.Minute, program+" of "+c.name, func() error {
		_, err := c.try("", args...)
		if err != nil {
			log, _ := os.ReadFile(c.path(program + ".log"))
			err = fmt.Errorf("%w\n%s", err, log[max(0, len(log)-2000):])
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
	out, err := c.try("", args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func (c *cluster) apply(t *testing.T, manifest string) {
	t.Helper()
	if _, err := c.try(manifest, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
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
	} else if strings.Contains("\n"+messages.String(), "\nWarning:") && !strings.Contains(messages.String(), "Immediate deletion") { // which has no other way without a kubelet
		err = fmt.Errorf("%s %s: the API server warns: %s", name, strings.Join(args, " "), messages.String())
	}
	return out.String(), err
}
