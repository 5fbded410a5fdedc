//go:build scale

package scale

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// claim is a claim with the pod that uses it. Both have one name.
type claim struct {
	namespace, name, class string
	volume, handle         string // the PersistentVolume, and its volume of Cinder
	node                   string // of the pod
	pod                    string // its UID, "" without a pod
	running, leaving       bool
	gone                   bool // nobody wants the pod any more

	created, selected, provisioned, bound, ran time.Time
}

func (c *claim) key() string { return c.namespace + "/" + c.name }

// attachment is the name of the VolumeAttachment, as kube-controller-manager makes it.
func attachment(handle, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driverName+node)))
}

// world is what the hollow nodes know of the cluster. It also does what a Deployment would: a pod that is deleted is created again.
type world struct {
	*rest
	mu       sync.Mutex
	claims   map[string]*claim
	byVolume map[string]*claim // by PersistentVolume
	attached map[string]bool   // by VolumeAttachment
	nodes    map[string]*node
	pods     *queue[string] // claims whose pod may need something
	status   *queue[string] // nodes whose status changed
}

func newWorld(ctx context.Context, r *rest) *world {
	w := &world{rest: r, claims: map[string]*claim{}, byVolume: map[string]*claim{}, attached: map[string]bool{}, nodes: map[string]*node{}}
	w.pods, w.status = newQueue(16, w.syncPod), newQueue(8, w.syncNode)
	context.AfterFunc(ctx, func() { w.pods.close(); w.status.close() })
	return w
}

// meta is the metadata that the nodes read.
type meta struct {
	Name, Namespace, UID string
	DeletionTimestamp    string
}

type podObject struct {
	Metadata meta
	Spec     struct{ NodeName string }
	Status   struct{ Phase string }
}

type claimObject struct {
	Metadata struct {
		meta
		Annotations map[string]string
	}
	Spec   struct{ VolumeName string }
	Status struct{ Phase string }
}

type volumeObject struct {
	Metadata meta
	Spec     struct {
		CSI      struct{ VolumeHandle string }
		ClaimRef struct{ Namespace, Name string }
	}
}

type attachmentObject struct {
	Metadata meta
	Spec     struct {
		Source struct{ PersistentVolumeName string }
	}
	Status struct{ Attached bool }
}

// watch reads the cluster until the context ends.
func (w *world) watch(ctx context.Context) {
	go watch(ctx, w.rest, "/api/v1/pods", w.listedPods, w.sawPod)
	go watch(ctx, w.rest, "/api/v1/persistentvolumeclaims", each(w.sawClaim), w.sawClaim)
	go watch(ctx, w.rest, "/api/v1/persistentvolumes", each(w.sawVolume), w.sawVolume)
	go watch(ctx, w.rest, "/apis/storage.k8s.io/v1/volumeattachments", each(w.sawAttachment), w.sawAttachment)
}

func each[T any](handle func(string, T)) func([]T) {
	return func(all []T) {
		for _, o := range all {
			handle("ADDED", o)
		}
	}
}

// listedPods also notices the pods that were deleted while nobody watched.
func (w *world) listedPods(all []podObject) {
	there := map[string]bool{}
	for _, p := range all {
		there[p.Metadata.UID] = true
		w.sawPod("ADDED", p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, c := range w.claims {
		if c.pod != "" && !there[c.pod] {
			w.podGone(c)
			w.pods.add(key)
		}
	}
}

func (w *world) sawPod(kind string, p podObject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.claims[p.Metadata.Namespace+"/"+p.Metadata.Name]
	if c == nil {
		return
	}
	if kind == "DELETED" {
		if c.pod == p.Metadata.UID {
			w.podGone(c)
		}
	} else {
		c.pod, c.node, c.leaving = p.Metadata.UID, p.Spec.NodeName, p.Metadata.DeletionTimestamp != ""
		if running := p.Status.Phase == "Running" && !c.leaving; running && !c.running {
			c.running, c.ran = true, time.Now()
		} else {
			c.running = running
		}
	}
	w.pods.add(c.key())
}

// podGone forgets the pod of a claim, and that its node uses the volume. The caller holds w.mu.
func (w *world) podGone(c *claim) {
	w.unuse(c)
	c.pod, c.node, c.running, c.leaving = "", "", false, false
}

func (w *world) sawClaim(kind string, o claimObject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.claims[o.Metadata.Namespace+"/"+o.Metadata.Name]
	if c == nil || kind == "DELETED" {
		return
	}
	if o.Metadata.Annotations["volume.kubernetes.io/selected-node"] != "" && c.selected.IsZero() {
		c.selected = time.Now()
	}
	if o.Status.Phase == "Bound" && c.bound.IsZero() {
		c.bound = time.Now()
	}
}

func (w *world) sawVolume(kind string, o volumeObject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.claims[o.Spec.ClaimRef.Namespace+"/"+o.Spec.ClaimRef.Name]
	switch {
	case c == nil:
	case kind == "DELETED":
		delete(w.byVolume, o.Metadata.Name)
		c.volume, c.handle = "", ""
	default:
		c.volume, c.handle = o.Metadata.Name, o.Spec.CSI.VolumeHandle
		w.byVolume[c.volume] = c
		if c.provisioned.IsZero() {
			c.provisioned = time.Now()
		}
		w.pods.add(c.key())
	}
}

func (w *world) sawAttachment(kind string, o attachmentObject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kind == "DELETED" || !o.Status.Attached {
		delete(w.attached, o.Metadata.Name)
		return
	}
	w.attached[o.Metadata.Name] = true
	if c := w.byVolume[o.Spec.Source.PersistentVolumeName]; c != nil {
		w.pods.add(c.key())
	}
}

// syncPod does what kubelet does for a pod, and what its controller does for a deleted one.
func (w *world) syncPod(key string) {
	w.mu.Lock()
	c := w.claims[key]
	path := "/api/v1/namespaces/" + c.namespace + "/pods"
	n := w.nodes[c.node]
	alive := n != nil && !n.dead
	var send func() error
	switch {
	case c.pod == "" && !c.gone && !c.created.IsZero():
		send = func() error { return w.send(http.MethodPost, path, podOf(c), nil) }
	case c.leaving && alive:
		w.unuse(c)
		send = func() error {
			w.syncNode(n.name) // kubelet reports the unmounted volume before the pod ends
			return w.send(http.MethodDelete, path+"/"+c.name, object{"gracePeriodSeconds": 0, "preconditions": object{"uid": c.pod}}, nil)
		}
	case alive && !c.leaving && !c.running && c.handle != "":
		w.use(n, c)
		if w.attached[attachment(c.handle, c.node)] {
			send = func() error {
				return w.send(http.MethodPatch, path+"/"+c.name+"/status", object{"status": object{"phase": "Running", "conditions": ready}}, nil)
			}
		}
	}
	w.mu.Unlock()
	if send == nil {
		return
	}
	if err := send(); err != nil {
		if status, answered := err.(statusError); answered && (status.code == http.StatusNotFound || status.code == http.StatusConflict) {
			return // the watch says what happened
		}
		time.AfterFunc(time.Second, func() { w.pods.add(key) })
	}
}

var ready = []object{{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}, {"type": "PodScheduled", "status": "True"}, {"type": "Initialized", "status": "True"}}

func podOf(c *claim) object {
	return object{
		"metadata": object{"name": c.name, "labels": object{"app": "scale"}},
		"spec": object{
			"automountServiceAccountToken": false, "enableServiceLinks": false, "terminationGracePeriodSeconds": 0,
			"containers": []object{{"name": "app", "image": "app"}},
			"volumes":    []object{{"name": "data", "persistentVolumeClaim": object{"claimName": c.name}}},
			// A pod on a lost node is to move at once, and not after five minutes.
			"tolerations": []object{
				{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 600},
				{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 600},
			},
		},
	}
}

func claimOf(c *claim) object {
	return object{
		"metadata": object{"name": c.name},
		"spec":     object{"accessModes": []string{"ReadWriteOnce"}, "storageClassName": c.class, "resources": object{"requests": object{"storage": "1Gi"}}},
	}
}

// create creates a claim, and the pod that uses it.
func (w *world) create(t *testing.T, namespace, name, class string) *claim {
	t.Helper()
	c := &claim{namespace: namespace, name: name, class: class}
	w.mu.Lock()
	w.claims[c.key()] = c
	w.mu.Unlock()
	path := "/api/v1/namespaces/" + namespace
	if err := w.insist(http.MethodPost, path+"/persistentvolumeclaims", claimOf(c), nil); err != nil {
		t.Error(err)
		return c
	}
	w.mu.Lock()
	c.created = time.Now()
	w.mu.Unlock()
	w.pods.add(c.key())
	return c
}

// abandon deletes claims and their pods.
func (w *world) abandon(claims []*claim) {
	parallel(claims, func(c *claim) {
		w.mu.Lock()
		c.gone = true
		w.mu.Unlock()
		path := "/api/v1/namespaces/" + c.namespace
		_ = w.insist(http.MethodDelete, path+"/persistentvolumeclaims/"+c.name, object{}, nil)
		_ = w.insist(http.MethodDelete, path+"/pods/"+c.name, object{"gracePeriodSeconds": 0}, nil)
	})
}

// count is how many of the claims a condition holds for.
func (w *world) count(claims []*claim, holds func(*claim) bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, c := range claims {
		if holds(c) {
			n++
		}
	}
	return n
}

func isRunning(c *claim) bool { return c.running }

func isBound(c *claim) bool { return !c.bound.IsZero() }

// parallel calls work for each item, with as many requests at once as the machine answers quickly.
func parallel[T any](items []T, work func(T)) {
	var all sync.WaitGroup
	next := make(chan T)
	for range 24 {
		all.Go(func() {
			for item := range next {
				work(item)
			}
		})
	}
	for _, item := range items {
		next <- item
	}
	close(next)
	all.Wait()
}
