package charts_test

import (
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

const classFields = "reclaimPolicy: Delete, volumeBindingMode: Immediate, allowVolumeExpansion: true"

// People install the chart without the generator too. What the generator refuses in a configuration, the chart refuses in its values. Else the API server
// refuses it in the middle of an upgrade, a runtime cannot pull, or the driver refuses each claim.
func TestTheChartHasTheRulesOfTheGenerator(t *testing.T) {
	class := func(more string) string { return "storageClasses: [{name: a, " + classFields + ", " + more + "}]" }
	for name, c := range map[string]struct{ values, want string }{
		"a registry with a scheme":                   {"images: {registry: 'https://registry.example'}", "at '/images/registry'"},
		"a registry that ends in a slash":            {"images: {registry: registry.example/}", "at '/images/registry'"},
		"a registry without a dot or a port":         {"images: {registry: mirror}", "at '/images/registry'"},
		"an image whose registry has a scheme":       {"images: {controller: {attacher: {registry: 'https://registry.example'}}}", "registry"},
		"an image with credentials in the registry":  {"images: {node: {driver: {registry: 'u:pw@registry.example'}}}", "registry"},
		"a repository with capitals":                 {"images: {controller: {attacher: {repository: Sig/Attacher}}}", "repository"},
		"a repository with a tag":                    {"images: {controller: {attacher: {repository: 'a/b:v1'}}}", "repository"},
		"a tag that is none":                         {"images: {controller: {attacher: {tag: 'v 1'}}}", "tag"},
		"a digest that is none":                      {"images: {controller: {attacher: {digest: 'sha256:12'}}}", "digest"},
		"two classes of one name":                    {"storageClasses: [{name: a, " + classFields + "}, {name: a, " + classFields + "}]", "two classes have the name a"},
		"a class whose name is none":                 {"storageClasses: [{name: A_b, " + classFields + "}]", "/storageClasses/0/name"},
		"a parameter that the driver does not know":  {class("parameters: {tpye: fast}"), "tpye"},
		"a Secret that no sidecar may read":          {class("parameters: {csi.storage.k8s.io/provisioner-secret-name: a, csi.storage.k8s.io/provisioner-secret-namespace: b}"), "provisioner-secret-name"},
		"a file system that the driver cannot make":  {class("parameters: {csi.storage.k8s.io/fstype: ntfs}"), "fstype"},
		"a mount option that is two":                 {class("mountOptions: ['a b']"), "mountOptions"},
		"a reclaim policy that does not exist":       {"storageClasses: [{name: a, reclaimPolicy: Keep, volumeBindingMode: Immediate, allowVolumeExpansion: true}]", "reclaimPolicy"},
		"two snapshot classes of one name":           {"snapshots: {extraClasses: [{name: b, deletionPolicy: Delete}, {name: b, deletionPolicy: Delete}]}", "two snapshot classes have the name b"},
		"a snapshot class with the chart's own name": {"snapshots: {extraClasses: [{name: cinder-csi, deletionPolicy: Delete}]}", "two snapshot classes have the name cinder-csi"},
		"a parameter that no snapshot class has":     {"snapshots: {extraClasses: [{name: b, deletionPolicy: Delete, parameters: {forcecreate: 'true'}}]}", "forcecreate"},
		"a Secret of a snapshot class":               {"snapshots: {extraClasses: [{name: b, deletionPolicy: Delete, parameters: {csi.storage.k8s.io/snapshotter-secret-name: a}}]}", "snapshotter-secret-name"},
		"a deletion policy that does not exist":      {"snapshots: {extraClasses: [{name: b, deletionPolicy: Keep}]}", "deletionPolicy"},
		"two attributes classes of one name":         {"attributesClasses: [{name: a, parameters: {type: x}}, {name: a, parameters: {type: z}}]", "two attributes classes have the name a"},
		"a parameter that no attributes class has":   {"attributesClasses: [{name: a, parameters: {tpye: x}}]", "tpye"},
		"an attributes class that changes nothing":   {"attributesClasses: [{name: a, parameters: {}}]", "/attributesClasses/0/parameters"},
		"a policy without a type":                    {"attributesClasses: [{name: a, parameters: {policy: on-demand}}]", "/attributesClasses/0/parameters"},
		"an address that is no network":              {"networkPolicy: {enabled: true, ports: [5000], cidrs: [10.0.0.1]}", "/networkPolicy/cidrs/0"},
		"a network with bits behind its mask":        {"networkPolicy: {enabled: true, ports: [5000], cidrs: [10.0.0.1/33]}", "/networkPolicy/cidrs/0"},
		"a network of the API server that is none":   {"networkPolicy: {enabled: true, ports: [5000], apiServerCIDRs: [x]}", "/networkPolicy/apiServerCIDRs/0"},
		"a network of DNS that is none":              {"networkPolicy: {enabled: true, ports: [5000], dnsCIDRs: [x]}", "/networkPolicy/dnsCIDRs/0"},
		"a port that does not exist":                 {"networkPolicy: {enabled: true, ports: [70000]}", "/networkPolicy/ports/0"},
		"a port of the API server that is none":      {"networkPolicy: {enabled: true, ports: [5000], apiServerPorts: [0]}", "/networkPolicy/apiServerPorts/0"},
		"a namespace that is none":                   {"networkPolicy: {enabled: true, ports: [5000], metricsNamespaces: [A_b]}", "/networkPolicy/metricsNamespaces/0"},
		"a host alias without an address":            {"controller: {hostAliases: [{ip: keystone, hostnames: [a.example]}]}", "/controller/hostAliases/0/ip"},
		"a host alias of the node without one":       {"node: {hostAliases: [{ip: 10.0.0, hostnames: [a.example]}]}", "/node/hostAliases/0/ip"},
		"a schedule with a minute that is none":      {"driftCheck: {schedule: '61 * * * *', plan: b}", "/driftCheck/schedule"},
		"a schedule of words":                        {"driftCheck: {schedule: hourly, plan: b}", "/driftCheck/schedule"},
		"a quantity that is none":                    {"controller: {resources: {driver: {limits: {memory: 50MB}}}}", "memory"},
		"a memory limit below the chart's request":   {"controller: {resources: {driver: {limits: {memory: 1Mi}}}}", "is below the request"},
		"the same for the node":                      {"node: {resources: {driver: {limits: {memory: 1Mi}}}}", "is below the request"},
		"a processor limit below the request":        {"controller: {resources: {driver: {limits: {cpu: 1m}}}}", "is below the request"},
		"a version of Kubernetes that is none":       {"kubernetesVersion: latest", "/kubernetesVersion"},
		"no controller":                              {"controller: {replicas: -1}", "/controller/replicas"},
		"a log level that does not exist":            {"driver: {logLevel: 11}", "/driver/logLevel"},
		"a variable whose name is none":              {"controller: {extraEnv: {driver: [{name: 'a b', value: x}]}}", "/controller/extraEnv/driver/0/name"},
		"a label whose value is none":                {"controller: {podLabels: {a: 'b c'}}", "/controller/podLabels/a"},
		"a toleration of an effect that is none":     {"node: {tolerations: [{key: a, operator: Exists, effect: Never}]}", "/node/tolerations/0/effect"},
		"a toleration of an operator that is none":   {"node: {tolerations: [{key: a, operator: Like}]}", "/node/tolerations/0/operator"},
		"a cluster without an ID":                    {"clusterID: ''", "/clusterID"},
		"a directory of kubelet that is relative":    {"driver: {kubeletDir: var/lib/kubelet}", "/driver/kubeletDir"},
		"a lease of no time":                         {"leases: {leaseDuration: soon}", "/leases/leaseDuration"},
		"a certificate that is none":                 {"caBundle: hello", "/caBundle"},
		"a proxy that is no URL":                     {"controller: {proxy: {http: proxy}}", "proxy"},
		"a proxy with a password":                    {"controller: {proxy: {https: 'http://u:pw@proxy:3128'}}", "proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, parse(t, c.values))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: want a refusal that has %q, got %v", c.values, c.want, err)
			}
		})
	}
}

// The rules refuse nothing that is right.
func TestTheChartTakesEachFormOfAValue(t *testing.T) {
	accepted := func(form string, values ...string) {
		t.Helper()
		for _, value := range values {
			if _, err := render(t, parse(t, strings.ReplaceAll(form, "%", value))); err != nil {
				t.Errorf("%s: %v", strings.ReplaceAll(form, "%", value), err)
			}
		}
	}
	accepted("images: {registry: '%'}", "", "registry.example", "registry.example:5000/mirror/a-b", "localhost:5000", "10.0.0.1:5000", "[fd00::1]:5000")
	accepted("images: {controller: {attacher: {registry: r.example/a, repository: '%'}}}", "csi-attacher", "sig-storage/csi-attacher", "a__b/c.d")
	accepted("networkPolicy: {enabled: true, ports: [5000], cidrs: ['%'], apiServerCIDRs: ['%'], dnsCIDRs: ['%']}", "10.0.0.0/8", "0.0.0.0/0", "fd00::/8", "::/0", "2001:db8::1/128", "::ffff:10.0.0.0/104")
	accepted("node: {hostAliases: [{ip: '%', hostnames: [a.example]}]}", "10.0.0.1", "fd00::1", "::1")
	accepted("driftCheck: {plan: p, schedule: '%'}\n"+"images: {driftcheck: {generator: {registry: r.example}}}", "@daily", "@every 1h30m", "*/5 * * * *", "0 6 * * *", "0,30 8-18 1-7 JAN-MAR MON-FRI", "5/15 0 * * 0", "1-59/2 */2 ? * *", "007 6 * * *", "*/90 6,*-8 ? JAN-mar *")
	accepted("controller: {resources: {driver: {limits: {memory: '%'}}}}", "1Gi", "500M", "0.5Gi", "2e9", "1073741824", "+64Mi")
	accepted("controller: {resources: {driver: {requests: {cpu: '%'}, limits: {cpu: '%'}}}}", "100m", "1", "1.5")
	accepted("controller: {proxy: {http: '%', https: '%'}}", "", "http://proxy:3128", "http://[fd00::1]:3128/", "socks5://proxy.example:1080")
	accepted("node: {podLabels: {a: '%'}}", "", "b", "v1.0_x-y")
	accepted("enabled: %", "true", "false")
	accepted("x-pods: &pods {team: %}\nnode: {podLabels: *pods}", "storage")

	var all []string
	for _, key := range contract.StorageClassKeys {
		switch value := "x"; {
		case strings.HasSuffix(key, "fstype"):
			all = append(all, key+": xfs")
		case !strings.Contains(key, "-secret-name") || strings.Contains(key, "/node-"):
			all = append(all, key+": "+value)
		}
	}
	accepted("storageClasses: [{name: a, "+classFields+", parameters: {%}}]", strings.Join(all, ", "), "metadata.a: b")
	all = nil
	for _, key := range contract.SnapshotClassKeys {
		all = append(all, key+": x")
	}
	const rules = "rbac: {extraRules: {provisioner: [{apiGroups: [''], resources: [secrets], verbs: [get]}], snapshotter: [{apiGroups: ['*'], resources: ['*'], verbs: [get]}]}}\n"
	accepted(rules+"snapshots: {extraClasses: [{name: a, deletionPolicy: Delete, parameters: {%}}]}", strings.Join(all, ", "))
	accepted(rules+"storageClasses: [{name: a, "+classFields+", parameters: {csi.storage.k8s.io/%-secret-name: x}}]", "provisioner")
}
