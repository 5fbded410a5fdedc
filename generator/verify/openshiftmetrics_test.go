package verify_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// OpenShift's Prometheus reads the metrics only if each of these is there. Nothing is refused without one, and no pod fails: the metrics are missing. So
// neither admission nor the checks of a bundle see it, and the table of the parity has only the first endpoint.
func TestABundleHasAllByWhichOpenShiftsPrometheusReads(t *testing.T) {
	const (
		name     = "cinder-csi-controller-metrics-tls"
		rules    = `[{"apiGroups": [""], "resources": ["services", "endpoints", "pods"], "verbs": ["get", "list", "watch"]}]`
		subjects = `[{"kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": "openshift-monitoring"}]`
		endpoint = `{"port": %q, "path": "/metrics", "scheme": "https", "interval": "30s",
			"authorization": {"type": "Bearer", "credentials": {"name": "cinder-csi-metrics-reader", "key": "token"}},
			"tlsConfig": {"serverName": "` + name + `.cinder-csi.svc", "ca": {"configMap": {"name": "openshift-service-ca.crt", "key": "service-ca.crt"}}}}`
		port = `{"name": %q, "protocol": "TCP", "port": %d, "targetPort": %[1]q}`
	)
	var endpoints, ports []string
	for _, from := range []string{"attacher-m", "driver-m", "provisioner-m", "resizer-m", "snapshotter-m"} {
		endpoints = append(endpoints, fmt.Sprintf(endpoint, from))
	}
	for i, of := range []string{"driver-m", "provisioner-m", "attacher-m", "resizer-m", "snapshotter-m"} {
		ports = append(ports, fmt.Sprintf(port, of, 8443+i))
	}
	ports = append(ports[4:], ports[:4]...)
	objects := byName(build(t, decide(t, adopting(), clouds["topology on"], v1alpha1.Standalone), v1alpha1.Kustomize))
	for _, row := range []struct{ object, at, is string }{
		{"Namespace/cinder-csi", "metadata.labels.openshift.io/cluster-monitoring", `"true"`},
		{"Namespace/cinder-csi-node", "metadata.labels.openshift.io/cluster-monitoring", `"true"`},
		{"Role/cinder-csi-controller-prometheus", "rules", rules},
		{"Role/cinder-csi-node-prometheus", "rules", rules},
		{"RoleBinding/cinder-csi-controller-prometheus", "subjects", subjects},
		{"RoleBinding/cinder-csi-node-prometheus", "subjects", subjects},
		{"ClusterRole/cinder-csi-metrics-reader", "rules", `[{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]`},
		{"ClusterRoleBinding/cinder-csi-metrics-reader", "subjects", `[{"kind": "ServiceAccount", "name": "cinder-csi-metrics-reader", "namespace": "cinder-csi"}]`},
		{"Secret/cinder-csi-metrics-reader", "type", `"kubernetes.io/service-account-token"`},
		{"Secret/cinder-csi-metrics-reader", "metadata.annotations", `{"kubernetes.io/service-account.name": "cinder-csi-metrics-reader"}`},
		{"ClusterRole/cinder-csi-metrics", "rules", `[{"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
			{"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}]`},
		{"NetworkPolicy/cinder-csi-controller", "spec.ingress[0].from", `[{"namespaceSelector": {"matchLabels": {"network.openshift.io/policy-group": "monitoring"}}}]`},
		{"Service/" + name, "spec.selector", `{"app.kubernetes.io/component": "controller", "app.kubernetes.io/name": "cinder-csi"}`},
		{"Service/" + name, "spec.ports", "[" + strings.Join(ports, ",") + "]"},
		{"ServiceMonitor/cinder-csi-controller-tls", "spec.selector.matchLabels", `{"app.kubernetes.io/component": "controller", "app.kubernetes.io/name": "cinder-csi"}`},
		{"ServiceMonitor/cinder-csi-controller-tls", "spec.endpoints", "[" + strings.Join(endpoints, ",") + "]"},
	} {
		var want any
		if err := json.Unmarshal([]byte(row.is), &want); err != nil {
			t.Fatal(err)
		}
		got, _, found := field.Find(objects[row.object].Fields, row.at)
		if diff := gocmp.Diff(want, asJSON(got)); !found || diff != "" {
			t.Errorf("%s %s: found: %t (-want +got):\n%s", row.object, row.at, found, diff)
		}
	}
}
