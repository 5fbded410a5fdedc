package bundle

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Chart renders charts/cinder-csi with values, as Helm's engine does: the text of each template by its path. If strict, the schema of the chart checks
// the values. With names of templates, the chart renders only these. verify.Chart is the real one. The caller hands it in, because Helm brings
// network code into what links it, and Render stays a pure function.
type Chart func(values map[string]any, strict bool, only ...string) (map[string]string, error)

// namespaceFile has the Namespace objects. They stand beside the chart, which should own none.
const namespaceFile = "namespace.yaml"

// templates are the rendered templates of the plane that have objects, by file name.
func (p *plane) templates(chart Chart, values map[string]any, strict bool, only ...string) (map[string]string, error) {
	rendered, err := chart(floats(values).(map[string]any), strict, only...)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, text := range rendered {
		if dir, file := path.Split(name); dir == "cinder-csi/templates/" && strings.HasSuffix(file, ".yaml") {
			files[file] = text
		}
	}
	return files, nil
}

// floats is a copy of values with floating-point numbers, as Helm reads them from a file.
func floats(v any) any {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, value := range v {
			m[key] = floats(value)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, value := range v {
			l[i] = floats(value)
		}
		return l
	}
	return v
}

// rendering is what a plane's objects are with some values: each document with its text and its fields.
type rendering map[string][]*rendered // by file name, in the order of the file

// rendered is one object of the chart, or a Namespace beside it.
type rendered struct {
	file   string // the template that has made it
	text   *yaml.Node
	fields map[string]any
}

func (o *rendered) kind() string      { return textAt(o.fields, "kind") }
func (o *rendered) name() string      { return textAt(o.fields, "metadata", "name") }
func (o *rendered) namespace() string { return textAt(o.fields, "metadata", "namespace") }
func (o *rendered) key() string       { return o.kind() + "/" + o.name() }
func (o *rendered) id() string        { return o.key() + " " + o.namespace() }

func byID(objects []*rendered) map[string]*rendered {
	all := map[string]*rendered{}
	for _, o := range objects {
		all[o.id()] = o
	}
	return all
}

func textAt(fields map[string]any, at ...string) string {
	s, _ := valueAt(fields, at).(string)
	return s
}

// rendering renders the plane with values.
func (p *plane) rendering(chart Chart, values map[string]any, strict bool) (rendering, error) {
	files, err := p.templates(chart, values, strict)
	if err != nil {
		return nil, err
	}
	all := rendering{}
	for name, text := range files {
		objects, err := decode(name, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(objects) > 0 {
			all[name] = objects
		}
	}
	return all, nil
}

// withNamespaces is a rendering with the Namespaces beside it.
func (p *plane) withNamespaces(r rendering) (rendering, error) {
	for _, n := range p.namespaces() {
		text, err := writer{compare: byOrder(keyOrder)}.document(n)
		if err != nil {
			return nil, err
		}
		objects, err := decode(namespaceFile, string(text))
		if err != nil {
			return nil, err
		}
		r[namespaceFile] = append(r[namespaceFile], objects...)
	}
	return r, nil
}

// objects are all objects, in the order of files.
func (r rendering) objects() []*rendered {
	var all []*rendered
	for _, name := range slices.Sorted(maps.Keys(r)) {
		all = append(all, r[name]...)
	}
	return all
}

// chartLabels say that Helm owns an object. In a Kustomize bundle it does not.
var chartLabels = []string{"helm.sh/chart", "app.kubernetes.io/managed-by"}

// decode are the objects of a rendered template, without the labels that only Helm sets.
func decode(file, text string) ([]*rendered, error) {
	var all []*rendered
	for in := yaml.NewDecoder(strings.NewReader(text)); ; {
		var doc yaml.Node
		switch err := in.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
			continue
		}
		withoutChartLabels(doc.Content[0])
		o := &rendered{file: file, text: &doc}
		if err := doc.Decode(&o.fields); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
}

func withoutChartLabels(object *yaml.Node) {
	labels := mapping(mapping(object, "metadata"), "labels")
	if labels == nil {
		return
	}
	for i := 0; i+1 < len(labels.Content); {
		if slices.Contains(chartLabels, labels.Content[i].Value) {
			labels.Content = slices.Delete(labels.Content, i, i+2)
			continue
		}
		i += 2
	}
}

// mapping is the mapping that is the value of a key; nil: there is none.
func mapping(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// textOf is the text of objects as a file. Comments of the template stay.
func textOf(objects []*rendered) ([]byte, error) {
	var documents []*yaml.Node
	for _, o := range objects {
		documents = append(documents, o.text)
	}
	return encode(documents...)
}
