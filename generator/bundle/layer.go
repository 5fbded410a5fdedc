package bundle

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/manifests"
)

// Origin says where one emitted value comes from: decisions, a file of manifests/, or both, if a decision switched the file on. With
// neither, the generator always writes the value so.
type Origin struct {
	Refs []Ref
	File string // below manifests/
}

// composed is what a plane is made of before and after its patches: every leaf of every object, with its origin. It knows what a
// patch repeats, and it answers for each value in the end. It follows kustomize closely enough for the files of manifests/; a test
// compares it with what kustomize builds.
type composed struct {
	objects map[string]*composedObject // by kind/name
}

type composedObject struct {
	kind, name string
	leaves     map[string]composedLeaf
	extended   map[string]bool // lists that a component adds to, which changes the order of their elements
}

type composedLeaf struct {
	at     field.Path
	value  any
	origin Origin
}

func keyOf(at field.Path) string { return strings.Join(at, "\x00") }

// kustomizationFile is what is read of a kustomization in manifests/.
type kustomizationFile struct {
	Resources []string
	Patches   []struct {
		Path   string
		Target struct{ Kind, Name string }
	}
}

// compose reads the bases and components of a plane.
func (p *plane) compose() (*composed, error) {
	c := &composed{objects: map[string]*composedObject{}}
	for _, dir := range p.bases() {
		if err := c.read(dir, nil); err != nil {
			return nil, err
		}
	}
	for _, component := range p.components() {
		if err := c.read(component.dir, component.refs); err != nil {
			return nil, err
		}
	}
	for _, i := range p.images() {
		c.setImage(i)
	}
	return c, nil
}

func (c *composed) read(dir string, refs []Ref) error {
	var k kustomizationFile
	if err := readManifest(path.Join(dir, "kustomization.yaml"), func(text []byte) error { return yaml.Unmarshal(text, &k) }); err != nil {
		return err
	}
	for _, name := range k.Resources {
		file := path.Join(dir, name)
		err := readManifest(file, func(text []byte) error {
			for _, doc := range strings.Split(string(text), "\n---\n") {
				var fields map[string]any
				if err := yaml.Unmarshal([]byte(doc), &fields); err != nil {
					return err
				}
				c.add(from(integers(fields)), Origin{refs, file})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, patch := range k.Patches {
		file := path.Join(dir, patch.Path)
		err := readManifest(file, func(text []byte) error {
			var fields map[string]any
			if err := yaml.Unmarshal(text, &fields); err != nil {
				return err
			}
			for _, o := range c.targets(target{kinds: []string{patch.Target.Kind}, name: patch.Target.Name}) {
				o.merge(from(integers(fields)).(object), Origin{refs, file})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func readManifest(name string, parse func([]byte) error) error {
	text, err := fs.ReadFile(manifests.Files, name)
	if err == nil {
		err = parse(text)
	}
	if err != nil {
		return fmt.Errorf("manifests/%s: %w", name, err)
	}
	return nil
}

// add puts a whole object there.
func (c *composed) add(n node, origin Origin) *composedObject {
	fields := n.(object)
	kind, _ := plain(fields["kind"]).(string)
	name, _ := plain(fields["metadata"].(object)["name"]).(string)
	o := &composedObject{kind: kind, name: name, leaves: map[string]composedLeaf{}, extended: map[string]bool{}}
	c.objects[kind+"/"+name] = o
	o.set(n, nil, origin)
	return o
}

// set puts a node's leaves at a place. The decisions of a leaf are its origin; a leaf without any has the origin of the node. A value
// that is there already keeps its own.
func (o *composedObject) set(n node, at field.Path, origin Origin) {
	walk(n, at, func(at field.Path, l leaf) {
		was, there := o.leaves[keyOf(at)]
		if l.value == nil { // a merge deletes what it sets to null
			prefix := keyOf(at) + "\x00"
			maps.DeleteFunc(o.leaves, func(key string, _ composedLeaf) bool { return key == keyOf(at) || strings.HasPrefix(key, prefix) })
			return
		}
		if there && len(l.refs) == 0 && same(was.value, l.value) {
			return
		}
		from := origin
		if len(l.refs) > 0 {
			from = Origin{Refs: l.refs}
		}
		o.leaves[keyOf(at)] = composedLeaf{at, l.value, from}
	})
}

// merge applies a component's strategic merge patch.
func (o *composedObject) merge(patch object, origin Origin) {
	for key, value := range patch {
		switch key {
		case "apiVersion", "kind":
		case "metadata":
			rest := merge(value.(object), nil)
			delete(rest, "name")
			o.set(rest, field.Path{"metadata"}, origin)
		default:
			o.note(value, field.Path{key})
			o.set(value, field.Path{key}, origin)
		}
	}
}

// note remembers the lists that a patch adds to.
func (o *composedObject) note(n node, at field.Path) {
	switch n := n.(type) {
	case object:
		for key, value := range n {
			o.note(value, append(slices.Clone(at), key))
		}
	case list:
		o.extended[keyOf(at)] = true
		for i, key := range elementKeys(n) {
			o.note(n[i], append(slices.Clone(at), key))
		}
	}
}

// setImage puts an image where the base has its name.
func (c *composed) setImage(i image) {
	for _, o := range c.objects {
		for key, l := range o.leaves {
			if l.value == i.baseName() {
				l.value, l.origin.Refs = i.is.Value, append([]Ref{refOf(i.is)}, l.origin.Refs...)
				o.leaves[key] = l
			}
		}
	}
}

// target selects the objects that a patch is for. An empty part selects all.
type target struct {
	kinds     []string
	name      string
	component string // of the label app.kubernetes.io/component
}

func (c *composed) targets(t target) []*composedObject {
	var all []*composedObject
	for _, o := range c.objects {
		component := o.leaves[keyOf(field.Path{"metadata", "labels", componentLabel})].value
		if slices.Contains(t.kinds, o.kind) && (t.name == "" || t.name == o.name) && (t.component == "" || t.component == component) {
			all = append(all, o)
		}
	}
	return all
}

// walk visits the leaves of a node.
func walk(n node, at field.Path, visit func(field.Path, leaf)) {
	switch n := n.(type) {
	case object:
		if len(n) == 0 {
			visit(at, leaf{value: map[string]any{}})
		}
		for key, value := range n {
			walk(value, append(slices.Clone(at), key), visit)
		}
	case list:
		if len(n) == 0 {
			visit(at, leaf{value: []any{}})
		}
		for i, key := range elementKeys(n) {
			walk(n[i], append(slices.Clone(at), key), visit)
		}
	case leaf:
		visit(at, n)
	}
}

// elementKeys are the keys that a list's elements have in a path.
func elementKeys(l list) []string {
	names := make([]string, len(l))
	for i, e := range l {
		if o, isObject := e.(object); isObject {
			names[i], _ = plain(o["name"]).(string)
		}
	}
	return field.ElementKeys(names)
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
