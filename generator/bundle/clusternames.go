package bundle

import (
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// basePrefix begins the names in manifests/.
const basePrefix = "cinder-csi"

// clusterName is the name of an object that other bundles of the cluster may have too. Name is its name in manifests/. The refs are the decisions
// that switch the object on.
func (p *plane) clusterName(name string, refs ...Ref) node {
	return also(part(p.r.Driver, "", v1alpha1.ClusterPrefix(p.r.Driver.Value)+strings.TrimPrefix(name, basePrefix)), refs...)
}

// clusterNamePatches name the objects that are in no namespace after the driver, so that a second bundle in the cluster has its own. A prefix of
// kustomize is for all names, and Kubernetes and people find the other objects by the names that they have.
func (p *plane) clusterNamePatches() []patch {
	var list []patch
	rename := func(kind string, role clusterRole, ops ...op) {
		list = append(list, patch{
			file:   "patches/name-" + strings.ToLower(kind) + strings.TrimPrefix(role.name, basePrefix) + ".yaml",
			target: target{kinds: []string{kind}, name: role.name},
			ops:    append(ops, op{pointer: "/metadata/name", at: field.Path{"metadata", "name"}, value: p.clusterName(role.name, role.refs...)}),
		})
	}
	for _, role := range p.clusterRoles() {
		rename("ClusterRole", role)
		rename("ClusterRoleBinding", role, op{pointer: "/roleRef/name", at: field.Path{"roleRef", "name"}, value: p.clusterName(role.name, role.refs...)})
	}
	return list
}

// clusterRole is a ClusterRole of manifests/, with the decisions that switch it on. Its binding has its name.
type clusterRole struct {
	name string
	refs []Ref
}

// clusterRoles are those of the plane, sorted by name.
func (p *plane) clusterRoles() []clusterRole {
	var parts []component
	for _, dir := range p.bases() {
		parts = append(parts, component{dir: dir})
	}
	var roles []clusterRole
	for _, c := range append(parts, p.components()...) {
		sources, err := sourcesIn(c.dir, nil)
		if err != nil {
			panic(err) // a broken file of this program, which every test finds
		}
		for _, s := range sources {
			if s.whole && s.target.kinds[0] == "ClusterRole" {
				roles = append(roles, clusterRole{s.target.name, c.refs})
			}
		}
	}
	slices.SortFunc(roles, func(a, b clusterRole) int { return strings.Compare(a.name, b.name) })
	return roles
}

// labelPatches give the objects of the Prometheus operator the labels that its selectors want.
func (p *plane) labelPatches() []patch {
	labels := p.r.MonitoringLabels
	var ops []op
	for _, key := range slices.Sorted(maps.Keys(labels.Value)) {
		pointer := "/metadata/labels/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		ops = append(ops, op{pointer: pointer, at: field.Path{"metadata", "labels", key}, value: part(labels, key, labels.Value[key]), add: true})
	}
	if len(ops) == 0 {
		return nil
	}
	return []patch{{file: "patches/monitoring-labels.yaml", target: target{kinds: []string{"PodMonitor", "ServiceMonitor", "PrometheusRule"}}, ops: ops}}
}
