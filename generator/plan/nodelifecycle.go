package plan

import "github.com/cinder-csi/cinder-csi/generator/v1alpha1"

// startupTaint: the taint is removed with the token of the pod, which a hosted control plane's does not have for the guest.
func (d *decider) startupTaint() Decision[bool] {
	const key = "spec.nodeLifecycle.startupTaint"
	if !d.spec.NodeLifecycle.StartupTaint {
		return Decision[bool]{Source: Default, Reason: "to remove a taint is a right to change nodes; " + key + " is not set"}
	}
	if d.target == v1alpha1.HostedControlPlane {
		d.problem("%s: on hypershift the controller runs in another cluster than the nodes and has no token for it; leave it out", key)
	}
	return Decision[bool]{Value: true, Source: FromConfig, Reason: key + " is set; the account of the controller may change nodes"}
}

// hookKubernetes is the first minor whose kubelet ends some containers of a pod after the others without a feature gate. The registrar must
// outlive the hook of the driver: when it ends, kubelet forgets the driver and unmounts nothing.
const hookKubernetes = "1.29"

func (d *decider) drainHook() Decision[bool] {
	const key = "spec.nodeLifecycle.drainHook"
	if !d.spec.NodeLifecycle.DrainHook {
		return Decision[bool]{Source: Default, Reason: "the pods of the nodes have no token of the cluster; " + key + " is not set"}
	}
	if !atLeast(d.spec.KubernetesVersion, hookKubernetes) {
		d.problem("%s: needs Kubernetes %s, and spec.kubernetesVersion is %s", key, hookKubernetes, d.spec.KubernetesVersion)
	}
	return Decision[bool]{Value: true, Source: FromConfig, Reason: key + " is set; the account of the nodes may read nodes and volume attachments"}
}
