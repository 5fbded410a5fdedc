package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// Object is one Kubernetes object of a built plane, as JSON knows it.
type Object struct {
	Plane  string // cluster, management or guest
	Fields map[string]any
}

// APIVersion, Kind, Name and Namespace are the object's identity.
func (o Object) APIVersion() string { return o.text("apiVersion") }

// Kind is the object's kind.
func (o Object) Kind() string { return o.text("kind") }

// Name is the object's name.
func (o Object) Name() string { return o.text("metadata", "name") }

// Namespace is the object's namespace, empty for what belongs to the cluster.
func (o Object) Namespace() string { return o.text("metadata", "namespace") }

// String names the object in messages: "guest: ConfigMap cinder-csi/settings".
func (o Object) String() string {
	return o.Plane + ": " + o.Kind() + " " + strings.TrimPrefix(o.Namespace()+"/"+o.Name(), "/")
}

func (o Object) text(keys ...string) string {
	var at any = o.Fields
	for _, k := range keys {
		m, _ := at.(map[string]any)
		at = m[k]
	}
	s, _ := at.(string)
	return s
}

// plane is one directory of a bundle that is built and applied by itself.
type plane struct{ name, dir string }

func planesOf(target v1alpha1.Target) ([]plane, error) {
	switch target {
	case v1alpha1.Vanilla, v1alpha1.Standalone:
		return []plane{{"cluster", ""}}, nil
	case v1alpha1.HostedControlPlane:
		return []plane{{"management", "management"}, {"guest", "guest"}}, nil
	}
	return nil, fmt.Errorf("target %q: want vanilla, standalone or hypershift", target)
}

// build builds every plane of a bundle in process, with the versions of kustomize and Helm this program is made with. The objects
// are in the order of the tools' output. Helm reads the tree alone.
func build(files map[string][]byte, root string, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]Object, error) {
	planes, err := planesOf(target)
	if err != nil {
		return nil, err
	}
	var all []Object
	for _, p := range planes {
		var objects []Object
		switch format {
		case v1alpha1.Kustomize:
			objects, err = kustomize(files, filepath.Join(root, p.dir), p.name)
		case v1alpha1.Helm:
			var text []byte
			if text, err = helmTemplate(tree, p); err == nil {
				objects, err = Decode(text, p.name)
			}
		default:
			err = fmt.Errorf("format %q: want kustomize or helm", format)
		}
		if err != nil {
			return nil, fmt.Errorf("plane %s: %s", p.name, printable.Line(err.Error())) // a library's message, with texts of the bundle
		}
		all = append(all, objects...)
	}
	return all, nil
}

// kustomize builds a directory. What fails in parts is built as it is, for the message that people get from kubectl.
func kustomize(files map[string][]byte, dir, plane string) ([]Object, error) {
	if parts := inParts(files); parts != nil {
		if objects, err := kustomizeFiles(parts, dir, plane); err == nil {
			return objects, nil
		}
	}
	return kustomizeFiles(files, dir, plane)
}

// kustomizeFiles builds with kustomize's own restrictions, those of kubectl: a file of another directory is no more read than there.
// The objects do not become YAML in between: with 2,000 classes that takes a tenth of the time.
func kustomizeFiles(files map[string][]byte, dir, plane string) ([]Object, error) {
	fsys, err := inMemory(files)
	if err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // the kustomization says its order
	built, err := krusty.MakeKustomizer(options).Run(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("kustomize: %w", err)
	}
	all := make([]Object, 0, built.Size())
	for _, r := range built.Resources() {
		text, err := r.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("kustomize: %s: %w", r.CurId(), err)
		}
		o := Object{Plane: plane}
		if err := json.Unmarshal(text, &o.Fields); err != nil {
			return nil, fmt.Errorf("kustomize: %s: %w", r.CurId(), err)
		}
		all = append(all, o)
	}
	return all, nil
}

// Decode splits YAML documents into objects.
func Decode(text []byte, plane string) ([]Object, error) {
	var all []Object
	for dec := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var raw json.RawMessage
		switch err := dec.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("document %d: %w", len(all)+1, err)
		}
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		o := Object{Plane: plane}
		if err := json.Unmarshal(raw, &o.Fields); err != nil {
			return nil, fmt.Errorf("document %d: %w", len(all)+1, err)
		}
		all = append(all, o)
	}
}

// sorted is the objects by plane, kind, namespace and name.
func sorted(objects []Object) []Object {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b Object) int { return strings.Compare(a.String(), b.String()) })
	return objects
}
