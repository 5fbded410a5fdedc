// Package guard answers one question: may a new plan take the place of an old one? What would strand volumes, or what Kubernetes
// cannot change in place, is refused unless it is accepted by name. The guard never changes a value; what shall outlive a change
// of the cloud is pinned in the configuration, and each refusal carries the YAML to paste.
package guard

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The names that --accept takes.
const (
	Topology       = "topology"
	ClassRemoved   = "class-removed"
	ClassImmutable = "class-immutable"
	ClusterID      = "cluster-id"
	DriverName     = "driver-name"
	Namespace      = "namespace"
	Cloud          = "cloud"
)

// Accepts lists the names that --accept takes.
var Accepts = []string{Topology, ClassRemoved, ClassImmutable, ClusterID, DriverName, Namespace, Cloud}

// Refusal is one thing that stands against the new plan.
type Refusal struct {
	Accept string // the --accept that allows it
	What   string // what would change, and what that would do
	Pin    any    // the piece of a Distribution that keeps it as it is; nil where the configuration has no say
}

// Compare lists what stands against replacing old by next, in a fixed order.
func Compare(old, next v1alpha1.Plan) []Refusal {
	c := comparison{old: values(old), next: values(next)}
	c.cloud(old, next)
	c.driver(next.Target)
	c.value(plan.IDClusterID, ClusterID, "volumes made so far are marked with the old one, and orphan reports would list them as another cluster's",
		func(was any) any { return m{"clusterID": was} })
	c.namespaces()
	c.value(plan.IDTopology, Topology, "volumes and nodes made so far carry zones, or carry none; pods may no longer find their volumes",
		func(was any) any { return m{"topology": m{"mode": mode(was)}} })
	c.classes(old, next)
	return c.refusals
}

// Accepted splits refusals by what a person accepted.
func Accepted(refusals []Refusal, accept []string) (left []Refusal) {
	for _, r := range refusals {
		if !slices.Contains(accept, r.Accept) {
			left = append(left, r)
		}
	}
	return left
}

// m is an object of a Distribution's spec.
type m map[string]any

type comparison struct {
	old, next map[string]any // values by decision id, in JSON's types
	refusals  []Refusal
}

func (c *comparison) refuse(accept string, pin any, format string, args ...any) {
	c.refusals = append(c.refusals, Refusal{Accept: accept, What: fmt.Sprintf(format, args...), Pin: pin})
}

// value refuses any change of one decision.
func (c *comparison) value(id, accept, consequence string, pin func(was any) any) {
	was, there := c.old[id]
	if there && !reflect.DeepEqual(was, c.next[id]) {
		c.refuse(accept, pin(was), "%s changes from %v to %v: %s", id, was, c.next[id], consequence)
	}
}

// cloud compares what a cloud is by its region and project: ids, which survive a new host name or certificate of Keystone.
func (c *comparison) cloud(old, next v1alpha1.Plan) {
	name := func(p v1alpha1.Plan) string {
		s := fmt.Sprintf("project %s in region %q", p.Cloud.ProjectID, p.Cloud.Region)
		if p.Simulated {
			return "simulated " + s
		}
		return s
	}
	if name(old) != name(next) {
		c.refuse(Cloud, nil, "the bundle is for %s at %s, this run for %s at %s: volumes made so far are out of the new one's reach",
			name(old), old.Cloud.AuthURL, name(next), next.Cloud.AuthURL)
	}
}

func (c *comparison) driver(target v1alpha1.Target) {
	c.value(plan.IDDriverName, DriverName, "volumes made so far belong to the driver of the old name and cannot be mounted by another",
		func(was any) any {
			switch {
			case target != v1alpha1.Vanilla && was == contract.DriverName:
				return m{"openshift": m{"coexistence": v1alpha1.Adopt}}
			case target != v1alpha1.Vanilla && was == plan.OwnDriverName:
				return m{"openshift": m{"coexistence": v1alpha1.SideBySide}}
			}
			return m{"driver": m{"name": was}}
		})
}

func (c *comparison) namespaces() {
	const consequence = "what is installed in the old one stays and runs beside the new one, and the Secret with the credentials must be there too"
	c.value(plan.IDControllerNamespace, Namespace, consequence, func(was any) any { return m{"namespaces": m{"controller": was}} })
	c.value(plan.IDNodeNamespace, Namespace, consequence, func(was any) any { return m{"namespaces": m{"node": was}} })
}

func mode(enabled any) string {
	if enabled == true {
		return v1alpha1.Enabled
	}
	return v1alpha1.Disabled
}

// immutable lists the fields that Kubernetes refuses to change in a StorageClass (ValidateStorageClassUpdate).
var immutable = []string{"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"}

func (c *comparison) classes(old, next v1alpha1.Plan) {
	for _, d := range old.Decisions {
		name, isClass := strings.CutPrefix(d.ID, plan.ClassID)
		if !isClass {
			continue
		}
		was, _ := c.old[d.ID].(map[string]any)
		now, stays := c.next[d.ID].(map[string]any)
		if !stays {
			c.refuse(ClassRemoved, m{"storageClasses": m{"extra": []any{pinned(name, was)}}},
				"StorageClass %s is no longer emitted: claims that name it cannot be provisioned any more", name)
			continue
		}
		var changed []string
		for _, field := range immutable {
			if !reflect.DeepEqual(was[field], now[field]) {
				changed = append(changed, fmt.Sprintf("%s from %s to %s", field, text(was[field]), text(now[field])))
			}
		}
		if len(changed) > 0 {
			c.refuse(ClassImmutable, c.classPin(name, was, next),
				"StorageClass %s changes %s: Kubernetes cannot change that in place, the class must be deleted first", name, strings.Join(changed, ", "))
		}
	}
}

// classPin keeps a class as it was: as an override of its type where the type made it, else as an extra class.
func (c *comparison) classPin(name string, was map[string]any, next v1alpha1.Plan) any {
	decision, _ := plan.DecisionOf(next, plan.ClassID+name)
	if was["provisioner"] != c.next[plan.IDDriverName] {
		return nil // the driver's name is what must be pinned
	}
	oldType, newType := typeOf(was), typeOf(c.next[decision.ID])
	if decision.Source == string(plan.FromConfig) || oldType != newType {
		return m{"storageClasses": m{"extra": []any{pinned(name, was)}}}
	}
	override := pinned(name, was)
	delete(override, "name")
	if parameters, ok := override["parameters"].(map[string]any); ok {
		rest := map[string]any{}
		for k, v := range parameters {
			if k != contract.ParameterType {
				rest[k] = v
			}
		}
		delete(override, "parameters")
		if len(rest) > 0 {
			override["parameters"] = rest
		}
	}
	return m{"storageClasses": m{"overrides": m{oldType: override}}}
}

func typeOf(class any) string {
	fields, _ := class.(map[string]any)
	parameters, _ := fields["parameters"].(map[string]any)
	t, _ := parameters[contract.ParameterType].(string)
	return t
}

// pinned is a class as an entry of storageClasses.extra that depends on no type of the cloud.
func pinned(name string, was map[string]any) m {
	entry := m{"name": name, "reclaimPolicy": was["reclaimPolicy"], "parameters": was["parameters"]}
	if options, ok := was["mountOptions"]; ok {
		entry["mountOptions"] = options
	}
	return entry
}

func text(v any) string {
	if v == nil {
		return "nothing"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// values are a plan's decisions in the types that JSON has, so that a plan read from a file compares with one just made.
func values(p v1alpha1.Plan) map[string]any {
	v := map[string]any{}
	for _, d := range p.Decisions {
		v[d.ID] = plainJSON(d.Value)
	}
	return v
}

func plainJSON(v any) any {
	var plain any
	if b, err := json.Marshal(v); err == nil {
		_ = json.Unmarshal(b, &plain)
	}
	return plain
}
