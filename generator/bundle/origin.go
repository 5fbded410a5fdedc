package bundle

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

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

// source is one text that says something of some objects: a file of manifests/, a patch, an object of the bundle's own.
type source struct {
	target target
	whole  bool   // it makes an object, and changes none
	text   node   // the object, or the part of it that the source sets
	ops    []op   // of a patch that sets single places
	origin Origin // of what no decision of its own gave
}

// sources are all texts that kustomize makes the plane of, in the order in which it reads them. What becomes of them is kustomize's to
// say. A place whose origin is asked for comes from a build.
func (p *plane) sources() ([]source, error) {
	var all []source
	for _, dir := range p.bases() {
		read, err := sourcesIn(dir, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, read...)
	}
	for _, c := range p.components() {
		read, err := sourcesIn(c.dir, c.refs)
		if err != nil {
			return nil, err
		}
		all = append(all, read...)
	}
	pools, err := p.pools()
	if err != nil {
		return nil, err
	}
	for _, file := range slices.Sorted(maps.Keys(pools)) {
		all = append(all, source{target: identity(pools[file]), whole: true, text: pools[file], origin: Origin{File: nodeFile}})
	}
	images := p.images()
	for i, s := range all {
		all[i].text = withImages(images, s.text, s.origin)
	}
	for _, patch := range p.patches() {
		all = append(all, source{target: patch.target, text: patch.body, ops: patch.ops})
	}
	own := func(docs []node) {
		for _, doc := range docs {
			all = append(all, source{target: identity(doc), whole: true, text: doc})
		}
	}
	for _, docs := range p.ownObjects() {
		own(docs)
	}
	own(p.namespaces())
	return all, nil
}

// kustomizationFile is what is read of a kustomization in manifests/.
type kustomizationFile struct {
	Resources []string
	Patches   []struct {
		Path   string
		Target struct{ Kind, Name, LabelSelector string }
	}
}

// parsed has the sources of each kustomization of manifests/ that was asked for. The files are a part of the program. A comparison of two
// plans asks for all of them four times, and the parser took a quarter of its time.
var parsed sync.Map // string -> []source; nobody changes their texts

// sourcesIn are the objects and the patches of one kustomization of manifests/.
func sourcesIn(dir string, refs []Ref) ([]source, error) {
	kept, known := parsed.Load(dir)
	if !known {
		read, err := parseSources(dir)
		if err != nil {
			return nil, err
		}
		kept, _ = parsed.LoadOrStore(dir, read)
	}
	all := slices.Clone(kept.([]source))
	for i := range all {
		all[i].origin.Refs = refs
	}
	return all, nil
}

func parseSources(dir string) ([]source, error) {
	var k kustomizationFile
	if err := readManifest(path.Join(dir, "kustomization.yaml"), func(text []byte) error { return yaml.Unmarshal(text, &k) }); err != nil {
		return nil, err
	}
	var all []source
	read := func(name string, of func(object) source) error {
		file := path.Join(dir, name)
		return readManifest(file, func(text []byte) error {
			for _, doc := range strings.Split(string(text), "\n---\n") {
				var fields map[string]any
				if err := yaml.Unmarshal([]byte(doc), &fields); err != nil {
					return err
				}
				s := of(objectOf(from(integers(fields))))
				s.origin = Origin{File: file}
				all = append(all, s)
			}
			return nil
		})
	}
	for _, name := range k.Resources {
		if err := read(name, func(o object) source { return source{target: identity(o), whole: true, text: o} }); err != nil {
			return nil, err
		}
	}
	for _, patch := range k.Patches {
		t := target{kinds: []string{patch.Target.Kind}, name: patch.Target.Name}
		if selector := patch.Target.LabelSelector; selector != "" {
			component, only := strings.CutPrefix(selector, componentLabel+"=")
			if !only {
				return nil, fmt.Errorf("manifests/%s: a patch selects by %s; want the label %s alone", dir, selector, componentLabel)
			}
			t.component = component
		}
		if err := read(patch.Path, func(o object) source { return source{target: t, text: withoutIdentity(o)} }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// withoutIdentity is what a patch sets: the fields by which it names its object are not.
func withoutIdentity(patch object) object {
	rest := merge(patch, nil)
	delete(rest, "apiVersion")
	delete(rest, "kind")
	if metadata := merge(objectOf(rest["metadata"]), nil); len(metadata) > 1 {
		delete(metadata, "name")
		rest["metadata"] = metadata
	} else {
		delete(rest, "metadata")
	}
	return rest
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

// withImages is a text of manifests/ with the images that the kustomization puts where the text has their names.
func withImages(images []image, n node, origin Origin) node {
	return mapLeaves(n, func(l leaf) leaf {
		for _, i := range images {
			if l.value == i.baseName() {
				return leaf{i.is.Value, append([]Ref{refOf(i.is)}, origin.Refs...)}
			}
		}
		return l
	})
}

// target selects the objects that a source is for. An empty part selects all.
type target struct {
	kinds     []string
	name      string
	component string // of the label app.kubernetes.io/component
}

// selects reports whether an object is one of the target's.
func (t target) selects(o target) bool {
	return slices.Contains(t.kinds, o.kinds[0]) && (t.name == "" || t.name == o.name) && (t.component == "" || t.component == o.component)
}

// identity is the target that selects one object alone.
func identity(n node) target {
	fields, _ := plain(n).(map[string]any)
	return identityOf(fields)
}

func identityOf(fields map[string]any) target {
	text := func(at ...string) string {
		value, _ := field.At(fields, at)
		s, _ := value.(string)
		return s
	}
	return target{[]string{text("kind")}, text("metadata", "name"), text("metadata", "labels", componentLabel)}
}

// said is what the source sets at a place; false: nothing. A nil stands for a place that the source removes.
func (s source) said(at field.Path) (leaf, bool) {
	for _, op := range slices.Backward(s.ops) {
		if len(at) >= len(op.at) && slices.Equal(at[:len(op.at)], op.at) {
			return leafAt(op.value, at[len(op.at):])
		}
	}
	return leafAt(s.text, at)
}

func leafAt(n node, at field.Path) (leaf, bool) {
	if l, is := n.(leaf); is {
		return l, len(at) == 0 || l.value == nil
	}
	if len(at) == 0 {
		return leaf{}, false
	}
	switch n := n.(type) {
	case object:
		if below, there := n[at[0]]; there {
			return leafAt(below, at[1:])
		}
	case list:
		if i := slices.Index(elementKeys(n), at[0]); i >= 0 {
			return leafAt(n[i], at[1:])
		}
	}
	return leaf{}, false
}

// originOf is where the value at a place of an object comes from: the last source that gives the place another value. The first of those
// that say the same counts, unless a later one has decisions for it.
func originOf(sources []source, at field.Path) (origin Origin, known bool) {
	var value any
	for _, s := range sources {
		l, says := s.said(at)
		switch {
		case !says:
		case l.value == nil:
			known = false
		case known && len(l.refs) == 0 && same(value, l.value):
		case len(l.refs) > 0:
			value, origin, known = l.value, Origin{Refs: l.refs}, true
		default:
			value, origin, known = l.value, s.origin, true
		}
	}
	return origin, known
}

// placesIn are the places that the sources set, each once.
func placesIn(sources []source) []field.Path {
	var all []field.Path
	seen := map[string]bool{}
	add := func(at field.Path, _ leaf) {
		if key := strings.Join(at, "\x00"); !seen[key] {
			seen[key] = true
			all = append(all, at)
		}
	}
	for _, s := range sources {
		walk(s.text, nil, add)
		for _, op := range s.ops {
			walk(op.value, op.at, add)
		}
	}
	return all
}

// walk visits the leaves of a node.
func walk(n node, at field.Path, visit func(field.Path, leaf)) {
	switch n := n.(type) {
	case object:
		for key, value := range n {
			walk(value, append(slices.Clone(at), key), visit)
		}
	case list:
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
