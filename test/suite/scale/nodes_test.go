//go:build scale

package scale

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// volumesOfNode is the limit that the driver reports for virtio-blk on pc.
const volumesOfNode = 24

// leasePeriod is how often a hollow node renews its lease. kubelet does so every ten seconds, which would take a thousand nodes a good part
// of this machine.
const leasePeriod = 40 * time.Second

// node is a hollow node.
type node struct {
	name, zone, server string
	number             int
	dead               bool
	inUse              map[string]bool // handles of volumes
}

// createNodes creates the nodes as kubelet and the driver on them register.
func (w *world) createNodes(t *testing.T, count int) {
	t.Helper()
	numbers := make([]int, count)
	for n := range numbers {
		numbers[n] = n
		name := nodeName(n)
		w.nodes[name] = &node{name: name, zone: zoneOf(n), server: serverID(n), number: n, inUse: map[string]bool{}}
	}
	capacity := object{"cpu": "32", "memory": "128Gi", "pods": "250"}
	parallel(numbers, func(n int) {
		one := w.nodes[nodeName(n)]
		err := w.insist(http.MethodPost, "/api/v1/nodes", object{
			"metadata": object{"name": one.name, "annotations": object{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}, "labels": object{
				"kubernetes.io/hostname": one.name, "topology.kubernetes.io/zone": one.zone, "topology.cinder.csi.openstack.org/zone": one.zone,
			}},
			"status": object{"capacity": capacity, "allocatable": capacity, "conditions": []object{{"type": "Ready", "status": "True", "reason": "KubeletReady"}}},
		}, nil)
		if err == nil {
			err = w.insist(http.MethodPost, "/apis/storage.k8s.io/v1/csinodes", object{"metadata": object{"name": one.name}, "spec": object{"drivers": []object{{
				"name": driverName, "nodeID": one.server, "topologyKeys": []string{"topology.cinder.csi.openstack.org/zone"}, "allocatable": object{"count": volumesOfNode},
			}}}}, nil)
		}
		if err == nil {
			err = w.insist(http.MethodPost, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", object{
				"metadata": object{"name": one.name}, "spec": object{"holderIdentity": one.name, "leaseDurationSeconds": 40, "renewTime": now()},
			}, nil)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }

// renew renews the leases of the nodes that are alive, one after the other.
func (w *world) renew(ctx context.Context) {
	w.mu.Lock()
	var names []string
	for name := range w.nodes {
		names = append(names, name)
	}
	w.mu.Unlock()
	sort.Strings(names)
	tick := time.NewTicker(leasePeriod / time.Duration(len(names)))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		name := names[n%len(names)]
		w.mu.Lock()
		dead := w.nodes[name].dead
		w.mu.Unlock()
		if !dead {
			go func() {
				_ = w.send(http.MethodPatch, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+name, object{"spec": object{"renewTime": now()}}, nil)
			}()
		}
	}
}

// use notes that a node uses a volume. The caller holds w.mu, here and below.
func (w *world) use(n *node, c *claim) {
	if !n.inUse[c.handle] {
		n.inUse[c.handle] = true
		w.status.add(n.name)
	}
}

func (w *world) unuse(c *claim) {
	if n := w.nodes[c.node]; n != nil && n.inUse[c.handle] {
		delete(n.inUse, c.handle)
		w.status.add(n.name)
	}
}

// zone is the zone of the pod of a claim.
func (w *world) zone(c *claim) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.nodes[c.node]; n != nil {
		return n.zone
	}
	return ""
}

// inUseOf is the list of the status, in order.
func (n *node) inUseOf() []string {
	list := []string{}
	for handle := range n.inUse {
		list = append(list, "kubernetes.io/csi/"+driverName+"^"+handle)
	}
	slices.Sort(list)
	return list
}

// syncNode writes the volumes that a node uses into its status.
func (w *world) syncNode(name string) {
	w.mu.Lock()
	n := w.nodes[name]
	list, dead := n.inUseOf(), n.dead
	w.mu.Unlock()
	if dead {
		return
	}
	if err := w.send(http.MethodPatch, "/api/v1/nodes/"+name+"/status", object{"status": object{"volumesInUse": list}}, nil); err != nil {
		time.AfterFunc(time.Second, func() { w.status.add(name) })
	}
}

// die stops nodes without a word, as the loss of a rack does. An administrator then confirms that they are off.
func (w *world) die(t *testing.T, names []string, sim *openstacksim.Sim) {
	t.Helper()
	parallel(names, func(name string) {
		w.mu.Lock()
		n := w.nodes[name]
		n.dead = true
		w.mu.Unlock()
		sim.SetServerStatus(n.server, "SHUTOFF", "")
		err := w.insist(http.MethodPatch, "/api/v1/nodes/"+name+"/status", object{"status": object{"conditions": []object{{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}}}}, nil)
		if err == nil {
			err = w.insist(http.MethodPatch, "/api/v1/nodes/"+name, object{"spec": object{"taints": []object{
				{"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"},
				{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"},
				{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
			}}}, nil)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// seed writes volumes that are in use, as the driver, the sidecars and kubelet would have left them: into the cloud and into the cluster.
func (w *world) seed(t *testing.T, sim *openstacksim.Sim, count int, namespaces []string) []*claim {
	t.Helper()
	names := make([]string, 0, len(w.nodes))
	for name := range w.nodes {
		names = append(names, name)
	}
	sort.Strings(names)
	var all []*claim
	for i := range count {
		n := w.nodes[names[i%len(names)]]
		c := &claim{
			namespace: namespaces[i%len(namespaces)], name: fmt.Sprintf("seed-%05d", i), class: "standard", node: n.name,
			handle: fmt.Sprintf("f00d0000-0000-4000-8000-%012x", i), volume: fmt.Sprintf("pvc-f00d0000-0000-4000-8000-%012x", i),
		}
		err := sim.PutVolume(openstacksim.VolumeState{
			ID: c.handle, Name: c.volume, Status: "in-use", Zone: n.zone, Type: "standard", Size: 1, Metadata: map[string]string{"cinder.csi.openstack.org/cluster": "kubernetes"},
			Attachments: []openstacksim.AttachmentState{{Server: n.server, Status: "attached"}}, Disks: []string{n.server},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.claims[c.key()], w.byVolume[c.volume] = c, c
		w.attached[attachment(c.handle, n.name)] = true
		n.inUse[c.handle] = true
		all = append(all, c)
	}
	parallel(all, func(c *claim) {
		testenv.Check(t, w.seedOne(c))
	})
	parallel(names, w.syncNode)
	return all
}

// seedOne creates the objects of one volume.
func (w *world) seedOne(c *claim) error {
	namespace := "/api/v1/namespaces/" + c.namespace
	var made claimObject
	asked := claimOf(c)
	asked["metadata"] = object{"name": c.name, "finalizers": []string{"kubernetes.io/pvc-protection"}, "annotations": object{
		"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes", "volume.kubernetes.io/storage-provisioner": driverName,
		"volume.beta.kubernetes.io/storage-provisioner": driverName, "volume.kubernetes.io/selected-node": c.node,
	}}
	asked["spec"].(object)["volumeName"] = c.volume
	if err := w.insist(http.MethodPost, namespace+"/persistentvolumeclaims", asked, &made); err != nil {
		return err
	}
	size := object{"storage": "1Gi"}
	steps := []struct {
		method, path string
		body         object
	}{
		{http.MethodPatch, namespace + "/persistentvolumeclaims/" + c.name + "/status", object{"status": object{"phase": "Bound", "accessModes": []string{"ReadWriteOnce"}, "capacity": size}}},
		{http.MethodPost, "/api/v1/persistentvolumes", object{
			"metadata": object{"name": c.volume, "finalizers": []string{"kubernetes.io/pv-protection", "external-provisioner.volume.kubernetes.io/finalizer", "external-attacher/cinder-csi-openstack-org"}, "annotations": object{
				"pv.kubernetes.io/provisioned-by": driverName, "volume.kubernetes.io/provisioner-deletion-secret-name": "", "volume.kubernetes.io/provisioner-deletion-secret-namespace": "",
			}},
			"spec": object{
				"capacity": size, "accessModes": []string{"ReadWriteOnce"}, "persistentVolumeReclaimPolicy": "Delete", "storageClassName": c.class, "volumeMode": "Filesystem",
				"csi":      object{"driver": driverName, "volumeHandle": c.handle, "fsType": "ext4", "volumeAttributes": object{"storage.kubernetes.io/csiProvisionerIdentity": "1-1-" + driverName}},
				"claimRef": object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": c.namespace, "name": c.name, "uid": made.Metadata.UID},
				"nodeAffinity": object{"required": object{"nodeSelectorTerms": []object{{"matchExpressions": []object{
					{"key": "topology.cinder.csi.openstack.org/zone", "operator": "In", "values": []string{w.nodes[c.node].zone}},
				}}}}},
			},
		}},
		{http.MethodPatch, "/api/v1/persistentvolumes/" + c.volume + "/status", object{"status": object{"phase": "Bound"}}},
		{http.MethodPost, "/apis/storage.k8s.io/v1/volumeattachments", object{
			"metadata": object{"name": attachment(c.handle, c.node), "finalizers": []string{"external-attacher/cinder-csi-openstack-org"}, "annotations": object{"csi.alpha.kubernetes.io/node-id": w.nodes[c.node].server}},
			"spec":     object{"attacher": driverName, "nodeName": c.node, "source": object{"persistentVolumeName": c.volume}},
		}},
		{http.MethodPatch, "/apis/storage.k8s.io/v1/volumeattachments/" + attachment(c.handle, c.node) + "/status", object{"status": object{"attached": true}}},
	}
	for _, step := range steps {
		if err := w.insist(step.method, step.path, step.body, nil); err != nil {
			return err
		}
	}
	pod := podOf(c)
	pod["spec"].(object)["nodeName"] = c.node
	var created podObject
	if err := w.insist(http.MethodPost, namespace+"/pods", pod, &created); err != nil {
		return err
	}
	w.mu.Lock()
	c.pod, c.running, c.created, c.bound = created.Metadata.UID, true, time.Now(), time.Now()
	w.mu.Unlock()
	return w.insist(http.MethodPatch, namespace+"/pods/"+c.name+"/status", object{"status": object{"phase": "Running", "conditions": ready}}, nil)
}
