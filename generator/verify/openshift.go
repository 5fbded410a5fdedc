package verify

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// tokenSecret: the only Secret of a bundle is one that Kubernetes fills with the token of an account.
func (c *checker) tokenSecret(s *corev1.Secret) {
	if s.Type != corev1.SecretTypeServiceAccountToken || len(s.Data) > 0 || len(s.StringData) > 0 {
		c.find("holds a secret, or a place for one; a bundle has only the token Secret of a ServiceAccount, without data")
	}
	if account := s.Annotations[corev1.ServiceAccountNameKey]; !c.has("ServiceAccount", s.Namespace, account) {
		c.find("there is no ServiceAccount %q in namespace %s, so Kubernetes deletes the Secret", account, s.Namespace)
	}
}

// request: the Secret that is asked for is the one that a pod mounts.
func (c *checker) request(r *credentialsRequest) {
	if r.Spec.ProviderSpec.Kind != "OpenStackProviderSpec" || r.Spec.ProviderSpec.APIVersion != c.at.APIVersion() {
		c.find("spec.providerSpec: want kind OpenStackProviderSpec of %s", c.at.APIVersion())
	}
	for _, t := range c.typed {
		pod := podSpecOf(t.value)
		if pod == nil || t.Namespace() != r.Spec.SecretRef.Namespace {
			continue
		}
		for _, v := range pod.Volumes {
			if mountsSecret(v, r.Spec.SecretRef.Name) {
				return
			}
		}
	}
	c.find("spec.secretRef: no pod mounts Secret %s/%s", r.Spec.SecretRef.Namespace, r.Spec.SecretRef.Name)
}

func mountsSecret(v corev1.Volume, name string) bool {
	if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.Secret != nil && s.Secret.Name == name }) {
		return true
	}
	return v.Secret != nil && v.Secret.SecretName == name
}

// program is the name of a container's program, as images have it: the sidecars have one container each, kube-rbac-proxy one for each port.
func program(container string) string {
	if strings.HasPrefix(container, "kube-rbac-proxy-") {
		return "rbacproxy"
	}
	return container
}

func podSpecOf(value any) *corev1.PodSpec {
	switch v := value.(type) {
	case *appsv1.Deployment:
		return &v.Spec.Template.Spec
	case *appsv1.DaemonSet:
		return &v.Spec.Template.Spec
	}
	return nil
}
