//go:build cluster

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// use is pods that write to their volumes while the driver is replaced.
type use struct {
	c       *cluster
	writers writers
	node    string              // where they are
	started map[string][]string // by pod: UID, container ID, restarts
	since   time.Time           // when all of them were there
}

// startUse starts two pods that write on node-az1, with claims of the default class.
func (c *cluster) startUse(t *testing.T) *use {
	t.Helper()
	w := writers{name: "inuse", replicas: 2}
	u := &use{c: c, writers: w, node: "node-az1"}
	c.startWriters(t, w, u.node)
	u.started, u.since = u.identities(t), time.Now()
	return u
}

func (u *use) identities(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, pod := range u.writers.pods() {
		found[pod] = strings.Fields(u.c.kubectl(t, "get", "pod", pod, "--namespace="+u.c.namespace,
			"-o", "jsonpath={.metadata.uid} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}"))
	}
	return found
}

// undisturbed fails unless the same containers run and have written without a gap. It prints the longest pause between two synced lines.
func (u *use) undisturbed(t *testing.T, by string) {
	t.Helper()
	var longest time.Duration
	now := u.identities(t)
	for _, pod := range u.writers.pods() {
		if !slices.Equal(u.started[pod], now[pod]) {
			t.Fatalf("after %s pod %s is not the same: it was %q, it is %q", by, pod, u.started[pod], now[pod])
		}
		log := u.c.writesOn(t, pod)
		writers, err := log.Writers()
		if err != nil {
			t.Fatalf("after %s, the lines of pod %s: %v", by, pod, err)
		}
		if writers[len(writers)-1] != now[pod][0] {
			t.Fatalf("after %s pod %s does not write", by, pod)
		}
		longest = max(longest, log.LongestPause(u.since))
	}
	fmt.Printf("measured: longest pause of a writing pod during %s %.2f s\n", by, longest.Seconds())
}

// move deletes the pods and waits until they write on the other node of the zone. No synced line may be lost on the way.
func (u *use) move(t *testing.T) {
	t.Helper()
	before := u.c.logs(t, u.writers)
	u.node = map[string]string{"node-az1": "node-az1-2", "node-az1-2": "node-az1"}[u.node]
	u.c.place(t, u.writers, "kubernetes.io/hostname: "+u.node)
	u.c.kubectl(t, append([]string{"delete", "pod", "--namespace=" + u.c.namespace, atMost}, u.writers.pods()...)...)
	for _, pod := range u.writers.pods() {
		u.c.kubectl(t, "wait", "--namespace="+u.c.namespace, "--for=create", "pod/"+pod, atMost)
		u.c.kubectl(t, "wait", "--namespace="+u.c.namespace, "--for=condition=Ready", "pod/"+pod, atMost)
		if node := u.c.kubectl(t, "get", "pod", pod, "--namespace="+u.c.namespace, "-o", "jsonpath={.spec.nodeName}"); node != u.node {
			t.Fatalf("pod %s is on %s, want it on %s", pod, node, u.node)
		}
		log := u.c.awaitLines(t, pod, 5)
		if _, err := log.Writers(); err != nil {
			t.Fatalf("after the move, the lines of pod %s: %v", pod, err)
		}
		// Each line is synced before the next is written, so at most the last one may be lost.
		old := before[pod]
		if kept := log.Of(old[len(old)-1].Writer); kept < old[len(old)-1].Number-1 {
			t.Fatalf("pod %s: %d lines were synced, %d are left", pod, old[len(old)-1].Number-1, kept)
		}
	}
	u.started, u.since = u.identities(t), time.Now()
}

// end deletes the pods and their claims, and waits until the volumes are gone.
func (u *use) end(t *testing.T) {
	t.Helper()
	u.c.kubectl(t, "delete", "statefulset", u.writers.name, "--namespace="+u.c.namespace, atMost)
	eventually(t, patience, "every volume deleted", func() error {
		if left := u.c.volumes(t); len(left) > 0 {
			return fmt.Errorf("%d are there: %v", len(left), left)
		}
		return nil
	})
}
