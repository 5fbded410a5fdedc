package bundle

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cinder-csi/cinder-csi/generator/field"
)

// operation is one operation of a JSON patch (RFC 6902). Strategic merge patches lose the order of lists, and kustomize writes their $retainKeys
// into the object.
type operation struct {
	op    string // add, remove, replace or test
	path  []string
	value any
	at    field.Path // the place as a person says it; of a test its element
}

// patchOf is the patch that turns an object into another one.
func patchOf(from, to map[string]any) []operation {
	d := difference{tested: map[string]bool{}}
	d.fields(nil, nil, from, to)
	return d.operations
}

type difference struct {
	operations []operation
	tested     map[string]bool // elements of lists
}

// add adds an operation, and before it a test of the name of each element on its way. So a patch above another base fails, and never changes
// another container.
func (d *difference) add(op string, path []string, at field.Path, value any) {
	for i := range path[:len(path)-1] {
		if name, isElement := elementName(at, i); isElement && !d.tested[strings.Join(path[:i+1], "/")] {
			d.tested[strings.Join(path[:i+1], "/")] = true
			d.operations = append(d.operations, operation{"test", append(slices.Clone(path[:i+1]), "name"), name, at[:i+1]})
		}
	}
	d.operations = append(d.operations, operation{op, path, value, at})
}

// elementName is the name of the element of a list that a place leads to.
func elementName(at field.Path, i int) (string, bool) {
	if i >= len(at) || !strings.HasPrefix(at[i], "[") {
		return "", false
	}
	return strings.Trim(at[i], "[]"), true
}

func (d *difference) any(path []string, at field.Path, from, to any) {
	if reflect.DeepEqual(from, to) {
		return
	}
	switch from := from.(type) {
	case map[string]any:
		if to, is := to.(map[string]any); is {
			d.fields(path, at, from, to)
			return
		}
	case []any:
		if to, is := to.([]any); is && d.list(path, at, from, to) {
			return
		}
	}
	d.add("replace", path, at, to)
}

func (d *difference) fields(path []string, at field.Path, from, to map[string]any) {
	both := maps.Clone(from)
	maps.Copy(both, to)
	for _, key := range slices.SortedFunc(maps.Keys(both), byOrder(keyOrder)) {
		was, had := from[key]
		is, has := to[key]
		inner, place := append(slices.Clone(path), key), append(slices.Clone(at), key)
		switch {
		case !has:
			d.add("remove", inner, place, nil)
		case !had:
			d.add("add", inner, place, is)
		default:
			d.any(inner, place, was, is)
		}
	}
}

// list changes a list whose elements have names, if their order stays. Another list is replaced as a whole.
func (d *difference) list(path []string, at field.Path, from, to []any) bool {
	was, is := elementNames(from), elementNames(to)
	if was == nil || is == nil || !sameOrder(was, is) {
		return false
	}
	element := func(i int, name string) ([]string, field.Path) {
		return append(slices.Clone(path), fmt.Sprint(i)), append(slices.Clone(at), "["+name+"]")
	}
	left := slices.Clone(from)
	for i := len(was) - 1; i >= 0; i-- {
		if !slices.Contains(is, was[i]) {
			inner, place := element(i, was[i])
			d.add("test", append(inner, "name"), place, was[i])
			d.add("remove", inner, place, nil)
			left = slices.Delete(left, i, i+1)
		}
	}
	for i, name := range is {
		inner, place := element(i, name)
		if slices.Contains(was, name) {
			continue
		}
		d.add("add", inner, place, to[i])
		left = slices.Insert(left, i, to[i])
	}
	for i, name := range is {
		inner, place := element(i, name)
		d.any(inner, place, left[i], to[i])
	}
	return true
}

// elementNames are the names of the elements of a list; nil if one has none, or two have the same.
func elementNames(l []any) []string {
	names := make([]string, 0, len(l))
	for _, e := range l {
		fields, _ := e.(map[string]any)
		name, _ := fields["name"].(string)
		if name == "" || slices.Contains(names, name) {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// sameOrder is whether the names that both lists have are in the same order.
func sameOrder(a, b []string) bool {
	both := func(of, other []string) []string {
		return slices.DeleteFunc(slices.Clone(of), func(name string) bool { return !slices.Contains(other, name) })
	}
	return slices.Equal(both(a, b), both(b, a))
}

// patchText writes a patch. Above each operation stands the field and what decided it.
func patchText(operations []operation, decided func(operation) string) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	w := writer{compare: byOrder(keyOrder)}
	for _, o := range operations {
		fields := object{"op": constant(o.op), "path": constant(pointer(o.path))}
		if o.op != "remove" {
			fields["value"] = valueOf(o.value)
		}
		item := w.node(fields)
		shorten(item)
		if o.op != "test" {
			item.HeadComment = spoken(o.at) + decided(o)
		}
		root.Content = append(root.Content, item)
	}
	return encode(root)
}

// patchWidth is the width up to which a part of a patch stands in one line. The probes of the metrics proxies fit, so that the five look alike.
const patchWidth = 128

// shorten writes what fits into one line as one line, as people write patches: the value of an operation is often a small object.
func shorten(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		return
	}
	if width, is := lineWidth(n); is && width <= patchWidth {
		n.Style = yaml.FlowStyle
		return
	}
	for _, child := range n.Content {
		shorten(child)
	}
}

// lineWidth is about how wide a node is as one line; false: it holds a text of several lines, or a comment.
func lineWidth(n *yaml.Node) (int, bool) {
	width := len(n.Value) + 2
	if strings.Contains(n.Value, "\n") || n.HeadComment != "" || n.LineComment != "" {
		return 0, false
	}
	for _, child := range n.Content {
		w, is := lineWidth(child)
		if !is {
			return 0, false
		}
		width += w
	}
	return width, true
}

// pointer is a path as RFC 6901 writes it.
func pointer(path []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, key := range path {
		b.WriteString("/" + escape.Replace(key))
	}
	return b.String()
}

// spoken is a field as a person says it, without what most fields of a pod are below.
func spoken(at field.Path) string {
	pod := field.Path{"spec", "template", "spec"}
	if len(at) > len(pod) && slices.Equal(at[:len(pod)], pod) {
		at = at[len(pod):]
	}
	return at.String()
}
