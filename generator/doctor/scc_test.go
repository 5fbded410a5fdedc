package doctor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

const (
	reviews           = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	constraintsServed = `{"resources": [{"name": "securitycontextconstraints"}]}`
	scheduler         = "/apis/config.openshift.io/v1/schedulers/cluster"
	operator          = "/apis/operator.openshift.io/v1/cloudcredentials/cluster"
)

// review answers by the key "may NAMESPACE:ACCOUNT use CONSTRAINT".
func (a api) review(w http.ResponseWriter, r *http.Request) {
	if a[reviews] == forbidden {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	var asked struct {
		Spec struct {
			User               string
			ResourceAttributes struct{ Verb, Group, Resource, Name string }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	right := asked.Spec.ResourceAttributes
	if right.Group != "security.openshift.io" || right.Resource != "securitycontextconstraints" {
		http.Error(w, "another right", http.StatusTeapot)
		return
	}
	_, may := a[fmt.Sprintf("may %s %s %s", strings.TrimPrefix(asked.Spec.User, "system:serviceaccount:"), right.Verb, right.Name)]
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"status": {"allowed": %t}}`, may)
}

// openShiftBundle is a bundle for target standalone: what differs from bundleYAML. The last line of it is in a namespace that comes with OpenShift.
const openShiftBundle = `
- {kind: ClusterRole, metadata: {name: cinder-csi-node-privileged}, rules: [{apiGroups: [security.openshift.io], resources: [securitycontextconstraints], resourceNames: [privileged], verbs: [use]}]}
- {kind: ClusterRoleBinding, metadata: {name: cinder-csi-node-privileged}, roleRef: {name: cinder-csi-node-privileged}, subjects: [{kind: ServiceAccount, name: cinder-csi-node, namespace: cinder-csi-node}]}
- {kind: CredentialsRequest, metadata: {name: cinder-csi, namespace: openshift-cloud-credential-operator}, spec: {secretRef: {name: cinder-csi-cloud, namespace: cinder-csi}}}
- {kind: Service, metadata: {name: cinder-csi-controller-metrics, namespace: cinder-csi, annotations: {service.beta.openshift.io/serving-cert-secret-name: metrics-tls}}}
- kind: Deployment
  metadata: {name: proxy, namespace: cinder-csi}
  spec: {template: {spec: {containers: [{name: proxy, image: "registry.example/driver:v1"}], volumes: [{name: tls, secret: {secretName: metrics-tls}}]}}}
- kind: DaemonSet
  metadata: {name: spare, namespace: openshift-storage}
  spec: {template: {spec: {containers: [{name: spare, image: "registry.example/driver:v1"}]}}}
`

// onOpenShift is a cluster without faults, and the bundle for it.
func onOpenShift(t *testing.T) (api, Install) {
	t.Helper()
	a := newAPI()
	a[constraintsAPI] = constraintsServed
	for _, name := range []string{"privileged", "restricted-v2"} {
		a[constraintsAPI+"/securitycontextconstraints/"+name] = `{}`
	}
	a["may cinder-csi:cinder-csi-controller use restricted-v2"] = ""
	a["/api/v1/namespaces/openshift-storage"] = `{"metadata": {"name": "openshift-storage", "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}`
	a[scheduler] = `{"spec": {}}`
	a[operator] = `{"spec": {"credentialsMode": ""}}`
	var objects, more []map[string]any
	requiring := strings.NewReplacer(
		"metadata: {name: cinder-csi-controller, namespace: cinder-csi}\n  spec:\n    template:\n      spec:\n",
		"metadata: {name: cinder-csi-controller, namespace: cinder-csi}\n  spec:\n    template:\n      metadata: {annotations: {openshift.io/required-scc: restricted-v2}}\n      spec:\n        serviceAccountName: cinder-csi-controller\n",
		"metadata: {name: cinder-csi-node, namespace: cinder-csi-node}\n  spec:\n    template:\n      spec:\n",
		"metadata: {name: cinder-csi-node, namespace: cinder-csi-node}\n  spec:\n    template:\n      metadata: {annotations: {openshift.io/required-scc: privileged}}\n      spec:\n        serviceAccountName: cinder-csi-node\n",
	).Replace(bundleYAML)
	for into, text := range map[*[]map[string]any]string{&objects: requiring, &more: openShiftBundle} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	i := install(t)
	var err error
	if i.Bundle, err = cluster.ReadBundle(append(objects, more...)); err != nil {
		t.Fatal(err)
	}
	i.Bundle.Workloads[2].Constraint, i.Bundle.Workloads[3].Constraint = "restricted-v2", "privileged"
	i.Bundle.Workloads[2].Pod.ServiceAccountName = "cinder-csi-controller"
	a["may openshift-storage: use privileged"] = ""
	delete(a, "/api/v1/namespaces/cinder-csi/secrets/cinder-csi-cloud")
	return a, i
}

// Before the first apply, neither the Secrets that OpenShift makes nor the rights that the bundle brings are there.
func TestARightInstallationOnOpenShiftHasNoFinding(t *testing.T) {
	a, i := onOpenShift(t)
	r := clusterReport(t, a, i)
	if r.Count(Error)+r.Count(Warning)+len(r.NotChecked) != 0 {
		t.Errorf("want only ok, got %+v %+v", r.Findings, r.NotChecked)
	}
	for id, says := range map[string]string{
		"cluster.secret": "Secret cinder-csi/cinder-csi-cloud does not exist yet; OpenShift's Cloud Credential Operator makes it",
		"cluster.scc":    "the bundle brings the right of DaemonSet cinder-csi-node/cinder-csi-node to use SecurityContextConstraints privileged",
	} {
		if !has(r, id, OK, says) {
			t.Errorf("want %s: %s, got %+v", id, says, r.Findings)
		}
	}
	if !has(r, "cluster.secret", OK, "Secret cinder-csi/metrics-tls does not exist yet; OpenShift's service CA makes it") {
		t.Errorf("got %+v", r.Findings)
	}
}

func TestEachFaultOfOpenShiftIsAFinding(t *testing.T) {
	const role = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cinder-csi-node-privileged"
	for _, f := range []struct {
		name, path, answer string // "": 404
		id                 string
		severity           Severity
		says               string
	}{
		{"not OpenShift", constraintsAPI, "", "cluster.scc", Error, "the API server serves no SecurityContextConstraints, and the bundle requires them"},
		{"no SCC", constraintsAPI + "/securitycontextconstraints/privileged", "", "cluster.scc", Error, "SecurityContextConstraints privileged, which DaemonSet cinder-csi-node/cinder-csi-node requires, does not exist"},
		{"no right for everybody", "may cinder-csi:cinder-csi-controller use restricted-v2", "", "cluster.scc", Error, "service account cinder-csi/cinder-csi-controller may not use SecurityContextConstraints restricted-v2"},
		{"a binding without effect", role, `{"subjects": []}`, "cluster.scc", Error, "service account cinder-csi-node/cinder-csi-node may not use SecurityContextConstraints privileged"},
		{"run level 0", "/api/v1/namespaces/cinder-csi", `{"metadata": {"labels": {"openshift.io/run-level": "0"}}}`, "cluster.namespace", Error, "namespace cinder-csi has the label openshift.io/run-level"},
		{"run level 1", "/api/v1/namespaces/openshift-storage", `{"metadata": {"labels": {"openshift.io/run-level": "1"}}}`, "cluster.namespace", Error, "namespace openshift-storage has the label openshift.io/run-level"},
		{"a namespace of OpenShift that is too strict", "/api/v1/namespaces/openshift-storage", `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}`, "cluster.namespace", Error, "namespace openshift-storage enforces the Pod Security level baseline; the pods need privileged"},
		{"no namespace of OpenShift", "/api/v1/namespaces/openshift-storage", "", "cluster.namespace", Error, "namespace openshift-storage does not exist"},
		{"a default node selector", scheduler, `{"spec": {"defaultNodeSelector": "type=user"}}`, "cluster.namespace", Warning, "OpenShift adds the node selector type=user to the pods in namespace openshift-storage"},
		{"a node selector of the namespace", "/api/v1/namespaces/openshift-storage", `{"metadata": {"annotations": {"openshift.io/node-selector": "a=b"}}}`, "cluster.namespace", Warning, "the node selector a=b"},
		{"no Cloud Credential Operator", operator, "", "cluster.secret", Error, "the cluster has no Cloud Credential Operator"},
		{"mode Manual", operator, `{"spec": {"credentialsMode": "Manual"}}`, "cluster.secret", Error, "the Cloud Credential Operator is in mode Manual"},
		{"a Secret without the key", "/api/v1/namespaces/cinder-csi/secrets/cinder-csi-cloud", `{"data": {}}`, "cluster.secret", Error, "has no key clouds.yaml"},
	} {
		t.Run(f.name, func(t *testing.T) {
			a, i := onOpenShift(t)
			if a[f.path] = f.answer; f.answer == "" {
				delete(a, f.path)
			}
			if r := clusterReport(t, a, i); !has(r, f.id, f.severity, f.says) {
				t.Errorf("want %s %s with %q, why and what to do, got %+v", f.severity, f.id, f.says, r.Findings)
			}
		})
	}
}

func TestWithoutTheRightToReviewTheConstraintsAreNotChecked(t *testing.T) {
	for _, path := range []string{reviews, constraintsAPI + "/securitycontextconstraints/privileged"} {
		a, i := onOpenShift(t)
		a[path] = forbidden
		if r := clusterReport(t, a, i); r.Count(Error) != 0 || len(r.NotChecked) == 0 || has(r, "cluster.scc", OK, "DaemonSet cinder-csi-node/cinder-csi-node") {
			t.Errorf("%s: want gaps and no error, got %+v", path, r)
		}
	}
}
