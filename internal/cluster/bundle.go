package cluster

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bundle is what the objects of a bundle need of a cluster, or share with one.
type Bundle struct {
	DriverName      string // empty if the objects have no CSIDriver
	Driver          storagev1.CSIDriver
	Namespaces      []corev1.Namespace
	Workloads       []Workload
	Jobs            []Workload // what runs now and then: the drift check
	StorageClasses  []storagev1.StorageClass
	SnapshotClasses []SnapshotClass
	Policies        []networkingv1.NetworkPolicy
	Roles           []rbacv1.ClusterRole
	Bindings        []rbacv1.ClusterRoleBinding
	Monitors        []Monitor

	makers map[string]Maker // of Secrets, by NAMESPACE/NAME
}

// Maker is a part of OpenShift that makes a Secret once an object of the bundle asks for it.
type Maker string

// The makers. An empty one is a person.
const (
	CredentialOperator Maker = "OpenShift's Cloud Credential Operator"
	ServiceCA          Maker = "OpenShift's service CA"
)

// Monitor is an object that Prometheus reads: a PodMonitor, a ServiceMonitor or a PrometheusRule.
type Monitor struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
}

// SnapshotClass is a VolumeSnapshotClass.
type SnapshotClass struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Driver   string            `json:"driver"`
}

// Workload is an object whose pods may run a driver: a Deployment, a StatefulSet or a DaemonSet. A ReplicaSet or a Pod is one if none of them owns it.
type Workload struct {
	Kind      string
	Namespace string
	Name      string
	Release   string // of Helm; empty if no release has it
	Static    bool   // a Pod that kubelet makes from a file of its node
	Owner     string // kind and name of what makes it again, such as an object of an operator
	Pod       corev1.PodSpec
	// Constraint is the SecurityContextConstraints of OpenShift that the pods require; empty if they require none.
	Constraint string
}

// OnNodes reports whether the workload runs the node role, which is a DaemonSet's work.
func (w Workload) OnNodes() bool { return w.Kind == "DaemonSet" }

// String names the workload as kubectl does after --namespace.
func (w Workload) String() string {
	return fmt.Sprintf("%s %s/%s", w.Kind, w.Namespace, w.Name)
}

// Same reports whether both are the same object of a cluster.
func (w Workload) Same(other Workload) bool {
	return w.Kind == other.Kind && w.Namespace == other.Namespace && w.Name == other.Name
}

// workload is the part of each kind that is read. The spec of a Pod is what the others have in their template.
type workload struct {
	Metadata struct {
		Namespace       string                  `json:"namespace"`
		Name            string                  `json:"name"`
		Annotations     map[string]string       `json:"annotations"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		corev1.PodSpec
		Template struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
			Spec corev1.PodSpec `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

func (w workload) of(kind string) Workload {
	m := w.Metadata
	all := Workload{Kind: kind, Namespace: m.Namespace, Name: m.Name, Release: m.Annotations["meta.helm.sh/release-name"], Pod: w.Spec.Template.Spec}
	if i := slices.IndexFunc(m.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller }); i >= 0 {
		all.Owner = m.OwnerReferences[i].Kind + " " + m.OwnerReferences[i].Name
	}
	all.Constraint = w.Spec.Template.Metadata.Annotations["openshift.io/required-scc"]
	if kind == "Pod" {
		all.Pod = w.Spec.PodSpec
		_, all.Static = m.Annotations[corev1.MirrorPodAnnotationKey]
	}
	return all
}

// Owned reports whether another workload made an object with these owners, and stands for it.
func Owned(owners []metav1.OwnerReference) bool {
	return slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool {
		return slices.Contains([]string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"}, o.Kind)
	})
}

// ReadBundle reads the objects of one plane of a bundle, as decoded from YAML. It leaves out kinds that no check needs.
func ReadBundle(objects []map[string]any) (Bundle, error) {
	var b Bundle
	for _, o := range objects {
		kind, _ := o["kind"].(string)
		text, err := json.Marshal(o)
		if err == nil {
			err = b.add(kind, text)
		}
		if err != nil {
			return Bundle{}, fmt.Errorf("an object of kind %s in the bundle cannot be read: %w", kind, err)
		}
	}
	return b, nil
}

func (b *Bundle) add(kind string, text []byte) error {
	switch kind {
	case "CSIDriver":
		err := json.Unmarshal(text, &b.Driver)
		b.DriverName = b.Driver.Name
		return err
	case "Namespace":
		return appendTo(&b.Namespaces, text)
	case "StorageClass":
		return appendTo(&b.StorageClasses, text)
	case "ClusterRole":
		return appendTo(&b.Roles, text)
	case "CredentialsRequest", "Service":
		return b.addMaker(kind, text)
	case "ClusterRoleBinding":
		return appendTo(&b.Bindings, text)
	case "NetworkPolicy":
		return appendTo(&b.Policies, text)
	case "PodMonitor", "ServiceMonitor", "PrometheusRule":
		return appendTo(&b.Monitors, text)
	case "VolumeSnapshotClass":
		return appendTo(&b.SnapshotClasses, text)
	case "Deployment", "DaemonSet":
		var w workload
		if err := json.Unmarshal(text, &w); err != nil {
			return err
		}
		b.Workloads = append(b.Workloads, w.of(kind))
	case "CronJob":
		var j batchv1.CronJob
		if err := json.Unmarshal(text, &j); err != nil {
			return err
		}
		b.Jobs = append(b.Jobs, Workload{Kind: kind, Namespace: j.Namespace, Name: j.Name, Pod: j.Spec.JobTemplate.Spec.Template.Spec})
	}
	return nil
}

// addMaker reads which Secret an object asks OpenShift for.
func (b *Bundle) addMaker(kind string, text []byte) error {
	var asks struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			SecretRef corev1.SecretReference `json:"secretRef"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(text, &asks); err != nil {
		return err
	}
	secret, maker := asks.Spec.SecretRef, CredentialOperator
	if kind == "Service" {
		secret, maker = corev1.SecretReference{Namespace: asks.Metadata.Namespace, Name: asks.Metadata.Annotations["service.beta.openshift.io/serving-cert-secret-name"]}, ServiceCA
	}
	if secret.Name != "" {
		if b.makers == nil {
			b.makers = map[string]Maker{}
		}
		b.makers[secret.Namespace+"/"+secret.Name] = maker
	}
	return nil
}

// Grant is the name of the ClusterRoleBinding by which the bundle lets an account use SecurityContextConstraints of OpenShift; empty if it has none.
func (b Bundle) Grant(namespace, account, constraint string) string {
	for _, binding := range b.Bindings {
		bound := slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == "ServiceAccount" && s.Namespace == namespace && s.Name == account
		})
		if bound && slices.ContainsFunc(b.Roles, func(r rbacv1.ClusterRole) bool { return r.Name == binding.RoleRef.Name && uses(r, constraint) }) {
			return binding.Name
		}
	}
	return ""
}

func uses(role rbacv1.ClusterRole, constraint string) bool {
	return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, "securitycontextconstraints") && slices.Contains(r.Verbs, "use") && slices.Contains(r.ResourceNames, constraint)
	})
}

func appendTo[T any](list *[]T, text []byte) error {
	var one T
	if err := json.Unmarshal(text, &one); err != nil {
		return err
	}
	*list = append(*list, one)
	return nil
}

// IsDefaultClass reports whether claims without a class get this one. Kubernetes obeys the annotation of its beta too.
func IsDefaultClass(c storagev1.StorageClass) bool {
	return c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" || c.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
}

// DefaultClasses are the names of the StorageClasses that are marked as the default of the cluster.
func (b Bundle) DefaultClasses() []string {
	var names []string
	for _, c := range b.StorageClasses {
		if IsDefaultClass(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// Has reports whether the bundle has this workload.
func (b Bundle) Has(w Workload) bool { return slices.ContainsFunc(b.Workloads, w.Same) }

// Images lists the images of all containers, sorted.
func (b Bundle) Images() []string {
	var all []string
	for _, w := range slices.Concat(b.Workloads, b.Jobs) {
		for _, c := range slices.Concat(w.Pod.InitContainers, w.Pod.Containers) {
			all = append(all, c.Image)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// SecretRef is a Secret that a workload mounts, with the keys that it must have; none means any.
type SecretRef struct {
	Namespace, Name string
	Keys            []string
	Maker           Maker
}

// Secrets lists the Secrets that the workloads cannot start without.
func (b Bundle) Secrets() []SecretRef {
	var all []SecretRef
	for _, w := range slices.Concat(b.Workloads, b.Jobs) {
		for _, v := range w.Pod.Volumes {
			if v.Projected != nil {
				for _, source := range v.Projected.Sources {
					if s := source.Secret; s != nil {
						all = append(all, secretRef(w.Namespace, s.Name, s.Optional, s.Items)...)
					}
				}
			}
			if s := v.Secret; s != nil {
				all = append(all, secretRef(w.Namespace, s.SecretName, s.Optional, s.Items)...)
			}
		}
	}
	for i, ref := range all {
		all[i].Maker = b.makers[ref.Namespace+"/"+ref.Name]
	}
	return all
}

// secretRef is a Secret with the keys that a pod mounts; none if the pod starts without it.
func secretRef(namespace, name string, optional *bool, items []corev1.KeyToPath) []SecretRef {
	if optional != nil && *optional {
		return nil
	}
	ref := SecretRef{Namespace: namespace, Name: name}
	for _, item := range items {
		ref.Keys = append(ref.Keys, item.Key)
	}
	return []SecretRef{ref}
}

// KubeletDir is kubelet's directory as the node workload mounts it; empty if no workload does.
func (b Bundle) KubeletDir() string {
	for _, w := range b.Workloads {
		if dir := w.KubeletDir(); dir != "" {
			return dir
		}
	}
	return ""
}

// KubeletDir is kubelet's directory as a CSI driver's workload mounts it: the parent of plugins_registry.
func (w Workload) KubeletDir() string {
	for _, v := range w.Pod.Volumes {
		if v.HostPath != nil && path.Base(path.Clean(v.HostPath.Path)) == "plugins_registry" {
			return path.Dir(path.Clean(v.HostPath.Path))
		}
	}
	return ""
}

// UpstreamName is the driver name that Cinder drivers have by default. Kubernetes gives the in-tree volumes to the driver of this name.
const UpstreamName = "cinder.csi.openstack.org"

// DriverName is the name of the CSI driver that the workload serves. It is that of its directory on the node, or of the flags of a
// Cinder driver. It is empty for other workloads, and if the name comes from elsewhere.
func (w Workload) DriverName() string {
	for _, v := range w.Pod.Volumes {
		if v.HostPath != nil {
			dir, name := path.Split(path.Clean(v.HostPath.Path))
			if path.Base(dir) == "plugins" && strings.Contains(name, ".") {
				return name
			}
		}
	}
	return w.driverFlag("--driver-name", UpstreamName)
}

// Containers are all containers of a pod: a driver may be a sidecar of Kubernetes, which is an init container that goes on.
func Containers(pod corev1.PodSpec) []corev1.Container {
	return slices.Concat(pod.InitContainers, pod.Containers)
}

// ClusterID is the value of --cluster of the Cinder driver that the workload runs, by which its volumes are marked in Cinder. It is empty
// if the workload has none, or takes it from elsewhere.
func (w Workload) ClusterID() string { return w.driverFlag("--cluster", "") }

// driverFlag is the value of a flag of the Cinder driver that the workload runs.
func (w Workload) driverFlag(flag, otherwise string) string {
	for _, c := range Containers(w.Pod) {
		if IsCinderDriver(c) {
			return flagOf(c, flag, otherwise)
		}
	}
	return ""
}

// IsCinderDriver is whether a container runs a Cinder driver, upstream's or this one. A build of somebody's own, or one behind a shell, is known by
// two flags that only these drivers have together.
func IsCinderDriver(c corev1.Container) bool {
	repository, _, _ := strings.Cut(path.Base(c.Image), ":")
	repository, _, _ = strings.Cut(repository, "@")
	plugin := func(words []string) bool { return len(words) > 0 && path.Base(words[0]) == "cinder-csi-plugin" }
	words := strings.Join(slices.Concat(c.Command, c.Args), " ")
	return repository == "cinder-csi-plugin" || repository == "cinder-csi-driver" || plugin(c.Command) || plugin(c.Args) ||
		strings.Contains(words, "/cinder-csi-plugin ") || strings.Contains(words, "--endpoint") && strings.Contains(words, "--cloud-config")
}

// flagOf is the value of a flag; it is empty if the value comes from a ConfigMap.
func flagOf(c corev1.Container, flag, otherwise string) string {
	text := otherwise
	for _, arg := range slices.Concat(c.Command, c.Args) {
		if value, found := strings.CutPrefix(arg, flag+"="); found {
			text = strings.Trim(value, `"`)
		}
	}
	if !strings.HasPrefix(text, "$(") {
		return text
	}
	for _, e := range c.Env {
		if "$("+e.Name+")" == text {
			return e.Value
		}
	}
	return ""
}

// InlineVolumes is the number of volumes of a driver that a pod has without a claim.
func InlineVolumes(pod corev1.PodSpec, driver string) int {
	n := 0
	for _, v := range pod.Volumes {
		if v.CSI != nil && v.CSI.Driver == driver {
			n++
		}
	}
	return n
}
