package guard

import (
	"reflect"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The classes of difference between a bundle on disk and the one that would be written.
const (
	CauseCloud     = "cloud"     // the inventory changed
	CauseConfig    = "config"    // the configuration changed
	CauseGenerator = "generator" // another version of the generator
	CauseHandEdit  = "handEdit"  // somebody changed the file
)

// Causes says why next differs from old, for differences that nobody made by hand.
func Causes(old, next v1alpha1.Plan) []string {
	var causes []string
	if !reflect.DeepEqual(plainJSON(old.Config), plainJSON(next.Config)) {
		causes = append(causes, CauseConfig)
	}
	if old.Generator != next.Generator {
		causes = append(causes, CauseGenerator)
	}
	if old.Cloud != next.Cloud || old.Simulated != next.Simulated || !reflect.DeepEqual(facts(old), facts(next)) || len(causes) == 0 {
		causes = append(causes, CauseCloud)
	}
	return causes
}

// facts are what the decisions of a plan rest on, as a set.
func facts(p v1alpha1.Plan) map[string]bool {
	set := map[string]bool{}
	for _, d := range p.Decisions {
		for _, f := range d.Facts {
			set[f] = true
		}
	}
	return set
}
