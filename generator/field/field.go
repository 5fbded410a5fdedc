// Package field names places in an object: spec.template.spec.containers[driver].image. The index of decisions and the questions of
// people use the same names.
package field

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Path is a place in an object: the keys that lead there. An element of a list is [its name] where it has one that no other has,
// else [its index].
type Path []string

func (f Path) String() string {
	var b strings.Builder
	for i, key := range f {
		if i > 0 && !strings.HasPrefix(key, "[") {
			b.WriteByte('.')
		}
		b.WriteString(key)
	}
	return b.String()
}

// shorthands may be left out of a path: what people write is mostly below one of them.
var shorthands = []Path{nil, {"spec"}, {"data"}, {"metadata"}, {"spec", "template", "spec"}}

// decided are the names that decisions have for fields which Kubernetes calls otherwise.
var decided = map[string]string{
	"allowedZones":  "allowedTopologies",
	"podLabels":     "spec.template.metadata.labels",
	"priorityClass": "spec.template.spec.priorityClassName",
	"runAsUser":     "spec.template.spec.securityContext.runAsUser",
}

// Find is the value at a path such as parameters.type, data.cloud.conf or containers[driver].image, and the field that it is.
func Find(object map[string]any, path string) (any, Path, bool) {
	for _, path := range []string{path, decided[path]} {
		for _, above := range shorthands {
			at, found := any(object), path != ""
			for _, key := range above {
				fields, _ := at.(map[string]any)
				at, found = fields[key], found && fields[key] != nil
			}
			if !found {
				continue
			}
			if v, f, found := Below(at, path); found {
				return v, slices.Concat(above, f), true
			}
		}
	}
	return nil, nil, false
}

// At is the value at exactly this place.
func At(v any, path Path) (any, bool) {
	for _, key := range path {
		all := children(v)
		i := slices.IndexFunc(all, func(c child) bool { return c.key == key })
		if i < 0 {
			return nil, false
		}
		v = all[i].value
	}
	return v, true
}

// Below follows a path from a value. Keys may have dots, so the longest that fits is tried first.
func Below(v any, path string) (any, Path, bool) {
	if path == "" {
		return v, nil, true
	}
	path = strings.TrimPrefix(path, ".")
	for _, c := range children(v) {
		rest, fits := strings.CutPrefix(path, c.key)
		if !fits && c.index != "" {
			rest, fits = strings.CutPrefix(path, c.index)
		}
		if !fits || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		if found, f, ok := Below(c.value, rest); ok {
			return found, append(Path{c.key}, f...), true
		}
	}
	return nil, nil, false
}

// child is one value of an object or list; index is another key of an element that has a name.
type child struct {
	key, index string
	value      any
}

// children are sorted by key, longer ones first; those of a list are in its order.
func children(v any) []child {
	var all []child
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			all = append(all, child{key: key, value: value})
		}
		slices.SortFunc(all, func(a, b child) int { return cmp.Or(len(b.key)-len(a.key), strings.Compare(a.key, b.key)) })
	case []any:
		names := make([]string, len(v))
		for i, value := range v {
			names[i] = nameOf(value)
		}
		for i, key := range ElementKeys(names) {
			c := child{key: key, value: v[i]}
			if index := indexKey(i); key != index {
				c.index = index
			}
			all = append(all, c)
		}
	}
	return all
}

// ElementKeys are the keys of a list's elements, whose names are given, empty for those without.
func ElementKeys(names []string) []string {
	count := map[string]int{}
	for _, name := range names {
		count[name]++
	}
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = indexKey(i)
		if name != "" && count[name] == 1 {
			keys[i] = "[" + name + "]"
		}
	}
	return keys
}

func indexKey(i int) string { return fmt.Sprintf("[%d]", i) }

func nameOf(v any) string {
	fields, _ := v.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// Leaves are the fields at or below one that hold no others.
func Leaves(v any, at Path) []Path {
	var all []Path
	Walk(v, at, func(leaf Path, _ any) { all = append(all, leaf) })
	return all
}

// Walk visits the fields at or below one that hold no others, with their values.
func Walk(v any, at Path, visit func(Path, any)) {
	inner := children(v)
	if len(inner) == 0 {
		visit(at, v)
	}
	for _, c := range inner {
		Walk(c.value, append(slices.Clone(at), c.key), visit)
	}
}

// Near says what is there where a path leads to nothing. The keys are those of the deepest object or list on its way, and where is its place.
// The word is the part of the path that is none of the keys. The elements of a list are [their names].
func Near(object map[string]any, path string) (keys []string, where Path, word string) {
	keys, word = slices.Sorted(maps.Keys(object)), firstKey(path)
	for at, c := range path {
		if c != '.' && c != '[' {
			continue
		}
		v, f, found := Find(object, path[:at])
		inner := children(v)
		if !found || len(inner) == 0 {
			continue
		}
		keys = nil
		for _, c := range inner {
			keys = append(keys, c.key)
		}
		slices.Sort(keys)
		where, word = f, firstKey(path[at:])
	}
	return keys, where, word
}

func firstKey(path string) string {
	path = strings.TrimPrefix(path, ".")
	if strings.HasPrefix(path, "[") {
		name, _, _ := strings.Cut(path, "]")
		return name + "]"
	}
	if end := strings.IndexAny(path, ".["); end >= 0 {
		return path[:end]
	}
	return path
}
