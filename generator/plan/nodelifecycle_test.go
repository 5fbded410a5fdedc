package plan

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func TestTheNodeLifecycleAndTheTokenOfTheGuestAreRefusedWhereTheyCannotWork(t *testing.T) {
	const (
		hosted = "spec.nodeLifecycle.startupTaint: on hypershift the controller runs in another cluster than the nodes and has no token for it; leave it out"
		old    = "spec.nodeLifecycle.drainHook: needs Kubernetes 1.29, and spec.kubernetesVersion is 1.28"
		token  = "spec.hypershift.guestAccess: serviceAccountToken needs Kubernetes 1.29 in the management cluster, and spec.kubernetesVersion is 1.28; adminKubeconfig needs no version"
	)
	for name, test := range map[string]struct {
		target v1alpha1.Target
		spec   string
		want   []string
	}{
		"both":                           {v1alpha1.Vanilla, "{nodeLifecycle: {startupTaint: true, drainHook: true}}", nil},
		"both on OpenShift":              {v1alpha1.Standalone, "{nodeLifecycle: {startupTaint: true, drainHook: true}}", nil},
		"the hook on HyperShift":         {v1alpha1.HostedControlPlane, "{nodeLifecycle: {drainHook: true}}", nil},
		"the taint on HyperShift":        {v1alpha1.HostedControlPlane, "{nodeLifecycle: {startupTaint: true}}", []string{hosted}},
		"the hook on Kubernetes 1.29":    {v1alpha1.Vanilla, "{kubernetesVersion: '1.29', nodeLifecycle: {drainHook: true}}", nil},
		"the hook on an old Kubernetes":  {v1alpha1.Vanilla, "{kubernetesVersion: '1.28', nodeLifecycle: {drainHook: true}}", []string{old}},
		"the token on an old Kubernetes": {v1alpha1.HostedControlPlane, "{kubernetesVersion: '1.28'}", []string{token}},
		"no token on an old Kubernetes":  {v1alpha1.HostedControlPlane, "{kubernetesVersion: '1.28', hypershift: {guestAccess: adminKubeconfig}}", nil},
		"the taint on an old Kubernetes": {v1alpha1.Vanilla, "{kubernetesVersion: '1.28', nodeLifecycle: {startupTaint: true}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Decide(cloudOf("standard"), configured(t, "spec: "+test.spec), test.target, v1alpha1.Kustomize, "test")
			var wrong *ConfigError
			if errors.As(err, &wrong) != (test.want != nil) || wrong == nil && err != nil {
				t.Fatalf("want the problems %q, got %v", test.want, err)
			}
			if wrong != nil {
				if diff := cmp.Diff(test.want, wrong.Problems); diff != "" {
					t.Errorf("problems (-want +got):\n%s", diff)
				}
				return
			}
			asked := r.Config.NodeLifecycle
			if got := (v1alpha1.NodeLifecycle{StartupTaint: r.StartupTaint.Value, DrainHook: r.DrainHook.Value}); got != asked {
				t.Errorf("want %+v, got %+v", asked, got)
			}
		})
	}
}
