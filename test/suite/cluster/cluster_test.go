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

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
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
	repo := testenv.Value(filepath.Abs(filepath.Join("..", "..", "..")))(t)
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

// patience bounds a wait for what must come. It is long because only a failure uses it up, and the machine may be slow. It is shorter than the six
// minutes after which Kubernetes detaches a volume by force.
const patience = 5 * time.Minute

// atMost is patience as a flag of kubectl.
var atMost = "--timeout=" + patience.String()

// commandTimeout ends a command that hangs, and buildTimeout a build: what waits in a command has a shorter timeout of its own.
const (
	commandTimeout = 2 * patience
	buildTimeout   = time.Hour
)

// try runs a program in the work directory. The error tells what it printed.
func (c *cluster) try(ctx context.Context, stdin, program string, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return c.tryUntil(ctx, stdin, program, args...)
}

// tryUntil is try without a timeout of its own.
func (c *cluster) tryUntil(ctx context.Context, stdin, program string, args ...string) (stdout, stderr string, err error) {
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

// build is run for what compiles a program.
func (c *cluster) build(t *testing.T, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	if _, _, err := c.tryUntil(ctx, "", program, args...); err != nil {
		t.Fatal(err)
	}
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
	return c.run(t, filepath.Join(c.repo, "test", "bed", "cluster", "exec-node.sh"), append([]string{node}, command...)...)
}

// eventually asks until there is no error, and fails with the last one.
func eventually(t *testing.T, timeout time.Duration, what string, ask func() error) {
	t.Helper()
	if err := await(t.Context(), timeout, ask); err != nil {
		t.Fatalf("%s: not after %s: %v", what, timeout, err)
	}
}

// await asks until there is no error, and returns the last one after the timeout.
func await(ctx context.Context, timeout time.Duration, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
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
