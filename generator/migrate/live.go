package migrate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// LiveName is what notes call a cluster that was read.
const LiveName = "the cluster"

// liveKinds are what Live lists. A cluster without snapshots has no VolumeSnapshotClasses.
var liveKinds = []struct {
	path, apiVersion, kind string
	optional               bool
}{
	{cluster.WorkloadKinds["Deployment"], "apps/v1", "Deployment", false},
	{cluster.WorkloadKinds["StatefulSet"], "apps/v1", "StatefulSet", false},
	{cluster.WorkloadKinds["DaemonSet"], "apps/v1", "DaemonSet", false},
	{cluster.WorkloadKinds["ReplicaSet"], "apps/v1", "ReplicaSet", false},
	{cluster.WorkloadKinds["Pod"], "v1", "Pod", false},
	{"/apis/storage.k8s.io/v1/storageclasses", "storage.k8s.io/v1", "StorageClass", false},
	{"/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses", "snapshot.storage.k8s.io/v1", "VolumeSnapshotClass", true},
	{"/apis/storage.k8s.io/v1/volumeattributesclasses", "storage.k8s.io/v1", "VolumeAttributesClass", true},
	{"/api/v1/persistentvolumes", "v1", "PersistentVolume", false},
}

// Live reads what Import needs of a running installation, with GET requests only. These are workloads, classes, volumes, and the ConfigMaps
// and the names of Secrets that the driver has mounted. It yields one File for all.
func Live(ctx context.Context, c *cluster.Cluster) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		objects, err := liveObjects(ctx, c)
		yield(File{Name: LiveName, live: objects}, err)
	}
}

func liveObjects(ctx context.Context, c *cluster.Cluster) ([]map[string]any, error) {
	all := []map[string]any{}
	var drivers []document
	for _, k := range liveKinds {
		found, err := cluster.List[map[string]any](ctx, c, k.path)
		if k.optional && errors.Is(err, cluster.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, object := range found {
			object["apiVersion"], object["kind"] = k.apiVersion, k.kind // the items of a list lack them
			delete(object, "status")
			templated(object)
			d := document{yaml: object}
			if d.owned() { // it is only counted, and a cluster may have many
				owners := valueAt(object, "metadata", "ownerReferences")
				clear(object)
				object["kind"], object["metadata"] = k.kind, map[string]any{"ownerReferences": owners}
			}
			if isWorkload(k.kind) && runsDriver(d) && !d.ofKubelet() {
				drivers = append(drivers, d)
			}
			all = append(all, object)
		}
	}
	if len(drivers) == 0 {
		return nil, fmt.Errorf("%w: the cluster (%s) has no workload of a Cinder driver, which has the cluster ID and says whether zones are used. Name another --context, or import saved manifests", ErrFile, c.Name())
	}
	mounted, err := mountedBy(ctx, c, drivers)
	return append(all, mounted...), err
}

// mountedBy are the ConfigMaps and the Secrets of workloads, each once. The values of a Secret never leave the package cluster.
func mountedBy(ctx context.Context, c *cluster.Cluster, workloads []document) ([]map[string]any, error) {
	var all []map[string]any
	done := map[string]bool{}
	for _, w := range workloads {
		template, err := podTemplate(w)
		if err != nil {
			return nil, err
		}
		for _, v := range template.Spec.Volumes {
			for _, from := range mounts(v) {
				object, err := mount(ctx, c, w.namespace(), from, done)
				if errors.Is(err, cluster.ErrNotFound) { // the pod waits for it
					continue
				}
				if err != nil {
					return nil, err
				}
				if object != nil {
					all = append(all, object)
				}
			}
		}
	}
	return all, nil
}

func mount(ctx context.Context, c *cluster.Cluster, namespace string, from mounted, done map[string]bool) (map[string]any, error) {
	kind, name := from.kind, from.name
	key := kind + " " + namespace + "/" + name
	if done[key] {
		return nil, nil
	}
	done[key] = true
	object := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}}
	if kind == "Secret" {
		keys, err := c.SecretKeys(ctx, namespace, name)
		data := map[string]any{}
		for _, key := range keys {
			data[key] = nil
		}
		object["data"] = data
		return object, err
	}
	var read struct {
		Data map[string]any `json:"data"`
	}
	err := c.Get(ctx, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/configmaps/"+url.PathEscape(name), &read)
	object["data"] = read.Data
	return object, err
}
