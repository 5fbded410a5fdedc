package migrate

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// ofTheCloud are keys that plan compares with a cloud, which import may not know.
var ofTheCloud = []string{"spec.topology", "spec.storageClasses", "spec.backup"}

// accept leaves out what plan refuses whatever the cloud is. So generate takes each proposal, whatever a file had.
func (f *survey) accept(d v1alpha1.Distribution) (v1alpha1.Distribution, []Note) {
	var notes []Note
	for { // each round leaves one key out
		next, path, why := f.refused(d)
		if path == "" {
			return d, notes
		}
		d, notes = next, append(notes, Note{File: "the proposal", Key: path, Why: "plan refuses it: " + why})
	}
}

// refused is the Distribution without the first of its keys that plan refuses, with that key and the reason.
func (f *survey) refused(d v1alpha1.Distribution) (left v1alpha1.Distribution, path, why string) {
	_, err := plan.Decide(v1alpha1.Inventory{}, d, f.target(), v1alpha1.Kustomize, "")
	mistakes := (*plan.ConfigError)(nil)
	var keys map[string]any
	if !errors.As(err, &mistakes) || (value{d}).loosely(&keys) != nil {
		return left, "", ""
	}
	for _, problem := range mistakes.Problems {
		if slices.ContainsFunc(ofTheCloud, func(key string) bool { return strings.HasPrefix(problem, key) }) {
			continue
		}
		if path := leaveOut(keys, problem, ""); path != "" && (value{keys}).loosely(&left) == nil {
			return left, path, strings.TrimPrefix(strings.TrimPrefix(problem, path), ": ")
		}
	}
	return left, "", ""
}

func (f *survey) target() v1alpha1.Target {
	switch {
	case f.hosted:
		return v1alpha1.HostedControlPlane
	case f.openShift:
		return v1alpha1.Standalone
	}
	return v1alpha1.Vanilla
}

// leaveOut takes out of a mapping what a sentence begins with the path of, and gives that path. A key may have dots.
func leaveOut(at map[string]any, sentence, above string) string {
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(at))) { // a.b before a
		path, below := join(above, key), at[key]
		rest, begins := strings.CutPrefix(sentence, path)
		if !begins || rest == "" || !strings.ContainsAny(rest[:1], ".[:") {
			continue
		}
		switch below := below.(type) {
		case map[string]any:
			if found := leaveOut(below, sentence, path); found != "" {
				return found
			}
			said := strings.TrimPrefix(rest, ": ")
			for _, named := range slices.Sorted(maps.Keys(below)) { // the sentence may be about one entry
				if strings.HasPrefix(said, named+" ") || strings.HasPrefix(said, strconv.Quote(named)) || strings.Contains(said, " sets "+named+" ") {
					delete(below, named)
					return path
				}
			}
		case []any:
			if i, found := element(rest); found && i < len(below) {
				at[key] = slices.Delete(below, i, i+1)
				return path + "[" + strconv.Itoa(i) + "]"
			}
		}
		if above == "" {
			return "" // nothing is left of a whole spec
		}
		delete(at, key)
		return path
	}
	return ""
}

// element is the number in brackets that a text begins with.
func element(text string) (int, bool) {
	number, _, found := strings.Cut(strings.TrimPrefix(text, "["), "]")
	n, err := strconv.Atoi(number)
	return n, found && err == nil && strings.HasPrefix(text, "[")
}
