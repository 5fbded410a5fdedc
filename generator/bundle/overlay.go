package bundle

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
)

const kustomizationFile = "kustomization.yaml"

// overlay is what a plan changes above the base of its target.
type overlay struct {
	p          *plane
	base, want rendering
	patches    map[*rendered][]operation // by the object of the plan
	own        map[*rendered]bool        // objects of the plan that are written whole
	kept       map[*rendered]bool        // objects of the base that the plan has too
	whole      bool                      // the base is given: no object of it is left out
}

// kustomize adds the plane's kustomization: the base of the target, and above it what this plan changes.
func (p *plane) kustomize(t Tree, chart Chart, o Options) error {
	if o.Base != "" && !p.defaultNames() {
		d := plan.Unconfigured(p.r.Target)
		return fmt.Errorf("--base is for the names that manifests/%s has: namespaces %s and %s, driver %s. Leave out --base, and the bundle has a base with the names of the plan",
			p.basePath(), d.ControllerNamespace.Value, d.NodeNamespace.Value, d.Driver.Value)
	}
	if err := p.valuesFile(t); err != nil {
		return err
	}
	values := p.values()
	want, err := p.rendering(chart, plain(values).(map[string]any), true)
	if err == nil {
		want, err = p.withNamespaces(want)
	}
	if err != nil {
		return err
	}
	base, err := p.rendering(chart, p.baseValues(), true)
	if err != nil {
		return err
	}
	v, err := overlayOf(p, base, want, o.Base != "")
	if err != nil {
		return err
	}
	return v.write(t, chart, values, o)
}

func overlayOf(p *plane, base, want rendering, whole bool) (*overlay, error) {
	v := &overlay{p, base, want, map[*rendered][]operation{}, map[*rendered]bool{}, map[*rendered]bool{}, whole}
	defaults := byID(base.objects())
	for _, o := range want.objects() {
		was := defaults[o.id()]
		delete(defaults, o.id())
		if was == nil {
			v.own[o] = true
			continue
		}
		if v.kept[was] = true; reflect.DeepEqual(was.fields, o.fields) {
			continue
		}
		v.patches[o] = patchOf(was.fields, o.fields)
		if longer, err := v.longer(o); err != nil {
			return nil, err
		} else if longer && !whole {
			delete(v.patches, o)
			v.kept[was], v.own[o] = false, true
		}
	}
	if whole && len(defaults) > 0 {
		keys := slices.Sorted(maps.Keys(defaults))
		return nil, fmt.Errorf("--base: this plan does not have all objects of manifests/%s, such as %s. Leave out --base, and the bundle has a base without them", p.basePath(), strings.TrimSpace(keys[0]))
	}
	return v, nil
}

// longer is whether the patch is so much longer than the object that a reader does better with the object. One more change should seldom turn one into the
// other, so that a review shows that change alone.
func (v *overlay) longer(o *rendered) (bool, error) {
	patch, err := patchText(v.patches[o], func(operation) string { return "" })
	if err != nil {
		return false, err
	}
	object, err := textOf([]*rendered{o})
	return strings.Count(string(patch), "\n") > 3*strings.Count(string(object), "\n"), err
}

func (v *overlay) write(t Tree, chart Chart, values object, o Options) error {
	p := v.p
	resources := list{constant("base")}
	if v.whole {
		resources = list{constant(path.Join(p.up(o.Base), p.basePath()))}
	} else if err := p.writeBase(t, path.Join(p.dir, "base"), v.base, func(o *rendered) bool { return v.kept[o] }); err != nil {
		return err
	}
	for _, name := range v.want.files() {
		own := slices.DeleteFunc(slices.Clone(v.want[name]), func(o *rendered) bool { return !v.own[o] })
		if len(own) == 0 {
			continue
		}
		text, err := textOf(own)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p.writeText(t, name, text)
		resources = append(resources, constant(name))
	}
	patches, err := v.writePatches(t, chart, values)
	if err != nil {
		return err
	}
	k := kustomization(object{"sortOptions": constant(applyOrder), "resources": resources})
	if len(patches) > 0 {
		k["patches"] = patches
	}
	return p.document(t, kustomizationFile, k)
}

// writePatches writes the patch of each object as a file of its own, and returns the list of them.
func (v *overlay) writePatches(t Tree, chart Chart, values object) (list, error) {
	decided, err := v.causes(chart, values)
	if err != nil {
		return nil, err
	}
	patches := list{}
	for _, o := range v.want.objects() {
		operations := v.patches[o]
		if operations == nil {
			continue
		}
		text, err := patchText(operations, decided(o))
		if err != nil {
			return nil, err
		}
		name := path.Join("patches", v.patchFile(o))
		v.p.writeText(t, name, text)
		target := object{"kind": constant(o.kind()), "name": constant(regexp.QuoteMeta(o.name()))}
		if o.namespace() != "" {
			target["namespace"] = constant(o.namespace())
		}
		patches = append(patches, object{"path": constant(name), "target": target})
	}
	return patches, nil
}

var noFileName = regexp.MustCompile(`[^A-Za-z0-9-]+`)

// patchFile is KIND-NAME.yaml. On a cluster with two objects of that name, their namespace is in it too.
func (v *overlay) patchFile(o *rendered) string {
	name := strings.ToLower(o.kind()) + "-" + noFileName.ReplaceAllString(o.name(), "-")
	for _, other := range v.want.objects() {
		if other != o && other.key() == o.key() {
			name += "-" + noFileName.ReplaceAllString(o.namespace(), "-")
		}
	}
	return name + ".yaml"
}

// files are the names of the files, sorted.
func (r rendering) files() []string { return slices.Sorted(maps.Keys(r)) }

// up is a path from the bundle's directory, seen from the plane's.
func (p *plane) up(name string) string {
	if p.dir == "" {
		return name
	}
	return path.Join("..", name)
}

func kustomization(fields object) object {
	return merge(object{"apiVersion": constant("kustomize.config.k8s.io/v1beta1"), "kind": constant("Kustomization")}, fields)
}

// applyOrder is the order of the built objects. What a workload needs is there before it, its rights above all. Classes come last, because
// nobody can use a class whose driver is missing.
var applyOrder = map[string]any{
	"order": "legacy",
	"legacySortOptions": map[string]any{
		"orderFirst": []any{
			"Namespace", "CredentialsRequest", "ServiceAccount", "Secret", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
			"CSIDriver", "ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "Deployment", "DaemonSet",
			"PodMonitor", "ServiceMonitor", "PrometheusRule", "CronJob",
		},
		"orderLast": []any{"StorageClass", "VolumeAttributesClass", "VolumeSnapshotClass"},
	},
}
