//go:build apiserver

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// leaving is how long a pod takes to end. A command that does not wait for it finds it still there.
const leaving = 2 * time.Second

// node is the one node of the cluster. It does what the scheduler and kubelet do with a pod. It sees every pod with a Cinder driver until its object
// is gone.
type node struct {
	*rest
	mu      sync.Mutex
	changed chan struct{}     // closed at each change
	drivers map[string]string // the pods that exist: the installation by namespace and name
	seen    []string          // the installations that had pods, in the order of their begin
	both    []string          // moments in which two had pods
}

func startNode(t *testing.T, s *server) *node {
	t.Helper()
	n := &node{rest: newREST(t, s), changed: make(chan struct{}), drivers: map[string]string{}}
	n.create("/api/v1/nodes", object{"metadata": object{"name": "node-0", "labels": object{"kubernetes.io/os": "linux"}}, "status": object{"conditions": []object{{"type": "Ready", "status": "True"}}}})
	s.run(t, "kubectl", "taint", "node", "node-0", "node.kubernetes.io/not-ready:NoSchedule-")
	request := testenv.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, n.base.String()+"/api/v1/pods?watch=1", http.NoBody))(t)
	response := testenv.Value(n.http.Do(request))(t)
	t.Cleanup(func() { _ = response.Body.Close() })
	go func() {
		events := json.NewDecoder(response.Body)
		for {
			var event struct {
				Type   string
				Object corev1.Pod
			}
			if events.Decode(&event) != nil {
				return // the test ends
			}
			n.note(event.Type, event.Object)
			n.run(event.Type, event.Object)
		}
	}()
	return n
}

// run takes a pod through its life. Another event repeats what fails.
func (n *node) run(event string, p corev1.Pod) {
	path := "/api/v1/namespaces/" + p.Namespace + "/pods/" + p.Name
	switch {
	case event == "DELETED":
	case p.DeletionTimestamp != nil:
		time.AfterFunc(leaving, func() {
			_, _ = n.send(http.MethodDelete, path, object{"gracePeriodSeconds": 0, "preconditions": object{"uid": p.UID}})
		})
	case p.Spec.NodeName == "":
		_, _ = n.send(http.MethodPost, path+"/binding", object{"apiVersion": "v1", "kind": "Binding", "metadata": object{"name": p.Name}, "target": object{"kind": "Node", "name": "node-0"}})
	case p.Status.Phase == corev1.PodPending:
		_, _ = n.send(http.MethodPatch, path+"/status", object{"status": object{"phase": "Running", "conditions": []object{{"type": "Ready", "status": "True"}}}})
	}
}

// note keeps which installations have pods.
func (n *node) note(event string, p corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key, of := p.Namespace+"/"+p.Name, installationOf(p)
	switch {
	case of == "":
		return
	case event == "DELETED":
		delete(n.drivers, key)
	default:
		n.drivers[key] = of
		if len(n.seen) == 0 || n.seen[len(n.seen)-1] != of {
			n.seen = append(n.seen, of)
		}
		for other, its := range n.drivers {
			if moment := fmt.Sprintf("%s while %s is there", key, other); its != of && !slices.Contains(n.both, moment) {
				n.both = append(n.both, moment)
			}
		}
	}
	close(n.changed)
	n.changed = make(chan struct{})
}

// installationOf is old or new for a pod with a Cinder driver.
func installationOf(p corev1.Pod) string {
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		switch {
		case strings.HasPrefix(c.Image, "old.example/"):
			return "old"
		case strings.Contains(c.Image, "cinder-csi-driver"):
			return "new"
		}
	}
	return ""
}

// await waits until an installation has so many pods, or more.
func (n *node) await(t *testing.T, of string, pods int) {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		n.mu.Lock()
		have, changed := 0, n.changed
		for _, its := range n.drivers {
			if its == of {
				have++
			}
		}
		n.mu.Unlock()
		if have >= pods {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("want %d pods of the %s driver, got %d", pods, of, have)
		}
	}
}

// switches demands that the pods of one installation come after those of the other, and never meet them.
func (n *node) switches(t *testing.T, want []string, run func()) {
	t.Helper()
	n.mu.Lock()
	n.seen, n.both = want[:1:1], nil
	n.mu.Unlock()
	run()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Equal(n.seen, want) || len(n.both) > 0 {
		t.Errorf("want pods of the drivers %q one after the other, got %q, and together: %q", want, n.seen, n.both)
	}
}
