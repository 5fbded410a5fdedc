package verify

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"

	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// mostDifferences is how many differences the findings name.
const mostDifferences = 20

// besideValues compares the objects of a Kustomize bundle with what the chart makes of the values beside them. So patches that do too little,
// or too much, show. A bundle of another version has the values of another chart.
func besideValues(objects []Object, tree map[string][]byte, target v1alpha1.Target) []Finding {
	loaded, err := loadChart()
	planes, planesErr := planesOf(target)
	if err != nil || planesErr != nil {
		return nil // the build has failed before
	}
	var findings []Finding
	for _, p := range planes {
		values, err := chartutil.ReadValues(tree[path.Join(p.dir, "values.yaml")])
		if err == nil && values["chartVersion"] != loaded.Metadata.Version {
			continue
		}
		text, err := helmTemplate(tree, p)
		var want []Object
		if err == nil {
			want, err = Decode(text, p.name)
		}
		if err != nil {
			findings = append(findings, Finding{Object: p.name, Problem: err.Error()})
			continue
		}
		for i, difference := range Differences(OfPlane(objects, p.name), want, "the bundle", "its values.yaml") {
			if i == mostDifferences {
				break
			}
			findings = append(findings, Finding{Problem: difference})
		}
	}
	return findings
}

// Differences lists where two builds of the same plane differ, on any field, as sentences. Order of documents and the labels that a chart puts
// on its objects are no difference; the order within a list is.
func Differences(left, right []Object, leftName, rightName string) []string {
	d := differing{left: leftName, right: rightName}
	a, b := d.index(left, leftName), d.index(right, rightName)
	for _, id := range slices.Sorted(maps.Keys(a)) {
		if _, both := b[id]; !both {
			d.problem("%s is in %s only", id, leftName)
			continue
		}
		d.compare(id, "", withoutChartLabels(a[id]), withoutChartLabels(b[id]))
	}
	for _, id := range slices.Sorted(maps.Keys(b)) {
		if _, both := a[id]; !both {
			d.problem("%s is in %s only", id, rightName)
		}
	}
	return d.problems
}

type differing struct {
	left, right string
	problems    []string
}

func (d *differing) problem(format string, args ...any) {
	d.problems = append(d.problems, fmt.Sprintf(format, args...))
}

// index finds objects by what identifies them; their API version is compared, not part of it.
func (d *differing) index(objects []Object, side string) map[string]map[string]any {
	byID := map[string]map[string]any{}
	for _, o := range objects {
		if _, twice := byID[o.String()]; twice {
			d.problem("%s is in %s twice", o, side)
		}
		byID[o.String()] = o.Fields
	}
	return byID
}

// withoutChartLabels copies what it changes: the objects are the caller's.
func withoutChartLabels(fields map[string]any) map[string]any {
	metadata, _ := fields["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if labels == nil {
		return fields
	}
	fields, metadata, labels = maps.Clone(fields), maps.Clone(metadata), maps.Clone(labels)
	for _, l := range ChartLabels {
		delete(labels, l)
	}
	fields["metadata"], metadata["labels"] = metadata, labels
	return fields
}

func (d *differing) compare(id, at string, left, right any) {
	switch l := left.(type) {
	case map[string]any:
		r, same := right.(map[string]any)
		if !same {
			break
		}
		all := maps.Clone(l)
		maps.Copy(all, r)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			lv, inLeft := l[key]
			rv, inRight := r[key]
			switch {
			case !inRight:
				d.problem("%s: %s.%s = %v is in %s only", id, at, key, lv, d.left)
			case !inLeft:
				d.problem("%s: %s.%s = %v is in %s only", id, at, key, rv, d.right)
			default:
				d.compare(id, at+"."+key, lv, rv)
			}
		}
		return
	case []any:
		r, same := right.([]any)
		if !same || len(l) != len(r) {
			break
		}
		for i := range l {
			d.compare(id, at+"["+strconv.Itoa(i)+"]", l[i], r[i])
		}
		return
	}
	if !reflect.DeepEqual(left, right) {
		d.problem("%s: %s: %s has %v, %s has %v", id, at, d.left, left, d.right, right)
	}
}
