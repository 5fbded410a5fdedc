package migrate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// carriers are the shapes in which people keep values of upstream's chart. Each has cluster ID depot and topology off, or the sentence that says what
// to give instead.
var carriers = map[string]struct{ text, refused string }{
	"HelmRelease v2": {text: `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: a}
spec: {chart: {spec: {chart: openstack-cinder-csi}}, values: {clusterID: depot, csi: {provisioner: {topology: "false"}}}}`},
	"HelmRelease v2beta1 with values elsewhere": {text: `apiVersion: helm.toolkit.fluxcd.io/v2beta1
kind: HelmRelease
metadata: {name: a}
spec: {chart: {spec: {chart: openstack-cinder-csi}}, valuesFrom: [{kind: ConfigMap, name: c}], values: {clusterID: depot, csi: {provisioner: {topology: false}}}}`},
	"Application, values as a text": {text: `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: a}
spec: {source: {chart: openstack-cinder-csi, helm: {values: "clusterID: depot\ncsi: {provisioner: {topology: \"false\"}}\n"}}}`},
	"Application, valuesObject and parameters": {text: `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: a}
spec: {source: {chart: openstack-cinder-csi, helm: {valuesObject: {clusterID: other}, parameters: [{name: clusterID, value: depot}, {name: csi.provisioner.topology, value: "false"}]}}}`},
	"ApplicationSet with several sources": {text: `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: a}
spec: {template: {spec: {sources: [{chart: openstack-cinder-csi, helm: {valueFiles: [$conf/x.yaml], valuesObject: {clusterID: depot, csi: {provisioner: {topology: "false"}}}}}, {repoURL: x, ref: conf}]}}}`},
	"HelmChart of K3s": {text: `apiVersion: helm.cattle.io/v1
kind: HelmChart
metadata: {name: a}
spec: {chart: openstack-cinder-csi, set: {clusterID: depot}, valuesContent: "csi: {provisioner: {topology: \"false\"}}"}`},
	"HelmChartConfig of RKE2 beside its HelmChart": {text: `apiVersion: helm.cattle.io/v1
kind: HelmChart
metadata: {name: a}
spec: {chart: openstack-cinder-csi, set: {clusterID: depot}}
---
apiVersion: helm.cattle.io/v1
kind: HelmChartConfig
metadata: {name: a}
spec: {valuesContent: "csi: {provisioner: {topology: \"false\"}}"}`},
	"fleet.yaml":      {text: "helm: {chart: openstack-cinder-csi, values: {clusterID: depot, csi: {provisioner: {topology: \"false\"}}}}"},
	"helmfile":        {text: "releases: [{name: a, chart: cpo/openstack-cinder-csi, values: [values.yaml, {clusterID: depot}, {csi: {provisioner: {topology: \"false\"}}}]}]"},
	"k0s":             {text: "apiVersion: k0s.k0sproject.io/v1beta1\nkind: ClusterConfig\nspec: {extensions: {helm: {charts: [{name: a, chartname: cpo/openstack-cinder-csi, values: \"clusterID: depot\\ncsi: {provisioner: {topology: 'false'}}\\n\"}]}}}"},
	"kustomize":       {text: "kind: Kustomization\nhelmCharts: [{name: openstack-cinder-csi, valuesInline: {clusterID: depot, csi: {provisioner: {topology: \"false\"}}}}]"},
	"Terraform JSON":  {text: `{"resource": {"helm_release": {"a": {"chart": "openstack-cinder-csi", "values": ["clusterID: depot"], "set": [{"name": "csi.provisioner.topology", "value": "false"}]}}}}`},
	"helm get values": {text: "USER-SUPPLIED VALUES:\nclusterID: depot\ncsi: {provisioner: {topology: \"false\"}}\n"},
	"a parent chart":  {text: "priorityClassName: platform\nstorage: {clusterID: depot, csi: {provisioner: {topology: \"false\"}}}\n"},
	"a ConfigMap with manifests": {text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: crs}\ndata:\n  c.yaml: |\n    kind: Deployment\n    apiVersion: apps/v1\n    metadata: {name: c}\n" +
		"    spec: {template: {spec: {containers: [{name: c, image: x/cinder-csi-plugin:v1, args: [--cluster=depot, --with-topology=false]}]}}}\n"},
	"a byte order mark":                     {text: "\ufeffclusterID: depot\ncsi: {provisioner: {topology: \"false\"}}\n"},
	"flags that turn topology off":          {text: "clusterID: depot\ncsi: {plugin: {extraArgs: [--with-topology=false]}}\n"},
	"a flag that replaces the key":          {text: "clusterID: other\ncsi: {plugin: {extraArgs: \"[--cluster=depot]\"}, provisioner: {topology: \"false\"}}\n"},
	"a provisioner whose gate is off":       {text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: c}\nspec: {template: {spec: {containers: [{name: p, image: x/csi-provisioner:v3.0.0}, {name: c, image: x/cinder-csi-plugin:v1, args: [--cluster=depot]}]}}}\n"},
	"HelmChartProxy with a template":        {refused: "valuesTemplate is a template", text: "kind: HelmChartProxy\nspec: {chartName: openstack-cinder-csi, valuesTemplate: \"clusterID: {{ .Cluster.metadata.name }}\"}"},
	"encrypted by SOPS":                     {refused: "encrypted by SOPS", text: "clusterID: ENC[AES256_GCM,data:x]\nsops: {version: 3.9.0}\n"},
	"a template of Kubespray":               {refused: "it looks like a template", text: "clusterID: {{ cluster }}\ncsi: {% if x %}a{% endif %}\n"},
	"values of another chart":               {refused: "no setting of a Cinder driver", text: "nameOverride: shop\nservice: {port: 8080}\n"},
	"a patch of an overlay":                 {refused: "it is about the driver", text: "kind: Kustomization\nresources: [\"https://github.com/kubernetes/cloud-provider-openstack//manifests/cinder-csi-plugin?ref=v1.34.0\"]\n"},
	"a key that import does not read":       {refused: "does not read the key", text: "helm: {chart: openstack-cinder-csi, set: [{name: \"csi.plugin.extraArgs[0]\", value: x}]}"},
	"a text that is no mapping":             {refused: "no YAML mapping", text: "kind: HelmRelease\nspec: {chart: {spec: {chart: openstack-cinder-csi}}, values: \"[a\"}"},
	"an object of a controller of its own":  {refused: "it is about the driver", text: "apiVersion: example.com/v1\nkind: Storage\nspec: {driver: cinder.csi.openstack.org}\n"},
	"a parent chart with two such mappings": {refused: "stand below a and b", text: "a: {clusterID: x, csi: {provisioner: {topology: \"true\"}}}\nb: {clusterID: two, csi: {provisioner: {topology: \"true\"}}}\n"},
}

func TestValuesAreReadInEveryShape(t *testing.T) {
	for name, c := range carriers {
		t.Run(name, func(t *testing.T) {
			d, notes, err := importOf(t, c.text)
			switch {
			case c.refused != "":
				if !errors.Is(err, ErrFile) || !strings.Contains(fmt.Sprint(err), c.refused) {
					t.Errorf("want a refusal with %q, got %v", c.refused, err)
				}
			case err != nil || d.Spec.ClusterID != "depot" || d.Spec.Topology.Mode != "disabled":
				t.Errorf("want cluster depot without topology, got %q, %q, %v\n%v", d.Spec.ClusterID, d.Spec.Topology.Mode, err, notes)
			}
			for _, n := range notes {
				if strings.Contains(n.String(), "it has no setting of the driver") {
					t.Error(n)
				}
			}
			if told := fmt.Sprint(notes); c.refused == "" && strings.Contains(c.text, "valuesFrom") != strings.Contains(told, "valuesFrom") {
				t.Errorf("want a line about the values that stand elsewhere: %s", told)
			}
		})
	}
}

// A person copies the whole values.yaml of the chart. Nobody chose its defaults.
func TestDefaultsOfTheChartAreNoChoices(t *testing.T) {
	few, _, err := importOf(t, "clusterID: depot\n")
	if err != nil {
		t.Fatal(err)
	}
	full, _, err := importOf(t, `clusterID: depot
logVerbosityLevel: 2
pvcAnnotations: false
csi:
  attacher: {image: {repository: registry.k8s.io/sig-storage/csi-attacher, tag: v4.10.0, pullPolicy: IfNotPresent}}
  provisioner: {topology: "true", image: {repository: k8s.gcr.io/sig-storage/csi-provisioner, pullPolicy: IfNotPresent}}
  livenessprobe: {image: {repository: quay.io/k8scsi/livenessprobe, pullPolicy: IfNotPresent}, failureThreshold: 5}
  plugin:
    image: {repository: registry.k8s.io/provider-os/cinder-csi-plugin, pullPolicy: IfNotPresent}
    nodePlugin: {kubeletDir: /var/lib/kubelet, tolerations: [{operator: Exists}]}
    controllerPlugin: {replicas: 1, strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if want, got := fmt.Sprintf("%+v", few.Spec), fmt.Sprintf("%+v", full.Spec); want != got {
		t.Errorf("want %s\ngot  %s", want, got)
	}
}

// What a Distribution takes of an installation, and what stays, beside the workloads.
func TestEachObjectOfAnInstallationHasItsLine(t *testing.T) {
	controller := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: c, namespace: n}\nspec: {template: {spec: {containers: [{name: c, image: x/cinder-csi-plugin:v1, args: [--cluster=depot]}," +
		"{name: csi-provisioner, image: x/csi-provisioner:v5.3.0, imagePullPolicy: Always, args: [--csi-address=/csi/csi.sock, --default-fstype=xfs, --volume-name-prefix=depot], env: [{name: GOMAXPROCS, value: \"2\"}]," +
		"ports: [{containerPort: 1}], livenessProbe: {periodSeconds: 1}, securityContext: {runAsUser: 1}, lifecycle: {}, volumeMounts: [{name: ca, mountPath: /opt/ca}]}]," +
		"volumes: [{name: ca, hostPath: {path: /opt/certs}}, {name: nfs, nfs: {server: s, path: /}}, {name: dev, hostPath: {path: /dev}}]}}}\n---\n"
	d, notes, err := importOf(t, controller+`apiVersion: v1
kind: ConfigMap
metadata: {name: own-conf}
data: {cloud.conf: "[BlockStorage]\nnode-volume-attach-limit=20\n"}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: quick}
driverName: cinder.csi.openstack.org
parameters: {type: fast}
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: cinder.csi.openstack.org}
spec: {fsGroupPolicy: None, storageCapacity: true}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {name: cinder-csi-plugin}
`)
	if err != nil {
		t.Fatal(err)
	}
	if d.Spec.AttributesClasses["quick"].Type != "fast" || fmt.Sprint(d.Spec.VolumeAttachLimit) != "20" {
		t.Errorf("want class quick and limit 20, got %+v and %v", d.Spec.AttributesClasses, d.Spec.VolumeAttachLimit)
	}
	all := ""
	for _, n := range notes {
		all += n.String() + "\n"
	}
	for _, want := range []string{
		"--default-fstype: left out", "--volume-name-prefix: left out", "env GOMAXPROCS: left out", "imagePullPolicy: left out", "livenessProbe: left out", "securityContext: left out",
		"lifecycle: left out", "ports: left out", "volumeMounts: left out", "volume ca: left out", "volume nfs: left out", "spec.fsGroupPolicy: left out", "spec.storageCapacity: left out",
		"PodMonitor: left out: it stays in the cluster after the swap",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("want %q in:\n%s", want, all)
		}
	}
	if strings.Contains(all, "volume dev") || strings.Contains(all, "--csi-address") {
		t.Errorf("want no line for what every installation has:\n%s", all)
	}
}
