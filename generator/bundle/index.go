package bundle

import (
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Index knows where every value of every object of a bundle comes from. It holds for both formats, because they stand for the same
// objects; only a chart's own labels are not in it.
type Index struct {
	planes map[string]*composed
}

// Place is one value that a decision governs.
type Place struct {
	Plane, Kind, Name string
	Field             field.Path
	Ref               Ref
}

// IndexOf is the index of the bundle that Render makes of the same decisions.
func IndexOf(r plan.Result) (*Index, error) {
	planes, err := planesOf(r)
	if err != nil {
		return nil, err
	}
	x := &Index{planes: map[string]*composed{}}
	for _, p := range planes {
		c, err := p.compose()
		if err != nil {
			return nil, err
		}
		for _, patch := range p.patches() {
			c.apply(patch)
		}
		for _, docs := range p.ownObjects() {
			for _, doc := range docs {
				c.add(doc, Origin{})
			}
		}
		for _, doc := range p.namespaces() {
			c.add(doc, Origin{})
		}
		x.planes[p.name] = c
	}
	return x, nil
}

// IndexOfPlan is the index of the bundle that a plan.yaml belongs to.
func IndexOfPlan(p v1alpha1.Plan) (*Index, error) {
	r, err := plan.FromDocument(p)
	if err != nil {
		return nil, err
	}
	return IndexOf(r)
}

// Origin is where a value comes from; false: no such value is known.
func (x *Index) Origin(plane, kind, name string, at field.Path) (Origin, bool) {
	c := x.planes[plane]
	if c == nil || c.objects[kind+"/"+name] == nil {
		return Origin{}, false
	}
	l, known := c.objects[kind+"/"+name].leaves[keyOf(at)]
	return l.origin, known
}

// Governed are the values that come from a decision, in the order of plane, object and field.
func (x *Index) Governed(decision string) []Place { return x.All()[decision] }

// All are the values that come from each decision.
func (x *Index) All() map[string][]Place {
	all := map[string][]Place{}
	for plane, c := range x.planes {
		for _, o := range c.objects {
			for _, l := range o.leaves {
				for _, r := range l.origin.Refs {
					all[r.Decision] = append(all[r.Decision], Place{plane, o.kind, o.name, l.at, r})
				}
			}
		}
	}
	for _, places := range all {
		slices.SortFunc(places, func(a, b Place) int { return strings.Compare(a.String(), b.String()) })
	}
	return all
}

// String names the place: "cluster: StorageClass/fast parameters.type".
func (p Place) String() string {
	return p.Plane + ": " + p.Kind + "/" + p.Name + " " + p.Field.String()
}
