package charts_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A budget or a policy that selects no pod, or those of the node role too, is accepted by Kubernetes and protects nothing.
func TestTheBudgetAndThePolicySelectThePodsOfTheControllerAlone(t *testing.T) {
	all := objects(t, parse(t, "networkPolicy: {enabled: true, ports: [5000]}"))
	controller := as[appsv1.Deployment](t, all[deployment]).Spec.Template.Labels
	node := as[appsv1.DaemonSet](t, all[daemonSet]).Spec.Template.Labels
	selectors := map[string]*metav1.LabelSelector{
		budget: as[policyv1.PodDisruptionBudget](t, all[budget]).Spec.Selector,
		policy: new(as[networkingv1.NetworkPolicy](t, all[policy]).Spec.PodSelector),
	}
	for id, s := range selectors {
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		if !selector.Matches(labels.Set(controller)) || selector.Matches(labels.Set(node)) {
			t.Errorf("%s selects %s; want pods with %v and not those with %v", id, selector, controller, node)
		}
	}
}

// Kubelet sees a mount of the driver only if it propagates from the container to the host (Kubernetes, "Mount propagation").
func TestMountsInKubeletsDirectoryReachTheHost(t *testing.T) {
	spec := as[appsv1.DaemonSet](t, objects(t, parse(t, ""))[daemonSet]).Spec.Template.Spec
	found := false
	for _, c := range spec.Containers {
		for _, m := range c.VolumeMounts {
			if c.Name != "driver" || m.MountPath != "/var/lib/kubelet" {
				continue
			}
			found = true
			if m.MountPropagation == nil || *m.MountPropagation != corev1.MountPropagationBidirectional || m.ReadOnly {
				t.Errorf("want %s mounted with propagation Bidirectional, got %+v", m.MountPath, m)
			}
		}
	}
	if !found {
		t.Error("the container driver mounts no directory of kubelet")
	}
}
