//go:build apiserver

package apiserver

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// runningVolumes are what users of upstream have beside its workloads: classes with other names, and two volumes in zones. The second one is
// older than CSI.
const runningVolumes = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: csi-cinder, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: cinder.csi.openstack.org
parameters: {type: fast}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: in-tree}
provisioner: kubernetes.io/cinder
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: of-others}
provisioner: nfs.csi.k8s.io
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: keep}
driver: cinder.csi.openstack.org
deletionPolicy: Retain
parameters: {force-create: "true"}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: zoned}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: cinder.csi.openstack.org, volumeHandle: 6b1e6d3c-7d4e-4c7a-8a52-0d7d9d0f2a11}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.cinder.csi.openstack.org/zone, operator: In, values: [az1]}]}]}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: in-tree, labels: {topology.kubernetes.io/zone: az2}}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  cinder: {volumeID: 0f0c3c9e-0b60-4c3f-9a36-0d2a2b6f7c55}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [az2]}]}]}}
`

// TestARunningUpstreamIsImportedWithItsChangedValues installs upstream's manifests and its chart, each with a dozen changed values. It imports
// what the API server returns for them, which has its own defaults in every object.
func TestARunningUpstreamIsImportedWithItsChangedValues(t *testing.T) {
	dir := upstream(t)
	for _, c := range []struct {
		name    string
		install func(*testing.T, *server)
	}{
		{"manifests", func(t *testing.T, s *server) {
			for _, name := range []string{"cinder-csi-controllerplugin-rbac", "cinder-csi-controllerplugin", "cinder-csi-nodeplugin-rbac", "cinder-csi-nodeplugin", "csi-cinder-driver"} {
				text := testfile.Text(t, filepath.Join(dir, "manifests/cinder-csi-plugin", name+".yaml"))
				s.Write(t, name+".yaml", edited(t, name, text))
				s.run(t, "kubectl", "create", "-f", name+".yaml")
			}
		}},
		{"chart", func(t *testing.T, s *server) {
			s.helm(t, "helm")
			s.Write(t, "values.yaml", upstreamValues)
			s.run(t, "helm", "install", "cinder", filepath.Join(dir, "charts/cinder-csi-plugin"), "--namespace", "storage", "--create-namespace", "--values", "values.yaml")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startServer(t)
			c.install(t, s)
			s.Write(t, "volumes.yaml", runningVolumes)
			s.run(t, "kubectl", "create", "-f", "volumes.yaml")
			s.importsVolumeZonesOnlyIfKnown(t)
			s.Write(t, "zones.conf", "[Zone \"az1\"]\nvolume-zone=nova\n[Zone \"az2\"]\nvolume-zone=nova\n")
			got := s.run(t, "cinder-csi-generator", "import", "--kubeconfig", "kubeconfig", "zones.conf")
			golden := filepath.Join(s.Repo, "test/suite/apiserver/testdata/imported-"+c.name+".yaml")
			if *update {
				testfile.Write(t, golden, got, 0o644)
			}
			want := testfile.Read(t, golden)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the configuration of what runs (-want +got):\n%s", diff)
			}
			s.Write(t, "distribution.yaml", got)
			s.run(t, "cinder-csi-generator", "plan", "--simulated", "--target", "vanilla", "--config", "distribution.yaml")
		})
	}
}

// importsVolumeZonesOnlyIfKnown demands exit code 3 with the zones of the volumes while nothing says which volume zones they are.
func (s *server) importsVolumeZonesOnlyIfKnown(t *testing.T) {
	t.Helper()
	out, messages, err := s.Try("cinder-csi-generator", "import", "--kubeconfig", "kubeconfig")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || out != "" || !strings.Contains(messages, "PersistentVolumes are in az1, az2") {
		t.Errorf("want exit code 3 with both zones, got %v:\n%s%s", err, out, messages)
	}
}

// edited is a manifest of upstream as an administrator would change it.
func edited(t *testing.T, name, text string) string {
	t.Helper()
	edits := map[string][][2]string{
		"cinder-csi-controllerplugin": {
			{"replicas: 1", "replicas: 2"},
			{"value: kubernetes", "value: blue"},
			{`"--v=1"`, `"--v=4"`},
			{"            - \"--pvc-annotations\"\n", ""},
			{"registry.k8s.io/sig-storage/csi-attacher:", "mirror.example/sig-storage/csi-attacher:"},
			{"      serviceAccount: ", `      priorityClassName: system-cluster-critical
      nodeSelector: {role: infra}
      tolerations: [{key: role, operator: Equal, value: infra, effect: NoSchedule}]
      imagePullSecrets: [{name: pull}]
      serviceAccount: `},
			{"          imagePullPolicy: \"IfNotPresent\"\n          ports:", "          resources: {requests: {cpu: 50m, memory: 64Mi}}\n          ports:"},
		},
		"cinder-csi-nodeplugin": {
			{"/var/lib/kubelet", "/data/kubelet"},
			{`"--v=1"`, `"--v=4"`},
			{"        app: csi-cinder-nodeplugin\n    spec:", "        app: csi-cinder-nodeplugin\n        team: storage\n    spec:"},
			{"      hostNetwork: true", "      hostNetwork: true\n      priorityClassName: system-node-critical"},
		},
	}
	for _, edit := range edits[name] {
		if !strings.Contains(text, edit[0]) {
			t.Fatalf("%s of upstream no longer has %q; change the test", name, edit[0])
		}
		text = strings.ReplaceAll(text, edit[0], edit[1])
	}
	return text
}

const upstreamValues = `
clusterID: blue
logVerbosityLevel: 4
timeout: 5m
priorityClassName: system-cluster-critical
imagePullSecrets: [{name: pull}]
commonAnnotations: {owner: storage}
storageClass: {enabled: false}
secret: {enabled: true, create: false, hostMount: false, name: cloud-config}
csi:
  attacher:
    image: {repository: mirror.example/sig-storage/csi-attacher}
  snapshotter:
    resources: {requests: {cpu: 10m}}
  plugin:
    httpEndpoint: {enabled: true, port: 8081}
    resources: {requests: {cpu: 50m, memory: 64Mi}}
    nodePlugin:
      kubeletDir: /data/kubelet
      podLabels: {team: storage}
    controllerPlugin:
      replicas: 2
      nodeSelector: {role: infra}
      tolerations: [{key: role, operator: Equal, value: infra, effect: NoSchedule}]
`
