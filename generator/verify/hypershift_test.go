package verify_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// hosted builds the planes of a hosted cluster, in both formats and with several configurations.
func hosted(t *testing.T, look func(t *testing.T, spec v1alpha1.Spec, objects []verify.Object)) {
	for name, spec := range specs() {
		for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
			t.Run(name+"/"+string(format), func(t *testing.T) {
				look(t, spec, build(t, decide(t, spec, clouds["topology on"], v1alpha1.HostedControlPlane), format))
			})
		}
	}
}

// controllerPod is the pod of the Deployment: of hypershift's management plane, or of the one plane of other targets.
func controllerPod(t *testing.T, objects []verify.Object) (verify.Object, *corev1.PodTemplateSpec) {
	t.Helper()
	for _, o := range objects {
		if o.Kind() == "Deployment" {
			return o, podOf(t, o)
		}
	}
	t.Fatal("the bundle has no Deployment")
	return verify.Object{}, nil
}

// Each plane has what its cluster needs, and nothing of the other.
func TestNoObjectIsInTheWrongPlane(t *testing.T) {
	kinds := map[string][]string{
		"management": {"ServiceAccount", "ConfigMap", "PodDisruptionBudget", "Deployment", "NetworkPolicy", "PodMonitor", "ServiceMonitor", "PrometheusRule", "Service", "CronJob"},
		"guest": {
			"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "CSIDriver", "ConfigMap", "DaemonSet",
			"StorageClass", "VolumeSnapshotClass", "VolumeAttributesClass", "PodMonitor", "ServiceMonitor", "PrometheusRule", "Service",
		},
	}
	hosted(t, func(t *testing.T, spec v1alpha1.Spec, objects []verify.Object) {
		namespaces := map[string]string{}
		for _, o := range objects {
			// The drift check writes its result into a ConfigMap of the management cluster.
			status := o.Plane == "management" && strings.HasPrefix(o.Kind(), "Role") && o.Name() == "cinder-csi-drift-check"
			if !status && !slices.Contains(kinds[o.Plane], o.Kind()) {
				t.Errorf("%s: its kind does not belong to plane %s", o, o.Plane)
			}
			if o.Kind() == "Deployment" || o.Kind() == "DaemonSet" {
				namespaces[o.Plane] = o.Namespace()
			}
		}
		for _, o := range objects {
			if o.Plane == "management" && o.Namespace() != namespaces["management"] {
				t.Errorf("%s: want it in namespace %s, as all of the management plane", o, namespaces["management"])
			}
			if o.Plane == "guest" && o.Namespace() != "" && o.Namespace() != namespaces["guest"] {
				t.Errorf("%s: want it in namespace %s, as all of the guest plane", o, namespaces["guest"])
			}
			if o.Plane == "guest" && strings.Contains(string(o.Kind()), "RoleBinding") {
				for _, s := range at(t, o.Fields, "subjects").([]any) {
					// OpenShift's Prometheus in the guest reads the nodes (spec.openshift.monitoring).
					if ns := s.(map[string]any)["namespace"]; ns != namespaces["guest"] && (ns != "openshift-monitoring" || s.(map[string]any)["name"] != "prometheus-k8s") {
						t.Errorf("%s: a right of the guest goes to an account of namespace %v", o, ns)
					}
				}
			}
		}
	})
}

// HyperShift's end-to-end tests hold every pod in the namespace of a hosted control plane to these rules.
func TestTheControllerConformsToHyperShift(t *testing.T) {
	hosted(t, func(t *testing.T, spec v1alpha1.Spec, objects []verify.Object) {
		o, pod := controllerPod(t, objects)
		namespace := o.Namespace()
		if pod.Labels["app"] == "" || pod.Labels["hypershift.openshift.io/hosted-control-plane"] != namespace {
			t.Errorf("labels: %v", pod.Labels)
		}
		for key, value := range spec.Roles.Controller.PodLabels {
			if pod.Labels[key] != value {
				t.Errorf("label %s of the HostedControlPlane: want %q, got %q", key, value, pod.Labels[key])
			}
		}
		if given := spec.Roles.Controller.PriorityClassName; given == "" && pod.Spec.PriorityClassName != "hypershift-control-plane" {
			t.Errorf("priority class: %s; any higher one is refused", pod.Spec.PriorityClassName)
		}
		checkHostedPlacement(t, spec, pod, namespace)
		checkHostedVolumes(t, pod)
		if automount := pod.Spec.AutomountServiceAccountToken; automount == nil || *automount {
			t.Error("a token of the management cluster is mounted")
		}
		if annotation, there := pod.Annotations["target.workload.openshift.io/management"]; there {
			t.Errorf("the pod asks for the CPUs of management (%s), which HyperShift's namespace need not allow", annotation)
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
				t.Errorf("container %s requests no processor time or memory", c.Name)
			}
			if c.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
				t.Errorf("container %s: termination messages: %s", c.Name, c.TerminationMessagePolicy)
			}
			if want := spec.Images.ByName()[c.Name].PullPolicy; want == "" && spec.Roles.Controller.Images.ByName()[c.Name].PullPolicy == "" && c.ImagePullPolicy != corev1.PullIfNotPresent {
				t.Errorf("container %s: pull policy %s", c.Name, c.ImagePullPolicy)
			}
			if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
				t.Errorf("container %s: its root file system can be written to", c.Name)
			}
		}
	})
}

// The tolerations are exact: HyperShift's own two, then those of the HostedControlPlane.
func checkHostedPlacement(t *testing.T, spec v1alpha1.Spec, pod *corev1.PodTemplateSpec, namespace string) {
	t.Helper()
	want := []string{"hypershift.openshift.io/control-plane=true:NoSchedule", "hypershift.openshift.io/cluster=" + namespace + ":NoSchedule"}
	for _, toleration := range spec.Roles.Controller.Tolerations {
		want = append(want, toleration.Key+"="+toleration.Value+":"+toleration.Effect)
	}
	var got []string
	for _, toleration := range pod.Spec.Tolerations {
		got = append(got, toleration.Key+"="+toleration.Value+":"+string(toleration.Effect))
	}
	if !slices.Equal(want, got) {
		t.Errorf("tolerations: want %q, got %q", want, got)
	}
	for key, value := range spec.Roles.Controller.NodeSelector {
		if pod.Spec.NodeSelector[key] != value {
			t.Errorf("node selector %s of the HostedControlPlane: want %q, got %q", key, value, pod.Spec.NodeSelector[key])
		}
	}
	if len(pod.Spec.NodeSelector) != len(spec.Roles.Controller.NodeSelector)+1 || pod.Spec.NodeSelector["kubernetes.io/os"] != "linux" {
		t.Errorf("node selector: want that of the HostedControlPlane and Linux, got %v", pod.Spec.NodeSelector)
	}
	if spec.Roles.Controller.Affinity != nil {
		return
	}
	weights := map[string]int32{}
	for _, term := range pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		e := term.Preference.MatchExpressions[0]
		weights[e.Key+"="+strings.Join(e.Values, ",")] = term.Weight
	}
	if weights["hypershift.openshift.io/control-plane=true"] != 50 || weights["hypershift.openshift.io/cluster="+namespace] != 100 {
		t.Errorf("node affinity: %v", weights)
	}
	together := pod.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if len(together) != 1 || together[0].Weight != 100 || together[0].PodAffinityTerm.LabelSelector.MatchLabels["hypershift.openshift.io/hosted-control-plane"] != namespace {
		t.Errorf("pod affinity: %v", together)
	}
}

// The cluster autoscaler moves a pod with local volumes only if the annotation lists each of them.
func checkHostedVolumes(t *testing.T, pod *corev1.PodTemplateSpec) {
	t.Helper()
	safe := strings.Split(pod.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"], ",")
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil {
			t.Errorf("volume %s is the node's", v.Name)
		}
		if v.EmptyDir != nil && !slices.Contains(safe, v.Name) {
			t.Errorf("volume %s is not among those that are safe to evict: %q", v.Name, safe)
		}
	}
}

// That is the default.
func TestWithATokenOneContainerAloneHasTheKubeconfigOfAnAdministrator(t *testing.T) {
	for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
		spec := v1alpha1.Spec{HyperShift: v1alpha1.HyperShift{KubeconfigSecret: "admin"}}
		_, pod := controllerPod(t, build(t, decide(t, spec, clouds["topology on"], v1alpha1.HostedControlPlane), format))
		volume := ""
		for _, v := range pod.Spec.Volumes {
			if v.Secret != nil && v.Secret.SecretName == "admin" {
				volume = v.Name
			}
			if v.Name == "hosted-kubeconfig" && (v.EmptyDir == nil || v.EmptyDir.Medium != corev1.StorageMediumMemory) {
				t.Errorf("%s: the tokens are not in memory: %+v", format, v)
			}
		}
		var who []string
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume }) {
				who = append(who, c.Name)
			}
		}
		if volume == "" || !slices.Equal(who, []string{"guest-token"}) {
			t.Errorf("%s: the kubeconfig of an administrator (volume %q) is mounted by %q; want guest-token alone", format, volume, who)
		}
		if policy := pod.Spec.InitContainers[0].RestartPolicy; policy == nil || *policy != corev1.ContainerRestartPolicyAlways {
			t.Errorf("%s: guest-token does not run beside the other containers", format)
		}
	}
}
