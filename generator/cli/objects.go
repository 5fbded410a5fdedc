package cli

import (
	"maps"
	"slices"
	"sync"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// governed lists the objects that a field of a decision governs in the bundle of any of the plans. The index of a bundle takes time, so
// it is made when the first change needs it. A plan of another version may have none.
func governed(plans ...v1alpha1.Plan) func(decision, field string) []string {
	indexes := sync.OnceValue(func() (all []*bundle.Index) {
		for _, p := range plans {
			if index, err := bundle.IndexOfPlan(p, verify.Chart); err == nil {
				all = append(all, index)
			}
		}
		return all
	})
	return func(decision, field string) []string {
		objects := map[string]bool{}
		for _, index := range indexes() {
			for _, p := range index.Of(decision) {
				if field == "" || p.Ref.Field == "" || p.Ref.Field == field {
					objects[p.Kind+"/"+p.Name] = true
				}
			}
		}
		return slices.Sorted(maps.Keys(objects))
	}
}
