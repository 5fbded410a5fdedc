package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// running is an API server of a cluster with upstream's chart, as its administrator changed it, and with volumes in two zones.
func running(w http.ResponseWriter, r *http.Request) {
	const listOf = `{"kind": "List", "apiVersion": "v1", "items": [`
	answers := map[string]string{
		"/apis/apps/v1/deployments": listOf + `{"metadata": {"namespace": "storage", "name": "cinder-controllerplugin", "annotations": {"meta.helm.sh/release-name": "cinder"}},
			"spec": {"replicas": 3, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
			"template": {"metadata": {"labels": {"app": "openstack-cinder-csi", "component": "controllerplugin", "release": "cinder", "chart": "x", "heritage": "Helm", "team": "storage"}},
			"spec": {"priorityClassName": "storage-critical", "dnsPolicy": "ClusterFirst",
			"containers": [
			{"name": "csi-provisioner", "image": "registry.k8s.io/sig-storage/csi-provisioner:v5.3.0", "args": ["--csi-address=$(ADDRESS)", "--feature-gates=Topology=true"], "terminationMessagePath": "/dev/termination-log"},
			{"name": "cinder-csi-plugin", "image": "registry.k8s.io/provider-os/cinder-csi-plugin:v1.36.0", "args": ["/bin/cinder-csi-plugin", "-v=4", "--endpoint=$(CSI_ENDPOINT)",
			"--cloud-config=$(CLOUD_CONFIG)", "--cluster=$(CLUSTER_NAME)", "--provide-node-service=false"], "resources": {"requests": {"cpu": "50m"}},
			"env": [{"name": "CSI_ENDPOINT", "value": "unix://csi/csi.sock"}, {"name": "CLOUD_CONFIG", "value": "/etc/config/cloud.conf"}, {"name": "CLUSTER_NAME", "value": "blue"}]}],
			"volumes": [{"name": "socket-dir", "emptyDir": {}}, {"name": "cacert", "configMap": {"name": "ca"}}, {"name": "cloud-config", "secret": {"secretName": "cloud-config"}},
			{"name": "all", "projected": {"sources": [{"secret": {"name": "more"}}]}}]}}}, "status": {"replicas": 3}},
			{"metadata": {"namespace": "storage", "name": "other"}, "spec": {"template": {"spec": {"containers": [{"name": "o", "image": "o"}], "volumes": [{"name": "s", "secret": {"secretName": "untouched"}}]}}}}]}`,
		"/apis/apps/v1/daemonsets": listOf + `{"metadata": {"namespace": "storage", "name": "cinder-nodeplugin"}, "spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
			"template": {"spec": {"containers": [{"name": "cinder-csi-plugin", "image": "registry.k8s.io/provider-os/cinder-csi-plugin:v1.36.0", "args": ["--provide-controller-service=false"]}],
			"volumes": [{"name": "r", "hostPath": {"path": "/data/kubelet/plugins_registry/"}}, {"name": "cloud-config", "secret": {"secretName": "cloud-config"}}]}}}}]}`,
		"/apis/storage.k8s.io/v1/storageclasses": listOf + `{"metadata": {"name": "csi-cinder-sc-delete", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "cinder.csi.openstack.org"},
			{"metadata": {"name": "old"}, "provisioner": "kubernetes.io/cinder"}]}`,
		"/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses": listOf + `{"metadata": {"name": "snap"}, "driver": "cinder.csi.openstack.org", "deletionPolicy": "Delete"}]}`,
		"/api/v1/persistentvolumes": listOf + `{"metadata": {"name": "pv-1"}, "spec": {"csi": {"driver": "cinder.csi.openstack.org"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "topology.cinder.csi.openstack.org/zone", "operator": "In", "values": ["az1"]}]}]}}}},
			{"metadata": {"name": "pv-in-tree", "labels": {"topology.kubernetes.io/zone": "az2"}}, "spec": {"cinder": {"volumeID": "x"}}}]}`,
		"/api/v1/namespaces/storage/configmaps/ca":        `{"data": {"note": "x"}}`,
		"/api/v1/namespaces/storage/secrets/more":         `{"data": {"cloud.conf": "Y2FuYXJ5"}}`,
		"/api/v1/namespaces/storage/secrets/cloud-config": `{"data": {"cloud.conf": "Y2FuYXJ5"}}`,
	}
	body, found := answers[r.URL.Path]
	if !found && r.Method == http.MethodGet && slices.Contains(otherWorkloads, r.URL.Path) {
		body, found = `{"items": []}`, true
	}
	if !found || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(body))
}

const upstreamConf = "[Global]\nauth-url=https://keystone.example/v3\nusername=cinder\npassword=\"0123\"\ntenant-name=blue\ndomain-name=Default\nregion=RegionOne\n" +
	"ca-file=/etc/cacert/ca.pem\ncert-file=/etc/tls/a.crt\nkey-file=/etc/tls/a.key\n[BlockStorage]\nignore-volume-az=true\nnode-volume-attach-limit=20\n"

func TestARunningInstallationBecomesAConfigurationThatPlanTakes(t *testing.T) {
	b := newBed(t)
	b.sim.SetVolumeZones("nova")
	b.api = http.HandlerFunc(running)
	clouds := filepath.Join(b.dir, "converted.yaml")
	conf := b.file(t, "cloud.conf", upstreamConf)
	stdout, stderr, code := b.run(t, "import", "--context", "prod", "--simulated", conf, "--clouds-yaml", clouds)
	if code != OK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{
		"clusterID: blue", "mode: enabled", "az1: nova", "az2: nova", "logLevel: 4", "replicas: 3", "team: storage", "kubeletDir: /data/kubelet",
		"priorityClassName: storage-critical", "default: none", `volumeAttachLimit: "20"`, "cpu: 50m",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("want %q in:\n%s", want, stdout)
		}
	}
	for _, want := range []string{
		"the cluster: Deployment: left out: it has no setting of the driver",
		"the cluster: Secret storage/cloud-config: the keys cloud.conf: left out: import does not read the values of a Secret",
		"kubectl --namespace storage get secret cloud-config",
		"the cluster: Secret storage/more: the keys cloud.conf: left out",
		"all files: credentials: is now " + clouds + ": create the Secret: kubectl create secret generic cinder-csi-credentials --namespace cinder-csi --from-file=clouds.yaml=" + clouds + "\n",
		conf + ": [Global] password: left out: it is part of the credentials: " + clouds + " has it (key auth.password)",
		conf + ": [Global] cert-file: left out: the pods of a bundle do not have this file; mount it",
		conf + ": [Global] key-file: left out: the pods of a bundle do not have this file; mount it",
		"the cluster: StorageClass old: the class: left out: the class stays in the cluster as it is. Kubernetes gives its claims to the driver with the name",
		"the cluster: PersistentVolumes in-tree (1): pv-in-tree: left out",
		"the cloud: compute zone az1: is now spec.topology.zoneMap",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("want %q in:\n%s", want, stderr)
		}
	}
	for _, contradiction := range []string{"never prints them", "write it into clouds.yaml"} {
		if strings.Contains(stderr, contradiction) {
			t.Errorf("the file is written, and a message says %q:\n%s", contradiction, stderr)
		}
	}
	for _, secret := range []string{"0123", "Y2FuYXJ5", "canary"} {
		if strings.Contains(stdout+stderr, secret) {
			t.Errorf("%s is printed:\n%s%s", secret, stdout, stderr)
		}
	}
	config := b.file(t, "distribution.yaml", stdout)
	_, stderr, code = b.run(t, "plan", "--simulated", "--target", "vanilla", "--config", config)
	if code != OK || strings.Contains(stderr, "no volume zone is called") {
		t.Errorf("want a plan whose zones are served, got %d: %s", code, stderr)
	}
	if info, err := os.Stat(clouds); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("want mode 0600, got %v, %v", info, err)
	}
	got, err := cloud.FromSource(cloud.Source{CloudName: "openstack", CloudsFile: clouds, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if got.Password != "0123" || got.AuthURL != "https://keystone.example/v3" || got.ProjectName != "blue" || got.Region != "RegionOne" || got.UserDomainName != "Default" || got.CACertFile+got.CertFile+got.KeyFile != "" {
		t.Errorf("the login is another one: %v", got)
	}
	if stdout, stderr, code := b.run(t, "import", conf, "--clouds-yaml", "-"); code != Usage || stdout != "" || !strings.Contains(stderr, "--clouds-yaml - would print the credentials") {
		t.Errorf("want a refusal of stdout, got %d: %s%s", code, stdout, stderr)
	}
	if _, stderr, code := b.run(t, "import", conf, "--clouds-yaml", clouds); code != Usage || !strings.Contains(stderr, "exists; name a new file") {
		t.Errorf("want a refusal of a file that exists, got %d: %s", code, stderr)
	}
}

// pooled is running with a copy of the DaemonSet for nodes with another directory of kubelet and a cloud.conf of their own.
func pooled(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/apis/apps/v1/daemonsets":
		const pods = `{"metadata": {"namespace": "storage", "name": "%s"}, "spec": {"template": {"spec": {%s"containers": [{"name": "cinder-csi-plugin",
			"image": "registry.k8s.io/provider-os/cinder-csi-plugin:v1.36.0", "args": ["--provide-controller-service=false"]}],
			"volumes": [{"name": "r", "hostPath": {"path": "%s/plugins_registry/"}}, {"name": "cloud-config", %s}]}}}}`
		_, _ = fmt.Fprintf(w, `{"kind": "List", "apiVersion": "v1", "items": [`+pods+`,`+pods+`,`+pods+`]}`,
			"cinder-nodeplugin", `"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
			{"key": "node-pool", "operator": "NotIn", "values": ["small", "dense"]}]}]}}}, `, "/data/kubelet", `"secret": {"secretName": "cloud-config"}`,
			"small", `"nodeSelector": {"node-pool": "small"}, `, "/var/lib/kubelet", `"configMap": {"name": "small"}`,
			"dense", `"nodeSelector": {"node-pool": "dense"}, `, "/data/kubelet", `"secret": {"secretName": "dense"}`)
	case "/api/v1/namespaces/storage/configmaps/small":
		_, _ = w.Write([]byte(`{"data": {"cloud.conf": "[Global]\nuse-clouds=true\n[BlockStorage]\nnode-volume-attach-limit=8\n", "ca.pem": "x"}}`))
	case "/api/v1/namespaces/storage/secrets/dense":
		_, _ = w.Write([]byte(`{"data": {"cloud.conf": "Y2FuYXJ5"}}`))
	default:
		running(w, r)
	}
}

func TestFurtherDaemonSetsOfAClusterBecomePoolsOfABundle(t *testing.T) {
	b := newBed(t)
	b.sim.SetVolumeZones("nova")
	b.api = http.HandlerFunc(pooled)
	stdout, stderr, code := b.run(t, "import", "--context", "prod", "--simulated", b.file(t, "cloud.conf", upstreamConf))
	if code != OK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	const pools = `  nodePools:
    - name: dense
      nodeSelector:
        node-pool: dense
    - name: small
      nodeSelector:
        node-pool: small
      volumeAttachLimit: 8
      kubeletDir: /var/lib/kubelet
`
	for _, want := range []string{pools, `volumeAttachLimit: "20"`, "kubeletDir: /data/kubelet"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("want %q in:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "affinity") {
		t.Errorf("the affinity of all nodes would keep the pods of the pools from their nodes:\n%s", stdout)
	}
	for _, want := range []string{
		"the cluster: ConfigMap storage/small: [BlockStorage] node-volume-attach-limit: is now spec.nodePools: the volumeAttachLimit of the pool small\n",
		"the cluster: ConfigMap storage/small: [Global] use-clouds: left out: a pool has its own nodes",
		"the cluster: ConfigMap storage/small: data ca.pem: left out: a pool has its own nodes",
		"the cluster: Secret storage/dense: the keys cloud.conf: left out: if its cloud.conf has node-volume-attach-limit, write that into volumeAttachLimit of the pool",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("want %q in:\n%s", want, stderr)
		}
	}
	config := b.file(t, "distribution.yaml", stdout+"\n")
	for format, file := range map[string]string{"kustomize": "node.yaml", "helm": "values.yaml"} {
		dir := filepath.Join(b.dir, format)
		b.ok(t, "generate", "--simulated", "--target", "vanilla", "--format", format, "--config", config, "--output-dir", dir)
		if content, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(content), "small") {
			t.Errorf("%s: want the pool in %s, got %v:\n%s", format, file, err, content)
		}
	}
}

func TestImportRefusesZonesThatItCannotKeep(t *testing.T) {
	for _, c := range []struct {
		name, says string
		volume     []string
		args       []string
	}{
		{name: "the cloud is not known", says: "PersistentVolumes are in az1, az2, and the zones of Cinder are not known. Give the cloud with --os-cloud or --inventory"},
		{name: "two volume zones", volume: []string{"v1", "v2"}, args: []string{"--simulated"}, says: "which has no volume zone of its name. The volume zones are v1, v2"},
		{name: "another cloud", volume: []string{"nova"}, args: []string{"--inventory", "../../examples/inventories/legacy.yaml"}, says: "no compute zone of the cloud has this name"},
	} {
		b := newBed(t)
		b.api = http.HandlerFunc(running)
		if c.volume != nil {
			b.sim.SetVolumeZones(c.volume...)
		}
		stdout, stderr, code := b.run(t, append([]string{"import", "--context", "prod"}, c.args...)...)
		if code != Refused || stdout != "" || !strings.Contains(stderr, c.says) || !strings.Contains(stderr, `[Zone "az1"]`) {
			t.Errorf("%s: want exit 3, got %d: %s%s", c.name, code, stdout, stderr)
		}
		conf := b.file(t, "zones.conf", "[Zone \"az1\"]\nvolume-zone=v1\n[Zone \"az2\"]\nvolume-zone=v2\n")
		if got := b.ok(t, append([]string{"import", "--context", "prod", conf}, c.args...)...); !strings.Contains(got, "az2: v2") {
			t.Errorf("%s: want the map of the further file, got:\n%s", c.name, got)
		}
	}
}

func TestImportThatMayNotReadTheClusterSaysWhat(t *testing.T) {
	b := newBed(t)
	b.api = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"message": "no"}`, http.StatusForbidden) })
	if _, stderr, code := b.run(t, "import", "--context", "prod"); code != Failure || !strings.Contains(stderr, "GET /apis/apps/v1/deployments of the cluster") {
		t.Errorf("want the request that was denied, got %d: %s", code, stderr)
	}
	b.api = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"items": []}`)) })
	if stdout, stderr, code := b.run(t, "import", "--context", "prod"); code != Usage || stdout != "" || !strings.Contains(stderr, "has no workload of a Cinder driver") {
		t.Errorf("want exit 64 for a cluster without the plugin, got %d: %s", code, stderr)
	}
	if _, stderr, code := b.run(t, "import"); code != Usage || !strings.Contains(stderr, "nothing to import") {
		t.Errorf("want exit 64 without anything to import, got %d: %s", code, stderr)
	}
	half := b.file(t, "half.conf", "[Global]\nauth-url=https://k/v3\nusername=hunter2\n")
	if stdout, stderr, code := b.run(t, "import", half, "--clouds-yaml", b.dir+"/c"); code != Usage || strings.Contains(stdout+stderr, "hunter2") || !strings.Contains(stderr, "is missing") {
		t.Errorf("want exit 64 for half a login, got %d: %s%s", code, stdout, stderr)
	}
	if _, stderr, code := b.run(t, "import", b.file(t, "v.yaml", "clusterID: x\n"), "--clouds-yaml", b.dir+"/c"); code != Usage || !strings.Contains(stderr, "no file is a cloud.conf") {
		t.Errorf("want exit 64 without a cloud.conf, got %d: %s", code, stderr)
	}
}

func TestTheNotesOfImportSayWhatCloudsYAMLHas(t *testing.T) {
	b := newBed(t)
	conf := b.file(t, "cloud.conf", "[Global]\nauth-url=https://k.example/v3\ntoken=0123\ntls-insecure=true\n")
	clouds := filepath.Join(b.dir, "converted.yaml")
	_, stderr, code := b.run(t, "import", conf, "--clouds-yaml", clouds)
	content, err := os.ReadFile(clouds)
	if code != OK || err != nil || !strings.Contains(string(content), "token:") || !strings.Contains(string(content), "verify: false") {
		t.Fatalf("exit %d, %v: %s\n%s", code, err, stderr, content)
	}
	for _, want := range []string{
		conf + ": [Global] token: is now " + clouds + " (auth.token): a token expires",
		conf + ": [Global] tls-insecure: is now " + clouds + " (verify: false, if it is true): the opposite is verify",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("want %q in:\n%s", want, stderr)
		}
	}
	if _, stderr, _ := b.run(t, "import", conf); !strings.Contains(stderr, "[Global] token: left out: a token expires") {
		t.Errorf("want it left out without --clouds-yaml, got:\n%s", stderr)
	}
}
