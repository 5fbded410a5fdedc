package guard

import (
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// classOf says who caused a change of a decision. If the cloud of today gives the old value with an old configuration and the old target,
// the new configuration or target is the cause. If another version of the generator decides differently on the same facts, that version is the cause.
func (c *comparison) classOf(id, field string, was any) v1alpha1.ChangeClass {
	if !c.sameConfig || c.otherTarget {
		if slices.ContainsFunc(c.oldConfigs, func(old decided) bool { return equal(part(old.by[id], field), was) }) {
			return v1alpha1.ConfigChange
		}
		if c.oldConfigs == nil && len(c.factsOf(id)) == 0 {
			return v1alpha1.ConfigChange
		}
	}
	if c.old.Generator != c.next.Generator && c.sameFacts(id) {
		return v1alpha1.GeneratorChange
	}
	return v1alpha1.CloudChange
}

// part is one field of a decision's value, or the whole of it.
func part(d v1alpha1.Decision, field string) any {
	switch field {
	case "":
		return d.Value
	case "reason":
		return d.Reason
	case "facts":
		return d.Facts
	}
	fields, _ := fieldsOf(d.Value)
	return fields[field]
}

// sameFacts says whether a decision rests on the facts it rested on. A class that comes or goes does so with its volume type, unless
// the cloud has the type as before.
func (c *comparison) sameFacts(id string) bool {
	was, before := c.was.by[id]
	is, after := c.is.by[id]
	if before != after && strings.HasPrefix(id, plan.ClassID) {
		return before && c.offered(c.was.class(id))
	}
	return before != after || slices.Equal(was.Facts, is.Facts)
}

// warningClass says who caused a warning to come or to go. If an old configuration gives it on the cloud of today, it went with the
// configuration. If an old configuration does not give it, it came with the configuration.
func (c *comparison) warningClass(warning string, isNew bool) v1alpha1.ChangeClass {
	byConfig := c.run.OldConfigs == nil && !c.sameConfig || slices.ContainsFunc(c.run.OldConfigs, func(p v1alpha1.Plan) bool {
		return slices.Contains(p.Warnings, warning) != isNew
	})
	switch {
	case byConfig:
		return v1alpha1.ConfigChange
	case c.old.Generator != c.next.Generator:
		return v1alpha1.GeneratorChange
	}
	return v1alpha1.CloudChange
}
