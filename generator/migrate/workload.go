package migrate

import (
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// runsDriver is whether a workload runs a Cinder driver.
func runsDriver(d document) bool {
	template, err := podTemplate(d)
	if err != nil { // its reader says which key is wrong
		return d.isAboutDriver()
	}
	return !slices.Contains(operatorWorkloads, d.name()) && hasDriver(template.Spec)
}

func hasDriver(pod corev1.PodSpec) bool {
	return slices.ContainsFunc(cluster.Containers(pod), isDriver(pod))
}

// isDriver is whether a container of the pod runs a Cinder driver. A program of another name on a node is known by the directory of the socket.
func isDriver(pod corev1.PodSpec) func(corev1.Container) bool {
	onNode := cluster.Workload{Pod: corev1.PodSpec{Volumes: pod.Volumes}}.DriverName() == cluster.UpstreamName
	return func(c corev1.Container) bool {
		_, listens := flagsOf(c)["endpoint"]
		return cluster.IsCinderDriver(c) || onNode && listens && sidecars[imageName(c.Image)] == ""
	}
}

// owned reports whether another workload made an object of its template, and stands for it. A kubelet may annotate such a Pod, and Kubernetes
// pins that of a DaemonSet to a node: neither is a setting of the installation.
func (d document) owned() bool {
	var owners []metav1.OwnerReference
	return (isWorkload(d.kind()) || d.kind() == "ControllerRevision") && value{valueAt(d.yaml, "metadata", "ownerReferences")}.loosely(&owners) == nil && cluster.Owned(owners)
}

// isWorkload is whether a kind of object has pods that may run a driver.
func isWorkload(kind string) bool { return cluster.WorkloadKinds[kind] != "" }

// templated gives an object the form that all workloads are read in. A Pod is its own template, and the group of old API versions becomes apps.
func templated(object map[string]any) {
	kind, _ := object["kind"].(string)
	version, _ := object["apiVersion"].(string)
	switch {
	case kind == "Pod" && version == "v1":
		metadata, _ := object["metadata"].(map[string]any)
		object["apiVersion"] = appsGroup + "/v1"
		object["spec"] = map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}, "spec": object["spec"]}}
	case isWorkload(kind) && strings.HasPrefix(version, "extensions/"):
		object["apiVersion"] = appsGroup + "/v1"
	}
}

// operatorWorkloads are those of OpenShift's built-in driver: its operator makes them of other objects, which import reads.
var operatorWorkloads = []string{"openstack-cinder-csi-driver-controller", "openstack-cinder-csi-driver-node"}

func podTemplate(d document) (corev1.PodTemplateSpec, error) {
	var w struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := (value{d.yaml}).loosely(&w); err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	return w.Spec.Template, nil
}

// deploymentRules are also for a StatefulSet, as upstream's controller was until 1.22, and for what somebody made of it.
var deploymentRules = slices.Concat([]rule{
	{key: "spec.serviceName", why: "the controller of a bundle is a Deployment"},
	{key: "spec.podManagementPolicy", why: "the controller of a bundle is a Deployment"},
	{key: "spec.updateStrategy", why: "the controller of a bundle is a Deployment"},
	{key: "spec.replicas", to: "spec.roles.controller.replicas", set: setLiveReplicas},
	{key: "spec.strategy", to: "spec.roles.controller.updateStrategy", set: setStrategy(controllerPods)},
}, templateRules(controllerPods))

var daemonSetRules = slices.Concat([]rule{
	{key: "spec.updateStrategy", to: "spec.roles.node.updateStrategy", set: setStrategy(nodePods)},
}, templateRules(nodePods))

func templateRules(of pods) []rule {
	to := "spec.roles." + of.name + "."
	const pod = "spec.template.spec."
	return []rule{
		{key: "metadata.labels", set: setObjectMap(upstreamLabel, "the objects of a bundle have fixed labels; add yours with a Kustomize layer over the bundle")},
		{key: "metadata.annotations", set: setObjectMap(installersAnnotation, "the objects of a bundle have their own; add yours with a Kustomize layer over the bundle")},
		{key: "spec.selector", why: "the objects of a bundle have fixed labels"},
		{key: "spec.template.metadata.labels", to: to + "podLabels", set: setOwnMap(of, labels, upstreamLabel)},
		{key: "spec.template.metadata.annotations", to: to + "podAnnotations", set: setOwnMap(of, annotations, installersAnnotation)},
		{key: pod + "initContainers", to: "the Distribution, by the rows of container", set: setContainers(of, true)},
		{key: pod + "containers", to: "the Distribution, by the rows of container", set: setContainers(of, false)},
		{key: pod + "nodeSelector", to: to + "nodeSelector", set: eachRole(of, func(pl *v1alpha1.RolePods) any { return &pl.NodeSelector })},
		{key: pod + "tolerations", to: to + "tolerations", set: setTolerations(of)},
		{key: pod + "affinity", to: to + "affinity", set: setAffinity(of)},
		{key: pod + "topologySpreadConstraints", to: to + "topologySpreadConstraints", set: aboutPods(eachRole(of, func(pl *v1alpha1.RolePods) any { return &pl.TopologySpreadConstraints }))},
		{key: pod + "priorityClassName", to: to + "priorityClassName", set: eachRole(of, func(pl *v1alpha1.RolePods) any { return &pl.PriorityClassName })},
		{key: pod + "imagePullSecrets", to: to + "imagePullSecrets", set: setPullSecrets(of)},
		{key: pod + "volumes", to: "spec.driver.kubeletDir", set: setVolumes},
		{key: pod + "securityContext", why: "the pods of a bundle have the least rights that work; spec.roles.controller.runAsUser sets the user of the controller"},
		{key: pod + "hostAliases", why: "no bundle sets it; add it with a Kustomize layer over the bundle, or give the cloud a name in DNS"},
		{key: pod + "serviceAccount", why: "the objects of a bundle have fixed names"},
		{key: pod + "serviceAccountName", why: "the objects of a bundle have fixed names"},
	}
}

// setLiveReplicas leaves out the one of upstream: a Deployment always has the number, whether or not a person chose it.
func setLiveReplicas(p *proposal, v value) error {
	n, err := v.whole()
	switch {
	case err != nil:
		return err
	case n < 2:
		return leave("1 is the default of upstream, and the bundle has its own")
	}
	p.Spec.Roles.Controller.Replicas = &n
	return nil
}

// setStrategy leaves out what upstream or Kubernetes sets where nobody chose.
func setStrategy(of pods) func(*proposal, value) error {
	defaults := []v1alpha1.RollingUpdate{{}, {MaxUnavailable: "0", MaxSurge: "1"}, {MaxUnavailable: "1"}, {MaxUnavailable: "1", MaxSurge: "0"}}
	return func(p *proposal, v value) error {
		var s v1alpha1.UpdateStrategy
		if err := v.into(&s); err != nil {
			return err
		}
		if (s.Type == "" || s.Type == "RollingUpdate") && slices.Contains(defaults, s.RollingUpdate) {
			return leave("it is the default of upstream, and the bundle has its own")
		}
		for _, pl := range of.roles(&p.Spec.Roles) {
			pl.UpdateStrategy = s
		}
		return nil
	}
}

// upstreamLabel is whether the manifests or the chart of upstream set a label of pods, or a tool that installs them.
func upstreamLabel(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	return slices.Contains([]string{"app", "component", "release", "chart", "heritage", "pod-template-hash", "controller-revision-hash", "statefulset", "k8s-app"}, key) ||
		prefixed && ofTool(domain)
}

// ofTool reports whether a domain of labels and annotations is that of Kubernetes or of a tool that installs.
func ofTool(domain string) bool {
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "helm.sh", "gardener.cloud", "argoproj.io", "fluxcd.io", "cattle.io"}, func(tool string) bool {
		return domain == tool || strings.HasSuffix(domain, "."+tool)
	})
}

func installersAnnotation(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "checksum" || domain == "deprecated.daemonset.template.generation" || ofTool(domain) && domain != "cluster-autoscaler.kubernetes.io"
}

// setObjectMap tells of the labels or annotations of an object that a person chose.
func setObjectMap(others func(string) bool, why string) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		p.to = ""
		var own map[string]string
		if err := v.into(&own); err != nil {
			return err
		}
		if maps.DeleteFunc(own, func(key, _ string) bool { return others(key) }); len(own) > 0 {
			return leave(why)
		}
		return nil
	}
}

// setOwnMap adds the labels or annotations that a person chose: two keys may be about the same map. Without others a person chose all.
func setOwnMap(of pods, field func(*v1alpha1.RolePods) *map[string]string, others func(string) bool) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		var own map[string]string
		if err := v.into(&own); err != nil {
			return err
		}
		gardener := others != nil && slices.ContainsFunc(slices.Collect(maps.Keys(own)), func(key string) bool { return strings.Contains(key, "gardener.cloud/") })
		maps.DeleteFunc(own, func(key, _ string) bool { return others != nil && others(key) || gardener && key == "role" })
		if len(own) == 0 {
			return leave("upstream or a tool sets them")
		}
		p.addPodMap(of, field, own)
		return nil
	}
}

func setTolerations(of pods) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		var all []v1alpha1.Toleration
		if err := v.into(&all); err != nil {
			return err
		}
		if of.name == nodePods.name && reflect.DeepEqual(all, []v1alpha1.Toleration{{Operator: string(corev1.TolerationOpExists)}}) {
			return leave("the node pods of a bundle tolerate everything too")
		}
		return eachRole(of, func(pl *v1alpha1.RolePods) any { return &pl.Tolerations })(p, v)
	}
}

func setPullSecrets(of pods) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		var given []corev1.LocalObjectReference
		if err := v.into(&given); err != nil {
			return err
		}
		for _, pl := range of.roles(&p.Spec.Roles) {
			for _, s := range given {
				pl.ImagePullSecrets = appendNew(pl.ImagePullSecrets, s.Name)
			}
		}
		return nil
	}
}

// usualKubeletDir is the directory of kubelet that bundles have by default.
const usualKubeletDir = "/var/lib/kubelet"

// setVolumes reads the directory of kubelet. Each other volume gets a note.
func setVolumes(p *proposal, _ value) error {
	template, err := podTemplate(p.document)
	if err != nil {
		return err
	}
	for _, v := range template.Spec.Volumes {
		key := "volume " + v.Name
		switch {
		case len(mounts(v)) > 0:
			for _, from := range mounts(v) {
				p.noteMount(key, from)
			}
		case v.EmptyDir != nil, v.HostPath != nil && ofNode(v.HostPath.Path):
			continue // the directories of kubelet and devices, which the bundle has too
		case v.HostPath == nil:
			p.note(key, "", "the bundle has no such volume; if a CA of OpenStack is in it, put its PEM into spec.credentials.caBundle, and credentials into the Secret")
		case !strings.HasPrefix(v.HostPath.Path, "/etc/"):
			p.note(key, "", "the bundle does not mount "+v.HostPath.Path+"; put the PEM of a CA into spec.credentials.caBundle")
		case v.HostPath != nil:
			p.note(key, "", "the bundle mounts no directory of a node below /etc. If "+v.HostPath.Path+" has a cloud.conf, give it to import as a further file. Put the PEM of a CA into spec.credentials.caBundle")
		}
	}
	dir := cluster.Workload{Pod: template.Spec}.KubeletDir()
	if dir == "" || dir == usualKubeletDir {
		p.to = "" // the bundle has it by default
		return nil
	}
	p.Spec.Driver.KubeletDir = dir
	return nil
}

// ofNode reports whether a bundle mounts a directory of the node too: those of kubelet, of devices, and of the device manager.
func ofNode(dir string) bool {
	return strings.Contains(dir, "kubelet") || slices.ContainsFunc([]string{"/dev", "/sys", "/run", "/lib/modules", "/var/lib/csi"}, func(d string) bool {
		return dir == d || strings.HasPrefix(dir, d+"/")
	})
}

// mounted is a Secret or a ConfigMap of a volume.
type mounted struct{ kind, name string }

// mounts are what a volume has. A projected volume may have several.
func mounts(v corev1.Volume) []mounted {
	var all []mounted
	if v.Secret != nil {
		all = append(all, mounted{"Secret", v.Secret.SecretName})
	}
	if v.ConfigMap != nil {
		all = append(all, mounted{"ConfigMap", v.ConfigMap.Name})
	}
	if v.Projected == nil {
		return all
	}
	for _, s := range v.Projected.Sources {
		if s.Secret != nil {
			all = append(all, mounted{"Secret", s.Secret.Name})
		}
		if s.ConfigMap != nil {
			all = append(all, mounted{"ConfigMap", s.ConfigMap.Name})
		}
	}
	return all
}

func (p *proposal) noteMount(key string, from mounted) {
	if from.kind == "ConfigMap" {
		p.note(key, "", "the bundle mounts ConfigMaps of its own; if ConfigMap "+from.name+" has a CA of OpenStack, put its PEM into spec.credentials.caBundle")
		return
	}
	p.known.credentials = true
	p.note(key, "", "the bundle mounts Secrets of its own. If Secret "+from.name+" has a cloud.conf, give its text to import as a further file: "+p.confCommand(from.name, p.confFile()))
}

// confFile is the name of the cloud.conf in the directory that the driver of the workload reads.
func (p *proposal) confFile() string {
	template, _ := podTemplate(p.document)
	for _, c := range cluster.Containers(template.Spec) {
		if conf, whole := resolve(c, flagsOf(c)["cloud-config"], map[string]bool{}); whole && keyOfSecret.MatchString(path.Base(conf)) {
			return path.Base(conf)
		}
	}
	return "cloud.conf"
}

// keyOfSecret is a key that a Secret may have. A person runs the command with it.
var keyOfSecret = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// confCommand writes the cloud.conf of a Secret to a file that others cannot read.
func (p *proposal) confCommand(secret, file string) string {
	return "(umask 077; " + shell.Line("kubectl", "--namespace", shell.Name(p.document.namespace(), "kube-system"), "get", "secret", shell.Name(secret, "SECRET"),
		"-o", `go-template={{index .data "`+file+`" | base64decode}}`) + " > cloud.conf)"
}
