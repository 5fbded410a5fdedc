package verify_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// podOf is the pod template of a Deployment or DaemonSet, nil for other kinds.
func podOf(t *testing.T, o verify.Object) *corev1.PodTemplateSpec {
	t.Helper()
	if o.Kind() != "Deployment" && o.Kind() != "DaemonSet" {
		return nil
	}
	text, err := json.Marshal(at(t, o.Fields, "spec", "template"))
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(text, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// forEachPod looks at the pods of every target, with the defaults and with everything configured.
func forEachPod(t *testing.T, look func(t *testing.T, target v1alpha1.Target, o verify.Object, pod *corev1.PodTemplateSpec)) {
	for name, spec := range specs() {
		for _, target := range targets {
			t.Run(name+"/"+string(target), func(t *testing.T) {
				for _, o := range build(t, decide(t, spec, clouds["topology on"], target), v1alpha1.Kustomize) {
					if pod := podOf(t, o); pod != nil {
						look(t, target, o, pod)
					}
				}
			})
		}
	}
}

func TestEveryContainerIsHardened(t *testing.T) {
	forEachPod(t, func(t *testing.T, target v1alpha1.Target, o verify.Object, pod *corev1.PodTemplateSpec) {
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			s := c.SecurityContext
			privileged := s.Privileged != nil && *s.Privileged
			// On OpenShift SELinux keeps an unprivileged registrar from the kubelet's directories.
			if mayBe := o.Kind() == "DaemonSet" && (c.Name == "driver" || c.Name == "registrar" && target != v1alpha1.Vanilla); privileged != mayBe {
				t.Errorf("%s: container %s: privileged is %t", o, c.Name, privileged)
			}
			if !privileged && (s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL")) {
				t.Errorf("%s: container %s may gain privileges", o, c.Name)
			}
			if s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
				t.Errorf("%s: container %s: the root file system is writable", o, c.Name)
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
				t.Errorf("%s: container %s requests no resources", o, c.Name)
			}
			if c.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError || c.ImagePullPolicy == "" {
				t.Errorf("%s: container %s: termination messages or pull policy", o, c.Name)
			}
			if c.LivenessProbe == nil && c.Name != "livenessprobe" && c.Name != "guest-token" {
				t.Errorf("%s: container %s has no liveness probe", o, c.Name)
			}
		}
	})
}

// Where SELinux enforces, the policy of the distributions keeps an ordinary container from the socket that the driver makes in a directory of kubelet.
// Without this the driver is never registered.
func TestTheSidecarsOfTheNodeReachTheSocketUnderSELinux(t *testing.T) {
	for _, target := range targets {
		for set, want := range map[string]bool{v1alpha1.Enabled: true, v1alpha1.Disabled: false, v1alpha1.Auto: target != v1alpha1.Vanilla} {
			spec := v1alpha1.Spec{Driver: v1alpha1.Driver{SELinux: set}}
			for _, o := range build(t, decide(t, spec, clouds["topology on"], target), v1alpha1.Kustomize) {
				pod := podOf(t, o)
				if pod == nil || o.Kind() != "DaemonSet" {
					continue
				}
				for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
					label := c.SecurityContext.SELinuxOptions
					if got := label != nil && label.Type == "spc_t"; c.Name != "driver" && got != want { // the driver is privileged, and so has that label
						t.Errorf("%s, seLinux %s: container %s runs as spc_t: %t, want %t", target, set, c.Name, got, want)
					}
				}
			}
		}
	}
}

// The controller fits Kubernetes' Pod Security level "restricted", which its namespace enforces.
func TestTheControllerIsRestricted(t *testing.T) {
	forEachPod(t, func(t *testing.T, target v1alpha1.Target, o verify.Object, pod *corev1.PodTemplateSpec) {
		if o.Kind() != "Deployment" {
			return
		}
		s := pod.Spec.SecurityContext
		if s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: may run as root or without seccomp", o)
		}
		if target == v1alpha1.Vanilla && (s.RunAsUser == nil || *s.RunAsUser == 0) {
			t.Errorf("%s: no user is named, and the sidecars' images run as root", o)
		}
		if pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC {
			t.Errorf("%s: uses the host's namespaces", o)
		}
		for _, v := range pod.Spec.Volumes {
			if v.HostPath != nil {
				t.Errorf("%s: volume %s is the host's", o, v.Name)
			}
		}
	})
}

// firstPorts are the first of three ports of a node: by default, on OpenShift, and of the case "everything".
var firstPorts = []int32{29601, 9601, 9701}

func TestNodesHoldNeitherCredentialsNorRights(t *testing.T) {
	forEachPod(t, func(t *testing.T, _ v1alpha1.Target, o verify.Object, pod *corev1.PodTemplateSpec) {
		if o.Kind() != "DaemonSet" {
			return
		}
		if automount := pod.Spec.AutomountServiceAccountToken; automount == nil || *automount {
			t.Errorf("%s: a token is mounted", o)
		}
		for _, v := range pod.Spec.Volumes {
			if v.Secret != nil || v.Projected != nil && !hasHook(pod) || v.CSI != nil {
				t.Errorf("%s: volume %s can hold a secret", o, v.Name)
			}
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if c.Name != "driver" && hasToken(c) {
				t.Errorf("%s: container %s has a token", o, c.Name)
			}
			for _, p := range c.Ports {
				if !slices.ContainsFunc(firstPorts, func(first int32) bool { return p.ContainerPort >= first && p.ContainerPort < first+3 }) {
					t.Errorf("%s: port %d is a port of the node, and not one of ours", o, p.ContainerPort)
				}
			}
		}
	})
}

func TestTheManagementClusterGetsNoRightsAndTheGuestNoController(t *testing.T) {
	var sidecars int
	for _, o := range build(t, decide(t, v1alpha1.Spec{}, clouds["topology on"], v1alpha1.HostedControlPlane), v1alpha1.Kustomize) {
		management := o.Plane == "management"
		switch kind := o.Kind(); {
		case management && (strings.Contains(kind, "Role") || o.Namespace() == ""):
			t.Errorf("%s: the management cluster's needs none", o)
		case !management && (kind == "Deployment" || kind == "PodDisruptionBudget"):
			t.Errorf("%s: the controller does not run here", o)
		}
		if !management || o.Kind() != "Deployment" {
			continue
		}
		pod := podOf(t, o)
		if automount := pod.Spec.AutomountServiceAccountToken; automount == nil || *automount {
			t.Errorf("%s: the management cluster's token is mounted", o)
		}
		for _, c := range pod.Spec.Containers {
			hasKubeconfig := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "hosted-kubeconfig" })
			needs := slices.Contains(c.Args, "--leader-election")
			if hasKubeconfig != needs {
				t.Errorf("%s: container %s: the guest's kubeconfig is mounted: %t, needed: %t", o, c.Name, hasKubeconfig, needs)
			}
			if needs {
				sidecars++
			}
		}
	}
	if sidecars != 4 {
		t.Errorf("want four sidecars, found %d", sidecars)
	}
}

func TestClassesDriverAndNamespacesAreKeptWhenTheirDeployerIsGone(t *testing.T) {
	for _, target := range targets {
		for _, o := range build(t, decide(t, v1alpha1.Spec{}, clouds["topology on"], target), v1alpha1.Helm) {
			switch o.Kind() {
			case "StorageClass", "VolumeSnapshotClass", "CSIDriver", "Namespace":
				annotations := at(t, o.Fields, "metadata", "annotations").(map[string]any)
				if annotations["helm.sh/resource-policy"] != "keep" || annotations["argocd.argoproj.io/sync-options"] != "Prune=false" ||
					annotations["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
					t.Errorf("%s: %v", o, annotations)
				}
			}
		}
	}
}

// With workload partitioning, OpenShift gives a pod the CPUs of management if the pod asks for them and its namespace allows it. The namespace of a
// hosted control plane does not: hypershift_test.go has that.
func TestPodsOfOpenShiftAskForTheCPUsOfManagement(t *testing.T) {
	for _, namespace := range []string{"", "openshift-cluster-csi-drivers"} {
		for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
			pods := 0
			r := decide(t, v1alpha1.Spec{Namespaces: v1alpha1.Namespaces{Controller: namespace, Node: namespace}}, clouds["topology on"], v1alpha1.Standalone)
			for _, o := range build(t, r, format) {
				if pod := podOf(t, o); pod != nil {
					pods++
					if _, asks := pod.Annotations["target.workload.openshift.io/management"]; !asks {
						t.Errorf("%s, namespace %q: %s does not ask for the CPUs of management", format, namespace, o)
					}
				}
			}
			if pods != 2 {
				t.Errorf("%s: want two workloads, got %d", format, pods)
			}
		}
	}
}

// Without a readiness probe a rollout goes on over nodes whose driver cannot register.
func TestEachDriverIsReadyOnlyAfterItsStart(t *testing.T) {
	forEachPod(t, func(t *testing.T, _ v1alpha1.Target, o verify.Object, pod *corev1.PodTemplateSpec) {
		for _, c := range pod.Spec.Containers {
			if c.Name != "driver" {
				continue
			}
			if p := c.ReadinessProbe; p == nil || p.HTTPGet == nil || p.HTTPGet.Path != "/startupz" {
				t.Errorf("%s: want the driver to be ready by /startupz, got %v", o, p)
			}
		}
	})
}

// Without the annotation OpenShift chooses among all constraints that the account may use, and another one than at the last upgrade may win.
func TestEveryPodOnOpenShiftRequiresItsConstraint(t *testing.T) {
	spec := forTarget(specs()["everything"], v1alpha1.Standalone)
	for _, target := range targets[1:] {
		for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
			kinds := map[string]int{}
			for _, o := range build(t, decide(t, spec, clouds["topology on"], target), format) {
				template := []any{"spec", "template", "metadata", "annotations"}
				want := "restricted-v2"
				switch o.Kind() {
				case "Deployment":
				case "DaemonSet":
					want = "privileged"
				case "CronJob":
					template = slices.Concat([]any{"spec", "jobTemplate"}, template)
				default:
					continue
				}
				kinds[o.Kind()]++
				if got := at(t, o.Fields, template...).(map[string]any)["openshift.io/required-scc"]; got != want {
					t.Errorf("%s %s: %s requires %q, want %s", target, format, o, got, want)
				}
			}
			if kinds["Deployment"] != 1 || kinds["DaemonSet"] != 2 || kinds["CronJob"] != 1 {
				t.Errorf("%s %s: want the controller, the nodes of two pools and the drift check, got %v", target, format, kinds)
			}
		}
	}
}
