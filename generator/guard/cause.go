package guard

import (
	"reflect"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The classes of difference between a bundle on disk and the one that would be written.
const (
	CauseCloud     = "cloud"     // the inventory changed
	CauseConfig    = "config"    // the configuration changed
	CauseGenerator = "generator" // another version of the generator
	CauseHandEdit  = "handEdit"  // somebody changed the file
)

// Causes says why next differs from old, for differences that nobody made by hand. A fact that only one of them names may be
// there for the configuration's sake; one that both name with other values is the cloud's doing.
func Causes(old, next v1alpha1.Plan) []string {
	var causes []string
	if !reflect.DeepEqual(plainJSON(old.Config), plainJSON(next.Config)) {
		causes = append(causes, CauseConfig)
	}
	if old.Generator != next.Generator {
		causes = append(causes, CauseGenerator)
	}
	if len(causes) == 0 || old.Cloud != next.Cloud || old.Simulated != next.Simulated || factChanged(old, next) {
		causes = append(causes, CauseCloud)
	}
	return causes
}

func factChanged(old, next v1alpha1.Plan) bool {
	was := facts(old)
	for name, value := range facts(next) {
		if before, there := was[name]; there && before != value {
			return true
		}
	}
	return false
}

// facts are what the decisions of a plan rest on, "name = value".
func facts(p v1alpha1.Plan) map[string]string {
	all := map[string]string{}
	for _, d := range p.Decisions {
		for _, f := range d.Facts {
			name, value, _ := strings.Cut(f, " = ")
			all[name] = value
		}
	}
	return all
}
