package bundle

import (
	"reflect"
	"slices"

	"github.com/cinder-csi/cinder-csi/generator/field"
)

// built are the objects that kustomize makes of the plane's bases and components, before the patches.
type built []map[string]any

func (b built) targets(t target) []map[string]any {
	var all []map[string]any
	for _, o := range b {
		if t.selects(identityOf(o)) {
			all = append(all, o)
		}
	}
	return all
}

// needed is what of a patch its objects do not have; false: nothing.
func (b built) needed(p patch) (patch, bool) {
	targets := b.targets(p.target)
	if len(targets) == 0 {
		return p, false
	}
	if p.body != nil {
		p.body = objectOf(kustomizeMerge.differing(p.body, targets[0], ""))
		return p, len(p.body) > 0
	}
	p.ops = slices.DeleteFunc(slices.Clone(p.ops), func(op op) bool {
		return !slices.ContainsFunc(targets, func(o map[string]any) bool {
			was, _ := field.At(o, op.at)
			return kustomizeMerge.differing(op.value, was, "") != nil
		})
	})
	return p, len(p.ops) > 0
}

// merging is how a tool puts a text over another: it merges objects, and the lists under these keys by the names of their elements. It
// replaces every other list.
type merging map[string]bool

var (
	helmMerge      merging
	kustomizeMerge = merging{"containers": true, "initContainers": true, "volumes": true, "env": true, "imagePullSecrets": true}
)

// differing is what of a node a value does not have; nil: nothing. The key is the node's own.
func (m merging) differing(n node, was any, key string) node {
	switch n := n.(type) {
	case object:
		fields, _ := was.(map[string]any)
		rest := object{}
		for key, value := range n {
			if d := m.differing(value, fields[key], key); d != nil {
				rest[key] = d
			}
		}
		if len(rest) == 0 {
			return nil
		}
		return rest
	case list:
		elements, _ := was.([]any)
		if m[key] {
			return m.differingElements(n, elements)
		}
		if len(n) > 0 && reflect.DeepEqual(integers(plain(n)), was) { // bundles have always said empty lists
			return nil
		}
	case leaf:
		if n.value != nil && same(n.value, was) { // a null removes what is there
			return nil
		}
	}
	return n
}

// differingElements are all elements where one differs, or where their order does. A merge moves the elements that it names to the front, so
// the order is right only if it names all.
func (m merging) differingElements(l list, was []any) node {
	out, differs := list{}, false
	var order []any
	for _, e := range was {
		fields, _ := e.(map[string]any)
		order = append(order, fields["name"])
	}
	for i, e := range l {
		name := e.(object)["name"]
		at := slices.Index(order, plain(name))
		differs = differs || at != i
		var fields map[string]any
		if at >= 0 {
			fields, _ = was[at].(map[string]any)
		}
		element := object{"name": name}
		for key, value := range e.(object) {
			if d := m.differing(value, fields[key], key); d != nil {
				element[key], differs = d, true
			}
		}
		out = append(out, element)
	}
	if !differs {
		return nil
	}
	return out
}

// same compares scalars; a number of YAML may have another Go type than a decision's.
func same(a, b any) bool {
	if x, isNumber := number(a); isNumber {
		y, isNumber := number(b)
		return isNumber && x == y
	}
	return reflect.DeepEqual(a, b)
}

func number(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}
