//go:build apiserver

package apiserver

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// podMakers are the controllers of Kubernetes that make pods of workloads.
const podMakers = ",deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller"

// The images of installations that somebody has. Each begins with a registry that no bundle has.
const (
	pluginImage  = "old.example/cinder-csi-plugin:v1.19.2"
	sidecarImage = "old.example/csi-provisioner:v1.6.0"
)

var driverFlags = []string{"--endpoint=unix:///csi/csi.sock", "--cloud-config=/etc/config/cloud.conf", "--cluster=depot-7"}

// container runs a program with flags.
func container(image, program string, flags ...string) object {
	name := filepath.Base(strings.Split(image, ":")[0])
	return object{"name": name, "image": image, "command": []string{program}, "args": flags}
}

// controllerPod has a sidecar, and the driver beside it.
func controllerPod(driver ...object) object {
	return object{
		"serviceAccountName": "old-controller", "tolerations": []object{{"operator": "Exists"}},
		"containers": append([]object{container(sidecarImage, "/csi-provisioner", "--csi-address=/csi/csi.sock")}, driver...),
		"volumes":    []object{{"name": "conf", "secret": object{"secretName": "cloud-config"}}},
	}
}

// plugin is a controller pod as upstream's manifests have it.
func plugin() object {
	return controllerPod(container(pluginImage, "/bin/cinder-csi-plugin", driverFlags...))
}

func nodePod() object {
	return object{
		"serviceAccountName": "default", "tolerations": []object{{"operator": "Exists"}},
		"containers": []object{container("old.example/csi-node-driver-registrar:v1.3.0", "/registrar"), container(pluginImage, "/bin/cinder-csi-plugin", driverFlags...)},
		"volumes":    []object{{"name": "dir", "hostPath": object{"path": "/var/lib/kubelet/plugins/" + driverName}}},
	}
}

// named is an object of a kind. Without a namespace it is one of the whole cluster.
func named(version, kind, namespace, name string, fields object) object {
	o := object{"apiVersion": version, "kind": kind, "metadata": object{"name": name}}
	if namespace != "" {
		o["metadata"].(object)["namespace"] = namespace
	}
	maps.Copy(o, fields)
	return o
}

// workload is a workload with one pod for each of its replicas or nodes.
func workload(kind, namespace, name string, pod object) object {
	labels := object{"app": name}
	spec := object{"selector": object{"matchLabels": labels}, "template": object{"metadata": object{"labels": labels}, "spec": pod}}
	if kind == "StatefulSet" {
		spec["serviceName"] = name
	}
	return named("apps/v1", kind, namespace, name, object{"spec": spec})
}

// besides is what such an installation has besides its workloads.
func besides(namespace string) []object {
	account := []object{{"kind": "ServiceAccount", "namespace": namespace, "name": "old-controller"}}
	return []object{
		named("v1", "ServiceAccount", namespace, "old-controller", nil),
		named("rbac.authorization.k8s.io/v1", "ClusterRole", "", "old-controller", object{"rules": []object{{"apiGroups": []string{""}, "resources": []string{"persistentvolumes"}, "verbs": []string{"list", "create"}}}}),
		named("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "old-controller", object{"subjects": account, "roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "old-controller"}}),
		named("v1", "Service", namespace, "old-controller", object{"spec": object{"clusterIP": "None", "selector": object{"app": "old-controller"}, "ports": []object{{"name": "unused", "port": 12345}}}}),
		named("v1", "Secret", namespace, "cloud-config", object{"stringData": object{"cloud.conf": "[Global]\n"}}),
		named("storage.k8s.io/v1", "StorageClass", "", "old", object{"provisioner": driverName, "metadata": object{"name": "old", "annotations": object{"storageclass.kubernetes.io/is-default-class": "true"}}}),
		named("storage.k8s.io/v1", "CSIDriver", "", driverName, object{"spec": object{"attachRequired": true, "podInfoOnMount": true, "volumeLifecycleModes": []string{"Persistent", "Ephemeral"}}}),
	}
}

// oldInstallations are forms in which clusters have a Cinder driver.
var oldInstallations = []struct {
	name      string
	namespace string // of the controller; that of the nodes is kube-system
	workloads func(namespace string) []object
	unread    bool // import cannot read the cluster ID
}{
	{name: "a StatefulSet", namespace: "kube-system", workloads: func(n string) []object {
		return []object{workload("StatefulSet", n, "old-controller", plugin())}
	}},
	{name: "a StatefulSet for each sidecar", namespace: "kube-system", workloads: func(n string) []object {
		return []object{workload("StatefulSet", n, "old-attacher", plugin()), workload("StatefulSet", n, "old-provisioner", plugin())}
	}},
	{name: "a shell before the command", namespace: "kube-system", unread: true, workloads: func(n string) []object {
		shell := container("old.example/platform/storage:7", "/bin/sh", "-c", "sleep 1; exec /bin/cinder-csi-plugin "+strings.Join(driverFlags, " "))
		return []object{workload("StatefulSet", n, "old-controller", controllerPod(shell))}
	}},
	{name: "a native sidecar in another namespace", namespace: "old-storage", workloads: func(n string) []object {
		pod, driver := controllerPod(), container(pluginImage, "/bin/cinder-csi-plugin", driverFlags...)
		driver["restartPolicy"] = "Always"
		pod["initContainers"] = []object{driver}
		return []object{workload("Deployment", n, "old-controller", pod)}
	}},
	{name: "a ReplicaSet", namespace: "kube-system", workloads: func(n string) []object {
		return []object{workload("ReplicaSet", n, "old-controller", plugin())}
	}},
	{name: "a Pod", namespace: "kube-system", workloads: func(n string) []object {
		return []object{named("v1", "Pod", n, "old-controller", object{"spec": plugin()})}
	}},
}

// TestEachOldInstallationIsAdoptedAndComesBack imports what runs, and follows the steps that adopt prints, there and back. The controllers of
// Kubernetes make the pods. Pods of both drivers may never be there together. Two controllers would act on the same volumes, and two node pods
// would take the socket from each other.
func TestEachOldInstallationIsAdoptedAndComesBack(t *testing.T) {
	s := startServerWith(t, controllers+podMakers)
	node := startNode(t, s)
	for n, old := range oldInstallations {
		t.Run(old.name, func(t *testing.T) {
			empty := s.state(t)
			all := slices.Concat(besides(old.namespace), old.workloads(old.namespace), []object{workload("DaemonSet", "kube-system", "old-node", nodePod())})
			if old.namespace != "kube-system" {
				all = slices.Insert(all, 0, named("v1", "Namespace", "", old.namespace, nil))
			}
			list := testenv.Value(json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": all}))(t)
			s.Write(t, "old.json", string(list))
			s.run(t, "kubectl", "create", "-f", "old.json")
			node.await(t, "old", 1+len(old.workloads("")))
			before, there := s.objects(t), s.state(t)

			importing := []string{"cinder-csi-generator", "import", "--kubeconfig", "kubeconfig"}
			if old.unread {
				s.Write(t, "id.yaml", "clusterID: depot-7\n")
				importing = append(importing, "id.yaml")
			}
			config := s.run(t, importing...)
			if !strings.Contains(config, "clusterID: depot-7\n") {
				t.Errorf("want the cluster ID of the old driver:\n%s", config)
			}
			s.Write(t, "distribution.yaml", config)
			dir := s.Path(filepath.Join("adopted", string(rune('a'+n))))
			s.run(t, generate(dir, "vanilla", "kustomize", s.Path("distribution.yaml"))...)
			i := s.installation(t, dir)
			adopt := []string{"cinder-csi-generator", "adopt", dir, "--kubeconfig", "kubeconfig"}
			if old.namespace != "kube-system" {
				adopt = append(adopt, "--old-namespace", "kube-system", "--old-namespace", old.namespace)
			}
			parts := partsOf(s.run(t, adopt...))
			if strings.Contains(strings.Join(parts["Check first"], "\n"), "spec.clusterID") {
				t.Error("adopt says that the cluster IDs differ")
			}
			for _, script := range parts["Before anything stops"] {
				if strings.Contains(script, "--dry-run=server") { // it refuses the CSIDriver, which cannot change
					i.follow(t, "The credentials")
					continue
				}
				s.shell(t, script)
			}
			node.switches(t, []string{"old", "new"}, func() {
				for _, script := range parts["The swap"] {
					s.shell(t, script)
				}
				node.await(t, "new", 2)
			})
			checkGone(t, there, s.state(t))

			node.switches(t, []string{"new", "old"}, func() {
				for _, script := range parts["The way back"] {
					s.shell(t, script)
				}
				node.await(t, "old", 1+len(old.workloads("")))
			})
			restored := s.objects(t)
			for name, want := range before {
				if diff := cmp.Diff(want, restored[name]); diff != "" {
					t.Errorf("%s is not as before the swap (-before +restored):\n%s", name, diff)
				}
			}
			for name := range restored {
				if strings.HasSuffix(name, "/cinder-csi-controller") && strings.HasPrefix(name, "Deployment") || strings.HasPrefix(name, "DaemonSet cinder-csi") {
					t.Errorf("%s is left", name)
				}
			}
			s.run(t, "kubectl", "delete", "-f", "old.json", "--cascade=foreground")
			i.remove(t, empty)
		})
	}
}

// stays are the kinds of which the swap leaves the old objects, for the way back. A cluster has more of others than before.
var stays = regexp.MustCompile(`^(ServiceAccount|ClusterRole|ClusterRoleBinding|Secret|Service|StorageClass|Namespace) `)

// checkGone demands that the swap leaves nothing of the old installation but what adopt says.
func checkGone(t *testing.T, before, after map[string]string) {
	t.Helper()
	gone := only(before, after)
	for _, name := range gone {
		if stays.MatchString(name) {
			t.Errorf("the swap removes %s", name)
		}
	}
	for name := range before {
		if strings.Contains(name, "/old-") && !stays.MatchString(name) && !slices.Contains(gone, name) {
			t.Errorf("the swap leaves %s", name)
		}
	}
	if after["CSIDriver /"+driverName] == before["CSIDriver /"+driverName] {
		t.Error("the CSIDriver is still the old one")
	}
}

// partsOf are the parts that adopt prints, each with one script for a step. doctor has its own tests, and needs a cloud.
func partsOf(text string) map[string][]string {
	parts, title, open := map[string][]string{}, "", false
	for line := range strings.Lines(text) {
		command, isCommand := strings.CutPrefix(line, "       ")
		switch last := len(parts[title]) - 1; {
		case strings.HasPrefix(command, "cinder-csi-generator doctor"):
		case isCommand && open:
			parts[title][last] += command
		case isCommand:
			parts[title], open = append(parts[title], command), true
		case line != "\n" && !strings.Contains(line, ". "):
			title, open = strings.TrimSpace(line), false
		default:
			open = false
		}
	}
	return parts
}
