package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// field is a place in an object: the keys that lead there. An element of a list is [its name] where it has one that no other has,
// else [its index].
type field []string

func (f field) String() string {
	var b strings.Builder
	for i, key := range f {
		if i > 0 && !strings.HasPrefix(key, "[") {
			b.WriteByte('.')
		}
		b.WriteString(key)
	}
	return b.String()
}

// within is whether the field is at or below a place that a pattern names: keys with spaces between them, * for any one.
func (f field) within(pattern string) bool {
	keys := strings.Fields(pattern)
	if len(keys) > len(f) {
		return false
	}
	for i, key := range keys {
		if key != "*" && key != f[i] {
			return false
		}
	}
	return true
}

// shorthands may be left out of a path: what people write is mostly below one of them.
var shorthands = []field{nil, {"spec"}, {"data"}, {"metadata"}, {"spec", "template", "spec"}}

// decided are the names that decisions have for fields which Kubernetes calls otherwise.
var decided = map[string]string{
	"allowedZones":  "allowedTopologies",
	"podLabels":     "spec.template.metadata.labels",
	"priorityClass": "spec.template.spec.priorityClassName",
	"runAsUser":     "spec.template.spec.securityContext.runAsUser",
}

// find is the value at a path such as parameters.type, data.cloud.conf or containers[driver].image, and the field that it is.
func find(object map[string]any, path string) (any, field, bool) {
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
			if v, f, found := below(at, path); found {
				return v, slices.Concat(above, f), true
			}
		}
	}
	return nil, nil, false
}

// below follows a path from a value. Keys may have dots, so the longest that fits is tried first.
func below(v any, path string) (any, field, bool) {
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
		if found, f, ok := below(c.value, rest); ok {
			return found, append(field{c.key}, f...), true
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
		names := map[string]int{}
		for _, value := range v {
			names[nameOf(value)]++
		}
		for i, value := range v {
			c := child{key: fmt.Sprintf("[%d]", i), value: value}
			if name := nameOf(value); name != "" && names[name] == 1 {
				c.key, c.index = "["+name+"]", c.key
			}
			all = append(all, c)
		}
	}
	return all
}

func nameOf(v any) string {
	fields, _ := v.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// leaves are the fields at or below one that hold no others.
func leaves(v any, at field) []field {
	inner := children(v)
	if len(inner) == 0 {
		return []field{at}
	}
	var all []field
	for _, c := range inner {
		all = append(all, leaves(c.value, append(slices.Clone(at), c.key))...)
	}
	return all
}

// fieldsNear says what is there where a path leads to nothing: the keys of the deepest object on its way.
func fieldsNear(object map[string]any, path string) string {
	near, where := object, ""
	for at, c := range path {
		if c != '.' && c != '[' {
			continue
		}
		if v, f, found := find(object, path[:at]); found {
			if fields, isObject := v.(map[string]any); isObject {
				near, where = fields, " in "+f.String()
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(near)), ", ") + where
}
