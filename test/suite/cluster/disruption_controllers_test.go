//go:build cluster

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var controllerDisruptions = []scenario{
	{"the leader of the controller is killed twenty times under load", killLeaders},
	{"credentials are replaced under load", rotateCredentials},
}

// sidecars are killed in turn: each has a lease, so a leader, of its own.
var sidecars = []string{"provisioner", "attacher", "resizer", "snapshotter"}

const kills = 20

// killLeaders ends the leader of one sidecar after the other under load. Every other time it ends only the driver's process in that pod. The sidecars
// live on then, with RPCs whose outcome they do not know.
func killLeaders(t *testing.T, c *cluster) {
	if on := c.driverPods(t, "controller"); len(on) != 2 || on[0].Node == on[1].Node {
		t.Fatalf("want two controller pods on two nodes, got %+v", on)
	}
	_, namespace := c.driver.of("controller")
	before := c.takeStock(t)
	l := c.startLoad(t, 4)
	began := time.Now()
	steps := l.begun.Load()
	for i := range kills {
		l.awaitStep(t, steps) // so that each kill meets other operations than the one before
		steps = l.begun.Load()
		sidecar := sidecars[i/2%len(sidecars)]
		var leader string
		eventually(t, patience, "a leader of the "+sidecar, func() error {
			l.check(t)
			if leader = c.holder(t, sidecar); leader == "" {
				return fmt.Errorf("no pod that runs holds the lease")
			}
			return nil
		})
		what := "pod"
		if i%2 == 1 && c.killDriver(t, leader) {
			what = "driver"
		} else {
			c.kubectl(t, "delete", "pod", leader, "--namespace="+namespace, "--force", "--grace-period=0", "--ignore-not-found")
		}
		t.Logf("kill %d after %.0f s: %s %s, the leader of the %s; under way: %s", i+1, time.Since(began).Seconds(), what, leader, sidecar, l.doing())
	}
	last := time.Now()
	l.finish(t)
	converged := time.Since(last)
	c.expectSameInCinder(t, before)
	fmt.Printf("measured: leader killed %d times in %.0f s, in %d steps of create, attach, snapshot, expand, delete; converged %.1f s after the last\n",
		kills, last.Sub(began).Seconds(), steps, converged.Seconds())
	c.deleteAll(t)
	c.rolledOut(t)
	c.expectStock(t, before)
}

// killDriver kills the driver's process in a controller pod. It reports whether one ran until then.
func (c *cluster) killDriver(t *testing.T, pod string) bool {
	t.Helper()
	_, namespace := c.driver.of("controller")
	out := c.kubectl(t, "get", "pod", pod, "--namespace="+namespace, "--ignore-not-found", "-o", fmt.Sprintf(
		`jsonpath={.spec.nodeName} {.status.containerStatuses[?(@.name==%[1]q)].containerID} {.status.containerStatuses[?(@.name==%[1]q)].state.running.startedAt}`,
		c.driver.container))
	fields := strings.Fields(out)
	if len(fields) != 3 {
		return false
	}
	script := filepath.Join(c.repo, "test", "bed", "cluster", "exec-node.sh")
	_, _, err := c.try(t.Context(), "", script, fields[0], "ctr", "--namespace=k8s.io", "task", "kill", "--signal", "SIGKILL", strings.TrimPrefix(fields[1], "containerd://"))
	return err == nil
}

// expectSameInCinder fails unless Cinder has, beside what it had, exactly the volumes and snapshots of Kubernetes, and Nova each attachment.
func (c *cluster) expectSameInCinder(t *testing.T, before stock) {
	t.Helper()
	// What an earlier scenario has left does not count, here and in the cloud.
	fresh := func(old, now []string) []string {
		return slices.DeleteFunc(slices.Clone(now), func(id string) bool { return slices.Contains(old, id) })
	}
	ids := func(args ...string) []string {
		found := strings.Fields(c.kubectl(t, append([]string{"get", "-o"}, args...)...))
		slices.Sort(found)
		return found
	}
	eventually(t, patience, "Cinder and Nova have what Kubernetes has", func() error {
		// Both sides are read each time: a volume of a deleted claim may still be going, in one of them or in both.
		handles := fresh(before.Volumes, ids(fmt.Sprintf(`jsonpath={.items[?(@.spec.csi.driver==%q)].spec.csi.volumeHandle}`, driverName), "pv"))
		snapshots := fresh(before.Snapshots, ids("jsonpath={.items[*].status.snapshotHandle}", "volumesnapshotcontents"))
		after := c.takeStock(t)
		var attached []string
		for _, server := range nodes {
			attached = append(attached, fresh(before.Attached[server], after.Attached[server])...)
		}
		slices.Sort(attached)
		diff := cmp.Diff(handles, fresh(before.Volumes, after.Volumes)) + cmp.Diff(snapshots, fresh(before.Snapshots, after.Snapshots)) + cmp.Diff(handles, attached)
		if diff != "" {
			return fmt.Errorf("volumes, snapshots, attachments (-Kubernetes +cloud):\n%s", diff)
		}
		return nil
	})
}

// deleteAll deletes what the scenario has in its namespace, and waits until the volumes are gone.
func (c *cluster) deleteAll(t *testing.T) {
	t.Helper()
	c.kubectl(t, "delete", "statefulsets,pods,volumesnapshots,pvc", "--all", "--namespace="+c.namespace, atMost)
	eventually(t, patience, "every volume and snapshot deleted", func() error { return c.nothingLeft(t.Context()) })
}

// expectStock waits until the cloud and the nodes have what they had.
func (c *cluster) expectStock(t *testing.T, before stock) {
	t.Helper()
	eventually(t, patience, "the cloud and the nodes as before", func() error {
		if diff := cmp.Diff(before, c.takeStock(t)); diff != "" {
			return fmt.Errorf("(-before +after):\n%s", diff)
		}
		return nil
	})
}

// rotation runs the page about credentials.
type rotation struct {
	*cluster
	page []string // its commands: create, put into the Secret, wait, delete
}

const rotationPage = "how-to/rotate-credentials.md"

func (c *cluster) newRotation(t *testing.T) *rotation {
	t.Helper()
	p := &pages{cluster: c}
	r := &rotation{cluster: c, page: readme.Fenced(p.read(t, rotationPage), "sh")}
	if len(r.page) != 4 || !strings.Contains(r.page[1], "create secret") {
		t.Fatalf("docs/%s has the commands %q, want four", rotationPage, r.page)
	}
	r.env = append(slices.Clone(c.env), "OS_CLOUD=lab-demo")
	rules := r.run(t, "cinder-csi-driver", "access-rules")
	testfile.Write(t, filepath.Join(c.work, "rules.json"), rules, 0o600)
	return r
}

// step runs a command of the page.
func (r *rotation) step(t *testing.T, i int, replace ...string) string {
	t.Helper()
	return r.run(t, "bash", "-o", "pipefail", "-c", strings.NewReplacer(replace...).Replace(r.page[i]))
}

// create makes a new application credential, and the driver's clouds.yaml for it.
func (r *rotation) create(t *testing.T, name string) {
	t.Helper()
	var created struct{ ID, Secret string }
	out := r.step(t, 0, "cinder-csi-2 ", name+" -f json ")
	if err := json.Unmarshal([]byte(out), &created); err != nil || created.Secret == "" {
		t.Fatalf("the application credential %s: %v", name, err)
	}
	t.Cleanup(func() { // unless the page has deleted it
		_, _, _ = r.try(context.Background(), "", "openstack", "application", "credential", "delete", name)
	})
	url := strings.TrimSpace(r.run(t, "openstack", "configuration", "show", "-f", "value", "-c", "auth.auth_url"))
	text := fmt.Sprintf("clouds: {openstack: {auth_type: v3applicationcredential, region_name: RegionOne, auth: {auth_url: %q, application_credential_id: %q, application_credential_secret: %q}}}\n",
		url, created.ID, created.Secret)
	testfile.Write(t, filepath.Join(r.work, "driver-clouds.yaml"), text, 0o600)
}

// swap puts a clouds.yaml into the Secret, and waits until each controller pod has reloaded it.
func (r *rotation) swap(t *testing.T, replace ...string) time.Duration {
	t.Helper()
	before := r.reloads(t)
	began := time.Now()
	r.step(t, 1, replace...)
	eventually(t, patience, "the new credential in use in every controller pod", func() error {
		for pod, n := range r.reloads(t) {
			if n <= before[pod] {
				return fmt.Errorf("pod %s has reloaded %d times before, and %d times now", pod, before[pod], n)
			}
		}
		return nil
	})
	return time.Since(began)
}

// reloads counts the line that the page waits for, by pod.
func (r *rotation) reloads(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, p := range r.driverPods(t, "controller") {
		counts[p.Name] = 0
	}
	// grep ends with 1 where no line has the words.
	for line := range strings.Lines(r.run(t, "bash", "-c", strings.TrimSpace(r.page[2])+" || true")) {
		pod, _, _ := strings.Cut(strings.TrimPrefix(line, "[pod/"), "/")
		counts[pod]++
	}
	return counts
}

func rotateCredentials(t *testing.T, c *cluster) {
	r := c.newRotation(t)
	t.Cleanup(func() { // whatever happens the bundle has its first credential again
		if t.Failed() {
			if _, _, err := r.try(context.Background(), "", "bash", "-c", strings.ReplaceAll(r.page[1], "driver-clouds.yaml", "clouds.yaml")); err != nil {
				t.Error(err)
			}
		}
	})
	r.create(t, "cinder-csi")
	r.swap(t)
	pods, refused := c.allDriverPods(t), c.notOK(t)
	l := c.startLoad(t, 4)
	l.awaitCycles(t, 4)
	r.create(t, "cinder-csi-2")
	took := r.swap(t)
	r.step(t, 3)
	l.awaitCycles(t, 4)
	l.finish(t)
	if diff := cmp.Diff(refused, c.notOK(t)); diff != "" {
		t.Errorf("RPCs failed (-before +after, by pod and metric):\n%s", diff)
	}
	c.expectNoRestart(t, pods)
	fmt.Printf("measured: credential replaced under load: in use in both controllers after %.1f s, %d cycles, no RPC failed\n", took.Seconds(), l.cycles.Load())
	c.deleteAll(t)
	r.swap(t, "driver-clouds.yaml", "clouds.yaml")
}

// notOK are the counters of RPCs with another code than OK, and of reloads that failed, by controller pod. Zero is left out.
func (c *cluster) notOK(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, p := range c.driverPods(t, "controller") {
		for name, value := range c.metrics(t, p.Name) {
			failed := strings.HasPrefix(name, "cinder_csi_rpc_duration_seconds_count{") && !strings.Contains(name, `code="OK"`) ||
				strings.HasPrefix(name, `cinder_csi_config_reloads_total{result="failure"`)
			if failed && value != "0" {
				found[p.Name+" "+name] = value
			}
		}
	}
	return found
}
