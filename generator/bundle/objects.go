package bundle

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/plan"
)

// Object is one object of a bundle, as the relatedObjects of an OpenShift ClusterOperator name one.
type Object struct {
	Group     string `json:"group"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// BesideTheController are the objects of the plane that has the controller, sorted: those of the cluster in which the drift check runs.
func BesideTheController(r plan.Result) ([]Object, error) {
	planes, err := planesOf(r)
	if err != nil {
		return nil, err
	}
	var all []Object
	for _, p := range planes {
		if !p.controller {
			continue
		}
		sources, err := p.sources()
		if err != nil {
			return nil, err
		}
		all = append(all, objectsOf(sources)...)
	}
	slices.SortFunc(all, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// objectsOf are the objects that the sources make, with the names and namespaces that patches give them.
func objectsOf(sources []source) []Object {
	var all []Object
	for _, s := range sources {
		if !s.whole {
			continue
		}
		text := func(at ...string) string {
			l, _ := s.said(at)
			value, _ := l.value.(string)
			return value
		}
		group, _, grouped := strings.Cut(text("apiVersion"), "/")
		if !grouped {
			group = ""
		}
		o := Object{Group: group, Resource: resourceOf(text("kind")), Namespace: text("metadata", "namespace"), Name: text("metadata", "name")}
		for _, patch := range sources {
			if patch.whole || !patch.target.selects(s.target) {
				continue
			}
			for key, value := range map[string]*string{"name": &o.Name, "namespace": &o.Namespace} {
				if l, says := patch.said(field.Path{"metadata", key}); says {
					*value, _ = l.value.(string)
				}
			}
		}
		all = append(all, o)
	}
	return all
}

// resourceOf is the plural by which the API serves a kind. It holds for every kind that a bundle can have.
func resourceOf(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(name, "s"):
		return name + "es"
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}
