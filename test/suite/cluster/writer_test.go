//go:build cluster

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/appendlog"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// writers is a StatefulSet of pods that append synced lines to volumes of their own, as package appendlog reads them. The name of a writer is the
// UID of its pod.
type writers struct {
	name     string
	replicas int
}

// manifest lets the pods start on the nodes with that label. It changes nothing for pods that run.
func (w writers) manifest(namespace, label string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  serviceName: %[1]s
  replicas: %[3]d
  podManagementPolicy: Parallel
  updateStrategy: {type: OnDelete}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 5
      automountServiceAccountToken: false
      nodeSelector: {%[4]s}
      containers:
      - name: workload
        image: cluster-bed/workload:1
        imagePullPolicy: Never
        args: [append, /data/log, $(POD_UID)]
        env: [{name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, w.name, namespace, w.replicas, label)
}

func (w writers) pods() []string {
	var names []string
	for i := range w.replicas {
		names = append(names, fmt.Sprintf("%s-%d", w.name, i))
	}
	return names
}

// place says on which nodes the next pods may start, by a label. A pod that is deleted at once has its successor there, since the controller of the
// StatefulSet has seen it.
func (c *cluster) place(t *testing.T, w writers, label string) {
	t.Helper()
	c.apply(t, w.manifest(c.namespace, label))
	eventually(t, patience, "StatefulSet "+w.name+" observed", func() error {
		out := c.kubectl(t, "get", "statefulset", w.name, "--namespace="+c.namespace, "-o", "jsonpath={.metadata.generation} {.status.observedGeneration}")
		if spec, observed, _ := strings.Cut(out, " "); spec != observed {
			return fmt.Errorf("generation and observed generation are %q", out)
		}
		return nil
	})
}

// startWriters starts the pods on a node of zone az1, and waits until each has written some lines. Their successors may have any node of the zone.
func (c *cluster) startWriters(t *testing.T, w writers, node string) {
	t.Helper()
	c.place(t, w, "kubernetes.io/hostname: "+node)
	for _, pod := range w.pods() {
		c.kubectl(t, "wait", "--namespace="+c.namespace, "--for=create", "pod/"+pod, atMost)
		c.kubectl(t, "wait", "--namespace="+c.namespace, "--for=condition=Ready", "pod/"+pod, atMost)
		c.awaitLines(t, pod, 20)
	}
	c.place(t, w, zoneLabel+": az1")
}

// awaitLines waits until the pod itself has written so many lines, and gives the whole log.
func (c *cluster) awaitLines(t *testing.T, pod string, n int) appendlog.Log {
	t.Helper()
	return c.awaitLinesSince(t, pod, n, time.Time{})
}

// writesOn waits until the pod itself has written some lines from now on, and gives the whole log. So a pause until now is one between two lines.
func (c *cluster) writesOn(t *testing.T, pod string) appendlog.Log {
	t.Helper()
	return c.awaitLinesSince(t, pod, 20, time.Now())
}

func (c *cluster) awaitLinesSince(t *testing.T, pod string, n int, since time.Time) appendlog.Log {
	t.Helper()
	uid := c.uid(t, pod)
	var log appendlog.Log
	eventually(t, patience, fmt.Sprintf("%d lines of pod %s", n, pod), func() (err error) {
		log, err = c.tryLines(t, pod)
		if wrote := log.Since(since).Of(uid); err == nil && wrote < n {
			return fmt.Errorf("it has %d", wrote)
		}
		return err
	})
	return log
}

func (c *cluster) tryLines(t *testing.T, pod string) (appendlog.Log, error) {
	t.Helper()
	out, _, err := c.try(t.Context(), "", "kubectl", "exec", pod, "--namespace="+c.namespace, "--", "/bin/workload", "print", "/data/log")
	if err != nil {
		return nil, err
	}
	return appendlog.Parse(out)
}

// lines reads a log while the pod writes: a last line may be there in part, and whole a moment later.
func (c *cluster) lines(t *testing.T, pod string) appendlog.Log {
	t.Helper()
	var log appendlog.Log
	eventually(t, patience, "whole lines of pod "+pod, func() (err error) {
		log, err = c.tryLines(t, pod)
		return err
	})
	return log
}

// expectWriters fails unless the pods with these UIDs, one after the other, have written every line.
func expectWriters(t *testing.T, log appendlog.Log, want ...string) {
	t.Helper()
	got := testenv.Value(log.Writers())(t)
	if !slices.Equal(got, want) {
		t.Fatalf("the lines are of the pods %q, want %q", got, want)
	}
}

// moved waits until the pods run again elsewhere with other UIDs, and gives the longest pause of a log. It fails if a line of before is lost.
func (c *cluster) moved(t *testing.T, w writers, node string, before map[string]appendlog.Log) time.Duration {
	t.Helper()
	var pause time.Duration
	for _, pod := range w.pods() {
		old := before[pod]
		from := old[len(old)-1].Writer
		eventually(t, patience, "pod "+pod+" moved and ready", func() error {
			out := c.kubectl(t, "get", "pod", pod, "--namespace="+c.namespace, "--ignore-not-found",
				"-o", `jsonpath={.metadata.uid} {.spec.nodeName} {.status.conditions[?(@.type=="Ready")].status}`)
			fields := strings.Fields(out)
			if len(fields) != 3 || fields[0] == from || fields[1] == node || fields[2] != "True" {
				return fmt.Errorf("it is %q", out)
			}
			return nil
		})
		log := c.awaitLines(t, pod, 5)
		expectWriters(t, log, from, c.uid(t, pod))
		// Each line is synced before the next is written, so at most the last one may be lost.
		if kept := log.Of(from); kept < len(old)-1 {
			t.Errorf("pod %s: %d lines were synced, %d are left", pod, len(old)-1, kept)
		}
		pause = max(pause, log.LongestPause(old[len(old)-1].At))
	}
	return pause
}

func (c *cluster) uid(t *testing.T, pod string) string {
	t.Helper()
	return c.kubectl(t, "get", "pod", pod, "--namespace="+c.namespace, "-o", "jsonpath={.metadata.uid}")
}

// logs are those of all pods.
func (c *cluster) logs(t *testing.T, w writers) map[string]appendlog.Log {
	t.Helper()
	all := map[string]appendlog.Log{}
	for _, pod := range w.pods() {
		all[pod] = c.lines(t, pod)
	}
	return all
}
