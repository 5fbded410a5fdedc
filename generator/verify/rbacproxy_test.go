package verify_test

import (
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// A limit is judged by what the container asks for. No default installation has this container, so plan cannot read its requests there.
func TestPlanKnowsWhatKubeRBACProxyAsksFor(t *testing.T) {
	spec := func(limit string) v1alpha1.Spec {
		return v1alpha1.Spec{
			Monitoring: v1alpha1.Monitoring{Kind: v1alpha1.ServiceMonitor},
			OpenShift:  v1alpha1.OpenShift{Monitoring: "platform"},
			Roles:      v1alpha1.Roles{Controller: v1alpha1.RolePods{Resources: map[string]v1alpha1.Resources{"rbacproxy": {Limits: map[string]string{"memory": limit}}}}},
		}
	}
	_, err := plan.Decide(clouds["topology on"], v1alpha1.Distribution{Spec: spec("19Mi")}, v1alpha1.Standalone, v1alpha1.Kustomize, "v0.0.0-test")
	if err == nil || !strings.Contains(err.Error(), "19Mi is less than the 20Mi that the container asks for") {
		t.Errorf("want the limit refused, got %v", err)
	}
	proxies := 0
	for _, o := range build(t, decide(t, spec("20Mi"), clouds["topology on"], v1alpha1.Standalone), v1alpha1.Helm) {
		if o.Kind() != "Deployment" {
			continue
		}
		for _, c := range podOf(t, o).Spec.Containers {
			if strings.HasPrefix(c.Name, "kube-rbac-proxy-") {
				proxies++
				if cpu, memory := c.Resources.Requests.Cpu().String(), c.Resources.Requests.Memory().String(); cpu != "10m" || memory != "20Mi" {
					t.Errorf("%s: want 10m and 20Mi, got %s and %s", c.Name, cpu, memory)
				}
			}
		}
	}
	if proxies == 0 {
		t.Error("the bundle has no kube-rbac-proxy")
	}
}
