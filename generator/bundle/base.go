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

func (p *plane) baseValues() map[string]any {
	r := p.r
	image := map[string]any{"driver": map[string]any{"registry": noRegistry}}
	return map[string]any{
		"target": p.target(), "plane": p.name,
		"namespaces": map[string]any{"controller": r.ControllerNamespace.Value, "node": r.NodeNamespace.Value},
		"driver":     map[string]any{"name": r.Driver.Value},
		"images":     map[string]any{"controller": image, "node": image},
	}
}

// Base is the base of a target, with the default names: what manifests/TARGET has, by its path there.
func Base(chart Chart, target v1alpha1.Target) (Tree, error) {
	t := Tree{}
	planes, err := planesOf(plan.Unconfigured(target))
	if err != nil {
		return nil, err
	}
	for _, p := range planes {
		objects, err := p.rendering(chart, p.baseValues(), true)
		if err == nil {
			err = p.writeBase(t, p.dir, objects, func(*rendered) bool { return true })
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.basePath(), err)
		}
		namespaces, err := p.withNamespaces(rendering{})
		if err != nil {
			return nil, err
		}
		// Beside the kustomization, as in a bundle: people need them first, for the Secret with the credentials.
		if err := p.writeFile(t, path.Join(p.dir, namespaceFile), namespaces[namespaceFile]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// At is the tree with its files in a directory.
func (t Tree) At(dir string) Tree {
	moved := Tree{}
	for name, text := range t {
		moved[path.Join(dir, name)] = text
	}
	return moved
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
		if err := p.writeFile(t, path.Join(dir, name), kept); err != nil {
			return err
		}
		resources = append(resources, constant(name))
	}
	text, err := writer{compare: byOrder(keyOrder)}.document(kustomization(object{"resources": resources}))
	t[path.Join(dir, kustomizationFile)] = slices.Concat(p.notice(baseNotice), text)
	return err
}

func (p *plane) writeFile(t Tree, name string, objects []*rendered) error {
	if len(objects) == 0 {
		return nil
	}
	text, err := textOf(objects)
	t[name] = slices.Concat(p.notice(baseNotice), text)
	return err
}

const baseNotice = "# Rendered from charts/cinder-csi with the defaults of the target: edits are lost. Change it by patches above it."
