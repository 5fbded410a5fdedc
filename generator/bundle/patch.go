package bundle

import (
	"cmp"
	"fmt"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

const hashAnnotation = "cinder-csi.io/config-hash"

// patch is one patch of a kustomization: what the decisions say of objects of manifests/. It says all of it; what the objects have
// already is dropped when the patch is written.
type patch struct {
	file   string // of the patch's text, below driverDir
	target target
	body   object // a strategic merge patch, without the object's identity
	ops    []op
}

// op puts one value at a place.
type op struct {
	pointer string // the place as JSON patches name it
	at      field.Path
	value   node
	add     bool // the place is new; else a value is there, and is replaced
}

// patches are what the cloud and the configuration change of the base.
func (p *plane) patches() []patch {
	var list []patch
	merge := func(kind, name, file string, body object) {
		list = append(list, patch{file: "patches/" + file, target: target{kinds: []string{kind}, name: name}, body: body})
	}
	if p.controller {
		merge("ConfigMap", "cinder-csi-controller-settings", "controller-settings.yaml", object{"data": p.controllerSettings()})
		merge("ConfigMap", "cinder-csi-controller-config", "controller-config.yaml", object{"data": object{"cloud.conf": p.controllerConf}})
		merge("Deployment", "cinder-csi-controller", "controller.yaml", object{"spec": p.controllerSpec()})
		list = append(list, absentAlert("controller", p.controllerNS))
	}
	if p.checksDrift() {
		merge("CronJob", driftCheckName, "drift-check.yaml", object{"spec": p.driftCheckSpec()})
	}
	if p.node {
		merge("ConfigMap", "cinder-csi-node-settings", "node-settings.yaml", object{"data": p.nodeSettings()})
		merge("ConfigMap", "cinder-csi-node-config", "node-config.yaml", object{"data": p.nodeConfigs()})
		for _, s := range p.nodeSets() {
			list = append(list, p.daemonSetPatches(s)...)
		}
		list = append(list, p.metricsPort()...)
		list = append(list, absentAlert("node", p.nodeNS))
	}
	list = append(list, p.labelPatches()...)
	if p.cluster {
		ops := []op{{pointer: "/metadata/name", at: field.Path{"metadata", "name"}, value: whole(p.r.Driver)}}
		if p.r.LimitRefresh.Value > 0 {
			const period = "nodeAllocatableUpdatePeriodSeconds"
			ops = append(ops, op{pointer: "/spec/" + period, at: field.Path{"spec", period}, value: whole(p.r.LimitRefresh)})
		}
		list = append(list, patch{file: "patches/csidriver.yaml", target: target{kinds: []string{"CSIDriver"}}, ops: ops})
	}
	list = append(list, p.runbookPatches()...)
	list = append(list, p.clusterNamePatches()...)
	return append(list, p.namespacePatches()...)
}

// absentAlert puts the namespace into the first alert of a role. Series that are absent have no namespace label, so the alert names it.
func absentAlert(role string, namespace plan.Decision[string]) patch {
	expr := fmt.Sprintf("absent(cinder_csi_build_info{namespace=%q,pod=~\"cinder-csi-%s-.+\"})", namespace.Value, role)
	return patch{
		file: "patches/alerts-" + role + ".yaml", target: target{kinds: []string{"PrometheusRule"}, name: "cinder-csi-" + role},
		ops: []op{{
			pointer: "/spec/groups/0/rules/0/expr", at: field.Path{"spec", "groups", "[cinder-csi-" + role + "]", "rules", "[0]", "expr"},
			value: part(namespace, "", expr),
		}},
	}
}

// podSpec is the patch of the pod template in the base: what the plan decides for the pods of one role.
func (p *plane) podSpec(w plan.Workload, names []string, hash node, spec object) object {
	spec["priorityClassName"] = whole(w.PriorityClass)
	spec["tolerations"] = p.tolerations(w.Tolerations.Value, whole(w.Tolerations))
	if len(w.NodeSelector.Value) > 0 {
		spec["nodeSelector"] = whole(w.NodeSelector)
	}
	if secrets := pullSecrets(w); secrets != nil {
		spec["imagePullSecrets"] = secrets
	}
	if w.RunAsUser.Value != nil {
		user := whole(w.RunAsUser)
		spec["securityContext"] = object{"runAsUser": user, "runAsGroup": user, "fsGroup": user}
	}
	spec["containers"] = containers(w, names)
	if w.Affinity.Value != nil {
		spec["affinity"] = affinityPatch(w.Affinity)
	}
	if len(w.Spread.Value) > 0 {
		spec["topologySpreadConstraints"] = whole(w.Spread)
	}
	annotations := object{hashAnnotation: hash}
	for key, value := range w.PodAnnotations.Value {
		annotations[key] = part(w.PodAnnotations, key, value)
	}
	meta := object{"annotations": annotations}
	if len(w.PodLabels.Value) > 0 {
		meta["labels"] = whole(w.PodLabels)
	}
	return object{"metadata": meta, "spec": spec}
}

// containers are the patches of single containers: resources by name, the proxy for the driver alone, because the sidecars talk to
// the API server only. All are named, because a merge moves what it names to the front: so the order is always this one.
func containers(w plan.Workload, names []string) list {
	l := named(names...)
	for i, name := range names {
		c := l[i].(object)
		image := plan.ImageOf(name)
		over, resources := w.Resources.Value[image], object{}
		if requests := requestsOf(w, image, over.Requests); len(requests) > 0 {
			resources["requests"] = requests
		}
		if len(over.Limits) > 0 {
			resources["limits"] = part(w.Resources, image+".limits", over.Limits)
		}
		if len(resources) > 0 {
			c["resources"] = resources
		}
		if policy := w.PullPolicies.Value[image]; policy != "" {
			c["imagePullPolicy"] = part(w.PullPolicies, image, policy)
		}
		if env := proxyEnv(w.Proxy); name == "driver" && len(env) > 0 {
			c["env"] = env
		}
	}
	return l
}

// requestsOf are the requests of a container: the memory that its size asks for, under what the configuration says.
func requestsOf(w plan.Workload, image string, over map[string]string) object {
	requests := object{}
	if memory := w.Memory.Value[image]; memory != "" {
		requests["memory"] = part(w.Memory, image, memory)
	}
	for name, quantity := range over {
		requests[name] = part(w.Resources, image+".requests", quantity)
	}
	return requests
}

// named are list elements that a patch mentions for their order only.
func named(names ...string) list {
	l := make(list, len(names))
	for i, name := range names {
		l[i] = object{"name": fixed(name)}
	}
	return l
}

func proxyEnv(d plan.Decision[v1alpha1.Proxy]) list {
	var env list
	for _, e := range [][3]string{{"HTTP_PROXY", "http", d.Value.HTTP}, {"HTTPS_PROXY", "https", d.Value.HTTPS}, {"NO_PROXY", "noProxy", d.Value.NoProxy}} {
		if e[2] != "" {
			env = append(env, object{"name": part(d, e[1], e[0]), "value": part(d, e[1], e[2])})
		}
	}
	return env
}

func (p *plane) controllerSpec() object {
	volumes := append(named("socket", "config"), p.cloudVolume())
	if p.hasCA() {
		volumes = append(volumes, p.caVolume())
	}
	spec := object{}
	if p.hosted() {
		volumes = append(volumes, p.guestVolumes(spec)...)
		spec["affinity"] = under(p.hostedAffinity(), refOf(p.r.Hosted)) // podSpec replaces it by a configured one
	}
	if p.metricsTLS() {
		volumes = append(volumes, named("metrics-tls")...)
	}
	spec["volumes"] = volumes
	hash := configHash(p.controllerSettings(), p.controllerConf, whole(p.r.CABundle))
	w := p.r.Controller
	deployment := object{"replicas": whole(w.Replicas), "template": p.podSpec(w, p.controllerContainers(), hash, spec)}
	if strategy := strategyPatch(w.UpdateStrategy); strategy != nil {
		deployment["strategy"] = strategy
	}
	return deployment
}

// cloudVolume mounts the credentials' Secret: clouds.yaml, and beside it the certificates, which a Secret need not have. A volume of kind
// secret knows only Secrets that are optional as a whole, so this one is projected.
func (p *plane) cloudVolume() object {
	c, ca := p.r.Credentials, p.r.CAKey
	name := part(c, "secretName", c.Value.SecretName)
	return object{"name": fixed("cloud"), "projected": object{"sources": list{
		object{"secret": object{"name": name, "items": list{object{"key": part(c, "key", c.Value.Key), "path": fixed("clouds.yaml")}}}},
		object{"secret": object{
			"name": name, "items": list{object{"key": part(ca, "", cmp.Or(ca.Value, "cacert")), "path": fixed("cacert")}}, "optional": part(ca, "", ca.Value == ""),
		}},
	}}}
}

// hostedAffinity places the pods of one hosted control plane together, as HyperShift does its own.
func (p *plane) hostedAffinity() object {
	namespace := whole(p.controllerNS)
	prefer := func(weight int, key string, value node) object {
		expression := object{"key": fixed(key), "operator": fixed("In"), "values": list{value}}
		return object{"weight": fixed(weight), "preference": object{"matchExpressions": list{expression}}}
	}
	return object{
		"nodeAffinity": object{"preferredDuringSchedulingIgnoredDuringExecution": list{
			prefer(50, "hypershift.openshift.io/control-plane", fixed("true")),
			prefer(100, "hypershift.openshift.io/cluster", namespace),
		}},
		"podAffinity": object{"preferredDuringSchedulingIgnoredDuringExecution": list{object{
			"weight": fixed(100),
			"podAffinityTerm": object{
				"labelSelector": object{"matchLabels": object{"hypershift.openshift.io/hosted-control-plane": namespace}},
				"topologyKey":   fixed("kubernetes.io/hostname"),
			},
		}}},
	}
}

// daemonSetPatches are what the decisions say of one DaemonSet.
func (p *plane) daemonSetPatches(s nodeSet) []patch {
	daemonSet := target{kinds: []string{"DaemonSet"}, name: s.daemonSet()}
	all := []patch{{file: s.patchFile("node.yaml"), target: daemonSet, body: object{"spec": p.nodeSpec(s)}}}
	all = append(all, p.portPatch(s)...)
	return append(all, p.kubeletMount(s)) // it finds the driver as the first container, as the patch above has it; a component may have changed that
}

func (p *plane) nodeSpec(s nodeSet) object {
	kubelet, ref := s.kubelet(p)
	volumes := list{
		hostPath("plugin-dir", also(part(p.r.Driver, "", kubelet+"/plugins/"+p.r.Driver.Value), ref)),
		hostPath("registration-dir", from(kubelet+"/plugins_registry", ref)),
		hostPath("kubelet-dir", from(kubelet, ref)),
	}
	volumes = append(volumes, named("dev", "config", "tmp", "run")...)
	if p.r.SELinux.Value {
		volumes = append(volumes, named("etc-selinux", "sys-fs")...)
	}
	hash := configHash(p.nodeSettings(), s.confs(p), fixed(""))
	spec := object{}
	names, around := p.nodeContainers()
	if p.r.DrainHook.Value {
		volumes = append(volumes, named("api-access")...)
		first := containers(p.r.Node, around)
		s.registrarDir(first)
		spec["initContainers"] = first
	}
	spec["volumes"] = volumes
	pod := p.podSpec(p.r.Node, names, hash, spec)
	s.registrarDir(spec["containers"].(list))
	s.placement(p, spec)
	daemonSet := object{"template": pod}
	if strategy := strategyPatch(p.r.Node.UpdateStrategy); strategy != nil {
		daemonSet["updateStrategy"] = strategy
	}
	return daemonSet
}

func hostPath(name string, path node) node {
	return object{"name": fixed(name), "hostPath": object{"path": path}}
}

// kubeletMount moves the mount of kubelet's directory: kubelet names paths of the host, so the container has it under the same path. A merge
// cannot do it, because it knows a mount by its path.
func (p *plane) kubeletMount(s nodeSet) patch {
	at := 1 // after plugin-dir, in the driver's container
	if p.r.SELinux.Value {
		at += 2 // the component selinux-node adds two mounts in front
	}
	if p.r.DrainHook.Value {
		at++ // and drain-hook-node adds one
	}
	kubelet, ref := s.kubelet(p)
	return patch{
		file: s.patchFile("kubelet-dir.yaml"), target: target{kinds: []string{"DaemonSet"}, name: s.daemonSet()},
		ops: []op{{
			pointer: fmt.Sprintf("/spec/template/spec/containers/0/volumeMounts/%d/mountPath", at),
			at:      field.Path{"spec", "template", "spec", "containers", "[driver]", "volumeMounts", "[kubelet-dir]", "mountPath"},
			value:   from(kubelet, ref),
		}},
	}
}

// namespacePatches move each role's objects into its namespace, by label; they come last, because the patches above find their
// objects as the base has them. Subjects are moved by hand: a transformer would do it silently, and for other namespaces too.
func (p *plane) namespacePatches() []patch {
	var list []patch
	into := func(component string, kinds []string, namespace plan.Decision[string]) {
		list = append(list, patch{
			file:   "patches/namespace-" + component + ".yaml",
			target: target{kinds: kinds, component: component},
			ops:    []op{{pointer: "/metadata/namespace", at: field.Path{"metadata", "namespace"}, value: whole(namespace)}},
		})
	}
	subject := func(component string, namespace plan.Decision[string], kinds ...string) {
		list = append(list, patch{
			file:   "patches/subject-" + component + ".yaml",
			target: target{kinds: kinds, component: component},
			ops:    []op{{pointer: "/subjects/0/namespace", at: field.Path{"subjects", "[cinder-csi-" + component + "]", "namespace"}, value: whole(namespace)}},
		})
	}
	move := func(component string, namespace plan.Decision[string]) {
		into(component, namespacedKinds, namespace)
		subject(component, namespace, "ClusterRoleBinding", "RoleBinding")
	}
	move("controller", p.controllerNS)
	if p.node {
		move("node", p.nodeNS)
	}
	if p.checksDrift() {
		into(driftCheckComponent, []string{"ConfigMap", "CronJob", "PrometheusRule", "Role", "RoleBinding", "ServiceAccount"}, p.controllerNS)
		subject(driftCheckComponent, p.controllerNS, "RoleBinding")
	}
	return list
}

var namespacedKinds = []string{"ConfigMap", "DaemonSet", "Deployment", "PodDisruptionBudget", "PodMonitor", "PrometheusRule", "Role", "RoleBinding", "Service", "ServiceAccount", "ServiceMonitor"}
