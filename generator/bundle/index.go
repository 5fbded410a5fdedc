package bundle

import (
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Index knows which texts the objects of a bundle are made of. It holds for both formats, because they stand for the same objects; only a
// chart's own labels are not in it. It knows no values: what a bundle holds is found by building it.
type Index struct {
	planes map[string]map[string][]source // by plane, and by kind/name
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
	x := &Index{planes: map[string]map[string][]source{}}
	for _, p := range planes {
		sources, err := p.sources()
		if err != nil {
			return nil, err
		}
		x.planes[p.name] = byObject(sources)
	}
	return x, nil
}

// byObject are the sources of each object, by the name that it has in the end.
func byObject(sources []source) map[string][]source {
	var patches []source
	for _, s := range sources {
		if !s.whole {
			patches = append(patches, s)
		}
	}
	objects := map[string][]source{}
	for _, s := range sources {
		if !s.whole {
			continue
		}
		of, name := []source{s}, s.target.name
		for _, patch := range patches {
			if !patch.target.selects(s.target) {
				continue
			}
			of = append(of, patch)
			if l, says := patch.said(field.Path{"metadata", "name"}); says {
				name, _ = l.value.(string)
			}
		}
		objects[s.target.kinds[0]+"/"+name] = of
	}
	return objects
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
	return originOf(x.planes[plane][kind+"/"+name], at)
}

// All are the values that come from each decision, in the order of plane, object and field.
func (x *Index) All() map[string][]Place {
	all := map[string][]Place{}
	for plane, objects := range x.planes {
		for key, sources := range objects {
			kind, name, _ := strings.Cut(key, "/")
			for _, at := range placesIn(sources) {
				origin, known := originOf(sources, at)
				if !known {
					continue
				}
				for _, r := range origin.Refs {
					all[r.Decision] = append(all[r.Decision], Place{plane, kind, name, at, r})
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
