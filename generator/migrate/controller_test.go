package migrate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

const oldController = `apiVersion: %VERSION
kind: %KIND
metadata: {name: csi-cinder-controllerplugin, namespace: kube-system}
spec:
  serviceName: csi-cinder-controller-service
  replicas: 1
  template:
    metadata: {labels: {app: csi-cinder-controllerplugin}}
    spec:
      priorityClassName: system-cluster-critical
      %CONTAINERS:
      - {name: csi-provisioner, image: "quay.io/k8scsi/csi-provisioner:v1.6.0", args: ["--csi-address=/csi/csi.sock", "--feature-gates=Topology=false"]}
      - {name: driver, image: "%IMAGE", command: [%COMMAND], args: ["--endpoint=unix:///csi/csi.sock", "--cloud-config=/etc/config/cloud.conf", "--cluster=depot-7"]}
`

const oldNode = `
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: csi-cinder-nodeplugin, namespace: kube-system}
spec:
  template:
    spec:
      containers: [{name: driver, image: "%IMAGE", command: [%COMMAND], args: ["--endpoint=unix:///csi/csi.sock"]}]
      volumes: [{name: plugin-dir, hostPath: {path: /var/lib/kubelet/plugins/cinder.csi.openstack.org}}]
`

// Each kind of object, API version and way to start a program: the controller is read, and no line says that it has no settings.
func TestAControllerIsKnownByItsContainers(t *testing.T) {
	for _, kind := range []struct{ kind, version string }{
		{"Deployment", "apps/v1"},
		{"Deployment", "apps/v1beta2"},
		{"Deployment", "extensions/v1beta1"},
		{"StatefulSet", "apps/v1"},
		{"StatefulSet", "apps/v1beta1"},
		{"ReplicaSet", "apps/v1"},
	} {
		for _, program := range []struct{ image, command, containers string }{
			{"docker.io/k8scloudprovider/cinder-csi-plugin:v1.19.2", "/bin/cinder-csi-plugin", "containers"},
			{"registry.k8s.io/provider-os/cinder-csi-plugin:v1.34.0", "/bin/cinder-csi-plugin", "initContainers"},
			{"registry.example.com/platform/openstack-storage:2024.3", "/entrypoint.sh", "containers"},
		} {
			text := strings.NewReplacer("%VERSION", kind.version, "%KIND", kind.kind, "%IMAGE", program.image, "%COMMAND", program.command, "%CONTAINERS", program.containers).Replace(oldController + oldNode)
			d, notes, err := importOf(t, text)
			if err != nil {
				t.Errorf("%v %v: %v", kind, program, err)
				continue
			}
			if d.Spec.ClusterID != "depot-7" || d.Spec.Topology.Mode != "disabled" || d.Spec.Roles.Controller.PriorityClassName != "system-cluster-critical" {
				t.Errorf("%v %v: want cluster depot-7 without topology, got %q, %q, %q", kind, program, d.Spec.ClusterID, d.Spec.Topology.Mode, d.Spec.Roles.Controller.PriorityClassName)
			}
			for _, n := range notes {
				if strings.Contains(n.String(), "it has no setting of the driver") || strings.Contains(n.String(), "the plugin has none") {
					t.Errorf("%v %v: %s", kind, program, n)
				}
			}
		}
	}
}

func TestAPodIsReadAsAController(t *testing.T) {
	d, _, err := importOf(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: c, namespace: n}\nspec:\n  containers: [{name: c, image: x/cinder-csi-plugin:v1, args: [\"--cluster=depot-9\"]}]\n")
	if err != nil || d.Spec.ClusterID != "depot-9" {
		t.Errorf("got cluster %q, %v", d.Spec.ClusterID, err)
	}
}

// A container beside the driver may have a template of its own, such as that of a go-template. The driver's settings are read all the same.
func TestATemplateInAContainerHidesNoSetting(t *testing.T) {
	text := strings.NewReplacer("%VERSION", "apps/v1", "%KIND", "Deployment", "%IMAGE", "x/cinder-csi-plugin:v1", "%COMMAND", "/bin/cinder-csi-plugin", "%CONTAINERS", "containers").Replace(oldController) +
		"      - {name: other, image: kubectl, args: [get, pods, -o, \"go-template={{.items}}\"]}\n"
	d, notes, err := importOf(t, text)
	if err != nil || d.Spec.ClusterID != "depot-7" || d.Spec.Topology.Mode != "disabled" {
		t.Errorf("got cluster %q, topology %q, %v, %v", d.Spec.ClusterID, d.Spec.Topology.Mode, err, notes)
	}
}

// Helm's labels name the chart. A workload with one is no carrier of values.
func TestAWorkloadWhoseLabelNamesTheChartIsRead(t *testing.T) {
	d, _, err := importOf(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: c, labels: {chart: openstack-cinder-csi}}\nspec: {template: {spec: {containers: [{name: c, image: x/cinder-csi-plugin:v1, args: [--cluster=depot-3]}]}}}\n")
	if err != nil || d.Spec.ClusterID != "depot-3" {
		t.Errorf("got cluster %q, %v", d.Spec.ClusterID, err)
	}
}

// importOf imports one text.
func importOf(t *testing.T, text string) (v1alpha1.Distribution, []Note, error) {
	t.Helper()
	return Import(func(yield func(File, error) bool) { yield(File{Name: "old.yaml", Content: []byte(text)}, nil) })
}

// What a workload makes has no setting of its own: the node of its Pod and what a kubelet writes on that are none.
func TestWhatAWorkloadMakesIsCountedAndNotRead(t *testing.T) {
	const (
		template  = "spec: {template: {spec: {containers: [{name: p, image: x/cinder-csi-plugin:v1, args: [--cluster=blue, --cloud-config=/c]}]}}}"
		workloads = "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: base, name: c}, " + template + "}\n---\n" +
			"{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: base, name: n}, " + template + "}"
	)
	want, _, err := Import(named("all.yaml", workloads))
	if err != nil {
		t.Fatal(err)
	}
	made := func(apiVersion, kind, name, owner, rest string) string {
		return "{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {namespace: base, name: " + name + ", annotations: {a: evil}, ownerReferences: [{kind: " + owner + ", name: o}]}, " + rest + "}"
	}
	pod := func(node, owner string) string {
		return made("v1", "Pod", node, owner, "spec: {priorityClassName: evil, tolerations: [{operator: Exists}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
			"{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: ["+node+"]}]}]}}}, containers: [{name: p, image: x/cinder-csi-plugin:v1, args: [--cluster=evil]}]}")
	}
	evil := strings.ReplaceAll(template, "blue", "evil")
	for name, test := range map[string]struct {
		objects []string
		note    string
	}{
		"a Pod of a DaemonSet":             {[]string{pod("w1", "DaemonSet")}, "Pod of a workload"},
		"Pods of a DaemonSet":              {[]string{pod("w1", "DaemonSet"), pod("w2", "DaemonSet")}, "Pod of a workload (2)"},
		"a Pod of a ReplicaSet":            {[]string{pod("w1", "ReplicaSet")}, "Pod of a workload"},
		"a Pod of a StatefulSet":           {[]string{pod("w1", "StatefulSet")}, "Pod of a workload"},
		"a Pod of a Job":                   {[]string{pod("w1", "Job")}, "Pod of a workload"},
		"a ReplicaSet of a Deployment":     {[]string{made("apps/v1", "ReplicaSet", "r", "Deployment", evil)}, "ReplicaSet of a workload"},
		"an old ReplicaSet":                {[]string{made("extensions/v1beta1", "ReplicaSet", "r", "Deployment", evil)}, "ReplicaSet of a workload"},
		"a ControllerRevision":             {[]string{made("apps/v1", "ControllerRevision", "r", "DaemonSet", "data: {"+evil+"}")}, "ControllerRevision of a workload"},
		"a Pod in a list without its kind": {[]string{"apiVersion: v1\nkind: PodList\nitems:\n- " + strings.Replace(pod("w1", "DaemonSet"), "apiVersion: v1, kind: Pod, ", "", 1)}, "Pod of a workload"},
	} {
		t.Run(name, func(t *testing.T) {
			all := strings.Join(test.objects, "\n---\n")
			got, notes, err := Import(named("all.yaml", workloads+"\n---\n"+all))
			if err != nil || !cmp.Equal(want, got) {
				t.Errorf("beside its workload: %v\n%s", err, cmp.Diff(want, got))
			}
			if note := (Note{File: "all.yaml", Key: test.note, Why: whyOwned}); !slices.Contains(notes, note) {
				t.Errorf("want %s, got %v", note, notes)
			}
			if _, _, err := Import(named("all.yaml", all)); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), whyOwned) {
				t.Errorf("alone: want an error that says what to give, got %v", err)
			}
		})
	}
	if got, _, err := Import(named("all.yaml", pod("w1", "Node"))); err != nil || got.Spec.ClusterID != "evil" {
		t.Errorf("a Pod that no workload makes is read: got %v", err)
	}
}
