package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

func TestDriverNameByTargetAndCoexistence(t *testing.T) {
	cases := []struct {
		target v1alpha1.Target
		spec   string
		want   string
	}{
		{v1alpha1.Vanilla, "", contract.DriverName},
		{v1alpha1.Vanilla, "spec: {driver: {name: mine.example.com}}", "mine.example.com"},
		{v1alpha1.Vanilla, "spec: {openshift: {coexistence: adopt}}", contract.DriverName},
		{v1alpha1.Standalone, "", v1alpha1.OwnDriverName},
		{v1alpha1.Standalone, "spec: {openshift: {coexistence: adopt}}", contract.DriverName},
		{v1alpha1.HostedControlPlane, "", v1alpha1.OwnDriverName},
		{v1alpha1.HostedControlPlane, "spec: {driver: {name: mine.example.com}}", "mine.example.com"},
		{v1alpha1.HostedControlPlane, "spec: {openshift: {coexistence: adopt}, hypershift: {platform: None}}", contract.DriverName},
		{v1alpha1.HostedControlPlane, "spec: {openshift: {coexistence: adopt}}", contract.DriverName},
	}
	for _, c := range cases {
		got := decide(t, cloudOf("standard"), c.spec, c.target)
		if got.Driver.Value != c.want || got.TopologyKey.Value != "topology."+c.want+"/zone" {
			t.Errorf("%s %s: want %s, got %s with %s", c.target, c.spec, c.want, got.Driver.Value, got.TopologyKey.Value)
		}
	}
}

func TestWhatCannotBeRightIsRefusedWithItsKey(t *testing.T) {
	cases := []struct {
		target v1alpha1.Target
		spec   string
		want   string
	}{
		{v1alpha1.Standalone, "spec: {driver: {name: cinder.csi.openstack.org}}", "spec.driver.name: cinder.csi.openstack.org is the name of OpenShift's"},
		{v1alpha1.Standalone, "spec: {openshift: {coexistence: adopt}, driver: {name: x.y}}", "contradicts spec.openshift.coexistence"},
		{v1alpha1.HostedControlPlane, "spec: {openshift: {coexistence: adopt}, hypershift: {platform: OpenStack}}", "adopt is refused on a hosted cluster of platform OpenStack"},
		{v1alpha1.Standalone, "spec: {openshift: {coexistence: adpot}}", "did you mean adopt?"},
		{v1alpha1.Vanilla, "spec: {driver: {name: Not_A_Name}}", "spec.driver.name"},
		{v1alpha1.Vanilla, "spec: {driver: {logLevel: 11}}", "spec.driver.logLevel"},
		{v1alpha1.Vanilla, "spec: {images: {provisioner: {tag: v6.2.1}}}", "spec.images.provisioner.tag: csi-provisioner v6.2.1 has no flag --snapshot-orphan-sweep-interval"},
		{v1alpha1.Vanilla, "spec: {size: huge}", "spec.size: \"huge\" is not one of small, medium, large"},
		{v1alpha1.Vanilla, "spec: {size: large, roles: {controller: {resources: {provisioner: {limits: {memory: 200Mi}}}}}}", "200Mi is less than the 290Mi that the container asks for"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {images: {provisioner: {registry: mirror.example, tag: v5.3.0}}}}}", "spec.images.provisioner.tag: csi-provisioner v5.3.0"},
		{v1alpha1.Vanilla, "spec: {kubernetesVersion: latest}", "spec.kubernetesVersion"},
		{v1alpha1.Vanilla, "spec: {namespaces: {node: Kube}}", "spec.namespaces.node"},
		{v1alpha1.Vanilla, "spec: {topology: {mode: 'on'}}", "spec.topology.mode"},
		{v1alpha1.Vanilla, "spec: {volumeAttachLimit: 0}", "spec.volumeAttachLimit"},
		{v1alpha1.Vanilla, "spec: {volumeAttachLimit: 257}", "spec.volumeAttachLimit"},
		{v1alpha1.Vanilla, "spec: {volumeAttachLimit: many}", "spec.volumeAttachLimit"},
		{v1alpha1.Vanilla, "spec: {monitoring: {kind: podMonitor}}", "did you mean PodMonitor?"},
		{v1alpha1.Vanilla, "spec: {monitoring: {alerts: true}}", "spec.monitoring.alerts: Prometheus does not read the metrics; set spec.monitoring.kind to PodMonitor or ServiceMonitor"},
		{v1alpha1.Vanilla, "spec: {monitoring: {runbookBase: 'docs'}}", `spec.monitoring.runbookBase: "docs" is no address of a directory`},
		{v1alpha1.Vanilla, "spec: {monitoring: {runbookBase: 'https://user:secret@git.example.com/p'}}", "spec.monitoring.runbookBase"},
		{v1alpha1.Vanilla, "spec: {monitoring: {runbookBase: 'https://git.example.com/p?ref=x'}}", "spec.monitoring.runbookBase"},
		{v1alpha1.Vanilla, "spec: {monitoring: {kind: none, dashboards: true}}", "spec.monitoring.dashboards: Prometheus does not read the metrics"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {default: fats}}", `spec.storageClasses.default: the cloud has no volume type of id or name "fats"; did you mean fast?`},
		{v1alpha1.Vanilla, "spec: {storageClasses: {default: fast, exclude: [fast]}}", "include it"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {reclaimPolicy: Keep}}}}", "overrides.fast.reclaimPolicy"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {parameters: {type: standard}}}}}", "overrides.fast.parameters.type"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {parameters: {availabilty: az1}}}}}", "did you mean availability?"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {parameters: {blockSize: '8192'}}}}}", "parameter blockSize 8192: ext4 needs"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {fsType: ntfs}}}}", `fsType: the driver does not create file system "ntfs"; use ext2,`},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {parameters: {fstype: ntfs}}}}}", `parameters: the driver does not create file system "ntfs"`},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {fsType: xfs, parameters: {bytesPerInode: '4096'}}}}}", `the file system "xfs" does not have this option`},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {}, id-of-fast: {}}}}", "are the same type"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {name: standard}}}}", "two classes are called"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {extra: [{type: fast}]}}", "extra[0].name"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {extra: [{name: fast}]}}", `spec.storageClasses.extra[0].name: "fast" is the name of another class, that of volume type "fast"`},
		{v1alpha1.Vanilla, "spec: {credentials: {key: a/b}}", "spec.credentials.key"},
		{v1alpha1.Vanilla, "spec: {credentials: {caBundle: nonsense}}", "spec.credentials.caBundle"},
		{v1alpha1.Vanilla, "spec: {credentials: {caBundle: \"-----BEGIN PRIVATE KEY-----\\nAAAA\\n-----END PRIVATE KEY-----\\n\"}}", "holds a PRIVATE KEY"},
		{v1alpha1.Vanilla, "spec: {credentials: {caKey: a/b}}", "spec.credentials.caKey: \"a/b\" is not a key"},
		{v1alpha1.Vanilla, "spec: {credentials: {caKey: ..data}}", "spec.credentials.caKey"},
		{v1alpha1.Vanilla, "spec: {credentials: {caKey: clouds.yaml}}", "spec.credentials.caKey: the key \"clouds.yaml\" holds clouds.yaml"},
		{v1alpha1.Vanilla, "spec: {credentials: {caKey: cacert, caConfigMap: ours}}", "spec.credentials.caKey: ConfigMap ours holds certificates too"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {proxy: {https: 'http://user:pass@proxy:3128'}}}}", "spec.roles.controller.proxy.https: holds a login"},
		{v1alpha1.Vanilla, "spec: {roles: {node: {replicas: 2}}}", "spec.roles.node.replicas"},
		{v1alpha1.Vanilla, "spec: {roles: {node: {runAsUser: 1}}}", "spec.roles.node.runAsUser"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {replicas: 0}}}", "spec.roles.controller.replicas"},
		{v1alpha1.Vanilla, "spec: {kubernetesVersion: '1.26'}", "spec.kubernetesVersion: 1.26 is older"},
		{v1alpha1.Vanilla, "spec: {roles: {node: {images: {resizer: {tag: v1}}}}}", "spec.roles.node.images"},
		{v1alpha1.Vanilla, "spec: {images: {driver: {digest: 'sha256:12'}}}", "spec.images.driver.digest"},
		{v1alpha1.Vanilla, "spec: {networkPolicy: {openstackCIDRs: [192.0.2.1/24]}}", "spec.networkPolicy.openstackCIDRs"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {runAsUser: 0}}}", "spec.roles.controller.runAsUser: 0; want a user from 1"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {runAsUser: -1}}}", "spec.roles.controller.runAsUser: -1"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {runAsUser: 2147483648}}}", "spec.roles.controller.runAsUser: 2147483648"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {replicas: 2147483648}}}", "spec.roles.controller.replicas"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {podLabels: {a b: x}}}}", "spec.roles.controller.podLabels: \"a b\": name part must consist of alphanumeric"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {podLabels: {a: x y}}}}", "spec.roles.controller.podLabels.a: \"x y\": a valid label must be"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {podLabels: {app: y}}}}", "spec.roles.controller.podLabels: app is how the pods are found"},
		{v1alpha1.Vanilla, "spec: {roles: {node: {podLabels: {app: cinder-csi-controller}}}}", "spec.roles.node.podLabels: app is how the pods are found"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {nodeSelector: {a/b/c: x}}}}", "spec.roles.controller.nodeSelector: \"a/b/c\""},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {nodeSelector: {a: '?'}}}}", "spec.roles.controller.nodeSelector.a: \"?\""},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {tolerations: [{key: a, operator: exists}]}}}", "spec.roles.controller.tolerations[0].operator: \"exists\" is not one of Equal, Exists; did you mean Exists?"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {tolerations: [{key: a}, {key: a, effect: Nope}]}}}", "spec.roles.controller.tolerations[1].effect: \"Nope\" is not one of"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {tolerations: [{effect: NoSchedule}]}}}", "spec.roles.controller.tolerations[0]: without a key"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {tolerations: [{key: a b}]}}}", "spec.roles.controller.tolerations[0].key: \"a b\""},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {tolerations: [{key: a, value: x y}]}}}", "spec.roles.controller.tolerations[0].value: \"x y\""},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {tolerations: [{key: a, operator: Exists, value: x}]}}}", "spec.roles.controller.tolerations[0]: operator Exists takes no value"},
		{v1alpha1.Vanilla, "spec: {roles: {node: {tolerations: [{key: a, tolerationSeconds: 5}]}}}", "spec.roles.node.tolerations[0]: tolerationSeconds is for effect NoExecute"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {imagePullSecrets: [A B]}}}", "spec.roles.controller.imagePullSecrets[0]: \"A B\" is not a Secret"},
		{v1alpha1.Vanilla, "spec: {roles: {node: {imagePullSecrets: [a, a]}}}", "spec.roles.node.imagePullSecrets[1]: \"a\" is there twice"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {resources: {driver: {requests: {cpu: lots}}}}}}", "spec.roles.controller.resources.driver.requests.cpu: \"lots\" is not a quantity"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {resources: {driver: {limits: {cpu: '-1'}}}}}}", "spec.roles.controller.resources.driver.limits.cpu: \"-1\" is less than nothing"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {resources: {driver: {requests: {mem: 1Gi}}}}}}", "spec.roles.controller.resources.driver.requests: there is no resource \"mem\""},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {resources: {driver: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}}}}", "spec.roles.controller.resources.driver.requests.memory: 2Gi is more than the limit, 1Gi"},
		{v1alpha1.Vanilla, "spec: {roles: {node: {resources: {registrar: {limits: {memory: 10Mi}}}}}}", "spec.roles.node.resources.registrar.limits.memory: 10Mi is less than the 20Mi that the container asks for; set requests.memory too"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {resources: {driver: {requests: {example.com/a: '1'}}}}}}", "spec.roles.controller.resources.driver.requests.example.com/a: of this resource, request and limit must be the same"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {resources: {driver: {limits: {example.com/a: 100m}}}}}}", "spec.roles.controller.resources.driver.limits.example.com/a: \"100m\"; want a whole number"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {proxy: {https: 'http://proxy:99999'}}}}", "spec.roles.controller.proxy.https: the port is none"},
		{v1alpha1.Vanilla, "spec: {roles: {controller: {proxy: {noProxy: '$(HOME)'}}}}", "spec.roles.controller.proxy.noProxy: holds $("},
		{v1alpha1.Vanilla, "spec: {images: {driver: {registry: my registry}}}", "spec.images.driver.registry: \"my registry\""},
		{v1alpha1.Vanilla, "spec: {images: {driver: {registry: mirror}}}", "spec.images.driver.registry: \"mirror\""},
		{v1alpha1.Vanilla, "spec: {roles: {node: {images: {driver: {repository: A/b}}}}}", "spec.roles.node.images.driver.repository: \"A/b\""},
		{v1alpha1.Vanilla, "spec: {images: {driver: {tag: a b}}}", "spec.images.driver.tag: \"a b\""},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {annotations: {bad key here: x}}}}}", "spec.storageClasses.overrides.fast.annotations: \"bad key here\""},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {annotations: {'1': x}}}}}", "kustomize takes the key \"1\" for a number"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}}}}", "storageclass.kubernetes.io/is-default-class is the generator's own; use spec.storageClasses.default"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {mountOptions: ['', noatime]}}}}", "overrides.fast.mountOptions[0]: \"\" is not one mount option"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {mountOptions: [noatime, x y]}}}}", "overrides.fast.mountOptions[1]: \"x y\" is not one mount option"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {extra: [{name: x, type: fast, mountOptions: ['']}]}}", "extra[0].mountOptions[0]"},
		{v1alpha1.Vanilla, "spec: {credentials: {key: a b}}", "spec.credentials.key"},
		{v1alpha1.Vanilla, "spec: {clusterID: 'a${b}'}", "spec.clusterID: holds ${"},
		{v1alpha1.Vanilla, "metadata: {name: '${NAME}'}", "metadata.name: holds ${"},
		{v1alpha1.Vanilla, "spec: {roles: {node: {resources: {driver: {requests: {cpu: '-'}}}}}}", `"-" is not a quantity`},
		{v1alpha1.Vanilla, "spec: {clusterID: 'pass -----BEGIN RSA PRIVATE KEY-----', driver: {name: pass PRIVATE KEY}}", "spec.clusterID: holds a PRIVATE KEY"},
		{v1alpha1.Vanilla, "spec: {clusterID: '{{ .Cluster.metadata.name }}'}", "spec.clusterID: holds {{, as of a template that nothing rendered"},
		{v1alpha1.Vanilla, "spec: {storageClasses: {overrides: {fast: {parameters: {availability: \"a\\u007f\"}}}}}", "overrides.fast.parameters.availability: holds a control character"},
		{v1alpha1.HostedControlPlane, "metadata: {name: Prod}", "metadata.name"},
	}
	for _, c := range cases {
		_, err := Decide(cloudOf("standard", "fast"), configured(t, c.spec), c.target, v1alpha1.Helm, "test")
		var wrong *ConfigError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: want a ConfigError with %q, got %v", c.target, c.spec, c.want, err)
		}
		if err != nil && (strings.Contains(err.Error(), "pass") || strings.Contains(err.Error(), "AAAA")) {
			t.Errorf("a secret is in the message: %v", err)
		}
	}
}

func TestNamespaces(t *testing.T) {
	cases := []struct {
		target   v1alpha1.Target
		spec     string
		want     v1alpha1.Namespaces
		warnings int
	}{
		{v1alpha1.Vanilla, "metadata: {name: c}", v1alpha1.Namespaces{Controller: "cinder-csi", Node: "cinder-csi-node"}, 0},
		{v1alpha1.Standalone, "{metadata: {name: c}, spec: {clusterID: c-x7k2p, volumeAttachLimit: 9}}", v1alpha1.Namespaces{Controller: "cinder-csi", Node: "cinder-csi-node"}, 0},
		{v1alpha1.Vanilla, "{metadata: {name: c}, spec: {namespaces: {controller: a, node: a}}}", v1alpha1.Namespaces{Controller: "a", Node: "a"}, 1},
		{v1alpha1.HostedControlPlane, "{metadata: {name: prod.eu}, spec: {hypershift: {infraID: x, platform: OpenStack}, volumeAttachLimit: 9}}", v1alpha1.Namespaces{Controller: "clusters-prod-eu", Node: "cinder-csi"}, 1},
		{v1alpha1.HostedControlPlane, "spec: {hypershift: {infraID: x, platform: OpenStack}, volumeAttachLimit: 9}", v1alpha1.Namespaces{Controller: "clusters-example", Node: "cinder-csi"}, 1},
		{v1alpha1.HostedControlPlane, "{metadata: {name: c}, spec: {namespaces: {controller: hcp, node: guest}, hypershift: {infraID: x, platform: OpenStack}, volumeAttachLimit: 9}}", v1alpha1.Namespaces{Controller: "hcp", Node: "guest"}, 0},
	}
	for _, c := range cases {
		r := decide(t, cloudOf("standard"), c.spec, c.target)
		if got := (v1alpha1.Namespaces{Controller: r.ControllerNamespace.Value, Node: r.NodeNamespace.Value}); got != c.want || len(r.Warnings) != c.warnings {
			t.Errorf("%s %s: want %+v and %d warnings, got %+v and %q", c.target, c.spec, c.want, c.warnings, got, r.Warnings)
		}
	}
}

func TestClusterID(t *testing.T) {
	for _, c := range []struct {
		target     v1alpha1.Target
		spec, want string
	}{
		{v1alpha1.Vanilla, "", "kubernetes"},
		{v1alpha1.Vanilla, "metadata: {name: prod}", "prod"},
		{v1alpha1.Vanilla, "{metadata: {name: prod}, spec: {clusterID: other}}", "other"},
		{v1alpha1.HostedControlPlane, "spec: {hypershift: {infraID: infra}}", "infra"},
		{v1alpha1.HostedControlPlane, "{metadata: {name: prod}, spec: {hypershift: {infraID: infra}}}", "infra"},
		{v1alpha1.HostedControlPlane, "{metadata: {name: prod}, spec: {clusterID: infra, hypershift: {infraID: infra}}}", "infra"},
		{v1alpha1.HostedControlPlane, "metadata: {name: prod}", "prod"},
		{v1alpha1.Vanilla, "spec: {hypershift: {infraID: infra}}", "kubernetes"},
	} {
		r := decide(t, cloudOf("standard"), c.spec, c.target)
		if r.ClusterID.Value != c.want || r.Config.ClusterID != c.want {
			t.Errorf("%s: want %s, got %s (config: %s)", c.spec, c.want, r.ClusterID.Value, r.Config.ClusterID)
		}
	}
}

func TestOpenShiftIsToldThatItsInstallerFindsVolumesByTheClustersID(t *testing.T) {
	for spec, want := range map[string]bool{"metadata: {name: ocp}": true, "{metadata: {name: ocp}, spec: {clusterID: ocp-x7k2p}}": false} {
		r := decide(t, cloudOf("standard"), spec, v1alpha1.Standalone)
		told := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "infrastructureName") })
		if told != want {
			t.Errorf("%s: want %t, got %q", spec, want, r.Warnings)
		}
	}
}

func TestSnapshotsInUseNeedCinder366(t *testing.T) {
	for version, want := range map[string]bool{"3.66": true, "3.70": true, "4.0": true, "3.65": false, "3.7": false, "": false, "x": false} {
		inv := cloudOf("standard")
		inv.Services.Value["block-storage"] = v1alpha1.Service{Present: true, MaxMicroversion: version}
		r := decide(t, inv, "", v1alpha1.Vanilla)
		if got := r.SnapshotClass.Value.InUse; got != want {
			t.Errorf("%q: want %t, got %t", version, want, got)
		}
		if text, _ := v1alpha1.YAML(r.Document(nil)); version != "" && version != "x" && strings.Contains(string(text), " "+version) {
			t.Errorf("%q: the version is in the plan, where the predicate alone should be", version)
		}
	}
	if r := decide(t, cloudOf("standard"), "spec: {snapshots: {enabled: false}}", v1alpha1.Vanilla); r.SnapshotClass.Value != (SnapshotClass{}) {
		t.Errorf("want no snapshot class, got %+v", r.SnapshotClass.Value)
	}
}

func TestACloudWithoutAServiceThatTheDriverNeedsIsWarnedAbout(t *testing.T) {
	for _, name := range []string{"block-storage", "compute"} {
		inv := cloudOf("standard")
		delete(inv.Services.Value, name)
		got := decide(t, inv, "metadata: {name: c}", v1alpha1.Vanilla).Warnings
		if len(got) != 1 || !strings.Contains(got[0], "no "+name+" service") {
			t.Errorf("%s: want one warning, got %q", name, got)
		}
	}
}

func TestAProxysNameIsNotLookedUpButWarnedAbout(t *testing.T) {
	got := decide(t, cloudOf("standard"), "{metadata: {name: c}, spec: {networkPolicy: {enabled: true, openstackCIDRs: [198.51.100.0/24]}, "+
		"roles: {controller: {proxy: {https: 'http://proxy.example:3128'}}}}}", v1alpha1.Vanilla).Warnings
	if len(got) != 1 || !strings.Contains(got[0], "proxy is a host name") {
		t.Errorf("want one warning, got %q", got)
	}
}

func TestCloudConfIsReadByTheDriverWithoutComplaint(t *testing.T) {
	r := decide(t, cloudOf("standard"), "spec: {credentials: {cloud: 'a;b \"c\"'}}", v1alpha1.Vanilla)
	f, err := cloudconf.Parse([]byte(r.CloudConf.Value))
	if err != nil {
		t.Fatal(err)
	}
	if _, complaints, err := config.ParseSettings(f); err != nil || len(complaints) > 0 {
		t.Errorf("want no complaint, got %v %q", err, complaints)
	}
	for key, want := range map[string]string{"use-clouds": "true", "clouds-file": "/etc/cinder-csi/cloud/clouds.yaml", "cloud": `a;b "c"`, "region": "RegionOne"} {
		if got, _ := f.Section("Global", "").Get(key); got != want {
			t.Errorf("%s: want %q, got %q", key, want, got)
		}
	}
	if _, there := f.Section("Global", "").Get("ca-file"); there {
		t.Error("want no ca-file without a bundle")
	}
}

func TestTheHostedControlPlanesPodsAreAsHyperShiftWantsThem(t *testing.T) {
	spec := `{metadata: {name: c}, spec: {roles: {controller: {tolerations: [{key: mine, operator: Exists}], podLabels: {team: x, hypershift.openshift.io/hosted-control-plane: wrong}}}}}`
	got := decide(t, cloudOf("standard"), spec, v1alpha1.HostedControlPlane).Controller
	want := []any{
		2,
		[]v1alpha1.Toleration{
			{Key: "hypershift.openshift.io/control-plane", Operator: "Equal", Value: "true", Effect: "NoSchedule"},
			{Key: "hypershift.openshift.io/cluster", Operator: "Equal", Value: "clusters-c", Effect: "NoSchedule"},
			{Key: "mine", Operator: "Exists"},
		},
		map[string]string{"team": "x", "hypershift.openshift.io/hosted-control-plane": "clusters-c"},
		[]string{"pull-secret"},
		"hypershift-control-plane",
	}
	values := []any{got.Replicas.Value, got.Tolerations.Value, got.PodLabels.Value, got.ImagePullSecrets.Value, got.PriorityClass.Value}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestImagesOfAPlaneGoOverThoseOfAll(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	spec := `spec: {images: {driver: {registry: r.example, tag: v1, digest: '` + digest + `'}, resizer: {tag: v9}}, roles: {node: {images: {driver: {tag: v2}}}}}`
	r := decide(t, cloudOf("standard"), spec, v1alpha1.Vanilla)
	for _, c := range []struct{ what, want, got, id string }{
		{"node", "r.example/cinder-csi/cinder-csi-driver:v2", r.Image(r.Node, "driver").Value, r.Image(r.Node, "driver").ID + " node.images.driver"},
		{"controller", "r.example/cinder-csi/cinder-csi-driver@" + digest, r.Image(r.Controller, "driver").Value, r.Image(r.Controller, "driver").ID + " images.driver"},
		{"resizer", "registry.k8s.io/sig-storage/csi-resizer:v9", r.Image(r.Controller, "resizer").Value, r.Image(r.Controller, "resizer").ID + " images.resizer"},
	} {
		got, want, _ := strings.Cut(c.id, " ")
		if c.got != c.want || got != want {
			t.Errorf("%s: want %s of %s, got %s of %s", c.what, c.want, want, c.got, got)
		}
	}
}

func TestAConfiguredPriorityClassWinsOnEveryTarget(t *testing.T) {
	const spec = `spec: {roles: {controller: {priorityClassName: above}, node: {priorityClassName: below}}}`
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
		r := decide(t, cloudOf("standard"), spec, target)
		if got := r.Controller.PriorityClass; got.Value != "above" || got.Source != FromConfig || got.Reason != "spec.roles.controller.priorityClassName is set" {
			t.Errorf("%s: want the configured class of the controller, got %+v", target, got)
		}
		if got := r.Node.PriorityClass; got.Value != "below" || got.Source != FromConfig {
			t.Errorf("%s: want the configured class of the node, got %+v", target, got)
		}
	}
}

// An external control plane has no nodes with the label that the default selects.
func TestAnEmptyNodeSelectorMeansEveryNodeAndStaysInThePlan(t *testing.T) {
	r := decide(t, cloudOf("standard"), `spec: {roles: {controller: {nodeSelector: {}, tolerations: []}}}`, v1alpha1.Standalone)
	if got := r.Controller.NodeSelector; len(got.Value) != 0 || got.Source != FromConfig {
		t.Errorf("want no node selector, got %+v", got)
	}
	text, err := v1alpha1.YAML(r.Config.Roles.Controller)
	if err != nil || string(text) != "nodeSelector: {}\ntolerations: []\n" {
		t.Errorf("want both empty in the plan, got %v:\n%s", err, text)
	}
}

// The tag of another build, such as OpenShift's, does not say which flags the program has; nor does a tag beside a digest.
// Each sidecar, in the release before the first that has all flags, and in that one.
func TestASidecarWithoutAFlagOfTheBundleIsRefused(t *testing.T) {
	for _, s := range SidecarReleases {
		before := version(s.Release)
		before[1]--
		tag := fmt.Sprintf("v%d.%d.9", before[0], before[1])
		_, err := Decide(cloudOf("standard"), configured(t, "spec: {images: {"+s.Image+": {tag: "+tag+"}}}"), v1alpha1.Vanilla, v1alpha1.Helm, "test")
		if want := "spec.images." + s.Image + ".tag: " + s.Program + " " + tag + " has no flag " + s.Flag; err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("want once %q, got %v", want, err)
		}
		decide(t, cloudOf("standard"), "spec: {images: {"+s.Image+": {tag: "+s.Release+"}}}", v1alpha1.Vanilla)
	}
}

func TestOnlyAReleaseOfASidecarIsComparedByItsTag(t *testing.T) {
	for _, image := range []string{
		"{tag: v6.3.0}", "{tag: v7.0.0}", "{tag: v10.1.2}", "{tag: v6.3.0-rc1}", "{tag: main}", "{registry: r.example, repository: ose-csi-external-provisioner, tag: v4.20.0}",
		"{tag: v5.3.0, digest: 'sha256:" + strings.Repeat("ab", 32) + "'}",
	} {
		decide(t, cloudOf("standard"), "spec: {images: {provisioner: "+image+"}}", v1alpha1.Vanilla)
	}
}

func TestTheImageOfTheDriverSaysThatNoRegistryHasIt(t *testing.T) {
	for spec, want := range map[string]bool{
		"": true, "spec: {images: {driver: {tag: v2}}}": true, "spec: {images: {driver: {registry: r.example}}}": false, "spec: {images: {driver: {repository: mine/driver}}}": true, "spec: {images: {registry: r.example}}": false,
		"spec: {roles: {node: {images: {driver: {registry: r.example}}}}}": true,
	} {
		r, err := Decide(cloudOf("standard"), configured(t, spec), v1alpha1.Vanilla, v1alpha1.Helm, "test")
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Contains(r.Images["driver"].Reason, "no registry has this image")
		warned := len(r.Warnings) > 0 && strings.Contains(r.Warnings[0], "no registry has this image")
		if said != want || warned != want {
			t.Errorf("%s: want it said and warned of first: %t; reason %q, warnings %q", spec, want, r.Images["driver"].Reason, r.Warnings)
		}
	}
}

func TestNetworkPolicyTakesPortsFromTheCatalogAndAddressesNeverFromDNS(t *testing.T) {
	named := cloudOf("standard")
	literal := cloudOf("standard")
	for name, url := range map[string]string{"identity": "http://192.0.2.7:5000/v3", "compute": "http://192.0.2.7:8774/v2.1", "block-storage": "http://[2001:db8::1]:8776/v3"} {
		s := literal.Services.Value[name]
		s.Endpoint = url
		literal.Services.Value[name] = s
	}
	literal.Cloud.AuthURL = "http://192.0.2.7:5000/v3"
	ports := []int{443, 8774, 8776}
	door := cloudOf("standard")
	door.Cloud.AuthURL = "http://keystone.example:5000/v3"
	behind := func(proxy, cidrs string) string {
		return "spec: {networkPolicy: {enabled: true, openstackCIDRs: [" + cidrs + "]}, roles: {controller: {proxy: {https: 'http://" + proxy + ":3128'}}}}"
	}
	proxied := []int{443, 3128, 8774, 8776}
	cases := []struct {
		name string
		inv  v1alpha1.Inventory
		spec string
		want NetworkPolicy
	}{
		{"off", named, "", NetworkPolicy{}},
		{"host names", named, "spec: {networkPolicy: {enabled: true}}", NetworkPolicy{Enabled: true, Ports: ports}},
		{"addresses", literal, "spec: {networkPolicy: {enabled: true}}", NetworkPolicy{Enabled: true, Ports: []int{443, 5000, 8774, 8776}, CIDRs: []string{"192.0.2.7/32", "2001:db8::1/128"}}},
		{"Keystone by another door than the catalog's", door, "spec: {networkPolicy: {enabled: true}}", NetworkPolicy{Enabled: true, Ports: []int{443, 5000, 8774, 8776}}},
		{"a proxy", named, behind("proxy.example", ""), NetworkPolicy{Enabled: true, Ports: proxied}},
		{"a proxy's address", named, behind("203.0.113.9", "198.51.100.0/24"), NetworkPolicy{Enabled: true, Ports: proxied, CIDRs: []string{"198.51.100.0/24", "203.0.113.9/32"}}},
		{"configured", named, "spec: {networkPolicy: {enabled: true, openstackCIDRs: [198.51.100.0/24]}}", NetworkPolicy{Enabled: true, Ports: ports, CIDRs: []string{"198.51.100.0/24"}}},
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.want, decide(t, c.inv, c.spec, v1alpha1.Vanilla).NetworkPolicy.Value); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestEveryDecisionOfADocumentHasAnIDAReasonAndASource(t *testing.T) {
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
		seen := map[string]bool{}
		for _, d := range decide(t, cloudOf("standard", "fast"), "spec: {topology: {zoneMap: {az1: az1}}, storageClasses: {extra: [{name: x, type: fast}]}}", target).Document(nil).Decisions {
			if d.Reason == "" || seen[d.ID] || (d.Source != "config" && d.Source != "inferred" && d.Source != "default") {
				t.Errorf("%s: %+v", target, d)
			}
			seen[d.ID] = true
		}
	}
}

func FuzzDecideNeverPanicsAndIsRepeatable(f *testing.F) {
	f.Add("spec: {topology: {mode: enabled}}", "fast", "az1")
	f.Add("spec: {storageClasses: {extra: [{name: x}], namePrefix: p}}", "__DEFAULT__", "")
	f.Fuzz(func(t *testing.T, spec, typeName, zone string) {
		d, err := v1alpha1.DecodeDistribution("fuzz.yaml", []byte(spec))
		if err != nil {
			return
		}
		inv := cloudOf("standard", typeName)
		inv.Zones.Compute = zonesNamed("az1", zone)
		inv.VolumeTypes.Value[0].Zones = []string{zone}
		for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.HostedControlPlane} {
			one, errOne := Decide(inv, d, target, v1alpha1.Helm, "test")
			two, errTwo := Decide(inv, d, target, v1alpha1.Helm, "test")
			if (errOne == nil) != (errTwo == nil) || errOne != nil && errOne.Error() != errTwo.Error() {
				t.Fatalf("two runs end differently: %v, %v", errOne, errTwo)
			}
			if diff := cmp.Diff(one, two); diff != "" {
				t.Fatalf("two runs differ:\n%s", diff)
			}
		}
	})
}
