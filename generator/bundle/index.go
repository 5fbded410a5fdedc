package bundle

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Origin says where one emitted value comes from: decisions, a template of the chart, or both.
type Origin struct {
	Refs  []Ref
	Gone  []Ref  // decisions with which the object would not have the field
	There []Ref  // decisions with which the object would not be there
	File  string // of the chart's templates; empty for what the generator writes itself
}

// Index knows which decisions the places of a bundle come from. It asks the chart: with another value of a decision it renders another thing at the
// places that come from it. It renders when it is asked.
type Index struct {
	chart  Chart
	planes map[string]*planeIndex // by name
}

type planeIndex struct {
	p       *plane
	values  func() object
	files   map[string]string            // rendered templates
	objects map[string]map[string]places // by template, and by kind/name
	fileOf  map[string]string            // of each kind/name
	there   map[string][]Ref             // by kind/name
	known   map[string]bool              // templates whose origins were asked for
}

// places are the fields of an object, by field.Path.String().
type places map[string]*placeIn

type placeIn struct {
	path  field.Path
	value any
	refs  []Ref
	gone  []Ref // decisions with which the object would not have the field
}

// Place is one value that a decision governs.
type Place struct {
	Plane, Kind, Name string
	Field             field.Path
	Ref               Ref
}

// String names the place: "cluster: StorageClass/fast parameters.type".
func (p Place) String() string {
	return p.Plane + ": " + p.Kind + "/" + p.Name + " " + p.Field.String()
}

// IndexOf is the index of the bundle that Render makes of the same decisions.
func IndexOf(r plan.Result, chart Chart) (*Index, error) {
	planes, err := planesOf(r)
	if err != nil {
		return nil, err
	}
	x := &Index{chart, map[string]*planeIndex{}}
	for _, p := range planes {
		i := &planeIndex{p: p, values: sync.OnceValue(p.values), objects: map[string]map[string]places{}, fileOf: map[string]string{}, there: map[string][]Ref{}, known: map[string]bool{}}
		if i.files, err = p.templates(chart, plain(p.values()).(map[string]any), false); err != nil {
			return nil, err
		}
		for file, text := range i.files {
			if i.objects[file], err = placesOf(text); err != nil {
				return nil, err
			}
			for key := range i.objects[file] {
				i.fileOf[key] = file
			}
		}
		i.objects[""], i.known[""] = map[string]places{}, true
		for _, n := range p.namespaces() { // these are no part of the chart, and say themselves where they come from
			of := places{}
			walk(n, nil, func(at []string, l leaf) {
				of[field.Path(at).String()] = &placeIn{path: at, value: l.value, refs: l.refs}
			})
			key := (&rendered{fields: plain(n).(map[string]any)}).key()
			i.objects[""][key], i.fileOf[key] = of, ""
		}
		x.planes[p.name] = i
	}
	return x, nil
}

// IndexOfPlan is the index of the bundle that a plan.yaml belongs to.
func IndexOfPlan(p v1alpha1.Plan, chart Chart) (*Index, error) {
	r, err := plan.FromDocument(p)
	if err != nil {
		return nil, err
	}
	return IndexOf(r, chart)
}

// Origin is where a value comes from; false: no such value is known.
func (x *Index) Origin(plane, kind, name string, at field.Path) (Origin, bool) {
	i, key := x.planes[plane], kind+"/"+name
	if i == nil {
		return Origin{}, false
	}
	file, known := i.fileOf[key]
	place := i.objects[file][key][at.String()]
	if !known || place == nil {
		return Origin{}, false
	}
	if !i.known[file] {
		i.known[file] = true
		i.vary(x.chart, file, func(leaf) bool { return true }, func(_ string, p *placeIn, gone bool, refs []Ref) {
			if gone {
				p.gone = append(p.gone, refs...)
				return
			}
			p.refs = append(p.refs, refs...)
		})
	}
	return Origin{distinct(place.refs), distinct(place.gone), distinct(i.there[key]), file}, true
}

// Of are the values that come from a decision, in the order of plane, object and field.
func (x *Index) Of(decision string) []Place {
	var all []Place
	names := func(r Ref) bool { return r.Decision == decision }
	for name, i := range x.planes {
		add := func(key string, p *placeIn, _ bool, refs []Ref) {
			kind, object, _ := strings.Cut(key, "/")
			for _, r := range refs {
				if names(r) {
					all = append(all, Place{name, kind, object, p.path, r})
				}
			}
		}
		i.vary(x.chart, "", func(l leaf) bool { return slices.ContainsFunc(l.refs, names) }, add)
		for key, of := range i.objects[""] {
			for _, p := range of {
				add(key, p, false, p.refs)
			}
		}
	}
	slices.SortFunc(all, func(a, b Place) int { return strings.Compare(a.String()+a.Ref.Field, b.String()+b.Ref.Field) })
	return slices.CompactFunc(all, func(a, b Place) bool { return a.String() == b.String() && a.Ref == b.Ref })
}

// vary renders a template, or all, with other values: one wanted value of the chart at a time. It yields the places that are then others or gone.
func (i *planeIndex) vary(chart Chart, only string, wanted func(leaf) bool, yield func(key string, p *placeIn, gone bool, refs []Ref)) {
	values := i.values()
	walk(values, nil, func(at []string, l leaf) {
		if len(l.refs) == 0 || !wanted(l) {
			return
		}
		var templates []string
		for file := range i.files {
			if (only == "" || only == file) && namesValue(file, at) {
				templates = append(templates, file)
			}
		}
		if len(templates) == 0 {
			return
		}
		for _, others := range alternatives(at, l.value) {
			for file, text := range i.first(chart, values, at, others, templates) {
				if text != i.files[file] {
					i.compare(file, text, l.refs, at[0] != "target", yield)
				}
			}
		}
	})
}

// first renders with the first of other values at a place that the chart does not refuse.
func (i *planeIndex) first(chart Chart, values object, at []string, others []any, templates []string) map[string]string {
	for _, other := range others {
		changed := replaced(values, at, leaf{value: other}).(object)
		if len(at) == 1 && at[0] == "target" { // the plane goes with it
			changed["plane"] = leaf{value: map[bool]string{true: planeManagement, false: planeCluster}[other == string(v1alpha1.HostedControlPlane)]}
		}
		if files, err := i.p.templates(chart, plain(changed).(map[string]any), false, templates...); err == nil {
			return files
		}
	}
	return nil
}

// compare yields the places of a template that another rendering of it has otherwise, or does not have. With another target most objects are gone,
// which says nothing about them.
func (i *planeIndex) compare(file, text string, refs []Ref, sameTarget bool, yield func(key string, p *placeIn, gone bool, refs []Ref)) {
	is, err := placesOf(text)
	if err != nil {
		return
	}
	for key, other := range paired(i.objects[file], is) {
		if other == nil && sameTarget {
			i.there[key] = append(i.there[key], refs...)
		}
		for at, p := range i.objects[file][key] {
			switch q := other[at]; {
			case other == nil && at != "metadata.name": // the object is gone, which i.there and its name say
			case q == nil || !reflect.DeepEqual(p.value, q.value):
				yield(key, p, q == nil, refs)
			}
		}
	}
}

// paired are the objects of another rendering of a template, by the names that they have in this one. There an object may have another name. Nil:
// it is not there.
func paired(was, is map[string]places) map[string]places {
	pairs := map[string]places{}
	kind := func(key string) string { k, _, _ := strings.Cut(key, "/"); return k }
	left := map[string][]string{} // names that only the other one has, by kind
	for key := range is {
		if was[key] == nil {
			left[kind(key)] = append(left[kind(key)], key)
		}
	}
	lost := map[string][]string{}
	for key := range was {
		if pairs[key] = is[key]; is[key] == nil {
			lost[kind(key)] = append(lost[kind(key)], key)
		}
	}
	for k, keys := range lost {
		if others := left[k]; len(others) == len(keys) { // renamed
			slices.Sort(keys)
			slices.Sort(others)
			for n, key := range keys {
				pairs[key] = is[others[n]]
			}
		}
	}
	return pairs
}

// placesOf are the places of the objects of a rendered template.
func placesOf(text string) (map[string]places, error) {
	objects, err := decode("", text)
	all := map[string]places{}
	for _, o := range objects {
		of := places{}
		field.Walk(o.fields, nil, func(path field.Path, value any) { of[path.String()] = &placeIn{path: path, value: value} })
		if all[o.key()] != nil && err == nil {
			err = fmt.Errorf("%s is there twice", o.key())
		}
		all[o.key()] = of
	}
	return all, err
}

// walk visits the leaves of a node.
func walk(n node, at []string, visit func([]string, leaf)) {
	switch n := n.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(n)) {
			walk(n[key], append(slices.Clone(at), key), visit)
		}
	case list:
		for i := range n {
			walk(n[i], append(slices.Clone(at), fmt.Sprintf("[%d]", i)), visit)
		}
	case leaf:
		visit(at, n)
	}
}

// replaced is a node with another one at a place.
func replaced(n node, at []string, other node) node {
	if len(at) == 0 {
		return other
	}
	switch n := n.(type) {
	case object:
		o := maps.Clone(n)
		o[at[0]] = replaced(n[at[0]], at[1:], other)
		return o
	case list:
		l := slices.Clone(n)
		i, _ := strconv.Atoi(strings.Trim(at[0], "[]"))
		l[i] = replaced(n[i], at[1:], other)
		return l
	}
	return n
}

var digits = regexp.MustCompile(`[0-9]+`)

// alternatives are other values for a place of the values: of each group one that the chart does not refuse.
func alternatives(at []string, value any) [][]any {
	if known := enums[strings.Join(at, ".")]; known != nil {
		return apart(slices.DeleteFunc(slices.Clone(known), func(v any) bool { return reflect.DeepEqual(v, value) })...)
	}
	switch v := value.(type) {
	case bool:
		return apart(!v)
	case int:
		return apart(v+1, 0)
	case int64:
		return apart(v+1, 0)
	case string:
		if v == "" {
			return [][]any{{"sha256:" + strings.Repeat("ab", 32), "@daily", "https://x.example"}}
		}
		others := []any{v + "x"}
		if d := digits.FindStringIndex(v); d != nil {
			n, _ := strconv.Atoi(v[d[0]:d[1]])
			others = append(others, v[:d[0]]+strconv.Itoa(n+1)+v[d[1]:])
		}
		return [][]any{others, {""}}
	case nil:
		return apart(int64(4711))
	case map[string]any:
		return apart(map[string]any{"x": "x"}, map[string]any{"driver": map[string]any{"limits": map[string]any{"cpu": "4711m"}}})
	case []any:
		return apart([]any{"x"}, []any{map[string]any{"key": "x", "operator": "Exists"}}, []any{"192.0.2.0/24"}, []any{int64(4711)})
	}
	return nil
}

// apart is a group for each value.
func apart(values ...any) [][]any {
	var groups [][]any
	for _, v := range values {
		groups = append(groups, []any{v})
	}
	return groups
}

// enums are values that have no other than these, by place. For every other value, a value that is no good is refused or shows as another text.
var enums = map[string][]any{
	"target": {"vanilla", "standalone", "hypershift"}, "monitoring.kind": {"none", "PodMonitor", "ServiceMonitor"},
	"size": {"small", "medium", "large"}, "node.selinux": {"auto", "enabled", "disabled"}, "driver.logFormat": {"text", "json"},
	"hypershift.guestAccess": {"serviceAccountToken", "adminKubeconfig"},
}
