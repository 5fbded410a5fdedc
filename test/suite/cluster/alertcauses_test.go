//go:build cluster

package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// tryOnNode runs a command on a node, for repairs beside the test.
func (c *cluster) tryOnNode(node string, command ...string) (string, error) {
	out, _, err := c.try(context.Background(), "", filepath.Join(c.repo, "test", "bed", "cluster", "exec-node.sh"), append([]string{node}, command...)...)
	return out, err
}

// breakImage replaces the image of a container on a node. The next container runs the program of the test pods, which ends at once with these flags.
func (c *cluster) breakImage(t *testing.T, node, container string) (repair func() error) {
	t.Helper()
	var image string
	for _, half := range []string{"controller", "node"} {
		_, namespace := c.driver.of(half)
		if name := c.kubectl(t, "get", "pods", "--namespace="+namespace, "-o", fmt.Sprintf(`jsonpath={.items[0].spec.containers[?(@.name==%q)].image}`, container)); name != "" {
			image = name
		}
	}
	const ctr, in = "ctr", "--namespace=k8s.io"
	kept := "kept.invalid/" + container + ":1"
	c.onNode(t, node, ctr, in, "images", "tag", "--force", image, kept)
	c.onNode(t, node, ctr, in, "images", "tag", "--force", "docker.io/cluster-bed/workload:1", image) // as containerd names it
	restored := false
	repair = func() error {
		if restored {
			return nil
		}
		if _, err := c.tryOnNode(node, ctr, in, "images", "tag", "--force", kept, image); err != nil {
			return err
		}
		restored = true
		_, err := c.tryOnNode(node, ctr, in, "images", "rm", kept)
		return err
	}
	t.Cleanup(func() {
		testenv.Check(t, repair())
	})
	return repair
}

// kill kills a container of a pod, so that kubelet starts it again.
func (c *cluster) kill(t *testing.T, namespace, pod, node, container string) {
	t.Helper()
	id := c.kubectl(t, "get", "pod", pod, "--namespace="+namespace, "-o", fmt.Sprintf(`jsonpath={.status.containerStatuses[?(@.name==%q)].containerID}`, container))
	c.onNode(t, node, "ctr", "--namespace=k8s.io", "task", "kill", "--signal", "SIGKILL", strings.TrimPrefix(id, "containerd://"))
}

// breakAttacher has the attacher end at once in both pods, as with a broken image.
func breakAttacher(t *testing.T, c *cluster) func() error {
	var repairs []func() error
	for _, p := range c.driverPods(t, "controller") {
		repairs = append(repairs, c.breakImage(t, p.Node, "attacher"))
		c.kill(t, namespaces["controller"], p.Name, p.Node, "attacher")
	}
	return func() error {
		for _, repair := range repairs {
			if err := repair(); err != nil {
				return err
			}
		}
		// kubelet waits up to five minutes before it starts a container that crashes; a new pod starts at once.
		_, _, err := c.try(context.Background(), "", "kubectl", "rollout", "restart", "deployment/cinder-csi-controller", "--namespace="+namespaces["controller"])
		return err
	}
}

// breakRegistrar has a new pod of the driver on a node whose registrar ends at once.
func breakRegistrar(t *testing.T, c *cluster) func() error {
	const node = "node-az1-2"
	repair := c.breakImage(t, node, "registrar")
	renew := func() error {
		out, _, err := c.try(context.Background(), "", "kubectl", "delete", "pods", "--namespace="+namespaces["node"], "--selector=app=cinder-csi-node", "--field-selector=spec.nodeName="+node, "--wait=false")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	testenv.Must(t, renew())
	return func() error {
		if err := repair(); err != nil {
			return err
		}
		return renew()
	}
}

// breakFileSystem has ext4 meet an error, by the kernel's own trigger. Without the mount option an error would only be counted.
func breakFileSystem(t *testing.T, c *cluster) func() error {
	const node, name = "node-az1", "unhealthy"
	c.start(t, []claim{{name: name, gib: 1}}, pod{name: name, claim: name, node: node})
	id := c.volumeName(t, name)
	table := c.onNode(t, node, "cat", "/proc/self/mountinfo")
	found := regexp.MustCompile(`(?m)^\d+ \d+ 7:(\d+) \S+ (\S*` + regexp.QuoteMeta(id) + `\S*) `).FindStringSubmatch(table)
	if found == nil {
		t.Fatalf("no mount of volume %s on %s", id, node)
	}
	c.onNode(t, node, "mount", "-o", "remount,errors=remount-ro", found[2])
	testfile.Write(t, "/sys/fs/ext4/loop"+found[1]+"/trigger_fs_error", "test", 0)
	return func() error {
		_, _, err := c.try(context.Background(), "", "kubectl", "delete", "pod", name, "--namespace="+c.namespace, atMost)
		return err
	}
}

// fillNode has as many volumes on a node as it may have, and then another pod of the driver there: it counts again.
func fillNode(t *testing.T, c *cluster) func() error {
	const node = "node-az2"
	claims := []claim{{name: "full-0", gib: 1}, {name: "full-1", gib: 1}, {name: "full-2", gib: 1}}
	c.start(t, claims, pod{name: "full", claim: "full-0", more: []string{"full-1", "full-2"}, node: node})
	c.kubectl(t, "delete", "pods", "--namespace="+namespaces["node"], "--selector=app=cinder-csi-node", "--field-selector=spec.nodeName="+node)
	return func() error {
		_, _, err := c.try(context.Background(), "", "kubectl", "delete", "pod", "full", "--namespace="+c.namespace, atMost)
		return err
	}
}

// expireCredential gives the driver an application credential that expires in some minutes. So both alerts come, one after the other.
func expireCredential(t *testing.T, c *cluster) func() error {
	before := c.secretText(t)
	expires := time.Now().Add(3 * time.Minute).UTC().Format("2006-01-02T15:04:05")
	short := c.ownCredential(t, "expires", "--expiration", expires)
	testenv.Must(t, c.setSecret(short))
	return func() error { return c.setSecret(before) }
}

// setSecret replaces the clouds.yaml of the driver.
func (c *cluster) setSecret(text string) error {
	patch := fmt.Sprintf(`{"data": {"clouds.yaml": %q}}`, base64.StdEncoding.EncodeToString([]byte(text)))
	_, _, err := c.try(context.Background(), "", "kubectl", "patch", "secret", "cinder-csi-credentials", "--namespace="+namespaces["controller"], "--type=merge", "-p", patch)
	return err
}

// moveServer has a node that was registered in another zone than its server is in now. Nova moves no server of the bed to another zone. The record of
// the driver and the label of the Node name that zone, and kubelet asks a new pod of the driver.
func moveServer(t *testing.T, c *cluster) func() error {
	const node = "node-az1"
	files := strings.Fields(c.onNode(t, node, "find", "/var/lib/kubelet/plugins/"+driverName, "-type", "f", "-exec", "grep", "-l", `"zone":"az1"`, "{}", "+"))
	if len(files) != 1 {
		t.Fatalf("want one record of the zone, got %q", files)
	}
	register := func(from, to string) error {
		_, err := c.tryOnNode(node, "sed", "-i", fmt.Sprintf(`s/"zone":"%s"/"zone":"%s"/`, from, to), files[0])
		if err == nil {
			_, _, err = c.try(context.Background(), "", "kubectl", "label", "node", node, zoneLabel+"="+to, "--overwrite")
		}
		if err == nil {
			_, _, err = c.try(context.Background(), "", "kubectl", "delete", "pods", "--namespace="+namespaces["node"], "--selector=app=cinder-csi-node", "--field-selector=spec.nodeName="+node, atMost)
		}
		return err
	}
	testenv.Must(t, register("az1", "az9"))
	return func() error { return register("az9", "az1") }
}

func stopKeystone(t *testing.T, c *cluster) func() error {
	t.Cleanup(func() {
		if _, err := c.startServices(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c.stopService(t, "keystone")
	return func() error {
		_, err := c.startServices(context.Background())
		return err
	}
}

// powerOff cuts the power of a node with a controller pod.
func powerOff(t *testing.T, c *cluster) func() error {
	node := c.driverPods(t, "controller")[0].Node
	on := func() error { return c.power(context.Background(), "on", node) }
	t.Cleanup(func() {
		testenv.Check(t, on())
	})
	testenv.Must(t, c.power(t.Context(), "off", node))
	return on
}
