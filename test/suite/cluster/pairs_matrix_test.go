//go:build cluster

package cluster

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/test/kit/pairwise"
)

// feature is a switch of a bundle, with the values that the matrix gives it. The first value is what a bundle has without the switch.
type feature struct {
	name   string
	values []string
}

// features are the columns of the matrix. Every value of one meets every value of each other. In this order the rows are few.
var features = []feature{
	{"monitoring", []string{"none", "PodMonitor", "ServiceMonitor"}},
	{"policy", []string{"off", "on"}},
	{"proxy", []string{"off", "on"}},
	{"drift", []string{"off", "on"}},
	{"platform", []string{"vanilla", "sideBySide", "adopt"}}, // the last two are OpenShift's target standalone, where a ServiceMonitor reads over TLS
	{"taint", []string{"off", "on"}},
	{"snapshots", []string{"none", "snapshots", "backup"}},
	{"drain", []string{"off", "on"}},
	{"openstack", []string{"http", "caBundle", "caConfigMap", "caSecret"}}, // without TLS, or with a private CA and where the bundle has it from
	{"placement", []string{"off", "on"}},
	{"bundles", []string{"1", "2"}},
}

// setting is a row of the matrix: the value of each feature.
type setting map[string]string

// matrix are the rows. Those with TLS in front of OpenStack come last, so that it is switched once.
func matrix() []setting {
	var counts []int
	for _, f := range features {
		counts = append(counts, len(f.values))
	}
	var rows []setting
	for _, r := range pairwise.Rows(counts) {
		s := setting{}
		for i, f := range features {
			s[f.name] = f.values[r[i]]
		}
		rows = append(rows, s)
	}
	slices.SortStableFunc(rows, func(a, b setting) int {
		tls := map[bool]int{true: 1}
		return tls[a.tls()] - tls[b.tls()]
	})
	return rows
}

func (s setting) on(name string) bool { return s[name] == "on" }
func (s setting) openShift() bool     { return s["platform"] != "vanilla" }
func (s setting) monitored() bool     { return s["monitoring"] != "none" }
func (s setting) tls() bool           { return s["openstack"] != "http" }

// metricsTLS is whether kube-rbac-proxy serves the metrics of the controller.
func (s setting) metricsTLS() bool { return s.openShift() && s["monitoring"] == "ServiceMonitor" }

// target is the generator's.
func (s setting) target() string {
	if s.openShift() {
		return "standalone"
	}
	return "vanilla"
}

// String has the platform and what is switched on.
func (s setting) String() string {
	parts := []string{s["platform"]}
	for _, f := range features {
		switch value := s[f.name]; {
		case value == f.values[0] || f.name == "platform":
		case f.name == "bundles":
			parts = append(parts, "two bundles")
		case value == "on":
			parts = append(parts, f.name)
		default:
			parts = append(parts, value)
		}
	}
	return strings.Join(parts, " ")
}

type fields = map[string]any

// values of the keys that name something of the cluster or of the test.
const (
	placedLabel  = "cinder-csi-test/storage" // of the nodes for the controller where there is a placement; one of them also has it as a taint
	southDriver  = "south.cinder.example.com"
	southPrefix  = "south-"
	caConfigMap  = "cloud-ca"
	proxyAddress = "198.18.144.1:23128" // the machine, as the nodes see it
)

// distribution is the configuration of a bundle of the row, the first or the second.
func (s setting) distribution(second bool, ca string) (string, error) {
	node, controller := fields{}, fields{}
	spec := fields{
		"kubernetesVersion": "1.37",
		"images":            fields{"registry": "mirror.invalid"},
		"driver":            fields{"capacity": true},
		"snapshots":         fields{"enabled": s["snapshots"] != "none", "backup": map[bool]string{true: "enabled", false: "disabled"}[s["snapshots"] == "backup"]},
		"nodeLifecycle":     fields{"startupTaint": s.on("taint"), "drainHook": s.on("drain")},
		"roles":             fields{"controller": controller, "node": node},
	}
	if s.monitored() {
		spec["monitoring"] = fields{"kind": s["monitoring"], "alerts": true}
	}
	if s.on("policy") {
		// The bed's API server listens on its Service's own address and port. The targets of OpenShift expect 6443 alone.
		policy := fields{"enabled": true, "apiServerPorts": []int{443}}
		if s.monitored() && !s.openShift() {
			policy["metricsNamespaces"] = []string{s.prometheusNamespace()}
		}
		spec["networkPolicy"] = policy
	}
	if s.on("drift") {
		spec["driftCheck"] = fields{"schedule": "0 6 * * *"}
	}
	if s.on("proxy") {
		controller["proxy"] = fields{"http": "http://" + proxyAddress, "https": "http://" + proxyAddress}
	}
	if s.on("placement") {
		controller["nodeSelector"] = fields{placedLabel: "true"}
		controller["tolerations"] = []any{fields{"key": placedLabel, "operator": "Exists"}}
	}
	switch s["openstack"] {
	case "caBundle":
		spec["credentials"] = fields{"caBundle": ca}
	case "caConfigMap":
		spec["credentials"] = fields{"caConfigMap": caConfigMap}
	case "caSecret": // OpenShift's Cloud Credential Operator writes it, and the bundle looks for it there
		if !s.openShift() {
			spec["credentials"] = fields{"caKey": "ca.crt"}
		}
	}
	if s.openShift() {
		spec["openshift"] = fields{"coexistence": s["platform"]}
	}
	if second {
		spec["driver"] = fields{"capacity": true, "name": southDriver}
		spec["namespaces"] = fields{"controller": "cinder-csi-south", "node": "cinder-csi-south-node"}
		spec["storageClasses"] = fields{"namePrefix": southPrefix, "default": "none"}
		if s.openShift() {
			spec["openshift"] = fields{"coexistence": "sideBySide"}
		}
		if s.monitored() {
			spec["monitoring"].(fields)["nodePorts"] = map[bool]int{true: 9611, false: 29611}[s.openShift()]
		} else {
			spec["monitoring"] = fields{"nodePorts": map[bool]int{true: 9611, false: 29611}[s.openShift()]}
		}
	}
	text, err := yaml.Marshal(fields{
		"apiVersion": "generator.cinder-csi.io/v1alpha1", "kind": "Distribution", "metadata": fields{"name": "pairs"}, "spec": spec,
	})
	if err != nil {
		return "", fmt.Errorf("write the configuration of row %s: %w", s, err)
	}
	return string(text), nil
}
