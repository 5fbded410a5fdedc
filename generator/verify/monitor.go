package verify

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// service checks that a Service has pods and that these have its ports.
func (c *checker) service(s *corev1.Service) {
	selector := &metav1.LabelSelector{MatchLabels: s.Spec.Selector}
	c.choosesPods(selector)
	for _, port := range s.Spec.Ports {
		c.podPort(selector, port.TargetPort.String())
	}
}

// monitor checks that Prometheus finds what a PodMonitor or a ServiceMonitor names.
func (c *checker) monitor(m *monitor) {
	for _, e := range m.Spec.PodMetricsEndpoints {
		c.podPort(&m.Spec.Selector, e.Port)
	}
	if len(m.Spec.PodMetricsEndpoints) > 0 {
		c.choosesPods(&m.Spec.Selector)
	}
	for _, e := range m.Spec.Endpoints {
		c.servicePort(&m.Spec.Selector, e.Port)
	}
}

func (c *checker) podPort(selector *metav1.LabelSelector, name string) {
	for _, pods := range c.podsOf(selector) {
		if !slices.ContainsFunc(pods.Spec.Containers, func(container corev1.Container) bool {
			return slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
		}) {
			c.find("the chosen pods have no port %s", name)
		}
	}
}

func (c *checker) servicePort(selector *metav1.LabelSelector, name string) {
	for _, t := range c.typed {
		service, is := t.value.(*corev1.Service)
		if is && t.Namespace() == c.at.Namespace() && selects(selector, service.Labels) &&
			slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == name }) {
			return
		}
	}
	c.find("selector: no Service of the bundle with a port %s matches it", name)
}
