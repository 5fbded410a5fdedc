package migrate

import (
	"fmt"
	"slices"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

var hostedClusterRules = slices.Concat([]rule{
	{key: "metadata.name", to: "metadata.name", set: func(p *proposal, v value) error { return v.into(&p.Metadata.Name) }},
	{key: "metadata.namespace", to: "spec.namespaces.controller", why: "HyperShift appends the name of the HostedCluster", set: setControlPlaneNamespace},
	{key: "metadata.annotations.hypershift.openshift.io/control-plane-priority-class", to: "spec.roles.controller.priorityClassName", set: eachRole(controllerPods, func(pl *v1alpha1.RolePods) any { return &pl.PriorityClassName })},
}, hostedRules)

var controlPlaneRules = slices.Concat([]rule{
	hostedClusterRules[0], {key: "metadata.namespace", to: "spec.namespaces.controller", set: setControlPlaneNamespace}, hostedClusterRules[2],
}, hostedRules)

// hostedRules are those of the spec, which HyperShift copies from the HostedCluster to the HostedControlPlane.
var hostedRules = []rule{
	{key: "spec.infraID", to: "spec.hypershift.infraID", set: func(p *proposal, v value) error { return v.into(&p.Spec.HyperShift.InfraID) }},
	{key: "spec.platform.type", to: "spec.hypershift.platform", set: func(p *proposal, v value) error { return v.into(&p.Spec.HyperShift.Platform) }},
	{key: "spec.platform.openstack.identityRef.name", to: "spec.credentials.secretName", why: "HyperShift copies this Secret beside the controller", set: func(p *proposal, v value) error { return v.into(&p.Spec.Credentials.SecretName) }},
	{key: "spec.platform.openstack.identityRef.cloudName", to: "spec.credentials.cloud", set: func(p *proposal, v value) error { return v.into(&p.Spec.Credentials.Cloud) }},
	{key: "spec.controllerAvailabilityPolicy", to: "spec.roles.controller.replicas", set: setAvailability},
	{key: "spec.infrastructureAvailabilityPolicy", why: "it is for workloads of the guest"},
	{key: "spec.nodeSelector", to: "spec.roles.controller.nodeSelector", set: eachRole(controllerPods, func(pl *v1alpha1.RolePods) any { return &pl.NodeSelector })},
	{key: "spec.tolerations", to: "spec.roles.controller.tolerations", why: "the bundle has those of HyperShift too", set: eachRole(controllerPods, func(pl *v1alpha1.RolePods) any { return &pl.Tolerations })},
	{key: "spec.labels", to: "spec.roles.controller.podLabels", set: eachRole(controllerPods, func(pl *v1alpha1.RolePods) any { return &pl.PodLabels })},
	{key: "spec.pullSecret", why: "HyperShift copies it as Secret pull-secret, which the controller has by default"},
	{key: "spec.configuration", why: "proxy, TLS profile and the rest are those of the guest; the controller runs in the management cluster, whose Proxy import reads"},
	{key: "spec.networking", why: "the networks are those of the guest; the controller runs in the management cluster, whose Network import reads"},
}

// userAnnotation is on the namespace of a hosted control plane if the management cluster is not OpenShift. There nothing else gives the pods
// a user.
const userAnnotation = "hypershift.openshift.io/default-security-context-uid"

var namespaceRules = []rule{
	{key: "metadata.annotations." + userAnnotation, to: "spec.roles.controller.runAsUser", why: "of the namespace of the hosted control plane", set: setUser},
}

func setUser(p *proposal, v value) error {
	if p.document.name() != p.known.controlPlane {
		return leave("it is not the namespace of the hosted control plane")
	}
	n, err := v.whole()
	p.Spec.Roles.Controller.RunAsUser = new(int64(n))
	return err
}

func setControlPlaneNamespace(p *proposal, _ value) error {
	p.Spec.Namespaces.Controller = controlPlaneNamespace(p.document)
	return nil
}

// setAvailability differs from OpenShift's operator, which always runs one replica: a second one costs little and takes over at once.
func setAvailability(p *proposal, v value) error {
	policy, err := v.text()
	if err != nil {
		return err
	}
	replicas, known := map[string]int{v1alpha1.SingleReplica: 1, v1alpha1.HighlyAvailable: 2}[policy]
	if !known {
		return fmt.Errorf("it is none of %s, %s", v1alpha1.SingleReplica, v1alpha1.HighlyAvailable)
	}
	p.Spec.Roles.Controller.Replicas = &replicas
	return nil
}
