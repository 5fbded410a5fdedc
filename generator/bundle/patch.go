package bundle

import (
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

const hashAnnotation = "cinder-csi.io/config-hash"

// podSpec is what the plan says of a role's pods, as a patch of the base's; annotations are the pod's.
func podSpec(w plan.Workload, names []string, annotations map[string]string, spec object) object {
	spec["priorityClassName"] = w.PriorityClass
	spec["tolerations"] = tolerations(w.Tolerations)
	if len(w.NodeSelector) > 0 {
		spec["nodeSelector"] = w.NodeSelector
	}
	if len(w.ImagePullSecrets) > 0 {
		var refs []object
		for _, name := range w.ImagePullSecrets {
			refs = append(refs, object{"name": name})
		}
		spec["imagePullSecrets"] = refs
	}
	if w.RunAsUser != nil {
		spec["securityContext"] = object{"runAsUser": *w.RunAsUser, "runAsGroup": *w.RunAsUser, "fsGroup": *w.RunAsUser}
	}
	spec["containers"] = containers(w, names)
	meta := object{"annotations": annotations}
	if len(w.PodLabels) > 0 {
		meta["labels"] = w.PodLabels
	}
	return object{"metadata": meta, "spec": spec}
}

// containers are the patches of single containers: resources by name, the proxy for the driver alone, because the sidecars talk to
// the API server only. All are named, because a merge moves what it names to the front: so the order is always this one.
func containers(w plan.Workload, names []string) []object {
	list := make([]object, len(names))
	for i, name := range names {
		c := object{"name": name}
		resources := object{}
		if r := w.Resources[name]; len(r.Requests) > 0 {
			resources["requests"] = r.Requests
		}
		if r := w.Resources[name]; len(r.Limits) > 0 {
			resources["limits"] = r.Limits
		}
		if len(resources) > 0 {
			c["resources"] = resources
		}
		if env := proxyEnv(w.Proxy); name == "driver" && len(env) > 0 {
			c["env"] = env
		}
		list[i] = c
	}
	return list
}

// named are list elements that a patch mentions for their order only.
func named(names ...string) []object {
	list := make([]object, len(names))
	for i, name := range names {
		list[i] = object{"name": name}
	}
	return list
}

func proxyEnv(p v1alpha1.Proxy) []object {
	var env []object
	for _, e := range [][2]string{{"HTTP_PROXY", p.HTTP}, {"HTTPS_PROXY", p.HTTPS}, {"NO_PROXY", p.NoProxy}} {
		if e[1] != "" {
			env = append(env, object{"name": e[0], "value": e[1]})
		}
	}
	return env
}

// patch is one patch of a kustomization.
type patch struct {
	file   string // of the patch's text, below driverDir
	target object
	body   object // a strategic merge patch
	ops    []object
}

// patches are what the cloud and the configuration change of the base.
func (p *plane) patches() []patch {
	var list []patch
	merge := func(kind, name, file string, body object) {
		body["apiVersion"], body["kind"] = apiVersions[kind], kind
		body["metadata"] = object{"name": name}
		list = append(list, patch{file: "patches/" + file, target: object{"kind": kind, "name": name}, body: body})
	}
	if p.controller {
		merge("ConfigMap", "cinder-csi-controller-settings", "controller-settings.yaml", object{"data": p.controllerSettings()})
		merge("ConfigMap", "cinder-csi-controller-config", "controller-config.yaml", object{"data": map[string]string{"cloud.conf": p.controllerConf}})
		merge("Deployment", "cinder-csi-controller", "controller.yaml", object{"spec": p.controllerSpec()})
	}
	if p.node {
		merge("ConfigMap", "cinder-csi-node-settings", "node-settings.yaml", object{"data": p.nodeSettings()})
		merge("ConfigMap", "cinder-csi-node-config", "node-config.yaml", object{"data": map[string]string{"cloud.conf": p.nodeConf}})
		merge("DaemonSet", "cinder-csi-node", "node.yaml", object{"spec": p.nodeSpec()})
	}
	if p.cluster {
		list = append(list, patch{file: "patches/csidriver.yaml", target: object{"kind": "CSIDriver"}, ops: []object{replace("/metadata/name", p.r.Driver.Value.Name)}})
	}
	return append(list, p.namespacePatches()...)
}

var apiVersions = map[string]string{"ConfigMap": "v1", "Deployment": "apps/v1", "DaemonSet": "apps/v1"}

func (p *plane) controllerSpec() object {
	w, c := p.r.Controller.Value, p.r.Credentials.Value
	volumes := append(named("socket", "config"),
		object{"name": "cloud", "secret": object{"secretName": c.SecretName, "items": []object{{"key": c.Key, "path": "clouds.yaml"}}}})
	if p.ca() != "" {
		volumes = append(volumes, named("ca")...)
	}
	spec := object{}
	if p.hosted() {
		volumes = append(volumes, object{"name": "hosted-kubeconfig", "secret": object{"secretName": p.r.Config.HyperShift.KubeconfigSecret}})
		spec["affinity"] = hostedAffinity(p.controllerNS)
	}
	spec["volumes"] = volumes
	names := []string{"driver", "provisioner", "attacher", "resizer"}
	if p.snapshots() {
		names = append(names, "snapshotter")
	}
	hash := configHash(p.controllerSettings(), p.controllerConf, p.ca())
	return object{"replicas": w.Replicas, "template": podSpec(w, append(names, "livenessprobe"), map[string]string{hashAnnotation: hash}, spec)}
}

// hostedAffinity places the pods of one hosted control plane together, as HyperShift does its own.
func hostedAffinity(namespace string) object {
	node := func(weight int, key, value string) object {
		return object{"weight": weight, "preference": object{"matchExpressions": []object{{"key": key, "operator": "In", "values": []string{value}}}}}
	}
	return object{
		"nodeAffinity": object{"preferredDuringSchedulingIgnoredDuringExecution": []object{
			node(50, "hypershift.openshift.io/control-plane", "true"),
			node(100, "hypershift.openshift.io/cluster", namespace),
		}},
		"podAffinity": object{"preferredDuringSchedulingIgnoredDuringExecution": []object{{
			"weight": 100,
			"podAffinityTerm": object{
				"labelSelector": object{"matchLabels": map[string]string{"hypershift.openshift.io/hosted-control-plane": namespace}},
				"topologyKey":   "kubernetes.io/hostname",
			},
		}}},
	}
}

func (p *plane) nodeSpec() object {
	volumes := []object{{"name": "plugin-dir", "hostPath": object{"path": "/var/lib/kubelet/plugins/" + p.r.Driver.Value.Name}}}
	volumes = append(volumes, named("registration-dir", "kubelet-dir", "dev", "config", "tmp", "run")...)
	if p.openShift() {
		volumes = append(volumes, named("etc-selinux", "sys-fs")...)
	}
	hash := configHash(p.nodeSettings(), p.nodeConf, "")
	names := []string{"driver", "registrar", "livenessprobe"}
	return object{"template": podSpec(p.r.Node.Value, names, map[string]string{hashAnnotation: hash}, object{"volumes": volumes})}
}

// The namespaces that the base's files name.
const (
	baseControllerNS = "cinder-csi"
	baseNodeNS       = "cinder-csi-node"
)

// namespacePatches move each role's objects into its namespace, by label; they come last, because the patches above find their
// objects as the base has them. Subjects are moved by hand: a transformer would do it silently, and for other namespaces too.
func (p *plane) namespacePatches() []patch {
	var list []patch
	move := func(component, namespace string) {
		selector := "app.kubernetes.io/component=" + component
		list = append(list,
			patch{
				file:   "patches/namespace-" + component + ".yaml",
				target: object{"kind": "ConfigMap|DaemonSet|Deployment|PodDisruptionBudget|Role|RoleBinding|ServiceAccount", "labelSelector": selector},
				ops:    []object{replace("/metadata/namespace", namespace)},
			},
			patch{
				file:   "patches/subject-" + component + ".yaml",
				target: object{"kind": "ClusterRoleBinding|RoleBinding", "labelSelector": selector},
				ops:    []object{replace("/subjects/0/namespace", namespace)},
			})
	}
	if p.controllerNS != baseControllerNS {
		move("controller", p.controllerNS)
	}
	if p.node && p.nodeNS != baseNodeNS {
		move("node", p.nodeNS)
	}
	return list
}

func replace(path string, value any) object {
	return object{"op": "replace", "path": path, "value": value}
}
