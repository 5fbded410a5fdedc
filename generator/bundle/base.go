package bundle

import (
	"fmt"
	"path"
	"slices"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// noRegistry is the registry of the driver image in a base. Nobody can have a registry of that name (RFC 2606): people name their own.
const noRegistry = "registry.invalid"

// base is the plane as its target has it by default, with the namespaces and the driver name of this plan.
func (p *plane) base() *plane {
	b := *p
	b.r.PlatformMonitoring.Value = false
	return &b
}

// baseValues are the values of the base.
func (p *plane) baseValues() map[string]any {
	r := p.r
	image := map[string]any{"driver": map[string]any{"registry": noRegistry}}
	values := map[string]any{
		"target": p.target(), "plane": p.name,
		"namespaces": map[string]any{"controller": r.ControllerNamespace.Value, "node": r.NodeNamespace.Value},
		"driver":     map[string]any{"name": r.Driver.Value},
		"images":     map[string]any{"controller": image, "node": image},
	}
	if p.target() == string(v1alpha1.Standalone) { // there the Cloud Credential Operator makes the Secret
		values["credentials"] = map[string]any{"request": true}
	}
	return values
}

// Bases are the bases of all targets, with the default names: what manifests/ has, by its path there.
func Bases(chart Chart) (Tree, error) {
	t := Tree{}
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
		planes, err := planesOf(plan.Unconfigured(target))
		if err != nil {
			return nil, err
		}
		for _, p := range planes {
			objects, err := p.base().rendering(chart, p.baseValues(), true)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.basePath(), err)
			}
			if err := p.writeBase(t, p.basePath(), objects, func(*rendered) bool { return true }); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// basePath is where manifests/ has the base of the plane.
func (p *plane) basePath() string { return path.Join(string(p.r.Target), p.dir) }

// defaultNames is whether the plan has the names of manifests/.
func (p *plane) defaultNames() bool {
	d := plan.Unconfigured(p.r.Target)
	return p.r.ControllerNamespace.Value == d.ControllerNamespace.Value && p.r.NodeNamespace.Value == d.NodeNamespace.Value && p.r.Driver.Value == d.Driver.Value
}

// writeBase writes the kept objects of a base into a directory, and a kustomization of them.
func (p *plane) writeBase(t Tree, dir string, base rendering, keep func(*rendered) bool) error {
	resources := list{}
	for _, name := range base.files() {
		kept := slices.DeleteFunc(slices.Clone(base[name]), func(o *rendered) bool { return !keep(o) })
		if len(kept) == 0 {
			continue
		}
		text, err := textOf(kept)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t[path.Join(dir, name)] = slices.Concat([]byte(baseNotice+p.simulated()), text)
		resources = append(resources, fixed(name))
	}
	text, err := writer{compare: byOrder(keyOrder)}.document(kustomization(object{"resources": resources}))
	t[path.Join(dir, kustomizationFile)] = slices.Concat([]byte(baseNotice+p.simulated()), text)
	return err
}

const baseNotice = "# Rendered from charts/cinder-csi with the defaults of the target: edits are lost. Change it by patches above it.\n"
