//go:build cluster

package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sharedBlock writes one half of a volume on each node of a zone, and reads it on the other one. A node that has read or written a half itself may
// have it in its cache, as with every disk that two machines share.
func sharedBlock(t *testing.T, c *cluster) {
	c.start(t, []claim{{name: "shared", gib: 1, mode: "Block", access: "ReadWriteMany", class: "multiattach"}},
		pod{name: "first", claim: "shared", node: "node-az1", block: true}, pod{name: "second", claim: "shared", node: "node-az1-2", block: true})
	if n := strings.Count(c.cinder(t, c.volumeOf(t, "shared"), "attachments"), "server_id"); n != 2 {
		t.Errorf("Cinder shows %d attachments of the volume, want 2", n)
	}
	sums := map[string]string{}
	for half, name := range []string{"first", "second"} {
		c.exec(t, name, "write", "/dev/data", name, strconv.Itoa(written), strconv.Itoa(half*written))
		sums[name] = c.exec(t, name, "sum", "/dev/data", strconv.Itoa(written), strconv.Itoa(half*written))
	}
	if sums["first"] == sums["second"] {
		t.Fatal("both halves have the same bytes")
	}
	for reader, half := range map[string]int{"first": 1, "second": 0} {
		writer := map[int]string{0: "first", 1: "second"}[half]
		if got := c.exec(t, reader, "sum", "/dev/data", strconv.Itoa(written), strconv.Itoa(half*written)); got != sums[writer] {
			t.Errorf("pod %s reads other bytes than pod %s wrote: the sum is %s, want %s", reader, writer, got, sums[writer])
		}
	}
	// The other pod keeps its disk when one goes.
	c.deletePod(t, "first")
	c.write(t, "second", "/dev/data", "alone")
}

// oncePod is on one node, where ReadWriteOnce would let both pods run.
func oncePod(t *testing.T, c *cluster) {
	c.start(t, []claim{{name: "once", gib: 1, access: "ReadWriteOncePod"}}, pod{name: "first", claim: "once", node: "node-az1"})
	sum := c.write(t, "first", "/data/file", "once")
	c.create(t, nil, pod{name: "second", claim: "once", node: "node-az1"})
	c.unschedulable(t, "second", "ReadWriteOncePod")
	c.expectSum(t, "first", "/data/file", sum)
	if phase := c.phaseOf(t, "second"); phase != "Pending" {
		t.Errorf("the second pod is %s while the first runs", phase)
	}
	c.deletePod(t, "first")
	began := time.Now()
	c.start(t, nil, pod{name: "second", claim: "once", node: "node-az1"})
	c.measured("- first pod gone until the second is ready", began)
	c.expectSum(t, "second", "/data/file", sum)
}

func (c *cluster) phaseOf(t *testing.T, pod string) string {
	t.Helper()
	return c.kubectl(t, "get", "pod", pod, "--namespace="+c.namespace, "-o", "jsonpath={.status.phase}")
}

// unschedulable waits until the scheduler has an event with the reason why a pod fits no node.
func (c *cluster) unschedulable(t *testing.T, pod, reason string) {
	t.Helper()
	eventually(t, patience, "pod "+pod+" refused by the scheduler", func() error {
		events := c.kubectl(t, "get", "events", "--namespace="+c.namespace, "--field-selector=reason=FailedScheduling,involvedObject.name="+pod, "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(events, reason) {
			return fmt.Errorf("want an event with %q, got %q", reason, events)
		}
		return nil
	})
}
