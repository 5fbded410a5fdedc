//go:build cluster

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// driverPod is a running pod of the controller or of the node role.
type driverPod struct {
	Name, Node string
	Restarts   map[string]int // by container
}

// driverPods are the pods of one of the driver's halves that are not being deleted.
func (c *cluster) driverPods(t *testing.T, half string) []driverPod {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name, DeletionTimestamp string }
			Spec     struct{ NodeName string }
			Status   struct {
				Phase             string
				ContainerStatuses []struct {
					Name         string
					RestartCount int
				}
			}
		}
	}
	name, namespace := c.driver.of(half)
	out := c.kubectl(t, "get", "pods", "--namespace="+namespace, "--selector=app="+name, "-o", "json")
	testenv.Must(t, json.Unmarshal([]byte(out), &list))
	var pods []driverPod
	for _, item := range list.Items {
		if item.Status.Phase != "Running" || item.Metadata.DeletionTimestamp != "" {
			continue
		}
		p := driverPod{Name: item.Metadata.Name, Node: item.Spec.NodeName, Restarts: map[string]int{}}
		for _, container := range item.Status.ContainerStatuses {
			p.Restarts[container.Name] = container.RestartCount
		}
		pods = append(pods, p)
	}
	return pods
}

// allDriverPods are those of both halves, to compare them after a disruption that must not end one.
func (c *cluster) allDriverPods(t *testing.T) map[string][]driverPod {
	t.Helper()
	return map[string][]driverPod{"controller": c.driverPods(t, "controller"), "node": c.driverPods(t, "node")}
}

// expectNoRestart fails if a container of the driver's pods was restarted, or a pod replaced.
func (c *cluster) expectNoRestart(t *testing.T, before map[string][]driverPod) {
	t.Helper()
	if diff := cmp.Diff(before, c.allDriverPods(t)); diff != "" {
		t.Errorf("the driver's pods are not the same (-before +after):\n%s", diff)
	}
}

// rolledOut waits until every pod of the driver is ready: what follows a disruption finds it as it was.
func (c *cluster) rolledOut(t *testing.T) {
	t.Helper()
	c.rollout(t, c.driver)
}

// holder is the controller pod that holds the lease of a sidecar. Empty: none that runs.
func (c *cluster) holder(t *testing.T, sidecar string) string {
	t.Helper()
	_, namespace := c.driver.of("controller")
	out := c.kubectl(t, "get", "leases", "--namespace="+namespace, "-o", `jsonpath={range .items[*]}{.metadata.name} {.spec.holderIdentity}{"\n"}{end}`)
	for line := range strings.Lines(out) {
		lease, identity, _ := strings.Cut(strings.TrimSpace(line), " ")
		if lease != leases[sidecar]+strings.ReplaceAll(driverName, ".", "-") {
			continue
		}
		for _, p := range c.driverPods(t, "controller") {
			if strings.Contains(identity, p.Name) {
				return p.Name
			}
		}
	}
	return ""
}

// leases has what stands before the driver's name in the name of each sidecar's lease.
var leases = map[string]string{
	"provisioner": "", "attacher": "external-attacher-leader-", "resizer": "external-resizer-", "snapshotter": "external-snapshotter-leader-",
}

// metrics are the lines of the driver's /metrics in a controller pod, by what stands before the value.
func (c *cluster) metrics(t *testing.T, pod string) map[string]string {
	t.Helper()
	page := c.kubectl(t, "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8080/proxy/metrics", namespaces["controller"], pod))
	values := map[string]string{}
	for line := range strings.Lines(page) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			i := strings.LastIndex(line, " ")
			values[line[:i]] = line[i+1:]
		}
	}
	return values
}

// holds fails at the first error within the time.
func holds(t *testing.T, during time.Duration, what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	began := time.Now()
	for {
		if err := ask(); err != nil {
			t.Fatalf("%s: not any more after %s: %v", what, time.Since(began).Round(time.Second), err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
