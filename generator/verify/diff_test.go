package verify_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// differences lists where two builds of the same plan differ, on any field, as sentences. Order of documents and the labels a chart puts
// on its objects are no difference; the order within a list is.
func differences(kustomize, helm []verify.Object) []string {
	left, problems := index(kustomize, "kustomize")
	right, more := index(helm, "helm")
	problems = append(problems, more...)
	for _, id := range slices.Sorted(maps.Keys(left)) {
		if _, both := right[id]; !both {
			problems = append(problems, id+" is in kustomize only")
			continue
		}
		compare(id, "", withoutChartLabels(left[id]), withoutChartLabels(right[id]), &problems)
	}
	for _, id := range slices.Sorted(maps.Keys(right)) {
		if _, both := left[id]; !both {
			problems = append(problems, id+" is in helm only")
		}
	}
	return problems
}

// index finds objects by what identifies them; their API version is compared, not part of it.
func index(objects []verify.Object, side string) (map[string]map[string]any, []string) {
	byID := map[string]map[string]any{}
	var problems []string
	for _, o := range objects {
		if _, twice := byID[o.String()]; twice {
			problems = append(problems, o.String()+" is in "+side+" twice")
		}
		byID[o.String()] = o.Fields
	}
	return byID, problems
}

// withoutChartLabels copies what it changes: the objects are the caller's.
func withoutChartLabels(fields map[string]any) map[string]any {
	metadata, _ := fields["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if labels == nil {
		return fields
	}
	fields, metadata, labels = maps.Clone(fields), maps.Clone(metadata), maps.Clone(labels)
	for _, l := range verify.ChartLabels {
		delete(labels, l)
	}
	fields["metadata"], metadata["labels"] = metadata, labels
	return fields
}

func compare(id, at string, left, right any, problems *[]string) {
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
				*problems = append(*problems, fmt.Sprintf("%s: %s.%s = %v is in kustomize only", id, at, key, lv))
			case !inLeft:
				*problems = append(*problems, fmt.Sprintf("%s: %s.%s = %v is in helm only", id, at, key, rv))
			default:
				compare(id, at+"."+key, lv, rv, problems)
			}
		}
		return
	case []any:
		r, same := right.([]any)
		if !same || len(l) != len(r) {
			break
		}
		for i := range l {
			compare(id, at+"["+strconv.Itoa(i)+"]", l[i], r[i], problems)
		}
		return
	}
	if !reflect.DeepEqual(left, right) {
		*problems = append(*problems, fmt.Sprintf("%s: %s: kustomize has %v, helm has %v", id, at, left, right))
	}
}
