//go:build cluster

// Package cluster proves a generated bundle on a real Kubernetes whose nodes are servers of a real OpenStack, both on this machine. It installs and
// removes the bundle with the commands of the bundle's README. In between volumes live, move, grow and go. `make cluster-up test-cluster` runs it.
package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nodes are those that up.sh starts: two servers of one zone, one of the other.
var nodes = []string{"node-az1", "node-az1-2", "node-az2"}

// cluster is the running cluster, seen from the directory in which the README's commands run.
type cluster struct {
	dir       string // of the cluster: up.sh's CLUSTER_BED
	openstack string // of the OpenStack bed
	repo      string
	work      string
	namespace string // of the test's own pods and claims
	env       []string
	archives  map[string]string // of images that a test made itself, by the image's name
	driver    workloads         // of the installed driver
}

func running(t *testing.T) *cluster {
	t.Helper()
	repo, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{
		dir: directory("CLUSTER_BED", "cluster-bed"), openstack: directory("OPENSTACK_BED", "openstack-bed"),
		repo: repo, work: t.TempDir(), namespace: workspace, archives: map[string]string{}, driver: ownWorkloads,
	}
	if _, err := os.Stat(filepath.Join(c.dir, "admin.kubeconfig")); err != nil {
		t.Fatalf("no cluster in %s; `make cluster-up` starts one: %v", c.dir, err)
	}
	c.env = append(os.Environ(),
		"KUBECONFIG="+filepath.Join(c.dir, "admin.kubeconfig"),
		"PATH="+filepath.Join(repo, "bin", "tools")+":"+filepath.Join(repo, "bin")+":"+os.Getenv("PATH"),
		"OS_CLIENT_CONFIG_FILE="+filepath.Join(c.openstack, "clouds.yaml"),
		// Helm's own files are not the user's.
		"HELM_CACHE_HOME="+c.work, "HELM_CONFIG_HOME="+c.work, "HELM_DATA_HOME="+c.work)
	return c
}

func directory(variable, name string) string {
	if dir := os.Getenv(variable); dir != "" {
		return dir
	}
	return filepath.Join(os.TempDir(), name)
}

// commandTimeout ends a command that hangs; what waits in it has a shorter timeout of its own.
const commandTimeout = 6 * time.Minute

// try runs a program in the work directory. The error tells what it printed.
func (c *cluster) try(ctx context.Context, stdin, program string, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	// The shell finds the program with our PATH, not with that of this process.
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-c", `exec "$@"`, "bash", program}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = c.work, c.env, strings.NewReader(stdin)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", program, strings.Join(args, " "), err, out.String(), messages.String())
	}
	return out.String(), messages.String(), err
}

// run is try for what must succeed.
func (c *cluster) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, _, err := c.try(t.Context(), "", program, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// kubectl runs kubectl, which must succeed, and gives its output without blanks around it.
func (c *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(c.run(t, "kubectl", args...))
}

func (c *cluster) apply(t *testing.T, manifest string) {
	t.Helper()
	if _, _, err := c.try(t.Context(), manifest, "kubectl", "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// onNode runs a command in a node's namespaces.
func (c *cluster) onNode(t *testing.T, node string, command ...string) string {
	t.Helper()
	return c.run(t, filepath.Join(c.repo, "test", "cluster", "exec-node.sh"), append([]string{node}, command...)...)
}

// eventually asks until the answer is true; an error is the last one's reason.
func eventually(t *testing.T, timeout time.Duration, what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not after %s: %v", what, timeout, err)
		}
	}
}

// diagnose prints what a person would look at first.
func (c *cluster) diagnose(t *testing.T) {
	if !t.Failed() {
		return
	}
	show := func(args ...string) {
		out, _, err := c.try(context.Background(), "", "kubectl", args...)
		if err != nil {
			out = err.Error()
		}
		t.Logf("kubectl %s\n%s", strings.Join(args, " "), out)
	}
	show("get", "pods,persistentvolumeclaims,persistentvolumes,volumeattachments,volumesnapshots", "-A", "-o", "wide")
	show("get", "events", "-A", "--sort-by=.lastTimestamp", "--field-selector=type!=Normal")
	for _, half := range []string{"controller", "node"} {
		show("logs", "--namespace="+namespaces[half], "--selector=app=cinder-csi-"+half, "--all-containers", "--prefix", "--tail=40", "--max-log-requests=20")
	}
}
