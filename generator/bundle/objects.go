package bundle

import (
	"cmp"
	"path"
	"slices"
	"strings"

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
func BesideTheController(r plan.Result, chart Chart) ([]Object, error) {
	planes, err := planesOf(r)
	if err != nil {
		return nil, err
	}
	var all []Object
	for _, p := range planes {
		if !p.controller {
			continue
		}
		rendered, err := p.rendering(chart, plain(p.values()).(map[string]any), false)
		if err == nil {
			rendered, err = p.withNamespaces(rendered)
		}
		if err != nil {
			return nil, err
		}
		for _, o := range rendered.objects() {
			group, _ := path.Split(textAt(o.fields, "apiVersion"))
			all = append(all, Object{strings.TrimSuffix(group, "/"), resourceOf(o.kind()), o.namespace(), o.name()})
		}
	}
	slices.SortFunc(all, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
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
