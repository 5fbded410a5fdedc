package bundle

import (
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/field"
)

// apply puts what a patch says into the objects that it is for.
func (c *composed) apply(patch patch) {
	for _, o := range c.targets(patch.target) {
		o.set(patch.body, nil, Origin{})
		for _, op := range patch.ops {
			o.set(op.value, op.at, Origin{})
			if slices.Equal(op.at, field.Path{"metadata", "name"}) {
				delete(c.objects, o.kind+"/"+o.name)
				o.name, _ = plain(op.value).(string)
				c.objects[o.kind+"/"+o.name] = o
			}
		}
	}
}

// needed is what of a patch its objects do not have yet; false: nothing.
func (c *composed) needed(patch patch) (patch, bool) {
	targets := c.targets(patch.target)
	if len(targets) == 0 {
		return patch, false
	}
	if patch.body != nil {
		body := targets[0].differing(patch.body, nil)
		patch.body = objectOf(body)
		return patch, len(patch.body) > 0
	}
	patch.ops = slices.DeleteFunc(slices.Clone(patch.ops), func(op op) bool {
		return !slices.ContainsFunc(targets, func(o *composedObject) bool { return o.differing(op.value, op.at) != nil })
	})
	return patch, len(patch.ops) > 0
}

// differing is what of a node the object does not have; nil: nothing.
func (o *composedObject) differing(n node, at field.Path) node {
	switch n := n.(type) {
	case leaf:
		if was, there := o.leaves[keyOf(at)]; there && same(was.value, n.value) {
			return nil
		}
		return n
	case object:
		rest := object{}
		for key, value := range n {
			if d := o.differing(value, append(slices.Clone(at), key)); d != nil {
				rest[key] = d
			}
		}
		if len(rest) == 0 {
			return nil
		}
		return rest
	case list:
		if mergedByName(at) {
			return o.differingElements(n, at)
		}
		if o.has(n, at) {
			return nil
		}
		return n
	}
	return n
}

// mergedByName is whether kustomize merges a list by the names of its elements.
func mergedByName(at field.Path) bool {
	switch at[len(at)-1] {
	case "containers", "initContainers", "volumes", "env", "imagePullSecrets":
		return true
	}
	return false
}

// differingElements are all elements where one differs, or where a component added some. A merge moves the elements that it names to the
// front, so the order is right only if it names all.
func (o *composedObject) differingElements(l list, at field.Path) node {
	out, differs := list{}, o.extended[keyOf(at)]
	for i, key := range elementKeys(l) {
		element := object{"name": l[i].(object)["name"]}
		for name, value := range l[i].(object) {
			if d := o.differing(value, slices.Concat(at, field.Path{key, name})); d != nil {
				element[name], differs = d, true
			}
		}
		out = append(out, element)
	}
	if !differs {
		return nil
	}
	return out
}

// has is whether the object's list at a place is this one.
func (o *composedObject) has(l list, at field.Path) bool {
	want := map[string]any{}
	walk(l, at, func(at field.Path, l leaf) { want[keyOf(at)] = l.value })
	prefix, n := keyOf(at)+"\x00", 0
	for key, l := range o.leaves {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		n++
		if value, there := want[key]; !there || !same(value, l.value) {
			return false
		}
	}
	return n == len(want)
}
