//go:build openshift

package openshift

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// cloud is an inventory of two zones and two volume types.
var cloud = v1alpha1.Inventory{
	Cloud: v1alpha1.Cloud{AuthURL: "https://keystone.example:5000/v3", Region: "RegionOne", ProjectID: "f00d"},
	Services: known(map[string]v1alpha1.Service{
		"identity":      {Present: true, Endpoint: "https://keystone.example:5000", Port: 5000},
		"compute":       {Present: true, MaxMicroversion: "2.93", Endpoint: "https://nova.example:8774", Port: 8774},
		"block-storage": {Present: true, MaxMicroversion: "3.70", Endpoint: "https://cinder.example:8776", Port: 8776},
	}),
	Zones:             v1alpha1.Zones{Compute: known(zones), Volume: known(zones)},
	VolumeTypes:       known([]v1alpha1.VolumeType{{ID: "t1", Name: "Fast SSD", Public: true}, {ID: "t2", Name: "standard", Public: true}}),
	DefaultVolumeType: known("standard"),
}

var zones = []v1alpha1.Zone{{Name: "az 1", Available: true}, {Name: "az2", Available: true}}

func known[T any](value T) v1alpha1.Fact[T] {
	return v1alpha1.Fact[T]{State: v1alpha1.Known, Value: value}
}

func decide(spec map[string]any, target v1alpha1.Target) (plan.Result, error) {
	document, err := yaml.Marshal(map[string]any{
		"apiVersion": "generator.cinder-csi.io/v1alpha1", "kind": "Distribution", "metadata": map[string]any{"name": "prod"}, "spec": spec,
	})
	if err != nil {
		return plan.Result{}, err
	}
	d, err := v1alpha1.DecodeDistribution("test", document)
	if err != nil {
		return plan.Result{}, err
	}
	return plan.Decide(cloud, d, target, v1alpha1.Kustomize, "v0.0.0-test")
}

// objectsOf renders a bundle, of both planes for hypershift.
func objectsOf(t *testing.T, r plan.Result, format v1alpha1.Format) []object {
	t.Helper()
	r.Format = format
	tree := testenv.Value(bundle.Render(r, verify.Chart, bundle.Options{}))(t)
	rendered, _, err := verify.Bundle(tree, r.Target, format)
	if err != nil {
		t.Fatal(err)
	}
	var all []object
	for _, o := range rendered {
		all = append(all, o.Fields)
	}
	return all
}

// installation is what admission sees of a bundle: the namespaces, the accounts, the rights to use constraints, and the workloads.
type installation struct {
	controller, node string // namespaces
	objects          []object
	classes          map[string]bool   // PriorityClasses that a cluster does not have by itself
	levels           map[string]string // of Pod Security, by namespace, where a case changes them
}

// install copies the objects of a bundle under names of its own. prefix begins the names of what is in no namespace.
func install(r plan.Result, objects []object, prefix string) *installation {
	i := &installation{controller: prefix, node: prefix + "-node", classes: map[string]bool{}, levels: map[string]string{}}
	if r.ControllerNamespace.Value == r.NodeNamespace.Value {
		i.node = i.controller
	}
	names := map[string]string{r.NodeNamespace.Value: i.node, r.ControllerNamespace.Value: i.controller}
	renamed := map[string]bool{}
	for _, o := range objects {
		if o["kind"] == "ClusterRole" && len(constraintsOf(o)) > 0 {
			renamed[text(o, "metadata", "name")] = true
		}
	}
	for _, source := range objects {
		o := copyOf(source)
		metadata := inside(o, "metadata")
		switch o["kind"] {
		case "Namespace":
			metadata["name"] = names[text(o, "metadata", "name")]
		case "ClusterRole", "ClusterRoleBinding":
			role := inside(o, "roleRef")
			if o["kind"] == "ClusterRole" {
				delete(o, "roleRef")
			}
			if !renamed[text(o, "metadata", "name")] && !renamed[text(role, "name")] {
				continue
			}
			metadata["name"] = prefix + "-" + text(o, "metadata", "name")
			if o["kind"] == "ClusterRoleBinding" {
				role["name"] = prefix + "-" + text(role, "name")
				for _, s := range o["subjects"].([]any) {
					s.(object)["namespace"] = names[text(s, "namespace")]
				}
			}
		case "ServiceAccount", "Deployment", "DaemonSet", "CronJob":
			metadata["namespace"] = names[text(o, "metadata", "namespace")]
			if pod := template(o); pod != nil {
				if class := text(pod, "spec", "priorityClassName"); class != "" && !strings.HasPrefix(class, "system-") {
					inside(pod, "spec")["priorityClassName"] = prefix + "-" + class
					i.classes[prefix+"-"+class] = true
				}
			}
		default:
			continue
		}
		i.objects = append(i.objects, o)
	}
	return i
}

// constraintsOf are the constraints that a role lets its subjects use.
func constraintsOf(role object) []any {
	rules, _ := role["rules"].([]any)
	for _, r := range rules {
		if resources, _ := r.(object)["resources"].([]any); slices.Contains(resources, any("securitycontextconstraints")) {
			names, _ := r.(object)["resourceNames"].([]any)
			return names
		}
	}
	return nil
}

func (i *installation) each(kind string) []object {
	var all []object
	for _, o := range i.objects {
		if o["kind"] == kind {
			all = append(all, o)
		}
	}
	return all
}

func (i *installation) drop(kind string) {
	i.objects = slices.DeleteFunc(i.objects, func(o object) bool { return o["kind"] == kind })
}

// pods are the pod templates of a kind.
func (i *installation) pods(kind string) []object {
	var all []object
	for _, o := range i.each(kind) {
		all = append(all, template(o))
	}
	return all
}

// template is the pod of a workload; nil for other objects.
func template(o object) object {
	spec, _ := o["spec"].(object)
	if job, ok := at(spec, "jobTemplate", "spec").(object); ok {
		spec = job
	}
	pod, _ := at(spec, "template").(object)
	return pod
}

// containers are all containers of a pod or of its template.
func containers(pod object) []object {
	var all []object
	for _, list := range []string{"initContainers", "containers"} {
		values, _ := at(pod, "spec", list).([]any)
		for _, c := range values {
			all = append(all, c.(object))
		}
	}
	return all
}

// users are the users that a pod names for its containers; "image" is that of the image.
func users(pod object) []string {
	seen := map[string]bool{}
	for _, c := range containers(pod) {
		user := at(c, "securityContext", "runAsUser")
		if user == nil {
			user = at(pod, "spec", "securityContext", "runAsUser")
		}
		if number, is := user.(float64); is {
			seen[fmt.Sprintf("%.0f", number)] = true
		} else {
			seen["image"] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// copyOf is a copy of an object that JSON can hold.
func copyOf(o object) object {
	text, err := json.Marshal(o)
	copied := object{}
	if err == nil {
		err = json.Unmarshal(text, &copied)
	}
	if err != nil {
		panic(err)
	}
	return copied
}
