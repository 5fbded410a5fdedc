package migrate

import (
	"fmt"
	"strings"
	"testing"
)

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
