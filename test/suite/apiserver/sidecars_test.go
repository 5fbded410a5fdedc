//go:build apiserver

package apiserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/controlplane"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

const driverName = "cinder.csi.openstack.org"

// life is one claim in a namespace of its own, with a cloud and a driver process of its own. Its methods do what the sidecars, the
// scheduler and kubelet do.
type life struct {
	*rest
	server        *server
	namespace     string
	sim           *openstacksim.Sim
	cloud         *httptest.Server
	driver        csi.ControllerClient
	http          string // address of the driver's pages
	uid           string // of the claim
	volume        string // of Cinder
	kubelet       int
	later         time.Duration // how long after the last change somebody asks
	noPods        bool          // no controller pod is created
	nodeNamespace bool          // the namespace of the node pods exists
	nodes         map[string]string
}

func (l *life) name(suffix string) string { return l.namespace + "-" + suffix }

// startDriver starts the driver as a process against the simulated cloud.
func (l *life) startDriver() {
	l.t.Helper()
	l.sim = openstacksim.New(openstacksim.Default())
	l.sim.SetAllLatency(0)
	l.cloud = httptest.NewServer(l.sim.Handler())
	l.t.Cleanup(l.cloud.Close)
	dir := l.t.TempDir()
	conf, log := filepath.Join(dir, "cloud.conf"), filepath.Join(dir, "driver.log")
	if err := os.WriteFile(conf, l.sim.CloudConf(l.cloud.URL), 0o600); err != nil {
		l.t.Fatal(err)
	}
	out, err := os.Create(log)
	if err != nil {
		l.t.Fatal(err)
	}
	l.http = "127.0.0.1:" + controlplane.FreePort(l.t, "127.0.0.1")
	socket, err := os.MkdirTemp("", "csi") // the path of a socket must be short
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { os.RemoveAll(socket) })
	cmd := exec.Command(filepath.Join(l.server.Repo, "bin/cinder-csi-driver"), "--endpoint=unix://"+socket+"/csi.sock", "--cloud-config="+conf, "--cluster="+l.namespace,
		"--provide-node-service=false", "--http-endpoint="+l.http)
	cmd.Stderr = out
	if err := cmd.Start(); err != nil {
		l.t.Fatalf("%v; run make build", err)
	}
	l.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = out.Close()
	})
	conn, err := grpc.NewClient("unix://"+socket+"/csi.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = conn.Close() })
	l.driver = csi.NewControllerClient(conn)
	for range 200 {
		if response, err := http.Get("http://" + l.http + "/healthz"); err == nil {
			response.Body.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	text, _ := os.ReadFile(log)
	l.t.Fatalf("the driver does not serve: %s", text)
}

// controllerPod is the driver as the cluster sees it. kubelet forwards ports of it to the process.
func (l *life) controllerPod(ready string) {
	l.t.Helper()
	l.create("/api/v1/nodes", object{"metadata": object{"name": l.name("control")}, "status": object{
		"addresses": []object{{"type": "InternalIP", "address": "127.0.0.1"}}, "daemonEndpoints": object{"kubeletEndpoint": object{"Port": l.kubelet}},
		"conditions": []object{{"type": "Ready", "status": "True"}},
	}})
	_, port, _ := net.SplitHostPort(l.http)
	l.create(l.path("pods"), object{
		"metadata": object{"name": "cinder-csi-controller-0", "labels": object{"app.kubernetes.io/name": "cinder-csi", "app.kubernetes.io/component": "controller"}},
		"spec":     object{"nodeName": l.name("control"), "containers": []object{{"name": "driver", "image": "driver", "args": []string{"--cluster=" + l.namespace, "--http-endpoint=127.0.0.1:" + port}}}},
		"status":   object{"phase": "Running", "conditions": []object{{"type": "Ready", "status": ready}}},
	})
}

func (l *life) path(resource string) string {
	return "/api/v1/namespaces/" + l.namespace + "/" + resource
}

func (l *life) class(mode string, parameters map[string]string) {
	l.t.Helper()
	l.create("/apis/storage.k8s.io/v1/storageclasses", object{"metadata": object{"name": l.name("class")}, "provisioner": driverName, "volumeBindingMode": mode, "parameters": parameters})
}

// createClaim makes the claim. A change replaces fields of its spec.
func (l *life) createClaim(changes object) {
	l.t.Helper()
	spec := object{"accessModes": []string{"ReadWriteOnce"}, "storageClassName": l.name("class"), "resources": object{"requests": object{"storage": "1Gi"}}}
	for field, value := range changes {
		spec[field] = value
	}
	made := l.create(l.path("persistentvolumeclaims"), object{"metadata": object{"name": "data"}, "spec": spec})
	l.uid = made["metadata"].(object)["uid"].(string)
}

// event is written by a sidecar, the scheduler or kubelet.
func (l *life) event(kind, name, reason, component, message string) {
	l.t.Helper()
	now := time.Now().UTC().Format(time.RFC3339)
	l.create(l.path("events"), object{
		"metadata": object{"name": fmt.Sprintf("%s.%d", name, time.Now().UnixNano())}, "involvedObject": object{"kind": kind, "namespace": l.namespace, "name": name},
		"reason": reason, "message": message, "source": object{"component": component}, "type": "Warning", "count": 3, "firstTimestamp": now, "lastTimestamp": now,
	})
}

// provision is external-provisioner: one call, and its event or its PersistentVolume.
func (l *life) provision(parameters map[string]string, zone string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 8*time.Second)
	defer cancel()
	request := csitest.Claim("pvc-" + l.uid)
	request.Parameters = parameters
	if zone != "" {
		csitest.Wanted(zone)(request)
	}
	answer, err := l.driver.CreateVolume(ctx, request)
	if err != nil {
		l.event("PersistentVolumeClaim", "data", "ProvisioningFailed", driverName+"_cinder-csi-controller-0", fmt.Sprintf("failed to provision volume with StorageClass %q: %v", l.name("class"), err))
		return
	}
	l.volume = answer.Volume.VolumeId
	l.create("/api/v1/persistentvolumes", object{
		"metadata": object{"name": "pvc-" + l.uid},
		"spec": object{
			"capacity": object{"storage": "1Gi"}, "accessModes": []string{"ReadWriteOnce"}, "persistentVolumeReclaimPolicy": "Delete", "storageClassName": l.name("class"),
			"csi": object{"driver": driverName, "volumeHandle": l.volume}, "claimRef": object{"namespace": l.namespace, "name": "data", "uid": l.uid},
			"nodeAffinity": object{"required": object{"nodeSelectorTerms": []object{{"matchExpressions": []object{{"key": "topology.cinder.csi.openstack.org/zone", "operator": "In", "values": []string{"az1"}}}}}}},
		},
		"status": object{"phase": "Bound"},
	})
	l.patch(l.path("persistentvolumeclaims/data"), object{"spec": object{"volumeName": "pvc-" + l.uid}})
	l.patch(l.path("persistentvolumeclaims/data/status"), object{"status": object{"phase": "Bound", "capacity": object{"storage": "1Gi"}, "accessModes": []string{"ReadWriteOnce"}}})
}

// node is a node with the driver, whose server is one of the cloud.
func (l *life) node(name, server, ready string, registered bool) {
	l.t.Helper()
	l.nodes[name] = server
	l.create("/api/v1/nodes", object{"metadata": object{"name": l.name(name)}, "status": object{"conditions": []object{{"type": "Ready", "status": ready, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}}})
	if registered {
		l.nodePod(name)
	}
	drivers := []object{}
	if registered {
		drivers = append(drivers, object{"name": driverName, "nodeID": server, "topologyKeys": []string{}, "allocatable": object{"count": 25}})
	}
	l.create("/apis/storage.k8s.io/v1/csinodes", object{"metadata": object{"name": l.name(name)}, "spec": object{"drivers": drivers}})
}

// nodePod is the driver on a node, in a namespace of its own as in a bundle.
func (l *life) nodePod(node string) {
	l.t.Helper()
	namespace := l.name("node")
	if !l.nodeNamespace {
		l.nodeNamespace = true
		l.create("/api/v1/namespaces", object{"metadata": object{"name": namespace}})
	}
	l.create("/api/v1/namespaces/"+namespace+"/pods", object{
		"metadata": object{"name": "cinder-csi-node-" + node, "labels": object{"app.kubernetes.io/name": "cinder-csi", "app.kubernetes.io/component": "node"}},
		"spec": object{
			"nodeName": l.name(node), "tolerations": []object{{"operator": "Exists"}}, "containers": []object{{"name": "driver", "image": "driver"}},
			"volumes": []object{{"name": "socket", "hostPath": object{"path": "/var/lib/kubelet/plugins/" + driverName}}},
		},
		"status": object{"phase": "Running", "conditions": []object{{"type": "Ready", "status": "True"}}},
	})
}

// pod uses the claim. Without a node it is not scheduled; why is the message of the scheduler.
func (l *life) pod(name, node, why string) {
	l.t.Helper()
	spec := object{
		"containers": []object{{"name": "app", "image": "app"}}, "volumes": []object{{"name": "data", "persistentVolumeClaim": object{"claimName": "data"}}},
		"tolerations": []object{{"operator": "Exists"}},
	}
	status := object{"phase": "Pending", "conditions": []object{{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}}
	if node != "" {
		spec["nodeName"] = l.name(node)
		status = object{
			"phase": "Pending", "conditions": []object{{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}},
			"containerStatuses": []object{{"name": "app", "image": "app", "imageID": "", "ready": false, "restartCount": 0, "state": object{"waiting": object{"reason": "ContainerCreating"}}}},
		}
	}
	l.create(l.path("pods"), object{"metadata": object{"name": name}, "spec": spec, "status": status})
}

func (l *life) attachment(node string) string { return "csi-" + l.name(node) }

// attach is external-attacher: it calls once and writes the outcome. With a timeout of its own it leaves the call in progress.
func (l *life) attach(node string, background bool) {
	l.t.Helper()
	path := "/apis/storage.k8s.io/v1/volumeattachments"
	l.create(path, object{
		"metadata": object{"name": l.attachment(node), "finalizers": []string{"external-attacher/cinder-csi-openstack-org"}},
		"spec":     object{"attacher": driverName, "nodeName": l.name(node), "source": object{"persistentVolumeName": "pvc-" + l.uid}},
	})
	call := func(ctx context.Context) error {
		return csitest.Outcome(l.driver.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: l.volume, NodeId: l.nodes[node], VolumeCapability: csitest.Mounted("")}))
	}
	if background {
		l.background("ControllerPublishVolume", call)
		return
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), 8*time.Second)
	defer cancel()
	status := object{"attached": true}
	if err := call(ctx); err != nil {
		status = object{"attached": false, "attachError": object{"message": err.Error(), "time": time.Now().UTC().Format(time.RFC3339)}}
	}
	l.patch(path+"/"+l.attachment(node)+"/status", object{"status": status})
}

// detach deletes the VolumeAttachment, as kube-controller-manager does, and calls the driver, as external-attacher does.
func (l *life) detach(node string, background bool) {
	l.t.Helper()
	path := "/apis/storage.k8s.io/v1/volumeattachments/" + l.attachment(node)
	l.delete(path)
	call := func(ctx context.Context) error {
		return csitest.Outcome(l.driver.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: l.volume, NodeId: l.nodes[node]}))
	}
	if background {
		l.background("ControllerUnpublishVolume", call)
		return
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), 8*time.Second)
	defer cancel()
	if err := call(ctx); err != nil {
		l.patch(path+"/status", object{"status": object{"detachError": object{"message": err.Error(), "time": time.Now().UTC().Format(time.RFC3339)}}})
	}
}

// background makes a call that does not end by itself, and waits until the driver lists it with a step.
func (l *life) background(method string, call func(context.Context) error) {
	l.t.Helper()
	ctx, cancel := context.WithCancel(l.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = call(ctx)
	}()
	l.t.Cleanup(func() { cancel(); <-ended })
	l.waitForStep(method)
}
