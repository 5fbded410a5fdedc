package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

func valueAt(fields map[string]any, path ...string) any {
	var at any = fields
	for _, key := range path {
		m, _ := at.(map[string]any)
		at = m[key]
	}
	return at
}

func (d document) text(path ...string) string {
	text, _ := valueAt(d.yaml, path...).(string)
	return text
}

func (d document) kind() string      { return d.text("kind") }
func (d document) name() string      { return d.text("metadata", "name") }
func (d document) namespace() string { return d.text("metadata", "namespace") }

// owner is the namespace whose people wrote the document; empty: those of the cluster, or of the file.
func (d document) owner() string { return cmp.Or(d.within, d.namespace()) }

// group is the API group; empty for the core of Kubernetes.
func (d document) group() string {
	group, _, grouped := strings.Cut(d.text("apiVersion"), "/")
	if !grouped {
		return ""
	}
	return group
}

// unreadKind is what notes call a document that no format reads.
func (d document) unreadKind() string {
	switch {
	case d.kind() != "":
		return d.kind()
	case d.file != d.source:
		return "a document without a kind in " + d.file
	}
	return "a document without a kind"
}

// label is what notes and errors call the document.
func (d document) label() string {
	if d.kind() == "" {
		return d.file
	}
	name := d.name()
	if d.namespace() != "" {
		name = d.namespace() + "/" + name
	}
	return strings.TrimSpace(d.file + ": " + d.kind() + " " + name)
}

// objectKind is a kind of Kubernetes object that Import reads.
type objectKind struct {
	group, kind string
	name        string              // of the one object that is read; empty: all
	only        func(document) bool // nil: all
	rules       []rule
	read        func(*proposal, document) error // nil: by the rules
}

func (k objectKind) is(d document) bool {
	return d.yaml != nil && d.kind() == k.kind && d.group() == k.group && (k.name == "" || d.name() == k.name) && (k.only == nil || k.only(d))
}

const (
	configGroup     = "config.openshift.io"
	operatorGroup   = "operator.openshift.io"
	hyperShiftGroup = "hypershift.openshift.io"
	appsGroup       = "apps"
	storageGroup    = "storage.k8s.io"
	snapshotGroup   = "snapshot.storage.k8s.io"
)

var objectKinds = []objectKind{
	{group: configGroup, kind: "Infrastructure", rules: infrastructureRules},
	{group: hyperShiftGroup, kind: "HostedCluster", rules: hostedClusterRules},
	{group: hyperShiftGroup, kind: "HostedControlPlane", rules: controlPlaneRules},
	{group: configGroup, kind: "Proxy", rules: proxyRules},
	{group: configGroup, kind: "Network", rules: networkRules},
	{group: configGroup, kind: "APIServer", rules: apiServerRules},
	{group: operatorGroup, kind: "ClusterCSIDriver", name: "cinder.csi.openstack.org", rules: clusterCSIDriverRules},
	{kind: "Namespace", only: func(d document) bool { return d.annotation(userAnnotation) != "" }, rules: namespaceRules},
	{kind: "ConfigMap", only: isConfigMap, rules: configMapRules, read: (*proposal).readConfigMap},
	{kind: "Secret", rules: secretRules, read: (*proposal).readSecret},
	{group: appsGroup, kind: "Deployment", only: runsDriver, rules: deploymentRules},
	{group: appsGroup, kind: "StatefulSet", only: runsDriver, rules: deploymentRules},
	{group: appsGroup, kind: "ReplicaSet", only: runsDriver, rules: deploymentRules},
	{group: appsGroup, kind: "Pod", only: runsDriver, rules: deploymentRules},
	{group: appsGroup, kind: "DaemonSet", only: runsDriver, rules: daemonSetRules, read: (*proposal).readDaemonSet},
	{group: storageGroup, kind: "StorageClass", only: isCinderClass, rules: storageClassRules, read: (*proposal).readStorageClass},
	{group: storageGroup, kind: "VolumeAttributesClass", only: func(d document) bool { return d.text("driverName") == cluster.UpstreamName }, rules: attributesClassRules, read: (*proposal).readAttributesClass},
	{group: storageGroup, kind: "CSIDriver", only: func(d document) bool { return d.name() == cluster.UpstreamName }, rules: csiDriverRules},
	{group: snapshotGroup, kind: "VolumeSnapshotClass", only: func(d document) bool { return d.text("driver") == cluster.UpstreamName }, rules: snapshotClassRules, read: (*proposal).readSnapshotClass},
	{kind: "PersistentVolume", only: isCinderVolume, rules: volumeRules, read: func(*proposal, document) error { return nil }}, // survey reads them
}

func (k objectKind) format() format {
	f := format{name: k.kind, is: k.is, read: k.read}
	if f.read == nil {
		f.read = func(p *proposal, d document) error { return p.walk(k.rules, "", d.yaml, leftoverOfObject) }
	}
	return f
}

// walk applies the rules to a mapping, key by key. A key without a rule is a leftover: the caller says why it is left out, so no reader can
// forget one. Without a reason the key is no setting, such as the name of an object.
func (p *proposal) walk(rules []rule, above string, fields map[string]any, leftover func(path string) string) error {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		path := join(above, key)
		v := value{fields[key]}
		i := slices.IndexFunc(rules, func(r rule) bool { return r.key == path })
		below, isMap := v.any.(map[string]any)
		switch {
		case i >= 0:
			if err := p.applyValue(rules[i], path, v); err != nil {
				return err
			}
		case !slices.ContainsFunc(rules, func(r rule) bool { return strings.HasPrefix(r.key, path+".") }):
			if why := leftover(path); why != "" {
				p.note(path, "", why)
			}
		case v.empty():
			p.note(path, "", "it is empty")
		case !isMap:
			return p.problem("%s: %w", path, v.not("a mapping"))
		default:
			if err := p.walk(rules, path, below, leftover); err != nil {
				return err
			}
		}
	}
	return nil
}

// typed is an object as Kubernetes reads it, and has a line for each key that Kubernetes does not have.
func typed[T any](p *proposal, d document) (o T, err error) {
	if err := (value{d.yaml}).loosely(&o); err != nil {
		return o, p.problem("%w", err)
	}
	p.strange("", d.yaml, jsonValue(o))
	return o, nil
}

// strange has a line for each key that Kubernetes does not have in a value, such as one with a typing error. known is the value as it reads it.
func (p *proposal) strange(path string, given, known any) {
	switch given := given.(type) {
	case map[string]any:
		has, _ := known.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(given)) {
			switch below, there := has[key]; {
			case there:
				p.strange(join(path, key), given[key], below)
			case !zero(given[key]):
				p.note(join(path, key), "", "Kubernetes has no such key here; look whether another one was meant")
			}
		}
	case []any:
		has, _ := known.([]any)
		for i := range min(len(given), len(has)) {
			p.strange(fmt.Sprintf("%s[%d]", path, i), given[i], has[i])
		}
	}
}

// anyBelow reports whether a value is something, or has something below it that is. It looks in the order of the keys.
func anyBelow(v any, is func(any) bool) bool {
	if is(v) {
		return true
	}
	deeper := func(v any) bool { return anyBelow(v, is) }
	switch v := v.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Sorted(maps.Keys(v)), func(key string) bool { return deeper(v[key]) })
	case []any:
		return slices.ContainsFunc(v, deeper)
	}
	return false
}

// zero is a value that Kubernetes leaves out where it writes the object.
func zero(v any) bool { return (value{v}).empty() || v == false || v == float64(0) || v == int64(0) }

// leftoverOfObject is why a key of an object is left out. Of metadata and status only the keys with a rule are settings.
func leftoverOfObject(path string) string {
	if strings.HasPrefix(path, "spec.") {
		return "the driver does not depend on it"
	}
	return ""
}
