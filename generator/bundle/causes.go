package bundle

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/field"
)

// change is a part of the values that a plan changes: a leaf, or a list as a whole.
type change struct {
	at   []string
	refs []Ref
}

// changed are the parts of values that differ from what the chart has without them.
func changed(n node, was any, at []string) []change {
	switch n := n.(type) {
	case object:
		fields, _ := was.(map[string]any)
		var all []change
		for _, key := range slices.Sorted(maps.Keys(n)) {
			all = append(all, changed(n[key], fields[key], append(slices.Clone(at), key))...)
		}
		return all
	default:
		if differing(n, was) == nil {
			return nil
		}
		return []change{{at, refsOf(n)}}
	}
}

// causes is what decided each operation of the patches of an object: the decisions without which the chart renders another value there.
func (v *overlay) causes(chart Chart, values object) (func(*rendered) func(operation) string, error) {
	defaults, err := chartDefaults()
	if err != nil {
		return nil, err
	}
	base := merged(defaults.values, v.p.baseValues())
	parts := changed(values, base, nil)
	decisions := map[string][]change{}
	for _, c := range parts {
		for _, r := range c.refs {
			decisions[r.Decision] = append(decisions[r.Decision], c)
		}
	}
	c := &causes{v: v, chart: chart, of: map[*rendered]map[string][]string{}}
	plain := plain(values).(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(decisions)) {
		without := plain
		for _, p := range decisions[id] {
			without = replacedAt(without, p.at, valueAt(base, p.at))
		}
		c.vary(id, decisions[id], without, v.want)
	}
	for _, id := range slices.Sorted(maps.Keys(decisions)) { // what only several decisions together leave out
		if !c.unexplained() {
			break
		}
		with := v.p.baseValues()
		for _, p := range decisions[id] {
			with = replacedAt(with, p.at, valueAt(plain, p.at))
		}
		c.onlyUnexplained = true
		c.vary(id, decisions[id], with, v.base)
	}
	return c.decided, nil
}

type causes struct {
	v               *overlay
	chart           Chart
	of              map[*rendered]map[string][]string // decisions by object and field
	onlyUnexplained bool
}

// vary renders the patched templates that name one of the parts, and credits the decision with each operation whose field is another one there.
func (c *causes) vary(id string, parts []change, values map[string]any, was rendering) {
	patched := map[string]bool{}
	for o := range c.v.patches {
		if slices.ContainsFunc(parts, func(p change) bool { return namesValue(o.file, p.at) }) {
			patched[o.file] = true
		}
	}
	if len(patched) == 0 {
		return
	}
	only := slices.Sorted(maps.Keys(patched))
	files, err := c.v.p.templates(c.chart, values, false, only...)
	if err != nil {
		return // the chart refuses these values
	}
	before := byID(was.objects())
	for name, text := range files {
		objects, err := decode(name, text)
		if err != nil {
			continue
		}
		now := byID(objects)
		for _, o := range c.v.want[name] {
			is, then := now[o.id()], before[o.id()]
			if is == nil || then == nil {
				continue
			}
			for _, operation := range c.v.patches[o] {
				if operation.op == "test" || c.onlyUnexplained && len(c.of[o][operation.at.String()]) > 0 {
					continue
				}
				a, had := field.At(then.fields, operation.at)
				b, has := field.At(is.fields, operation.at)
				if had != has || !reflect.DeepEqual(a, b) {
					if c.of[o] == nil {
						c.of[o] = map[string][]string{}
					}
					c.of[o][operation.at.String()] = append(c.of[o][operation.at.String()], id)
				}
			}
		}
	}
}

func (c *causes) unexplained() bool {
	for o, operations := range c.v.patches {
		for _, operation := range operations {
			if operation.op != "test" && len(c.of[o][operation.at.String()]) == 0 {
				return true
			}
		}
	}
	return false
}

// most is how many decisions the comment of an operation names. A checksum follows from all of them.
const most = 3

// decided is the comment that names the decisions of an operation.
func (c *causes) decided(o *rendered) func(operation) string {
	return func(op operation) string {
		switch ids := c.of[o][op.at.String()]; {
		case len(ids) == 0:
			return ""
		case len(ids) > most || strings.HasSuffix(op.at.String(), "config-hash"):
			return " (several decisions)"
		case len(ids) > 1:
			return " (decisions: " + strings.Join(ids, ", ") + ")"
		default:
			return " (decision: " + ids[0] + ")"
		}
	}
}

// merged is a with b over it, as Helm merges values.
func merged(a, b map[string]any) map[string]any {
	m := maps.Clone(a)
	if m == nil {
		m = map[string]any{}
	}
	for key, value := range b {
		if inner, is := value.(map[string]any); is {
			was, _ := m[key].(map[string]any)
			m[key] = merged(was, inner)
			continue
		}
		m[key] = value
	}
	return m
}

func valueAt(v any, at []string) any {
	for _, key := range at {
		fields, _ := v.(map[string]any)
		v = fields[key]
	}
	return v
}

// replacedAt is a copy of nested maps with another value at a place; nil: without one.
func replacedAt(fields map[string]any, at []string, value any) map[string]any {
	m := maps.Clone(fields)
	if m == nil {
		m = map[string]any{}
	}
	switch {
	case len(at) > 1:
		inner, _ := m[at[0]].(map[string]any)
		m[at[0]] = replacedAt(inner, at[1:], value)
	case value == nil:
		delete(m, at[0])
	default:
		m[at[0]] = value
	}
	return m
}
