package doctor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// bundleYAML has what the checks read of a bundle.
const bundleYAML = `
- {kind: CSIDriver, metadata: {name: cinder.csi.openstack.org}}
- {kind: Namespace, metadata: {name: cinder-csi, labels: {pod-security.kubernetes.io/enforce: restricted}}}
- {kind: Namespace, metadata: {name: cinder-csi-node, labels: {pod-security.kubernetes.io/enforce: privileged}}}
- {kind: StorageClass, metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, provisioner: cinder.csi.openstack.org, parameters: {type: fast}}
- {kind: VolumeSnapshotClass, metadata: {name: cinder-csi, annotations: {snapshot.storage.kubernetes.io/is-default-class: "true"}}, driver: cinder.csi.openstack.org}
- {kind: ClusterRoleBinding, metadata: {name: cinder-csi-attacher}, subjects: [{kind: ServiceAccount, name: cinder-csi-controller, namespace: cinder-csi}]}
- {kind: PodMonitor, metadata: {name: cinder-csi-controller, namespace: cinder-csi, labels: {release: kps}}}
- {kind: PodMonitor, metadata: {name: cinder-csi-node, namespace: cinder-csi-node, labels: {release: kps}}}
- {kind: PrometheusRule, metadata: {name: cinder-csi-controller, namespace: cinder-csi, labels: {release: kps}}}
- kind: NetworkPolicy
  metadata: {name: cinder-csi-controller, namespace: cinder-csi}
  spec:
    policyTypes: [Egress, Ingress]
    ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}], ports: [{port: metrics}]}]
    egress:
    - ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
      to: [{namespaceSelector: {}}, {ipBlock: {cidr: 169.254.20.10/32}}]
    - ports: [{protocol: TCP, port: 443}, {protocol: TCP, port: 6443}]
      to: [{ipBlock: {cidr: 192.0.2.0/24}}]
- kind: Deployment
  metadata: {name: cinder-csi-controller, namespace: cinder-csi}
  spec:
    template:
      spec:
        containers: [{name: driver, image: "registry.example/driver:v1", args: ["--driver-name=$(DRIVER_NAME)"]}]
        volumes: [{name: cloud, secret: {secretName: cinder-csi-cloud, items: [{key: clouds.yaml, path: clouds.yaml}]}}]
- kind: DaemonSet
  metadata: {name: cinder-csi-node, namespace: cinder-csi-node}
  spec:
    template:
      spec:
        hostNetwork: true
        initContainers: [{name: registrar, image: "registry.example/registrar:v1", ports: [{name: registrar, containerPort: 29602}]}]
        containers: [{name: driver, image: "registry.example/driver:v1", ports: [{name: metrics, containerPort: 29603}, {name: healthz, containerPort: 29601}]}]
        volumes:
        - {name: plugin, hostPath: {path: /var/lib/kubelet/plugins/cinder.csi.openstack.org}}
        - {name: registration, hostPath: {path: /var/lib/kubelet/plugins_registry}}
`

// api is an API server that knows the answers to GETs of paths; it answers 404 to the rest.
type api map[string]string

func newAPI() api {
	a := api{
		"/version":                                               `{"gitVersion": "v1.34.2"}`,
		"/apis/snapshot.storage.k8s.io/v1":                       `{"resources": [{"name": "volumesnapshots"}, {"name": "volumesnapshotcontents"}, {"name": "volumesnapshotclasses"}]}`,
		"/api/v1/namespaces/cinder-csi":                          `{"metadata": {"name": "cinder-csi"}}`,
		"/api/v1/namespaces/cinder-csi-node":                     `{"metadata": {"name": "cinder-csi-node", "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}`,
		"/apis/apps/v1/daemonsets":                               `{"items": [` + nodeLocalDNS("169.254.20.10") + `]}`,
		"/apis/apps/v1/statefulsets":                             `{"items": []}`,
		"/apis/apps/v1/replicasets":                              `{"items": []}`,
		apiServerSlice:                                           apiServerAt("192.0.2.10", 6443),
		"/api/v1/pods":                                           `{"items": [` + podWithPort("cinder-csi-node", "DaemonSet", "cinder-csi-node", true, "containerPort", 29603) + `]}`,
		"/apis/storage.k8s.io/v1/storageclasses":                 `{"items": []}`,
		"/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses": `{"items": []}`,
		"/api/v1/nodes":                                          `{"items": [{"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "az1"}}}]}`,
		"/api/v1/namespaces/cinder-csi/secrets/cinder-csi-cloud": `{"data": {"clouds.yaml": "aHVudGVyMg=="}}`,
	}
	for _, namespace := range []string{"cinder-csi", "cinder-csi-node", "openshift-storage"} {
		a["/api/v1/namespaces/"+namespace+"/resourcequotas"] = `{"items": []}`
	}
	a[monitoringAPI] = `{"resources": [{"name": "podmonitors"}, {"name": "prometheusrules"}]}`
	a[prometheusList] = `{"items": [` + prometheusIn("monitoring", `{"matchLabels": {"release": "kps"}}`, `{}`) + `]}`
	a["/apis/apps/v1/deployments"] = `{"items": [` + workloadJSON("kube-system", "snapshot-controller", "registry.k8s.io/sig-storage/snapshot-controller:v8", "") + `]}`
	return a
}

// prometheusIn is a Prometheus with the same selectors for monitors and for rules.
func prometheusIn(namespace, objects, namespaces string) string {
	return fmt.Sprintf(`{"metadata": {"namespace": %q, "name": "p"}, "spec": {"podMonitorSelector": %[2]s, "podMonitorNamespaceSelector": %[3]s, "ruleSelector": %[2]s, "ruleNamespaceSelector": %[3]s}}`,
		namespace, objects, namespaces)
}

// apiServerAt is the EndpointSlice of the API server.
func apiServerAt(address string, port int) string {
	return fmt.Sprintf(`{"endpoints": [{"addresses": [%q]}], "ports": [{"name": "https", "port": %d, "protocol": "TCP"}]}`, address, port)
}

// nodeLocalDNS is the DaemonSet of NodeLocal DNSCache.
func nodeLocalDNS(addresses string) string {
	return fmt.Sprintf(`{"metadata": {"namespace": "kube-system", "name": "node-local-dns"}, "spec": {"template": {"spec": {"hostNetwork": true,
		"containers": [{"name": "node-cache", "image": "registry.k8s.io/dns/k8s-dns-node-cache:1.26.4", "args": ["-localip", %q, "-conf", "/etc/Corefile"]}]}}}}`, addresses)
}

// placed is a pod on a node.
func placed(namespace, kind, owner, node string) string {
	return fmt.Sprintf(`{"metadata": {"namespace": %q, "name": "p", "ownerReferences": [{"kind": %q, "name": %q}]}, "spec": {"nodeName": %q}}`, namespace, kind, owner, node)
}

// podWithPort is a pod with an owner and one declared port.
func podWithPort(namespace, kind, owner string, hostNetwork bool, field string, port int) string {
	return fmt.Sprintf(`{"metadata": {"namespace": %q, "name": "p", "ownerReferences": [{"kind": %q, "name": %q}]},
		"spec": {"hostNetwork": %t, "containers": [{"name": "c", "ports": [{%q: %d, "protocol": "TCP"}]}]}}`, namespace, kind, owner, hostNetwork, field, port)
}

// registrarThatEnded is a pod of the node whose registrar has not reached the socket of the driver.
func registrarThatEnded(security string) string {
	return `{"metadata": {"namespace": "cinder-csi-node", "name": "n1", "ownerReferences": [{"kind": "DaemonSet", "name": "cinder-csi-node"}]},
		"spec": {"containers": [{"name": "registrar", "securityContext": ` + security + `}]}, "status": {"containerStatuses": [{"name": "registrar",
		"lastState": {"terminated": {"message": "W1127 16:00:00.000000 1 connection.go:234] \"Still connecting\" address=\"unix:///csi/csi.sock\""}}}]}}`
}

func TestARegistrarThatSELinuxLetsThroughIsNoFinding(t *testing.T) {
	for _, security := range []string{`{"seLinuxOptions": {"type": "spc_t"}}`, `{"privileged": true}`} {
		a := newAPI()
		a["/api/v1/pods"] = `{"items": [` + registrarThatEnded(security) + `]}`
		for _, f := range clusterReport(t, a, install(t)).Findings {
			if f.ID == "cluster.selinux" && f.Severity != OK {
				t.Errorf("%s: want no finding, got %+v", security, f)
			}
		}
	}
}

// workloadJSON is a workload with one container and one directory of the node.
func workloadJSON(namespace, name, image, dir string) string {
	return fmt.Sprintf(`{"metadata": {"namespace": %q, "name": %q}, "spec": {"template": {"spec": {"containers": [{"name": "c", "image": %q}],
		"volumes": [{"name": "v", "hostPath": {"path": %q}}]}}}}`, namespace, name, image, dir)
}

func (a api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, found := a[r.URL.Path]
	switch {
	case r.Method == http.MethodPost && r.URL.Path == reviews:
		a.review(w, r)
	case r.Method != http.MethodGet:
		http.Error(w, "only GET may be sent", http.StatusTeapot)
	case !found:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message": "not found"}`)
	case body == forbidden:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"message": "User \"eve\" cannot get it"}`)
	default:
		fmt.Fprint(w, body)
	}
}

const forbidden = "forbidden"

func install(t *testing.T) Install {
	t.Helper()
	var objects []map[string]any
	if err := yaml.Unmarshal([]byte(bundleYAML), &objects); err != nil {
		t.Fatal(err)
	}
	b, err := cluster.ReadBundle(objects)
	if err != nil {
		t.Fatal(err)
	}
	return Install{Bundle: b, KubernetesVersion: "1.32", Snapshots: true, ComputeZones: []string{"az1", "az2"}}
}

func clusterReport(t *testing.T, a api, i Install) *Report {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReport("test")
	r.CheckCluster(t.Context(), cluster.New("test", base, server.Client()), i)
	return r
}

// idsOf are the checks whose IDs begin so.
func idsOf(prefix string) (ids []string) {
	for _, c := range Checks {
		if strings.HasPrefix(c.ID, prefix) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func TestAClusterWithoutFaultsHasNoWarning(t *testing.T) {
	r := clusterReport(t, newAPI(), install(t))
	if r.Count(Error)+r.Count(Warning)+len(r.NotChecked) != 0 {
		t.Errorf("want only ok, got %+v %+v", r.Findings, r.NotChecked)
	}
	for _, id := range idsOf("cluster.") {
		if !has(r, id, OK, "") {
			t.Errorf("want %s ok, got %+v", id, r.Findings)
		}
	}
}

var clusterFaults = []struct {
	name     string
	path     string // of the API
	answer   string // "" is 404
	id       string
	severity Severity
	says     string
}{
	{"too old", "/version", `{"gitVersion": "v1.31.0+k3s1"}`, "cluster.version", Error, "Kubernetes is v1.31.0+k3s1, and the bundle is made for 1.32"},
	{"no API server", "/version", "<html>", "cluster.version", Error, "not what Kubernetes sends"},
	{"no snapshot CRDs", "/apis/snapshot.storage.k8s.io/v1", "", "cluster.snapshots", Error, "does not serve volumesnapshots, volumesnapshotcontents, volumesnapshotclasses"},
	{"one CRD only", "/apis/snapshot.storage.k8s.io/v1", `{"resources": [{"name": "volumesnapshots"}]}`, "cluster.snapshots", Error, "does not serve volumesnapshotcontents, volumesnapshotclasses"},
	{"no snapshot controller", "/apis/apps/v1/deployments", `{"items": []}`, "cluster.snapshots", Warning, "no Deployment runs a snapshot controller"},
	{
		"upstream's node plugin", "/apis/apps/v1/daemonsets", `{"items": [` + workloadJSON("kube-system", "csi-cinder-nodeplugin", "registry.k8s.io/provider-os/cinder-csi-plugin:v1.36.0", "/var/lib/kubelet/plugins/cinder.csi.openstack.org") + `]}`,
		"cluster.driver", Error, "DaemonSet kube-system/csi-cinder-nodeplugin",
	},
	{
		"upstream's controller", "/apis/apps/v1/deployments", `{"items": [` + workloadJSON("kube-system", "csi-cinder-controllerplugin", "registry.k8s.io/provider-os/cinder-csi-plugin:v1.36.0", "/etc/cacert") + `]}`,
		"cluster.driver", Error, "Deployment kube-system/csi-cinder-controllerplugin",
	},
	{
		"upstream's controller until 1.22", "/apis/apps/v1/statefulsets", `{"items": [` + workloadJSON("kube-system", "csi-cinder-controllerplugin", "registry.k8s.io/provider-os/cinder-csi-plugin:v1.19.2", "/etc/cacert") + `]}`,
		"cluster.driver", Error, "StatefulSet kube-system/csi-cinder-controllerplugin",
	},
	{
		"a controller that a tool makes", "/apis/apps/v1/replicasets", `{"items": [` + workloadJSON("kube-system", "csi-cinder-controllerplugin", "registry.k8s.io/provider-os/cinder-csi-plugin:v1.36.0", "/etc/cacert") + `]}`,
		"cluster.driver", Error, "ReplicaSet kube-system/csi-cinder-controllerplugin",
	},
	{
		"a controller that a node starts from a file", "/api/v1/pods",
		`{"items": [{"metadata": {"namespace": "kube-system", "name": "cinder-csi-master-0", "annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [{"kind": "Node"}]}, "spec": {"containers": [{"name": "c", "image": "x/cinder-csi-plugin:v1"}]}}]}`,
		"cluster.driver", Error, "Pod kube-system/cinder-csi-master-0",
	},
	{
		"a build of somebody's own behind a shell", "/apis/apps/v1/deployments",
		`{"items": [{"metadata": {"namespace": "storage", "name": "c"}, "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "own:1", "command": ["sh", "-c", "exec csi --endpoint=$A --cloud-config=/c"]}]}}}}]}`,
		"cluster.driver", Error, "Deployment storage/c",
	},
	{
		"a driver that is a sidecar of Kubernetes", "/apis/apps/v1/deployments",
		`{"items": [{"metadata": {"namespace": "storage", "name": "c"}, "spec": {"template": {"spec": {"initContainers": [{"name": "c", "image": "x/cinder-csi-plugin:v1", "restartPolicy": "Always"}]}}}}]}`,
		"cluster.driver", Error, "Deployment storage/c",
	},
	{"a CSIDriver of nobody", "/apis/storage.k8s.io/v1/csidrivers/cinder.csi.openstack.org", `{}`, "cluster.driver", Warning, "no workload that doctor knows serves it"},
	{
		"a CSIDriver under another name", "/apis/storage.k8s.io/v1/csinodes", `{"items": [{"spec": {"drivers": [{"name": "cinder.csi.openstack.org"}]}}]}`,
		"cluster.driver", Error, "driver cinder.csi.openstack.org is registered on nodes, and the cluster has no CSIDriver of this name",
	},
	{"a namespace too strict", "/api/v1/namespaces/cinder-csi-node", `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}`, "cluster.namespace", Warning, "cinder-csi-node enforces the Pod Security level baseline; the pods need privileged"},
	{"a namespace that goes", "/api/v1/namespaces/cinder-csi", `{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}`, "cluster.namespace", Error, "is being deleted"},
	{"OpenShift", constraintsAPI, constraintsServed, "cluster.scc", Error, "the cluster has security context constraints, and the bundle requires none"},
	{"a quota of limits", "/api/v1/namespaces/cinder-csi/resourcequotas", `{"items": [{"metadata": {"name": "q"}, "spec": {"hard": {"limits.cpu": "4", "pods": "9"}}}]}`, "cluster.namespace", Warning, "ResourceQuota cinder-csi/q counts limits.cpu, and containers of the bundle have none"},
	{"no Secret", "/api/v1/namespaces/cinder-csi/secrets/cinder-csi-cloud", "", "cluster.secret", Error, "Secret cinder-csi/cinder-csi-cloud does not exist"},
	{"a Secret with another key", "/api/v1/namespaces/cinder-csi/secrets/cinder-csi-cloud", `{"data": {"cloud.conf": "aHVudGVyMg=="}}`, "cluster.secret", Error, "has no key clouds.yaml; its keys are cloud.conf"},
	{"nodes of another cloud", "/api/v1/nodes", `{"items": [{"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "eu-west-1a"}}}]}`, "cluster.nodes", Warning, "n1 (eu-west-1a)"},
	{"k0s", "/api/v1/nodes", `{"items": [{"metadata": {"name": "n1"}, "status": {"nodeInfo": {"kubeletVersion": "v1.34.1+k0s"}}}]}`, "cluster.kubelet", Warning, "points to /var/lib/k0s/kubelet"},
	{"microk8s", "/api/v1/nodes", `{"items": [{"metadata": {"name": "n1", "labels": {"microk8s.io/cluster": "true"}}}]}`, "cluster.kubelet", Warning, "points to /var/snap/microk8s/common/var/lib/kubelet"},
	{"another CSI driver elsewhere", "/apis/apps/v1/daemonsets", `{"items": [` + workloadJSON("nfs", "csi-nfs-node", "nfs", "/data/kubelet/plugins_registry") + `]}`, "cluster.kubelet", Warning, "DaemonSet nfs/csi-nfs-node points to /data/kubelet"},
	{
		"another bundle", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cinder-csi-attacher",
		`{"subjects": [{"kind": "ServiceAccount", "name": "cinder-csi-controller", "namespace": "west"}]}`, "cluster.rights", Error, "cinder-csi-attacher (of west/cinder-csi-controller)",
	},
	{
		"another driver in the namespace", "/apis/apps/v1/daemonsets",
		`{"items": [` + workloadJSON("cinder-csi-node", "cinder-csi-node", "x", "/var/lib/kubelet/plugins/west.example.org") + `]}`, "cluster.rights", Error, "DaemonSet cinder-csi-node/cinder-csi-node (driver west.example.org)",
	},
	{
		"another pod on the network of the nodes", "/api/v1/pods", `{"items": [` + podWithPort("west", "DaemonSet", "cinder-csi-node", true, "containerPort", 29602) + `]}`,
		"cluster.ports", Error, "declare host ports of the bundle: 29602 (DaemonSet west/cinder-csi-node)",
	},
	{
		"another pod with a host port", "/api/v1/pods", `{"items": [` + podWithPort("web", "ReplicaSet", "proxy", false, "hostPort", 29601) + `]}`,
		"cluster.ports", Error, "29601 (ReplicaSet web/proxy)",
	},
	{
		"a pod of a tenant beside the controller", "/api/v1/pods", `{"items": [` + placed("cinder-csi", "ReplicaSet", "cinder-csi-controller-7d9f", "n1") + "," + placed("shop", "ReplicaSet", "web", "n1") + "," +
			placed("logs", "DaemonSet", "collector", "n1") + "," + placed("kube-system", "ReplicaSet", "coredns", "n1") + "," + placed("shop", "ReplicaSet", "web", "n2") + `]}`,
		"cluster.neighbours", Warning, "run on nodes of the controller: n1 (namespace shop)",
	},
	{
		"a registrar that SELinux keeps from the socket", "/api/v1/pods", `{"items": [` + registrarThatEnded(`{}`) + `]}`,
		"cluster.selinux", Warning, "container registrar of pod cinder-csi-node/n1 ended before it reached the socket of the driver",
	},
	{"an API server on another port", apiServerSlice, apiServerAt("192.0.2.10", 16443), "cluster.network", Error, "does not let the controller reach the API server at 192.0.2.10:16443"},
	{"an API server elsewhere", apiServerSlice, apiServerAt("198.51.100.7", 6443), "cluster.network", Error, "reach the API server at 198.51.100.7:6443"},
	{
		"a DNS cache on the nodes", "/apis/apps/v1/daemonsets", `{"items": [` + nodeLocalDNS("169.254.20.10,10.96.0.10") + `]}`,
		"cluster.network", Error, "DaemonSet kube-system/node-local-dns answers DNS at addresses of the nodes that the NetworkPolicy of the bundle does not open: 10.96.0.10/32",
	},
	{
		"Cilium, and networks of the API server", "/apis/apps/v1/daemonsets", `{"items": [{"metadata": {"namespace": "kube-system", "name": "cilium"}, "spec": {"template": {"spec": {"containers": [{"name": "cilium-agent"}]}}}}]}`,
		"cluster.network", Error, "DaemonSet kube-system/cilium is Cilium, which does not apply the networks of spec.networkPolicy.apiServerCIDRs to the API server at 192.0.2.10",
	},
	{"no CRDs of the Prometheus operator", monitoringAPI, "", "cluster.monitoring", Error, "does not serve podmonitors, prometheusrules of monitoring.coreos.com/v1"},
	{
		"a Prometheus that selects other labels", prometheusList, `{"items": [` + prometheusIn("monitoring", `{"matchLabels": {"release": "stack"}}`, `{}`) + `]}`,
		"cluster.monitoring", Warning, "no Prometheus selects each PodMonitor of the bundle: Prometheus monitoring/p (release=stack in every namespace)",
	},
	{
		"a Prometheus of some namespaces", prometheusList, `{"items": [` + prometheusIn("monitoring", `{}`, `{"matchLabels": {"watch": "yes"}}`) + `]}`,
		"cluster.monitoring", Warning, "no Prometheus selects each PrometheusRule of the bundle: Prometheus monitoring/p (all in namespaces with watch=yes)",
	},
	{
		"a Prometheus of its own namespace", prometheusList, `{"items": [` + prometheusIn("cinder-csi", `{}`, `null`) + `]}`,
		"cluster.monitoring", Warning, "no Prometheus selects each PodMonitor of the bundle: Prometheus cinder-csi/p (all in its own namespace)",
	},
	{"a Prometheus that selects nothing", prometheusList, `{"items": [` + prometheusIn("monitoring", `null`, `{}`) + `]}`, "cluster.monitoring", Warning, "Prometheus monitoring/p (nothing)"},
	{
		"a Prometheus that the policy keeps out", prometheusList, `{"items": [` + prometheusIn("observability", `{}`, `{}`) + `]}`,
		"cluster.monitoring", Warning, "the NetworkPolicy of the bundle does not let in Prometheus observability/p from namespace observability",
	},
	{"a class that cannot change", "/apis/storage.k8s.io/v1/storageclasses", `{"items": [{"metadata": {"name": "fast"}, "provisioner": "cinder.csi.openstack.org"}]}`, "cluster.classes", Error, "StorageClass fast exists with another"},
	{"a class that the driver refuses", "/apis/storage.k8s.io/v1/storageclasses", `{"items": [{"metadata": {"name": "legacy"}, "provisioner": "kubernetes.io/cinder", "parameters": {"zone": "north", "fsType": "ext4"}}]}`, "cluster.classes", Warning, "StorageClass legacy has parameters that the driver does not take: zone"},
	{"a pod with an inline volume", "/api/v1/pods", `{"items": [{"metadata": {"name": "scratch", "namespace": "default"}, "spec": {"volumes": [{"name": "a", "csi": {"driver": "cinder.csi.openstack.org"}}]}}]}`, "cluster.driver", Warning, "1 workloads have inline volumes of driver cinder.csi.openstack.org: Pod default/scratch"},
	{"another default class", "/apis/storage.k8s.io/v1/storageclasses", `{"items": [{"metadata": {"name": "nfs", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}]}`, "cluster.classes", Warning, "StorageClass nfs is the default already"},
	{
		"another default snapshot class", "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses",
		`{"items": [{"metadata": {"name": "old", "annotations": {"snapshot.storage.kubernetes.io/is-default-class": "true"}}, "driver": "cinder.csi.openstack.org"}]}`,
		"cluster.classes", Warning, "VolumeSnapshotClass old is the default of driver",
	},
}

func TestEachFaultOfAClusterIsAFindingThatSaysWhatToDo(t *testing.T) {
	for _, f := range clusterFaults {
		t.Run(f.name, func(t *testing.T) {
			a := newAPI()
			a[f.path] = f.answer
			if f.answer == "" {
				delete(a, f.path)
			}
			if r := clusterReport(t, a, install(t)); !has(r, f.id, f.severity, f.says) {
				t.Errorf("want %s %s with %q, why and what to do, got %+v", f.severity, f.id, f.says, r.Findings)
			}
		})
	}
}

func TestEveryCheckOfTheClusterHasARow(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range clusterFaults {
		seen[f.id] = true
	}
	for _, id := range idsOf("cluster.") {
		if !seen[id] {
			t.Errorf("%s has no row", id)
		}
	}
}

func TestWhatTheUserMayNotReadIsNotCheckedAndNoError(t *testing.T) {
	a := newAPI()
	for path := range a {
		if path != "/version" {
			a[path] = forbidden
		}
	}
	r := clusterReport(t, a, install(t))
	if r.Count(Error)+r.Count(Warning) != 0 || len(r.NotChecked) < 6 {
		t.Errorf("want gaps only, got %+v %+v", r.Findings, r.NotChecked)
	}
}

func TestABundleThatIsInstalledAlreadyIsFine(t *testing.T) {
	a := newAPI()
	a["/apis/storage.k8s.io/v1/csidrivers/cinder.csi.openstack.org"] = `{}`
	a["/apis/apps/v1/daemonsets"] = `{"items": [` + workloadJSON("cinder-csi-node", "cinder-csi-node", "x", "/var/lib/kubelet/plugins/cinder.csi.openstack.org") + `]}`
	a["/apis/storage.k8s.io/v1/storageclasses"] = `{"items": [{"metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
		"provisioner": "cinder.csi.openstack.org", "parameters": {"type": "fast"}, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}]}`
	if r := clusterReport(t, a, install(t)); r.Count(Error)+r.Count(Warning) != 0 || !has(r, "cluster.driver", OK, "installed already") {
		t.Errorf("want only ok, got %+v", r.Findings)
	}
}

// Prometheus reads the monitors, and another object may read the rules.
func TestAThanosRulerReadsTheRules(t *testing.T) {
	a := newAPI()
	a[prometheusList] = `{"items": [{"metadata": {"namespace": "monitoring", "name": "p"}, "spec": {"podMonitorSelector": {}, "podMonitorNamespaceSelector": {}}}]}`
	a[monitoringAPI+"/thanosrulers"] = `{"items": [{"metadata": {"namespace": "monitoring", "name": "r"}, "spec": {"ruleSelector": {}, "ruleNamespaceSelector": {}}}]}`
	if r := clusterReport(t, a, install(t)); !has(r, "cluster.monitoring", OK, "a Prometheus selects every monitor and alert") {
		t.Errorf("want cluster.monitoring ok, got %+v", r.Findings)
	}
}

func TestAPrometheusAgentReadsNoRules(t *testing.T) {
	a := newAPI()
	delete(a, prometheusList)
	a["/apis/monitoring.coreos.com/v1alpha1/prometheusagents"] = `{"items": [` + prometheusIn("monitoring", `{}`, `{}`) + `]}`
	r := clusterReport(t, a, install(t))
	if !has(r, "cluster.monitoring", Warning, "no Prometheus selects each PrometheusRule of the bundle") || has(r, "cluster.monitoring", Warning, "PodMonitor") {
		t.Errorf("want a warning about the rules alone, got %+v", r.Findings)
	}
}

func TestTheAdviceAboutMonitoringCanBePasted(t *testing.T) {
	a := newAPI()
	a[prometheusList] = `{"items": [` + prometheusIn("monitoring", `{"matchLabels": {"release": "true", "team": "a"}}`, `{}`) + `]}`
	for _, f := range clusterReport(t, a, install(t)).Findings {
		if f.ID == "cluster.monitoring" && !strings.Contains(f.Do, `spec.monitoring.labels to the labels that your Prometheus selects: {release: "true", team: "a"}`) {
			t.Errorf("want the labels in the advice, got %+v", f)
		}
	}
}

func TestWithoutAPrometheusNobodyKnowsWhoReadsTheMetrics(t *testing.T) {
	a := newAPI()
	delete(a, prometheusList)
	r := clusterReport(t, a, install(t))
	if len(r.NotChecked) != 1 || !strings.Contains(r.NotChecked[0].What, "who reads the metrics") || r.Count(Warning) > 0 {
		t.Errorf("want one gap, got %+v %+v", r.NotChecked, r.Findings)
	}
}

func TestAPortOfAPodThatHasItsOwnNetworkIsFree(t *testing.T) {
	a := newAPI()
	a["/api/v1/pods"] = `{"items": [` + podWithPort("web", "ReplicaSet", "proxy", false, "containerPort", 29603) + `]}`
	if r := clusterReport(t, a, install(t)); !has(r, "cluster.ports", OK, "no other pod declares one of the 3 host ports") {
		t.Errorf("want cluster.ports ok, got %+v", r.Findings)
	}
}

func TestNoValueOfASecretIsInTheReport(t *testing.T) {
	text, err := json.Marshal(clusterReport(t, newAPI(), install(t)))
	if err != nil || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "aHVudGVyMg") {
		t.Errorf("%v: %s", err, text)
	}
}
