// Package guard compares the plan of an earlier run with a new one, and lists every change as one sentence. Generate refuses two
// sorts of change until a person accepts them: those that strand volumes, and those that Kubernetes cannot apply in place.
//
// The guard never changes a value. A value that must survive a change of the cloud is pinned in the configuration, and each refusal
// carries the YAML to paste.
package guard

import (
	"slices"

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
	Snapshots      = "snapshots"
	Protection     = "protection"
)

// Failure is the Field of a change that is a new warning: something fails now.
const Failure = "failures"

// Accepts lists the names that --accept takes.
var Accepts = []string{Topology, ClassRemoved, ClassImmutable, ClusterID, DriverName, Namespace, Cloud, Snapshots, Protection}

// Run is what the guard knows of a run besides the two plans.
type Run struct {
	// Inventory is what the cloud offers now.
	Inventory v1alpha1.Inventory
	// OldConfigs are plans for the cloud of today with the configuration of the old plan, as Today makes them. They tell a change of the
	// cloud from one of the configuration. Without them, the guard judges by the facts of each decision.
	OldConfigs []v1alpha1.Plan
	// Failures are those of the warnings of the new plan that say that something fails.
	Failures []string
	// Objects lists the Kubernetes objects that a field of a decision governs, such as "StorageClass/fast"; an empty field is the whole
	// decision. Nil: the guard knows those of classes.
	Objects func(decision, field string) []string
}

// Today decides the configuration and the target of the old plan on the cloud of today, with the version of the new plan. What differs
// from the new plan then comes from the person who runs generate.
// A plan of decisions alone holds that configuration with its defaults, and some decisions and warnings depend on which keys the file really
// had. So there is one plan for the longest file that it could be, and one for what the plan tells. A configuration that this cloud or this version no
// longer accepts gives no plan.
func Today(inv v1alpha1.Inventory, old, next v1alpha1.Plan) []v1alpha1.Plan {
	var plans []v1alpha1.Plan
	for _, d := range []v1alpha1.Distribution{{Spec: old.Config}, old.Configured(plan.UnnamedCluster)} {
		if r, err := plan.Again(&old, inv, d, old.Target, next.Format, next.Generator); err == nil {
			plans = append(plans, r.Document(nil))
		}
	}
	return plans
}

// Compare lists what is different in next, in a fixed order: the run itself, the settings, then the decisions in the order of plan.yaml.
func Compare(old, next v1alpha1.Plan, run Run) []v1alpha1.Change {
	c := comparison{old: old, next: next, run: run, was: decidedIn(old), is: decidedIn(next), reported: map[string]bool{}}
	for _, p := range run.OldConfigs {
		c.oldConfigs = append(c.oldConfigs, decidedIn(p))
	}
	c.sameConfig = equal(plainJSON(old.Config), plainJSON(next.Config))
	c.bundle()
	c.cloud()
	c.settings()
	c.decisions()
	c.warnings()
	return c.ordered()
}

// Refused gives the changes that generate refuses with these values of --accept.
func Refused(changes []v1alpha1.Change, accept []string, force bool) []v1alpha1.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c v1alpha1.Change) bool {
		refused := c.Accept != "" || c.Force
		return !refused || c.Accept != "" && slices.Contains(accept, c.Accept) || c.Force && force
	})
}

// Report is the document of a list of changes. refused are those of them that generate refuses.
func Report(changes, refused []v1alpha1.Change, files []v1alpha1.FileChange) v1alpha1.Changes {
	r := v1alpha1.Changes{
		APIVersion: v1alpha1.APIVersion,
		Kind:       v1alpha1.KindChanges,
		UpToDate:   len(changes) == 0,
		Changes:    append([]v1alpha1.Change{}, changes...),
		Files:      files,
	}
	for _, c := range refused {
		if c.Accept != "" {
			r.Accept = append(r.Accept, c.Accept)
		} else {
			r.Force = true
		}
	}
	slices.Sort(r.Accept)
	r.Accept = slices.Compact(r.Accept)
	return r
}
