package guard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// m is an object of a Distribution's spec.
type m map[string]any

// comparison is one run of Compare.
type comparison struct {
	old, next   v1alpha1.Plan
	run         Run
	was, is     decided
	oldConfigs  []decided // of Run.OldConfigs
	sameConfig  bool
	otherTarget bool
	reported    map[string]bool // facts that a change names already
	changes     []v1alpha1.Change
}

// decided is a plan with its decisions by id. Their values have the types that package plan has for them, so that one from a file compares
// with one just made. A decision that this version does not know has the types of JSON.
type decided struct {
	plan.Result
	by map[string]v1alpha1.Decision
}

func decidedIn(p v1alpha1.Plan) decided {
	r, rest, _ := plan.Restore(p)
	values := r.Values()
	for _, d := range rest {
		values[d.ID] = plainJSON(d.Value)
	}
	all := make(map[string]v1alpha1.Decision, len(p.Decisions))
	for _, d := range p.Decisions {
		d.Value = values[d.ID]
		all[d.ID] = d
	}
	return decided{r, all}
}

func (c *comparison) add(change v1alpha1.Change, format string, args ...any) {
	change.Message = string(change.Class) + ": " + fmt.Sprintf(format, args...)
	change.Old, change.New = plainJSON(change.Old), plainJSON(change.New)
	if change.Decision != "" && change.Objects == nil {
		change.Objects = c.objects(change.Decision, change.Field)
	}
	for _, f := range change.Facts {
		c.reported[f] = true
	}
	c.changes = append(c.changes, change)
}

// objects are the objects of a decision. Those of a class follow from its id: a class that is gone is in no bundle.
func (c *comparison) objects(id, field string) []string {
	for _, k := range kinds {
		name, found := strings.CutPrefix(id, k.prefix)
		if id == plan.IDs.CSIDriver.ID {
			name = c.is.Driver.Value
		}
		if found && name != "" {
			return []string{k.kind + "/" + name}
		}
	}
	if id == plan.IDs.DefaultClass.ID {
		var classes []string
		for _, name := range []string{c.was.DefaultClass.Value, c.is.DefaultClass.Value} {
			if name != "" {
				classes = append(classes, "StorageClass/"+name)
			}
		}
		slices.Sort(classes)
		return slices.Compact(classes)
	}
	if c.run.Objects == nil {
		return nil
	}
	return c.run.Objects(id, field)
}

// bundle compares what the directory is for. Another target changes most decisions, so that only those are listed that matter still.
func (c *comparison) bundle() {
	c.otherTarget = c.old.Target != c.next.Target
	const why = "one directory holds the bundle of one target in one format"
	if c.otherTarget {
		c.add(v1alpha1.Change{Class: v1alpha1.ConfigChange, Field: "--target", Old: c.old.Target, New: c.next.Target, Force: true, Refused: why},
			"the directory holds a bundle for target %s, and this run is for %s", c.old.Target, c.next.Target)
	}
	if c.old.Format != c.next.Format && c.old.Format != "" && c.next.Format != "" {
		c.add(v1alpha1.Change{Class: v1alpha1.ConfigChange, Field: "--format", Old: c.old.Format, New: c.next.Format, Force: true, Refused: why},
			"the directory holds a bundle in format %s, and this run writes %s", c.old.Format, c.next.Format)
	}
	if c.old.Generator != c.next.Generator {
		c.add(v1alpha1.Change{Class: v1alpha1.GeneratorChange, Field: "generator", Old: c.old.Generator, New: c.next.Generator},
			"version %s wrote the bundle, and this is version %s", c.old.Generator, c.next.Generator)
	}
}

// cloud compares what a cloud is by its region and project: both survive a new host name or certificate of Keystone.
func (c *comparison) cloud() {
	name := func(p v1alpha1.Plan) string {
		s := fmt.Sprintf("project %s in region %q at %s", p.Cloud.ProjectID, p.Cloud.Region, p.Cloud.AuthURL)
		if p.Simulated {
			return "simulated " + s
		}
		return s
	}
	change := v1alpha1.Change{Class: v1alpha1.CloudChange, Field: "cloud", Old: name(c.old), New: name(c.next)}
	switch {
	case c.old.Cloud.Region != c.next.Cloud.Region, c.old.Cloud.ProjectID != c.next.Cloud.ProjectID, c.old.Simulated != c.next.Simulated:
		change.Accept, change.Force = Cloud, true
		change.Refused = "the driver cannot reach the existing volumes in another cloud or project"
		c.add(change, "the bundle is for %s, and this run reads %s", change.Old, change.New)
	case c.old.Cloud.AuthURL != c.next.Cloud.AuthURL:
		change.Field, change.Old, change.New = "cloud.authURL", c.old.Cloud.AuthURL, c.next.Cloud.AuthURL
		c.add(change, "the URL of Keystone changes from %s to %s", change.Old, change.New)
	}
}

// settings lists what the configuration says differently, whether or not a decision follows it.
func (c *comparison) settings() {
	if c.sameConfig || c.otherTarget {
		return
	}
	for _, d := range differences("spec", plainJSON(c.old.Config), plainJSON(c.next.Config)) {
		c.add(v1alpha1.Change{Class: v1alpha1.ConfigChange, Field: d.path, Old: d.old, New: d.next}, "%s changes %s", d.path, fromTo(d.old, d.next))
	}
}

func (c *comparison) decisions() {
	c.classes()
	for _, id := range c.ids() {
		was, before := c.was.by[id]
		is, after := c.is.by[id]
		switch {
		case strings.HasPrefix(id, plan.ClassID) && before != after: // classes has said so
		case !before && (is.Value == nil || is.Value == ""): // the version has this decision, and it is empty
		case !before && c.title(id) != id:
			c.change(id, "", nil, is.Value, "%s is added", c.title(id))
		case !before:
			c.change(id, "", nil, is.Value, "%s is new: %s", id, text(is.Value))
		case !after && c.title(id) != id:
			c.change(id, "", was.Value, nil, "%s%s is removed", c.lostType(was.Value), c.title(id))
		case !after:
			c.change(id, "", was.Value, nil, "%s is gone, it was %s", id, text(was.Value))
		case id == plan.IDs.DefaultClass.ID && is.Value == "" && was.Value != "":
			c.change(id, "", was.Value, is.Value, "%s%s changes %s", c.lostType(c.was.class(plan.ClassID+c.was.DefaultClass.Value).StorageClass), id, fromTo(was.Value, is.Value))
		case !equal(was.Value, is.Value):
			c.fields(id, was.Value, is.Value)
			c.retyped(id)
		}
	}
	for _, id := range c.ids() {
		c.grounds(id)
	}
}

// ids are the ids of both plans: in the order of the new one, and those that are gone after the one they followed.
func (c *comparison) ids() []string {
	gone, last := map[string][]string{}, ""
	for _, d := range c.old.Decisions {
		if _, stays := c.is.by[d.ID]; stays {
			last = d.ID
		} else {
			gone[last] = append(gone[last], d.ID)
		}
	}
	ids := gone[""]
	for _, d := range c.next.Decisions {
		ids = append(append(ids, d.ID), gone[d.ID]...)
	}
	return ids
}

// fields compares two values of one decision, each field of an object alone. Where a thing is turned on or off, the rest follows from it.
func (c *comparison) fields(id string, was, is any) {
	before, object := fieldsOf(was)
	after, still := fieldsOf(is)
	if !object || !still {
		c.change(id, "", was, is, "%s changes %s", id, fromTo(was, is))
		return
	}
	names := fieldNames(before, after)
	if !equal(before["enabled"], after["enabled"]) {
		names = []string{"enabled"}
	}
	for _, name := range names {
		_, typed := typedOf(was)
		_, stays := typedOf(is)
		if name == typeField && (typed || stays) || equal(before[name], after[name]) { // retyped reports it
			continue
		}
		if value, own := ownFields[name]; own {
			c.change(id, name, before[name], after[name], "%s: "+map[bool]string{
				true: "the configuration says its %s now", false: "the configuration says nothing of its %s any more",
			}[after[name] == true], c.title(id), value)
			continue
		}
		c.change(id, name, before[name], after[name], "%s: %s changes %s", c.title(id), name, fromTo(before[name], after[name]))
	}
}

// change adds the change of one decision, with the facts that changed before it in the sentence.
func (c *comparison) change(id, field string, was, is any, format string, args ...any) {
	change := v1alpha1.Change{Class: c.classOf(id, field, was), Decision: id, Field: field, Old: was, New: is}
	message := fmt.Sprintf(format, args...)
	if change.Class == v1alpha1.CloudChange {
		facts := c.factsOf(id)
		change.Facts, message = texts(facts), withFacts(facts, message)
	}
	c.guard(&change, was, is)
	if c.otherTarget {
		change.Pin, change.Remove = nil, nil // the old target is what keeps the old value
	}
	if field == "parameters" && change.Accept == "" && c.pinnedByID(id) {
		k, _ := typedOf(c.is.by[id].Value)
		message += ". " + recreate(k)
	}
	if c.otherTarget && change.Accept == "" {
		return
	}
	c.add(change, "%s", message)
}

// grounds reports a decision whose value stays while its facts, its reason or its source change: plan.yaml and README.md name them.
func (c *comparison) grounds(id string) {
	was, before := c.was.by[id]
	is, after := c.is.by[id]
	if !before || !after || c.otherTarget || !equal(was.Value, is.Value) {
		return
	}
	facts := c.factsOf(id)
	fresh := slices.DeleteFunc(slices.Clone(facts), func(f fact) bool { return c.reported[f.String()] })
	change := v1alpha1.Change{Class: v1alpha1.CloudChange, Decision: id, Field: "facts", Old: was.Facts, New: is.Facts, Facts: texts(fresh)}
	change.Objects = []string{} // none changes with the value as it is
	stays := c.title(id) + " stays as it is"
	if _, object := fieldsOf(is.Value); !object {
		stays = c.title(id) + " stays " + text(is.Value)
	}
	switch {
	case len(fresh) > 0:
		c.add(change, "%s", withFacts(fresh, stays))
	case len(facts) > 0: // another line names them
	case was.Source == "" && was.Reason == "": // the plan of a drift check says neither
	case was.Source != is.Source:
		change.Class, change.Field, change.Old, change.New = v1alpha1.ConfigChange, "source", was.Source, is.Source
		c.add(change, "%s: its source changes from %s to %s", stays, was.Source, is.Source)
	case was.Reason != is.Reason:
		change.Class, change.Field, change.Old, change.New = c.classOf(id, "reason", was.Reason), "reason", was.Reason, is.Reason
		c.add(change, "%s for another reason: %s", stays, is.Reason)
	case !slices.Equal(was.Facts, is.Facts):
		if change.Class = c.classOf(id, "facts", was.Facts); change.Class == v1alpha1.CloudChange && slices.ContainsFunc(was.Facts, hasFormerName) {
			change.Class = v1alpha1.GeneratorChange
		}
		c.add(change, "%s: its facts change from %s to %s", stays, text(v1alpha1.FactTexts(was.Facts)), text(v1alpha1.FactTexts(is.Facts)))
	}
}

// hasFormerName reports whether a fact has the name that older generators gave it; it has no value to compare.
func hasFormerName(f v1alpha1.NamedFact) bool { return strings.HasPrefix(f.Name, "volumeTypes has ") }

// warnings reports the warnings of plan and README.md that come and go.
func (c *comparison) warnings() {
	if c.otherTarget {
		return
	}
	for _, w := range c.next.Warnings {
		field := "warnings"
		if slices.Contains(c.run.Failures, w) {
			field = Failure
		}
		if !slices.Contains(c.old.Warnings, w) && !c.saysTopology(w) {
			c.add(v1alpha1.Change{Class: c.warningClass(w, true), Field: field, New: w}, "new warning: %s", w)
		}
	}
	for _, w := range c.old.Warnings {
		if !slices.Contains(c.next.Warnings, w) {
			c.add(v1alpha1.Change{Class: c.warningClass(w, false), Field: "warnings", Old: w}, "this warning is gone: %s", w)
		}
	}
}

// saysTopology is whether a warning repeats the line about the topology that is off now.
func (c *comparison) saysTopology(warning string) bool {
	return strings.HasPrefix(warning, plan.TopologyIsOff) && c.was.Topology.Value != c.is.Topology.Value
}

// ordered removes what is said twice.
func (c *comparison) ordered() []v1alpha1.Change {
	seen := map[string]bool{}
	return slices.DeleteFunc(c.changes, func(change v1alpha1.Change) bool {
		twice := seen[change.Message]
		seen[change.Message] = true
		return twice
	})
}

// title is a decision as people name it: the object where it is one.
func (c *comparison) title(id string) string {
	for _, k := range kinds {
		if name, found := strings.CutPrefix(id, k.prefix); found {
			return strings.TrimSpace(k.kind + " " + name)
		}
	}
	return id
}
