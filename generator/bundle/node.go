package bundle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
)

// Ref is the decision that a value comes from. Field is the part of the decision's value, empty for the whole.
type Ref struct{ Decision, Field string }

func (r Ref) String() string {
	if r.Field == "" {
		return r.Decision
	}
	return r.Decision + " " + r.Field
}

// node is a part of what is emitted. There is no other way into a file than a node. Each leaf states where its value comes from: a
// decision (decided, decidedField), or no decision (constant).
type node interface{ isNode() }

type (
	object map[string]node
	list   []node
	leaf   struct {
		value any // a scalar, or an empty map or list
		refs  []Ref
	}
)

func (object) isNode() {}
func (list) isNode()   {}
func (leaf) isNode()   {}

// decided is the value of a decision.
func decided[T any](d plan.Decision[T]) node { return valueOf(d.Value, Ref{Decision: d.ID}) }

// decidedField is a value that one field of a decision gives, or that follows from it.
func decidedField[T any](d plan.Decision[T], field string, value any) node {
	return valueOf(value, Ref{Decision: d.ID, Field: field})
}

// constant is a value that every bundle has that has the object.
func constant(value any) node { return valueOf(value) }

// valueOf is a value with the decisions that it comes from. The refs of a map's values name their keys too.
func valueOf(value any, refs ...Ref) node {
	switch v := value.(type) {
	case nil, string, bool, int, int64, float64:
		return leaf{value, refs}
	case *int64:
		if v == nil {
			return leaf{nil, refs}
		}
		return leaf{*v, refs}
	case map[string]string:
		o := object{}
		for key, value := range v {
			o[key] = leaf{value, below(refs, key)}
		}
		if len(o) == 0 {
			return leaf{map[string]any{}, refs}
		}
		return o
	case []string:
		l := list{}
		for _, value := range v {
			l = append(l, leaf{value, refs})
		}
		if len(l) == 0 {
			return leaf{[]any{}, refs}
		}
		return l
	case map[string]any:
		if len(v) == 0 {
			return leaf{map[string]any{}, refs}
		}
		o := object{}
		for key, value := range v {
			o[key] = valueOf(value, below(refs, key)...)
		}
		return o
	case []any:
		if len(v) == 0 {
			return leaf{[]any{}, refs}
		}
		var l list
		for _, value := range v {
			l = append(l, valueOf(value, refs...))
		}
		return l
	}
	return valueOf(plainJSON(value), refs...)
}

func below(refs []Ref, key string) []Ref {
	if len(refs) != 1 { // a value of several decisions is a field of none
		return refs
	}
	r := refs[0]
	if r.Field != "" {
		key = r.Field + "." + key
	}
	return []Ref{{r.Decision, key}}
}

// plainJSON is a value in the types of JSON, with whole numbers as integers.
func plainJSON(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("%T cannot be emitted: %v", value, err)) // plan's types always marshal
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		panic(err)
	}
	if plain == nil { // a nil map or slice is an empty one
		if text := fmt.Sprintf("%T", value); text[0] == '[' {
			return []any{}
		}
		return map[string]any{}
	}
	return integers(plain)
}

func integers(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case map[string]any:
		for key, value := range v {
			v[key] = integers(value)
		}
	case []any:
		for i, value := range v {
			v[i] = integers(value)
		}
	}
	return v
}

// also is a node whose every leaf comes from further decisions too: those that switch it on.
func also(n node, refs ...Ref) node {
	return mapLeaves(n, func(l leaf) leaf {
		l.refs = slices.Concat(l.refs, refs)
		return l
	})
}

// under is a node that a decision switches on: its fixed leaves come from it.
func under(n node, refs ...Ref) node {
	return mapLeaves(n, func(l leaf) leaf {
		if len(l.refs) == 0 {
			l.refs = refs
		}
		return l
	})
}

func mapLeaves(n node, change func(leaf) leaf) node {
	switch n := n.(type) {
	case object:
		o := object{}
		for key, value := range n {
			o[key] = mapLeaves(value, change)
		}
		return o
	case list:
		l := make(list, len(n))
		for i, value := range n {
			l[i] = mapLeaves(value, change)
		}
		return l
	case leaf:
		return change(n)
	}
	return n
}

// refOf is the decision as a whole.
func refOf[T any](d plan.Decision[T]) Ref { return Ref{Decision: d.ID} }

// merge is a with b's keys over it.
func merge(a, b object) object {
	o := maps.Clone(a)
	maps.Copy(o, b)
	return o
}

// addIf adds a key that an object has only on a condition.
func (o object) addIf(has bool, key string, value node) {
	if has {
		o[key] = value
	}
}

// objectOf is a node as an object, an empty one for an empty leaf.
func objectOf(n node) object {
	if o, is := n.(object); is {
		return o
	}
	return object{}
}

// plain is a node without its decisions.
func plain(n node) any {
	switch n := n.(type) {
	case object:
		o := map[string]any{}
		for key, value := range n {
			o[key] = plain(value)
		}
		return o
	case list:
		l := []any{}
		for _, value := range n {
			l = append(l, plain(value))
		}
		return l
	case leaf:
		return n.value
	}
	return nil
}

// refsOf are the decisions of all leaves of a node, sorted, each once.
func refsOf(n node) []Ref {
	var all []Ref
	mapLeaves(n, func(l leaf) leaf {
		all = append(all, l.refs...)
		return l
	})
	return distinct(all)
}

func distinct(refs []Ref) []Ref {
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(strings.Compare(a.Decision, b.Decision), strings.Compare(a.Field, b.Field))
	})
	return slices.Compact(refs)
}
