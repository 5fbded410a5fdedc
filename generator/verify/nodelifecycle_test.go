package verify_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

func hasToken(c corev1.Container) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "api-access" })
}

// hasHook is whether a container of the pod runs a command before it ends.
func hasHook(pod *corev1.PodTemplateSpec) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PreStop != nil })
}

// rightsOf are the rules of a cluster role, each as one line; none if the bundle does not have the role.
func rightsOf(t *testing.T, objects []verify.Object, name string) []string {
	t.Helper()
	var lines []string
	for _, o := range objects {
		if o.Kind() != "ClusterRole" || !strings.HasSuffix(o.Name(), name) { // the name of the driver comes before it
			continue
		}
		text, err := json.Marshal(o.Fields)
		if err != nil {
			t.Fatal(err)
		}
		var role rbacv1.ClusterRole
		if err := json.Unmarshal(text, &role); err != nil {
			t.Fatal(err)
		}
		for _, r := range role.Rules {
			lines = append(lines, strings.Join(r.Resources, ",")+": "+strings.Join(r.Verbs, " "))
		}
	}
	return lines
}

// Each feature gets exactly its rights, and without it the bundle does not have them.
func TestTheNodeLifecycleHasRightsOnlyWhereItIsOn(t *testing.T) {
	for _, target := range targets {
		for name, lifecycle := range map[string]v1alpha1.NodeLifecycle{
			"off": {}, "drain hook": {DrainHook: true}, "start-up taint": {StartupTaint: true}, "both": {DrainHook: true, StartupTaint: true},
		} {
			if lifecycle.StartupTaint && target == v1alpha1.HostedControlPlane {
				continue // refused
			}
			t.Run(name+"/"+string(target), func(t *testing.T) {
				off := false
				spec := v1alpha1.Spec{NodeLifecycle: lifecycle, Driver: v1alpha1.Driver{PVCAnnotations: &off}}
				for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
					checkLifecycle(t, build(t, decide(t, spec, clouds["topology on"], target), format), lifecycle)
				}
			})
		}
	}
}

func checkLifecycle(t *testing.T, objects []verify.Object, on v1alpha1.NodeLifecycle) {
	t.Helper()
	var taint, hook []string
	if on.StartupTaint {
		taint = []string{"nodes: list watch patch", "csinodes: get"}
	}
	if on.DrainHook {
		hook = []string{"nodes: get", "volumeattachments: list"}
	}
	if diff := cmp.Diff(taint, rightsOf(t, objects, "-startup-taint")); diff != "" {
		t.Errorf("rights for the start-up taint (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(hook, rightsOf(t, objects, "-drain-hook")); diff != "" {
		t.Errorf("rights for the hook (-want +got):\n%s", diff)
	}
	for _, right := range rightsOf(t, objects, "") {
		if strings.HasPrefix(right, "nodes: ") && right != "nodes: get list watch" && !slices.Contains(taint, right) && !slices.Contains(hook, right) {
			t.Errorf("an account has the right %s", right)
		}
	}
	for _, o := range objects {
		if pod := podOf(t, o); pod != nil {
			checkLifecyclePod(t, o, pod, on)
		}
	}
}

func checkLifecyclePod(t *testing.T, o verify.Object, pod *corev1.PodTemplateSpec, on v1alpha1.NodeLifecycle) {
	t.Helper()
	node := o.Kind() == "DaemonSet"
	for _, c := range pod.Spec.Containers {
		if want := node && on.DrainHook || !node && on.StartupTaint; c.Name == "driver" && hasToken(c) != want {
			t.Errorf("%s: the driver has a token: %t, want %t", o, !want, want)
		}
	}
	if !node {
		return
	}
	if got := hasHook(pod); got != on.DrainHook {
		t.Errorf("%s: has a hook: %t, want %t", o, got, on.DrainHook)
	}
	stays := slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == "registrar" && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
	if stays != on.DrainHook {
		t.Errorf("%s: the registrar outlives the hook: %t, want %t", o, stays, on.DrainHook)
	}
}

// A pod with tolerations of its own still starts on a node with the start-up taint of its driver, and only with the feature.
func TestTheStartupTaintIsTolerated(t *testing.T) {
	own := []v1alpha1.Toleration{{Key: "storage", Operator: "Exists"}}
	for name, test := range map[string]struct {
		on   bool
		own  []v1alpha1.Toleration
		want map[string]int // by kind: how many tolerations name the taint
	}{
		"off":                {false, own, map[string]int{"Deployment": 0, "DaemonSet": 0}},
		"on":                 {true, nil, map[string]int{"Deployment": 1, "DaemonSet": 0}}, // the nodes tolerate everything
		"on, a few taints":   {true, own, map[string]int{"Deployment": 1, "DaemonSet": 1}},
		"on, none":           {true, []v1alpha1.Toleration{}, map[string]int{"Deployment": 1, "DaemonSet": 1}},
		"on, every taint":    {true, []v1alpha1.Toleration{{Operator: "Exists"}}, map[string]int{"Deployment": 0, "DaemonSet": 0}},
		"on, all NoSchedule": {true, []v1alpha1.Toleration{{Operator: "Exists", Effect: "NoSchedule"}}, map[string]int{"Deployment": 1, "DaemonSet": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.Spec{
				Driver: v1alpha1.Driver{Name: "cinder.example.org"}, NodeLifecycle: v1alpha1.NodeLifecycle{StartupTaint: test.on},
				Roles: v1alpha1.Roles{Controller: v1alpha1.RolePods{Tolerations: test.own}, Node: v1alpha1.RolePods{Tolerations: test.own}},
			}
			for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
				got := map[string]int{}
				for _, o := range build(t, decide(t, spec, clouds["topology on"], v1alpha1.Vanilla), format) {
					if pod := podOf(t, o); pod != nil {
						got[o.Kind()] = 0
						for _, toleration := range pod.Spec.Tolerations {
							if toleration.Key == "cinder.example.org/agent-not-ready" && toleration.Operator == "Exists" && toleration.Effect == "" {
								got[o.Kind()]++
							}
						}
					}
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", format, diff)
				}
			}
		})
	}
}
