package guard

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// fact is a fact of the cloud that has another value now.
type fact struct{ name, was, is string }

// String is the fact as a Change holds it.
func (f fact) String() string {
	return f.name + ": " + cmp.Or(f.was, "none") + " -> " + cmp.Or(f.is, "none")
}

func texts(facts []fact) []string {
	var all []string
	for _, f := range facts {
		all = append(all, f.String())
	}
	return all
}

// withFacts is a sentence with the facts that changed before it.
func withFacts(facts []fact, effect string) string {
	var parts []string
	for _, f := range facts {
		if f.was == string(v1alpha1.Denied) { // the plan was made with a credential that may read less
			parts = append(parts, f.name+" could not be read before and is "+cmp.Or(f.is, "none"))
			continue
		}
		parts = append(parts, f.name+" changes from "+cmp.Or(f.was, "none")+" to "+cmp.Or(f.is, "none"))
	}
	if parts == nil {
		return effect
	}
	return strings.Join(parts, "; ") + ": " + effect
}

// factsOf are the facts of a decision that have another value now. A decision may cease to name a fact, or begin to: that alone says
// nothing about the cloud. So the value that only one of the plans names is compared with what is known of the other time.
func (c *comparison) factsOf(id string) []fact {
	before, after := named(c.was.by[id].Facts), named(c.is.by[id].Facts)
	var changed []fact
	both := maps.Clone(before)
	maps.Copy(both, after)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		was, old := before[name]
		is, now := after[name]
		if !now {
			is, now = plan.FactNow(c.run.Inventory, name)
		}
		if !old {
			was, old = c.unsaid(id, name)
		}
		if old && now && was != is {
			changed = append(changed, fact{name, was, is})
		}
	}
	return changed
}

// unsaid is the value that a fact had while the old plan did not name it. The class of a type that was bound to no zone does not name its
// zones, as long as topology is on. Of other facts nothing is known.
func (c *comparison) unsaid(id, name string) (string, bool) {
	k := c.was.class(id)
	return "none", k.typeName() != "" && name == plan.ZonesFact(k.typeName()) && c.was.Topology.Value
}

// named are the values of facts by name. One without a value, such as `volumeTypes has "fast"`, is no fact that changes.
func named(facts []v1alpha1.NamedFact) map[string]string {
	values := map[string]string{}
	for _, f := range facts {
		if f.Value != "" {
			values[f.Name] = f.Value
		}
	}
	return values
}

// retyped reports a class whose parameters stay while its volume type does not: another type has the name now, or the type has another
// name. A VolumeAttributesClass that leads to another type is refused, since it would move volumes that exist.
func (c *comparison) retyped(id string) {
	was, isClass := typedOf(c.was.by[id].Value)
	is, stays := typedOf(c.is.by[id].Value)
	if !isClass || !stays || was.volumeType == is.volumeType || was.parameter != is.parameter {
		return // nothing changes, or the line about the parameters says so
	}
	old, next := unlessNone(was.volumeType), unlessNone(is.volumeType)
	change := v1alpha1.Change{Class: c.classOf(id, typeField, old), Decision: id, Field: typeField, Old: old, New: next}
	if change.Class == v1alpha1.GeneratorChange && was.volumeType.ID != "" {
		change.Class = v1alpha1.CloudChange // the ID is a fact of the cloud that no list of facts names
	}
	switch {
	case was.volumeType.ID == "" && is.volumeType.ID == "", change.Class == v1alpha1.GeneratorChange:
		c.add(change, "%s: %s changes %s", is, typeField, fromTo(old, next))
	case was.volumeType.ID == "":
		c.add(change, "the cloud has volume type %q now, with ID %s: %s stays as it is", is.typeName(), is.volumeType.ID, is)
	case is.volumeType.ID == "":
		c.add(change, "volume type %q is gone (ID %s): %s stays as it is, and new volumes of it fail", was.typeName(), was.volumeType.ID, is)
	case was.volumeType.ID == is.volumeType.ID:
		change.Facts = []string{fact{"volumeTypes[" + was.volumeType.ID + "].name", was.typeName(), is.typeName()}.String()}
		c.add(change, "volume type %q is renamed to %q: %s stays as it is", was.typeName(), is.typeName(), is)
	default:
		change.Facts = []string{fact{"volumeTypes[" + is.typeName() + "].id", was.volumeType.ID, is.volumeType.ID}.String()}
		c.add(change, "%s: %s", c.becameOf(was), c.consequence(&change, is))
	}
}

// consequence is what follows for a class whose volume type is another one now, with all that the configuration has for that name. The class may be refused.
func (c *comparison) consequence(change *v1alpha1.Change, is typed) string {
	if is.kind != "StorageClass" {
		change.Accept = ClassImmutable
		change.Refused = "claims that ask for " + is.String() + ", or have it already, would have their volumes moved to the other volume type"
		c.pinAttributesClass(change, is.name)
		return "a claim that asks for " + is.String() + " moves its volume there"
	}
	effects := []string{"new volumes of " + is.String() + " go there"}
	if c.is.DefaultClass.Value == is.name {
		effects = append(effects, "it is the default class")
	}
	if _, named := c.next.Config.StorageClasses.Overrides[is.typeName()]; named {
		effects = append(effects, "spec.storageClasses.overrides."+is.typeName()+" applies to that type")
	}
	return strings.Join(effects, "; ")
}

// lostType is what became of the volume type of a class that is removed, before the sentence that says so.
func (c *comparison) lostType(value any) string {
	k, leads := typedOf(value)
	if !leads || !c.sameConfig {
		return ""
	}
	if became := c.becameOf(k); became != "" {
		return became + ": "
	}
	return ""
}
