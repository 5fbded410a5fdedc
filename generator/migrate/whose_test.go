package migrate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// strangers have, by the name of each format, what gives a value by it. What is in a namespace is in that of a tenant.
func strangers(t *testing.T) map[string][]string {
	t.Helper()
	ca := testCA(t)
	workload := func(kind string) []string {
		return []string{"{apiVersion: apps/v1, kind: " + kind + ", metadata: {namespace: tenant, name: w}, spec: {template: {spec: {containers: [{name: p, image: x/cinder-csi-plugin:v1, args: [--cluster=evil]}]}}}}"}
	}
	tenants := func(name, data string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: tenant, name: " + name + "}, data: {" + data + "}}"
	}
	const conf = `"[BlockStorage]\nnode-volume-attach-limit=3\n"`
	return map[string][]string{
		"values of upstream's chart": {
			"{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: tenant, name: c}, spec: {chart: {spec: {chart: openstack-cinder-csi}}, values: {clusterID: evil}}}",
			"{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {namespace: tenant, name: c}, spec: {source: {chart: openstack-cinder-csi, helm: {values: 'clusterID: evil'}}}}",
			"{apiVersion: helm.cattle.io/v1, kind: HelmChartConfig, metadata: {namespace: tenant, name: c}, spec: {valuesContent: 'clusterID: evil'}}",
			"{apiVersion: example.com/v1, kind: Any, metadata: {namespace: tenant, name: c}, spec: {values: {clusterID: evil, csi: {plugin: {extraArgs: [--v=9]}}}}}",
			tenants("m", "values.yaml: 'csi: {plugin: {extraArgs: [--v=9]}}'"),
		},
		"cloud.conf":     {tenants("m", "cloud.conf: "+conf+", x.yaml: '"+ofDriver+"'")},
		"Infrastructure": {"{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}, spec: {cloudConfig: {name: x}}, status: {infrastructureName: evil}}"},
		"HostedCluster":  {"{apiVersion: hypershift.openshift.io/v1beta1, kind: HostedCluster, metadata: {namespace: tenant, name: evil}, spec: {infraID: evil}}"},
		"HostedControlPlane": {
			"{apiVersion: hypershift.openshift.io/v1beta1, kind: HostedControlPlane, metadata: {namespace: tenant, name: evil}, spec: {infraID: evil}}",
		},
		"Proxy":            {"{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, status: {httpsProxy: 'http://evil.example:3128'}}"},
		"Network":          {"{apiVersion: config.openshift.io/v1, kind: Network, metadata: {name: cluster}, status: {serviceNetwork: [10.0.0.0/8]}}"},
		"APIServer":        {"{apiVersion: config.openshift.io/v1, kind: APIServer, metadata: {name: cluster}, spec: {tlsSecurityProfile: {type: Old}}}"},
		"ClusterCSIDriver": {"{apiVersion: operator.openshift.io/v1, kind: ClusterCSIDriver, metadata: {name: cinder.csi.openstack.org}, spec: {logLevel: TraceAll}}"},
		"Namespace":        {"{apiVersion: v1, kind: Namespace, metadata: {name: tenant, annotations: {hypershift.openshift.io/default-security-context-uid: '7'}}}"},
		"ConfigMap": {
			tenants(userConfig, "config: "+conf+", enable_topology: 'false', ca-bundle.pem: "+ca), tenants(userConfig, "enable_topology: 'false'"),
			tenants(providerConfig, "config: "+conf+", enable_topology: 'false', ca-bundle.pem: "+ca), tenants(providerConfig, "ca-bundle.pem: "+ca),
			tenants(operatorConfig, "cloud.conf: "+conf+", enable_topology: 'false', ca-bundle.pem: "+ca), tenants(operatorConfig, "ca-bundle.pem: "+ca),
			tenants(hostedConfig, "cloud.conf: "+conf+", ca-bundle.pem: "+ca), tenants(hostedTrustedCA, "ca-bundle.pem: "+ca),
			tenants("m", "cloud.conf: "+conf), tenants("m", "ca-bundle.pem: "+ca), tenants("m", "enable_topology: 'false'"),
		},
		"Secret": {
			"{apiVersion: v1, kind: Secret, metadata: {namespace: tenant, name: " + v1alpha1.DefaultKubeconfigSecret + "}, data: {kubeconfig: eA==}}",
			"{apiVersion: v1, kind: Secret, metadata: {namespace: tenant, name: cloud-config}, data: {cloud.conf: eA==}}",
			"{apiVersion: v1, kind: Secret, metadata: {namespace: tenant, name: any}, stringData: {cloud.conf: x}}",
		},
		"Deployment": workload("Deployment"), "StatefulSet": workload("StatefulSet"), "ReplicaSet": workload("ReplicaSet"), "DaemonSet": workload("DaemonSet"),
		"Pod":                   {"{apiVersion: v1, kind: Pod, metadata: {namespace: tenant, name: w}, spec: {containers: [{name: p, image: x/cinder-csi-plugin:v1, args: [--cluster=evil]}]}}"},
		"StorageClass":          {strings.ReplaceAll(ofDriver, "name: c", "name: evil, annotations: {storageclass.kubernetes.io/is-default-class: \"true\"}")},
		"VolumeAttributesClass": {"{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: evil}, driverName: cinder.csi.openstack.org, parameters: {type: evil}}"},
		"CSIDriver":             {"{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: cinder.csi.openstack.org}, spec: {storageCapacity: true}}"},
		"VolumeSnapshotClass":   {"{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotClass, metadata: {name: evil}, driver: cinder.csi.openstack.org, deletionPolicy: Delete}"},
		"PersistentVolume": {
			"{apiVersion: v1, kind: PersistentVolume, metadata: {name: evil}, spec: {csi: {driver: cinder.csi.openstack.org, volumeHandle: x}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.cinder.csi.openstack.org/zone, operator: In, values: [evil]}]}]}}}}",
		},
	}
}

// ofDriver is a class without a setting that a person chose. A text with it is that of an installation.
const ofDriver = "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: c}, provisioner: cinder.csi.openstack.org}"

// testCA is a certificate as a text in YAML.
func testCA(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("%q", testfile.Text(t, "testdata/ca.pem"))
}

// textOf is a ConfigMap of the tenant that has a class and documents as a text.
func textOf(documents ...string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: tenant, name: text}\ndata:\n  x.yaml: |\n    " + strings.Join(append([]string{ofDriver}, documents...), "\n    ---\n    ") + "\n"
}

// A tenant gives nothing to the installation of others without a question: neither by an object, nor by a text that names another namespace.
func TestWhatIsBesideAnInstallationIsAskedFor(t *testing.T) {
	bases := map[string]string{
		"a workload": "{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: base, name: n}, spec: {template: {spec: {containers: [{name: p, image: x/cinder-csi-plugin:v1, args: [--cluster=blue]}]}}}}",
		"a release":  "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: base, name: c}, spec: {chart: {spec: {chart: openstack-cinder-csi}}, values: {clusterID: blue}}}",
		"a config":   `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: base, name: m}, data: {cloud.conf: "[Metadata]\nsearch-order=configDrive\n"}}`,
		"OpenShift":  `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: openshift-config, name: cinder-csi-config}, data: {config: "[Metadata]\nsearch-order=configDrive\n"}}`,
		"its operator": "{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}, status: {infrastructureName: blue}}\n---\n" +
			"{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: openshift-cluster-csi-drivers, name: openstack-cinder-csi-driver-controller}, spec: {template: {spec: {containers: [{name: p, image: q/cinder-csi-plugin}]}}}}",
		"HyperShift": "{apiVersion: hypershift.openshift.io/v1beta1, kind: HostedCluster, metadata: {namespace: base, name: blue}, spec: {infraID: blue}}",
	}
	given := strangers(t)
	for _, f := range formats() {
		if len(given[f.name]) == 0 {
			t.Errorf("nothing gives a value by the format %s", f.name)
		}
	}
	run := func(content string, chosen ...string) (v1alpha1.Distribution, error) {
		d, notes, err := (&Importer{Namespaces: chosen}).Import(named("all.yaml", content))
		for _, n := range notes { // a command that a person runs is as good as a value
			if strings.Contains(content, "namespace: base") && strings.Contains(n.Why, "--namespace tenant") {
				return d, fmt.Errorf("a note leads to the tenant: %s", n)
			}
		}
		return d, err
	}
	asks := func(err error) bool { return errors.Is(err, ErrSeveral) && strings.Contains(err.Error(), `"tenant"`) }
	for format, objects := range given {
		for _, object := range objects {
			if _, err := run(object + "\n---\n" + ofDriver); errors.Is(err, ErrSeveral) {
				t.Errorf("%s alone: %v\n%s", format, err, object)
			}
			if alone, err := run(textOf()); err != nil {
				t.Error(err)
			} else if d, err := run(textOf(object)); format != "values of upstream's chart" && !(document{yaml: objectOf(t, object)}).installs() && (err != nil || !cmp.Equal(alone, d)) {
				t.Errorf("%s in a text: %v, and gives\n%s\n%s", format, err, cmp.Diff(alone, d), object)
			}
			for name, base := range bases {
				namespace := "base"
				if strings.Contains(base, "namespace: openshift-") {
					namespace = ofOpenShift[0]
				}
				want, err := run(base)
				if err != nil {
					t.Fatal(name, err)
				}
				for place, other := range map[string]string{"beside": object, "in a text beside": textOf(object)} {
					d, err := run(base + "\n---\n" + other)
					if !strings.Contains(other, "namespace: tenant") {
						if errors.Is(err, ErrSeveral) {
							t.Errorf("%s %s %s, of the cluster itself: %v", format, place, name, err)
						}
						continue
					}
					if !asks(err) {
						if err != nil || !cmp.Equal(want, d) {
							t.Errorf("%s %s %s: want a question, got %v and\n%s\n%s", format, place, name, err, cmp.Diff(want, d), object)
						}
						continue
					}
					if d, err := run(base+"\n---\n"+other, namespace); err != nil || !cmp.Equal(want, d) {
						t.Errorf("%s %s %s: want what is there without it, got %v and\n%s\n%s", format, place, name, err, cmp.Diff(want, d), object)
					}
				}
			}
		}
	}
}

func objectOf(t *testing.T, text string) (object map[string]any) {
	t.Helper()
	if err := inner(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// Anybody may request a certificate, and that object belongs to no namespace.
func TestWhatAnObjectIsAnnotatedWithIsNoValue(t *testing.T) {
	const object = "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: c, annotations: {chart: openstack-cinder-csi, values: 'clusterID: evil'}}}"
	if d, _, err := Import(named("all.yaml", ofDriver+"\n---\n"+object)); err != nil || d.Spec.ClusterID != "" {
		t.Errorf("got %v, cluster ID %q", err, d.Spec.ClusterID)
	}
}

// What belongs together is in several namespaces of OpenShift, and of HyperShift.
func TestNobodyIsAskedAboutTheNamespacesOfOneOwner(t *testing.T) {
	for _, dir := range []string{"must-gather", "hosted"} {
		want, _, err := Import(below(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		var more []string
		if dir == "must-gather" {
			more = []string{
				"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: openshift-cloud-controller-manager, name: cloud-conf}, data: {cloud.conf: \"[LoadBalancer]\\nmax-shared-lb=1\\n\"}}",
				"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: openshift-config-managed, name: kube-cloud-config}, data: {cloud.conf: \"[LoadBalancer]\\nmax-shared-lb=1\\n\"}}",
				"{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: openshift-cluster-csi-drivers, name: openstack-cinder-csi-driver-controller}, spec: {template: {spec: {containers: [{name: p, image: q/cinder-csi-plugin}]}}}}",
			}
		} else {
			more = []string{
				"{apiVersion: v1, kind: Secret, metadata: {namespace: clusters, name: shop-eu-credentials}, data: {clouds.yaml: eA==}}",
				"{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: clusters-shop-eu, name: openstack-cinder-csi-driver-controller}, spec: {template: {spec: {containers: [{name: p, image: q/cinder-csi-plugin}]}}}}",
			}
		}
		all := func(yield func(File, error) bool) {
			for f, err := range below(t, dir) {
				if !yield(f, err) {
					return
				}
			}
			yield(File{Name: "more.yaml", Directory: dir, Content: []byte(strings.Join(more, "\n---\n"))}, nil)
		}
		if got, _, err := Import(all); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: %v\n%s", dir, err, cmp.Diff(want, got))
		}
	}
}
