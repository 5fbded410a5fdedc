package bundle

import (
	"slices"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// image is the image of one container: the base names it cinder-csi/ROLE-CONTAINER.
type image struct {
	role, container string
	is              plan.Decision[string]
	policies        plan.Decision[map[string]string] // of the role
}

func (p *plane) images() []image {
	var used []image
	add := func(role string, w plan.Workload, containers []string) {
		for _, c := range containers {
			name := plan.ImageOf(c)
			if !slices.ContainsFunc(used, func(i image) bool { return i.role == role && i.container == name }) {
				used = append(used, image{role, name, p.r.Image(w, name), w.PullPolicies})
			}
		}
	}
	if p.controller {
		add(v1alpha1.ControllerRole, p.r.Controller, p.controllerContainers())
	}
	if p.node {
		add(v1alpha1.NodeRole, p.r.Node, nodeContainers)
	}
	if p.checksDrift() {
		used = append(used, image{"driftcheck", "generator", p.r.Images["generator"], p.driftCheckPolicies()})
	}
	return used
}

var nodeContainers = []string{"driver", "registrar", "livenessprobe"}

func (p *plane) controllerContainers() []string {
	names := []string{"driver", "provisioner", "attacher", "resizer", "snapshotter", "livenessprobe"}
	if p.metricsTLS() {
		for _, name := range p.measured() {
			names = append(names, "kube-rbac-proxy-"+name)
		}
	}
	if p.snapshots() {
		return names
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "snapshotter" })
}

// driftCheckPolicies is the pull policy of the drift check in the form of a role's.
func (p *plane) driftCheckPolicies() plan.Decision[map[string]string] {
	d := p.r.DriftCheck
	policies := plan.Decision[map[string]string]{ID: d.ID, Value: map[string]string{}}
	if d.Value.PullPolicy != "" {
		policies.Value["generator"] = d.Value.PullPolicy
	}
	return policies
}

// measured are the containers of the controller that serve metrics. Each has a port of its name.
func (p *plane) measured() []string {
	names := []string{"attacher", "driver", "provisioner", "resizer"}
	if p.snapshots() {
		names = append(names, "snapshotter")
	}
	return names
}
