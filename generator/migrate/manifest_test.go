package migrate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestPlainManifestsBecomeADistribution(t *testing.T) {
	const dir = "manifests"
	d, notes, err := (&Importer{Zones: &Zones{Compute: []string{"az1", "az2"}, Volume: []string{"nova"}}}).Import(below(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	got := text(t, d, notes)
	if *update {
		testfile.Write(t, "testdata/"+dir+".want", got, 0o644)
	}
	want := testfile.Read(t, "testdata/"+dir+".want")
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, secret := range []string{"hunter2", "Y2FuYXJ5", "canary"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s is told:\n%s", secret, got)
		}
	}
}

func TestEachKindOfAPlainManifestIsReadAlone(t *testing.T) {
	for _, test := range []struct{ name, content, spec, note string }{
		{"DaemonSet", `{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {spec: {containers: [{image: x/cinder-csi-plugin:v1, args: ["--with-topology=false"]}]}}}}`, "", "image of upstream's plugin"},
		{"controller without zones", `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{image: x/cinder-csi-plugin:v1, args: ["--with-topology=false"]}]}}}}`, "mode: disabled", "the plugin has none"},
		{"StorageClass", `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: a}, provisioner: cinder.csi.openstack.org}`, "", classStays},
		{"in-tree StorageClass", `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: a}, provisioner: kubernetes.io/cinder}`, "", inTreeStays},
		{"VolumeSnapshotClass", `{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotClass, metadata: {name: a}, driver: cinder.csi.openstack.org, deletionPolicy: Retain, parameters: {type: backup}}`, "a:\n        deletionPolicy: Retain\n        parameters:\n          type: backup", "is now spec.snapshots.classes"},
		{
			"two default VolumeSnapshotClasses", snapshotClasses("a", "b"), "a:\n        deletionPolicy: Delete\n        default: true\n      b:\n        deletionPolicy: Delete\n",
			"kubectl annotate --overwrite volumesnapshotclass b snapshot.storage.kubernetes.io/is-default-class=false",
		},
		{"VolumeSnapshotClass of the bundle", snapshotClasses("cinder-csi"), "", "the bundle changes it to its own"},
		{"VolumeSnapshotClass of OpenShift", snapshotClasses("standard-csi") + "\n---\n{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}", "", classStays},
		{
			"VolumeSnapshotClass with a Secret", "{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotClass, metadata: {name: a}, driver: cinder.csi.openstack.org, deletionPolicy: Delete, " +
				"parameters: {csi.storage.k8s.io/snapshotter-secret-name: s}}", "", classStays,
		},
		{"in-tree volume", `{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-a}, spec: {cinder: {volumeID: x}}}`, "", "PersistentVolumes in-tree (1): pv-a: left out: Kubernetes gives in-tree volumes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if spec, notes := imported(t, test.content); !strings.Contains(spec, test.spec) || !strings.Contains(notes, test.note) {
				t.Errorf("want %q and %q, got:\n%s%s", test.spec, test.note, spec, notes)
			}
		})
	}
}

// snapshotClasses are default classes of upstream's driver.
func snapshotClasses(names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, "{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotClass, driver: cinder.csi.openstack.org, deletionPolicy: Delete, "+
			"metadata: {name: "+name+", annotations: {snapshot.storage.kubernetes.io/is-default-class: 'true'}}}")
	}
	return strings.Join(all, "\n---\n")
}

func TestAClusterIDThatCannotBeReadIsRefused(t *testing.T) {
	const manifest = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: c}, spec: {template: {spec: {containers: [{name: p, image: x/cinder-csi-plugin,
  args: ["--cluster=$(ID)"], env: [{name: ID, valueFrom: {configMapKeyRef: {name: a, key: b}}}]}]}}}}`
	if _, _, err := Import(files(manifest)); err == nil || !strings.Contains(err.Error(), "give a further file with the line clusterID: VALUE") {
		t.Errorf("want a refusal, got %v", err)
	}
	if spec, notes := imported(t, manifest+"\n---\nclusterID: blue\n"); !strings.Contains(spec, "clusterID: blue") {
		t.Errorf("want the ID of the further file, got:\n%s%s", spec, notes)
	}
}

func TestAKeyThatTheChartDoesNotHaveIsNamedAndTheRestIsRead(t *testing.T) {
	spec, notes := imported(t, "clusterID: blue\ncsi: {provisoner: {topology: hunter2}, plugin: {kubeletDir: hunter2}}\nnewKey: {password: hunter2}\nadditionalDaemonSets: {gpu: {nodeSelector: {hunter2: x}}}\n")
	if !strings.Contains(spec, "clusterID: blue") || strings.Contains(spec+notes, "hunter2") {
		t.Errorf("want the key that is known, and no value, got:\n%s%s", spec, notes)
	}
	for _, key := range []string{"csi.provisoner", "csi.plugin.kubeletDir", "newKey", "additionalDaemonSets"} {
		if want := fmt.Sprintf("file: %s: left out: import does not know this key", key); !strings.Contains(notes, want) {
			t.Errorf("want %q in:\n%s", want, notes)
		}
	}
}

func TestCredentialsThatCannotBeConvertedAreRefusedWithoutAValue(t *testing.T) {
	for _, test := range []struct{ name, content, says string }{
		{"none", "clusterID: a", "no file is a cloud.conf"},
		{"two", "clusterID: a\nsecret: {data: {a: \"[Global]\\npassword=hunter2\", b: \"[Global]\\npassword=hunter2\"}}", "2 files are a cloud.conf"},
		{"another file", "[Global]\nuse-clouds=true\nclouds-file=/etc/hunter2\n", "takes the credentials from a clouds.yaml"},
	} {
		in := Importer{}
		if _, _, err := in.Import(files(test.content)); err != nil {
			t.Fatal(err)
		}
		if conf, err := in.CloudConf(); conf != nil || !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: want %q, got %v", test.name, test.says, err)
		}
	}
}
