package charts_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// Objects that values change.
const (
	csiDriver          = "CSIDriver/cinder.csi.openstack.org"
	deployment         = "Deployment/cinder-csi-controller"
	budget             = "PodDisruptionBudget/cinder-csi-controller"
	controllerAccount  = "ServiceAccount/cinder-csi-controller"
	controllerConfig   = "ConfigMap/cinder-csi-controller-config"
	controllerSettings = "ConfigMap/cinder-csi-controller-settings"
	daemonSet          = "DaemonSet/cinder-csi-node"
	nodeAccount        = "ServiceAccount/cinder-csi-node"
	nodeConfig         = "ConfigMap/cinder-csi-node-config"
	nodeSettings       = "ConfigMap/cinder-csi-node-settings"
	snapshotClass      = "VolumeSnapshotClass/cinder-csi"
	policy             = "NetworkPolicy/cinder-csi-controller"
	testPod            = "Pod/cinder-csi-test"
	driftPlan          = "ConfigMap/cinder-csi-drift-check"
	driftSettings      = "ConfigMap/cinder-csi-drift-check-settings"
)

// Groups of objects in the row of a value.
const (
	everyObject     = "every object"
	leaseRoles      = "the Roles and RoleBindings of the leases"
	leaseNames      = "the Roles of the leases, whose names have the driver name"
	bindings        = "the ClusterRoleBindings of the sidecars"
	clusterRoles    = "the ClusterRoles of the sidecars"
	renamedRoles    = "the ClusterRoles of another driver name"
	renamedBindings = "the ClusterRoleBindings of another driver name"
	openShiftSCC    = "the ClusterRole and ClusterRoleBinding of the security context constraint"
	snapshotRoles   = "the ClusterRoles, Roles and bindings of snapshots"
)

var sidecars = []string{"attacher", "provisioner", "resizer", "snapshotter"}

func namesOf(group string, before, after []string) []string {
	var names []string
	each := func(formats ...string) {
		for _, s := range sidecars {
			for _, f := range formats {
				names = append(names, fmt.Sprintf(f, s))
			}
		}
	}
	switch group {
	case everyObject:
		names = slices.Concat(before, after)
	case leaseRoles:
		each("Role/cinder-csi-%s-lease", "RoleBinding/cinder-csi-%s-lease")
	case leaseNames:
		each("Role/cinder-csi-%s-lease")
	case bindings:
		each("ClusterRoleBinding/cinder-csi-%s")
		names = append(names, "ClusterRoleBinding/cinder-csi-provisioner-snapshots")
	case clusterRoles:
		each("ClusterRole/cinder-csi-%s")
		names = append(names, "ClusterRole/cinder-csi-provisioner-snapshots")
	case renamedRoles:
		each("ClusterRole/a.example-%s")
		names = append(names, "ClusterRole/a.example-provisioner-snapshots")
	case renamedBindings:
		each("ClusterRoleBinding/a.example-%s")
		names = append(names, "ClusterRoleBinding/a.example-provisioner-snapshots")
	case openShiftSCC:
		return []string{"CSIDriver/cinder.csi.openstack.org", "ClusterRole/cinder-csi-node-privileged", "ClusterRoleBinding/cinder-csi-node-privileged"}
	case snapshotRoles:
		return []string{
			"ClusterRole/cinder-csi-snapshotter", "ClusterRoleBinding/cinder-csi-snapshotter", "Role/cinder-csi-snapshotter-lease",
			"RoleBinding/cinder-csi-snapshotter-lease", "ClusterRole/cinder-csi-provisioner-snapshots", "ClusterRoleBinding/cinder-csi-provisioner-snapshots",
		}
	default:
		return []string{group}
	}
	return names
}

// row gives another value of a leaf of values.yaml, and exactly the objects that it changes.
type row struct {
	leaf    string
	value   string   // YAML
	with    string   // YAML of other values, without which this one has no effect
	objects []string // names or groups
}

const (
	aClass      = "storageClasses: [{name: fast, reclaimPolicy: Delete, volumeBindingMode: Immediate, allowVolumeExpansion: true}]\n"
	hypershift  = "target: hypershift\nplane: management\n"
	aPolicy     = "networkPolicy: {enabled: true, ports: [5000]}\n"
	standalone  = "target: standalone\n"
	aTLSMonitor = standalone + "monitoring: {kind: ServiceMonitor, tls: {enabled: true}}\n"
	aDriftCheck = "driftCheck: {schedule: '@daily', plan: 'kind: Plan'}\n"
	aPool       = "[{name: gpu, nodeSelector: {pool: gpu}, volumeAttachLimit: 20}]"
)

var rows = slices.Concat(
	generalRows, settingRows(), roleRows("controller", deployment, controllerAccount), roleRows("node", daemonSet, nodeAccount),
	imageRows("controller", deployment, "driver", "provisioner", "attacher", "resizer", "snapshotter", "livenessprobe"),
	imageRows("node", daemonSet, "driver", "registrar", "livenessprobe"), driftImageRows(), with(aTLSMonitor, imageRows("controller", deployment, "rbacproxy")),
)

var generalRows = []row{
	{leaf: "target", value: "standalone", objects: []string{deployment, daemonSet, nodeSettings, openShiftSCC}},
	{leaf: "plane", value: "guest", with: hypershift, objects: []string{everyObject}},
	{leaf: "namespaces.controller", value: "storage", objects: []string{
		deployment, budget, controllerAccount, controllerConfig, controllerSettings, leaseRoles, bindings,
	}},
	{leaf: "namespaces.node", value: "storage", objects: []string{daemonSet, nodeAccount, nodeConfig, nodeSettings}},
	{leaf: "driver.name", value: "a.example", with: aClass, objects: []string{
		csiDriver, "CSIDriver/a.example", controllerSettings, nodeSettings, deployment, daemonSet, snapshotClass, "VolumeSnapshotClass/a.example", "StorageClass/fast",
		clusterRoles, bindings, renamedRoles, renamedBindings, leaseNames,
	}},
	{leaf: "driver.pvcAnnotations", value: "true", objects: []string{controllerSettings, deployment}},
	{leaf: "driver.adopted", value: "true", objects: []string{csiDriver}},
	{leaf: "driver.limitRefreshSeconds", value: "60", objects: []string{csiDriver}},
	{leaf: "driver.kubeletDir", value: "/var/lib/k0s/kubelet", objects: []string{nodeSettings, daemonSet}},
	{leaf: "driver.capacity", value: "true", objects: []string{
		csiDriver, controllerSettings, deployment, "Role/cinder-csi-provisioner-capacity", "RoleBinding/cinder-csi-provisioner-capacity",
		"Role/cinder-csi-provisioner-owner", "RoleBinding/cinder-csi-provisioner-owner",
	}},
	{leaf: "nodeLifecycle.startupTaint", value: "true", objects: []string{controllerSettings, deployment, "ClusterRole/cinder-csi-startup-taint", "ClusterRoleBinding/cinder-csi-startup-taint"}},
	{leaf: "nodeLifecycle.drainHook", value: "true", objects: []string{daemonSet, "ClusterRole/cinder-csi-drain-hook", "ClusterRoleBinding/cinder-csi-drain-hook"}},
	{leaf: "clusterID", value: "prod", objects: []string{controllerSettings, deployment}},
	{leaf: "topology.enabled", value: "false", objects: []string{controllerSettings, nodeSettings, deployment, daemonSet}},
	{leaf: "size", value: "large", objects: []string{controllerSettings, deployment}},
	{leaf: "leases.leaseDuration", value: "60s", objects: []string{controllerSettings, deployment}},
	{leaf: "leases.renewDeadline", value: "12s", objects: []string{controllerSettings, deployment}},
	{leaf: "leases.retryPeriod", value: "6s", objects: []string{controllerSettings, deployment}},
	{leaf: "credentials.secretName", value: "cloud", objects: []string{deployment}},
	{leaf: "credentials.key", value: "other.yaml", objects: []string{deployment}},
	{leaf: "caBundle", value: "-----BEGIN CERTIFICATE-----", objects: []string{"ConfigMap/cinder-csi-ca", deployment}},
	{leaf: "caConfigMap.name", value: "ours", objects: []string{deployment}},
	{leaf: "caConfigMap.key", value: "ca.crt", with: "caConfigMap: {name: ours}\n", objects: []string{deployment}},
	{leaf: "trustedCA", value: "true", objects: []string{"ConfigMap/cinder-csi-trusted-ca", deployment}},
	{leaf: "attributesClasses", value: "[{name: gold, parameters: {type: ssd, metadata.tier: gold}}]", objects: []string{"VolumeAttributesClass/gold"}},
	{leaf: "monitoring.kind", value: "ServiceMonitor", objects: []string{
		"Service/cinder-csi-controller-metrics", "Service/cinder-csi-node-metrics", "ServiceMonitor/cinder-csi-controller", "ServiceMonitor/cinder-csi-node", "ServiceMonitor/cinder-csi-snapshotter",
		nodeSettings, daemonSet,
	}},
	{leaf: "monitoring.nodePorts", value: "29701", with: "monitoring: {kind: ServiceMonitor}\n", objects: []string{daemonSet, nodeSettings, "Service/cinder-csi-node-metrics"}},
	{leaf: "monitoring.labels", value: "{release: prom}", with: "monitoring: {kind: PodMonitor, alerts: true}\n", objects: []string{
		"PodMonitor/cinder-csi-controller", "PodMonitor/cinder-csi-snapshotter", "PodMonitor/cinder-csi-node", "PrometheusRule/cinder-csi-controller", "PrometheusRule/cinder-csi-node",
	}},
	{leaf: "credentials.caKey", value: "ca.crt", objects: []string{deployment}},
	{leaf: "credentials.request", value: "true", with: standalone, objects: []string{"CredentialsRequest/cinder-csi"}},
	{leaf: "monitoring.platform", value: "true", with: standalone, objects: []string{
		"Role/cinder-csi-controller-prometheus", "RoleBinding/cinder-csi-controller-prometheus",
		"Role/cinder-csi-node-prometheus", "RoleBinding/cinder-csi-node-prometheus",
	}},
	{leaf: "monitoring.tls.enabled", value: "true", with: standalone + "monitoring: {kind: ServiceMonitor}\n", objects: []string{
		controllerSettings, deployment, "Service/cinder-csi-controller-metrics", "ServiceMonitor/cinder-csi-controller", "ServiceMonitor/cinder-csi-snapshotter",
		"Service/cinder-csi-controller-metrics-tls", "ServiceMonitor/cinder-csi-controller-tls", "ClusterRole/cinder-csi-metrics", "ClusterRoleBinding/cinder-csi-metrics",
		"ServiceAccount/cinder-csi-metrics-reader", "Secret/cinder-csi-metrics-reader", "ClusterRole/cinder-csi-metrics-reader", "ClusterRoleBinding/cinder-csi-metrics-reader",
	}},
	{leaf: "monitoring.tls.minVersion", value: "VersionTLS13", with: aTLSMonitor, objects: []string{controllerSettings, deployment}},
	{leaf: "monitoring.tls.cipherSuites", value: "TLS_AES_128_GCM_SHA256", with: aTLSMonitor, objects: []string{controllerSettings, deployment}},
	{leaf: "monitoring.alerts", value: "true", with: "monitoring: {kind: PodMonitor}\n", objects: []string{"PrometheusRule/cinder-csi-controller", "PrometheusRule/cinder-csi-node"}},
	{leaf: "monitoring.runbookBase", value: "https://git.example.com/p", with: "monitoring: {kind: PodMonitor, alerts: true}\n", objects: []string{"PrometheusRule/cinder-csi-controller", "PrometheusRule/cinder-csi-node"}},
	{leaf: "monitoring.dashboards", value: "true", with: "monitoring: {kind: PodMonitor}\n", objects: []string{"ConfigMap/cinder-csi-controller-dashboards", "ConfigMap/cinder-csi-node-dashboards"}},
	{leaf: "driftCheck.schedule", value: "'@daily'", with: "driftCheck: {plan: 'kind: Plan'}\n", objects: []string{
		"CronJob/cinder-csi-drift-check", "ConfigMap/cinder-csi-drift-check-status", "Role/cinder-csi-drift-check", "RoleBinding/cinder-csi-drift-check", "ServiceAccount/cinder-csi-drift-check", driftPlan, driftSettings,
	}},
	{leaf: "driftCheck.cloud", value: "other", with: aDriftCheck, objects: []string{driftSettings}},
	{leaf: "driftCheck.region", value: "RegionTwo", with: aDriftCheck, objects: []string{driftSettings}},
	{leaf: "driftCheck.distribution", value: "'kind: Distribution'", with: aDriftCheck, objects: []string{driftPlan}},
	{leaf: "driftCheck.plan", value: "'kind: Plan2'", with: aDriftCheck, objects: []string{driftPlan}},
	{leaf: "controller.settings", value: "{GODEBUG: netdns=go}", objects: []string{controllerSettings, deployment}},
	{leaf: "node.settings", value: "{GODEBUG: netdns=go}", objects: []string{nodeSettings, daemonSet}},
	{leaf: "cloudConf.controller", value: "'[Global]'", objects: []string{controllerConfig, deployment}},
	{leaf: "cloudConf.node", value: "'[Metadata]'", objects: []string{nodeConfig, daemonSet}},
	{leaf: "snapshots.enabled", value: "false", objects: []string{snapshotClass, snapshotRoles, controllerSettings, deployment}},
	{leaf: "snapshots.className", value: "other", objects: []string{snapshotClass, "VolumeSnapshotClass/other"}},
	{leaf: "snapshots.default", value: "false", objects: []string{snapshotClass}},
	{leaf: "snapshots.force", value: "true", objects: []string{snapshotClass}},
	{leaf: "snapshots.extraClasses", value: "[{name: b, deletionPolicy: Retain, parameters: {type: backup}}]", objects: []string{"VolumeSnapshotClass/b"}},
	{leaf: "storageClasses", value: "[{name: a, reclaimPolicy: Delete, volumeBindingMode: Immediate, allowVolumeExpansion: true}]", objects: []string{
		"StorageClass/a", testPod,
	}},
	{leaf: "networkPolicy.enabled", value: "true", with: "networkPolicy: {ports: [5000]}", objects: []string{policy}},
	{leaf: "networkPolicy.ports", value: "[443]", with: aPolicy, objects: []string{policy}},
	{leaf: "networkPolicy.cidrs", value: "[192.0.2.0/24]", with: aPolicy, objects: []string{policy}},
	{leaf: "networkPolicy.apiServerCIDRs", value: "[192.0.2.0/24]", with: aPolicy, objects: []string{policy}},
	{leaf: "networkPolicy.apiServerPorts", value: "[16443]", with: aPolicy, objects: []string{policy}},
	{leaf: "networkPolicy.dnsCIDRs", value: "[169.254.20.10/32]", with: aPolicy, objects: []string{policy}},
	{leaf: "networkPolicy.metricsNamespaces", value: "[monitoring]", with: aPolicy, objects: []string{policy}},
	{leaf: "hypershift.guestAccess", value: "adminKubeconfig", with: hypershift, objects: []string{deployment}},
	{leaf: "hypershift.kubeconfigSecret", value: "other", with: hypershift, objects: []string{deployment}},
	{leaf: "images.registry", value: "mirror.example", objects: []string{deployment, daemonSet}},
	{leaf: "images.pullPolicy", value: "Always", objects: []string{deployment, daemonSet}},
	{leaf: "controller.replicas", value: "3", objects: []string{deployment}},
	{leaf: "controller.podDisruptionBudget.enabled", value: "false", objects: []string{budget}},
	{leaf: "controller.runAsUser", value: "null", objects: []string{deployment}},
	{leaf: "controller.updateStrategy", value: "{type: Recreate}", objects: []string{deployment}},
	{leaf: "node.selinux", value: "enabled", objects: []string{csiDriver, daemonSet}},
	{leaf: "node.updateStrategy", value: "{type: OnDelete}", objects: []string{daemonSet}},
	{
		leaf: "controller.topologySpreadConstraints", objects: []string{deployment},
		value: "[{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: cinder-csi-controller}}}]",
	},
	{leaf: "nodePools", value: aPool, objects: []string{daemonSet, "DaemonSet/cinder-csi-node-gpu", nodeConfig}},
	{leaf: "rbac.extraRules", value: "{snapshotter: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}", objects: []string{"ClusterRole/cinder-csi-snapshotter"}},
	{leaf: "commonLabels", value: "{team: storage}", objects: []string{everyObject}},
	{leaf: "extraObjects", value: "[{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}}]", objects: []string{"ConfigMap/mine"}},
	{leaf: "helmTest.enabled", value: "false", with: aClass, objects: []string{testPod}},
	{leaf: "helmTest.storageClass", value: "slow", with: aClass, objects: []string{testPod}},
}

// roleRows are the values that both roles have.
func roleRows(role, workload, account string) []row {
	values := map[string]string{
		"priorityClassName": "high", "nodeSelector": "{storage: 'true'}", "tolerations": "[]", "podLabels": "{team: storage}", "podAnnotations": "{a: b}",
		"affinity":  "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}",
		"dnsPolicy": "ClusterFirstWithHostNet", "dnsConfig": "{nameservers: [192.0.2.1]}", "hostAliases": "[{ip: 192.0.2.1, hostnames: [keystone.example]}]",
		"imagePullSecrets": "[pull]", "proxy.http": "http://proxy:3128", "proxy.https": "http://proxy:3128", "proxy.noProxy": ".svc",
		"initContainers": "[{name: first, image: busybox}]", "extraVolumes": "[{name: extra, emptyDir: {sizeLimit: 1Gi}}]",
		"extraVolumeMounts": "{driver: [{name: extra, mountPath: /extra}]}", "extraArgs": "{driver: [--drain-timeout=30s]}",
		"extraEnv": "{driver: [{name: A, value: b}]}", "livenessProbe": "{driver: {initialDelaySeconds: 0}}", "resources": "{driver: {limits: {memory: 1Gi}}}",
	}
	rows := []row{{leaf: role + ".serviceAccountAnnotations", value: "{a: b}", objects: []string{account}}}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		r := row{leaf: role + "." + key, value: values[key], objects: []string{workload}}
		switch {
		case key == "extraVolumeMounts":
			r.with = role + ": {extraVolumes: " + values["extraVolumes"] + "}"
		case role == "controller" && driftCheckHas(key):
			r.with, r.objects = aDriftCheck, append(r.objects, "CronJob/cinder-csi-drift-check")
		}
		rows = append(rows, r)
	}
	return rows
}

// driftCheckHas is whether the drift check takes a value from the controller: it needs the same nodes, names, proxy and images.
func driftCheckHas(key string) bool {
	return strings.HasPrefix(key, "proxy.") || slices.Contains([]string{
		"affinity", "dnsConfig", "dnsPolicy", "hostAliases", "imagePullSecrets", "nodeSelector", "podLabels", "priorityClassName", "tolerations",
	}, key)
}

func imageRows(role, workload string, containers ...string) []row {
	var rows []row
	for _, c := range containers {
		image := "images." + role + "." + c
		objects := []string{workload}
		for key, value := range map[string]string{"registry": "mirror.example", "repository": "other/image", "tag": "v9", "digest": "sha256:" + strings.Repeat("ab", 32)} {
			rows = append(rows, row{leaf: image + "." + key, value: value, objects: objects})
		}
	}
	return rows
}

func driftImageRows() []row {
	return with(aDriftCheck, imageRows("driftcheck", "CronJob/cinder-csi-drift-check", "generator"))
}

// with is rows that have no effect without other values.
func with(values string, rows []row) []row {
	for i := range rows {
		rows[i].with = values
	}
	return rows
}

// leaves are the paths of values.yaml that hold no other keys.
func leaves(at string, value any) []string {
	m, _ := value.(map[string]any)
	if len(m) == 0 {
		return []string{at}
	}
	var all []string
	for key, child := range m {
		all = append(all, leaves(strings.TrimPrefix(at+"."+key, "."), child)...)
	}
	return all
}

// set writes a value at the path of a leaf.
func set(values map[string]any, leaf string, value any) map[string]any {
	nested := value
	keys := strings.Split(leaf, ".")
	for _, key := range slices.Backward(keys) {
		nested = map[string]any{key: nested}
	}
	return chartutil.MergeTables(nested.(map[string]any), values)
}

func TestEachValueHasARow(t *testing.T) {
	text := testfile.Text(t, "cinder-csi/values.yaml")
	want := leaves("", parse(t, text))
	got := []string{"chartVersion", "kubernetesVersion"} // they refuse and change nothing: TestTheChartRefusesWhatItDoesNotKnow, TestTheChartHasTheKubernetesGatesOfTheGenerator
	for _, r := range rows {
		got = append(got, r.leaf)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values.yaml and the rows of this test:\n%s", diff)
	}
}

func TestEachValueChangesExactlyItsObjects(t *testing.T) {
	without := map[string]map[string]verify.Object{} // by the other values of a row
	for _, r := range rows {
		if without[r.with] == nil {
			without[r.with] = objects(t, parse(t, r.with))
		}
	}
	for _, r := range rows {
		t.Run(r.leaf, func(t *testing.T) {
			t.Parallel()
			before := without[r.with]
			after := objects(t, set(parse(t, r.with), r.leaf, parse(t, "value: "+r.value)["value"]))
			var want []string
			for _, group := range r.objects {
				want = append(want, namesOf(group, slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))...)
			}
			slices.Sort(want)
			if diff := cmp.Diff(slices.Compact(want), changed(before, after)); diff != "" {
				t.Errorf("%s: %s changes other objects than expected:\n%s", r.leaf, r.value, diff)
			}
		})
	}
}

// standaloneLeaves are values that every other target refuses.
var standaloneLeaves = []string{"credentials.request", "monitoring.platform", "monitoring.tls.enabled"}

// TestValuesOfOpenShiftAreRefusedElsewhere: a value without effect is a mistake.
func TestValuesOfOpenShiftAreRefusedElsewhere(t *testing.T) {
	for _, leaf := range standaloneLeaves {
		if _, err := render(t, set(map[string]any{"monitoring": map[string]any{"kind": "ServiceMonitor"}}, leaf, true)); err == nil || !strings.Contains(err.Error(), leaf) {
			t.Errorf("%s on vanilla: want an error that names it, got %v", leaf, err)
		}
	}
}

// everyValue sets each value to that of its row, except those of other targets and those that turn something off.
func everyValue(t *testing.T) map[string]any {
	t.Helper()
	values := map[string]any{}
	for _, r := range rows {
		switch r.leaf {
		case "target", "plane", "hypershift.guestAccess", "hypershift.kubeconfigSecret", "snapshots.enabled", "helmTest.enabled", "controller.podDisruptionBudget.enabled",
			"caConfigMap.name", "credentials.caKey", "trustedCA": // caBundle excludes them
			continue
		}
		if slices.Contains(standaloneLeaves, r.leaf) {
			continue
		}
		values = set(values, r.leaf, parse(t, "value: "+r.value)["value"])
	}
	return values
}

func TestNameAndNamespaceOfTheReleaseChangeNoObject(t *testing.T) {
	other := chartutil.ReleaseOptions{Name: "other", Namespace: "elsewhere", Revision: 7, IsUpgrade: true}
	one, err := render(t, everyValue(t))
	if err != nil {
		t.Fatal(err)
	}
	two, err := renderFor(t, other, everyValue(t), false)
	if err != nil {
		t.Fatal(err)
	}
	const notes = "templates/NOTES.txt" // shows commands with the name
	delete(one, notes)
	delete(two, notes)
	if diff := cmp.Diff(one, two); diff != "" {
		t.Error(diff)
	}
}
