package migrate

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// configMap is a ConfigMap of OpenShift as a file.
func configMap(t *testing.T, name string, data map[string]string) string {
	t.Helper()
	namespace := "openshift-config"
	if name == operatorConfig {
		namespace = "openshift-cluster-csi-drivers"
	}
	content, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": namespace}, "data": data})
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// What OpenShift's operator keeps of a cloud.conf, and what import does with it. The operator writes what is in kept, and then a [Global] of
// its own.
func TestCloudConfOfOpenShiftIsReadByTheRulesOfItsOperator(t *testing.T) {
	limit := v1alpha1.Spec{VolumeAttachLimit: "7"}
	for _, c := range []struct {
		name, conf string
		kept       string // by the operator
		want       v1alpha1.Spec
		note       string // of import
		fails      string // import refuses the file with this
		differs    string // why import does something else than the operator; empty where it does the same
	}{
		{name: "nothing", conf: "", kept: ""},
		{name: "its own section", conf: "[BlockStorage]\nnode-volume-attach-limit = 7\n", kept: "node-volume-attach-limit", want: limit},
		{name: "the old key for devices", conf: "[BlockStorage]\ntrust-device-path = true\n", note: "trust-device-path: left out"},
		{
			name: "the old key in other case", conf: "[BlockStorage]\nTrust-Device-Path = true\n", kept: "Trust-Device-Path", note: "Trust-Device-Path: left out",
			differs: "the operator compares names exactly, the driver ignores case",
		},
		{
			name: "the section in other case", conf: "[blockstorage]\nnode-volume-attach-limit = 7\n", kept: "", want: limit,
			differs: "the operator drops what the driver would read",
		},
		{name: "credentials", conf: "[Global]\npassword = hunter2\n[BlockStorage]\nnode-volume-attach-limit = 7\n", kept: "node-volume-attach-limit", want: limit, note: "[Global] password: left out: OpenShift's operator replaces [Global]"},
		{name: "keys of the old operator", conf: "[Global]\nsecret-name = openstack-credentials\nsecret-namespace = kube-system\nkubeconfig-path = \"\"\n", note: "[Global] secret-namespace: left out"},
		{
			name: "the order of metadata", conf: "[Metadata]\nsearch-order = configDrive\n", kept: "", want: v1alpha1.Spec{Driver: v1alpha1.Driver{Metadata: []string{"configDrive"}}},
			differs: "the operator drops it, and nodes without a metadata service do not register",
		},
		{name: "load balancers", conf: "[LoadBalancer]\nuse-octavia = true\n", note: "use-octavia: left out: it is for the cloud controller manager"},
		{name: "several clouds", conf: "[Global \"east\"]\nauth-url = x\n", note: "a bundle serves one cloud"},
		{name: "a key twice", conf: "[BlockStorage]\nnode-volume-attach-limit = 3\nnode-volume-attach-limit = 7\n", kept: "node-volume-attach-limit", want: limit},
		{name: "a section twice", conf: "[BlockStorage]\nnode-volume-attach-limit = 3\n[BlockStorage]\nnode-volume-attach-limit = 7\n", kept: "node-volume-attach-limit", want: limit},
		{name: "quotes and a comment", conf: "[BlockStorage]\nnode-volume-attach-limit = \"7\" ; seven\n", kept: "node-volume-attach-limit", want: limit},
		{
			name: "a key before any section", conf: "x = 1\n[BlockStorage]\nnode-volume-attach-limit = 7\n", kept: "node-volume-attach-limit", fails: "line 1: a key before the first [section]",
			differs: "the operator drops it; the driver would not start",
		},
		{
			name: "a key without a value", conf: "[BlockStorage]\nrescan-on-resize\n", note: "rescan-on-resize: left out: the driver always reads",
			differs: "the operator fails, the driver reads it as true",
		},
		{
			name: "a typing error", conf: "[BlockStorage]\nnode-volume-atach-limit = 7\n", kept: "node-volume-atach-limit", fails: "there is no key node-volume-atach-limit in section [BlockStorage] of cloud.conf; did you mean node-volume-attach-limit?",
			differs: "the operator checks no key, and the driver ignores this one",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, notes, err := Import(named("file", configMap(t, userConfig, map[string]string{"config": c.conf + "# end\n"})))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "hunter2") {
					t.Fatalf("want an error with %q, got %v", c.fails, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := text(t, d, notes)
			if want := text(t, v1alpha1.Distribution{APIVersion: d.APIVersion, Kind: d.Kind, Spec: c.want}, nil); !strings.HasPrefix(got, want) || !strings.Contains(got, c.note) {
				t.Errorf("want %s and a note with %q, got %s", want, c.note, got)
			}
			if strings.Contains(got, "hunter2") {
				t.Errorf("a value of [Global] is told: %s", got)
			}
			if c.kept != "" && c.differs == "" && !strings.Contains(got, c.kept+": is now") {
				t.Errorf("the operator keeps %s, and nothing says why import does not: %s", c.kept, got)
			}
		})
	}
}

func TestTheFirstConfigMapWithCloudConfWinsAsWithOpenShiftsOperator(t *testing.T) {
	user := configMap(t, userConfig, map[string]string{"config": "[BlockStorage]\nnode-volume-attach-limit = 7\n"})
	provider := configMap(t, providerConfig, map[string]string{"config": "[BlockStorage]\nnode-volume-attach-limit = 9\n", "enable_topology": "true"})
	d, notes, err := Import(named("provider", provider, "user", user))
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, d, notes); d.Spec.VolumeAttachLimit != "7" || d.Spec.Topology.Mode != "" || strings.Count(got, "takes it from ConfigMap cinder-csi-config") != 2 {
		t.Errorf("want the limit of cinder-csi-config, and topology left to the generator, got:\n%s", got)
	}
	d, _, err = Import(named("provider", provider))
	if err != nil || d.Spec.VolumeAttachLimit != "9" || d.Spec.Topology.Mode != v1alpha1.Enabled {
		t.Errorf("want what cloud-provider-config says, got %v, %+v", err, d.Spec)
	}
	named2 := strings.Replace(infrastructureOf("x"), "status:", "spec: {cloudConfig: {name: mine, key: conf}}, status:", 1)
	mine := configMap(t, "mine", map[string]string{"conf": "[BlockStorage]\nnode-volume-attach-limit = 5\n"})
	if d, _, err := Import(named("a", named2, "b", mine)); err != nil || d.Spec.VolumeAttachLimit != "5" {
		t.Errorf("want what the ConfigMap says that Infrastructure names, got %v, %+v", err, d.Spec)
	}
	if _, _, err := Import(named("user", configMap(t, userConfig, map[string]string{"conf": "x"}))); err == nil || !strings.Contains(err.Error(), "it lacks the key config") {
		t.Errorf("want an error as the operator has, got %v", err)
	}
}

// infrastructureOf is an Infrastructure with this ID.
func infrastructureOf(id string) string {
	return "{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}, status: {infrastructureName: " + id + "}}"
}
