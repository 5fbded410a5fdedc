package plan

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The images of the two roles, by the names that spec.images uses.
var (
	controllerImages = []string{"driver", "provisioner", "attacher", "resizer", "snapshotter", "livenessprobe"}
	nodeImages       = []string{"driver", "registrar", "livenessprobe"}
	driftCheckImages = []string{generatorImage}
)

// oldestKubernetes is the first minor that serves every field: a disruption budget's unhealthyPodEvictionPolicy is of 1.27.
const oldestKubernetes = "1.27"

var kubernetesVersion = regexp.MustCompile(`^v?(1\.[0-9]{1,3})(\.[0-9]+)?$`)

// checkSpec checks what no decision below looks at, and brings it into its one form.
func (d *decider) checkSpec() {
	if m := kubernetesVersion.FindStringSubmatch(d.spec.KubernetesVersion); m != nil {
		d.spec.KubernetesVersion = m[1]
		if !atLeast(m[1], oldestKubernetes) {
			d.problem("spec.kubernetesVersion: %s is older than %s, the first that takes what is emitted", m[1], oldestKubernetes)
		}
	} else {
		d.problem("spec.kubernetesVersion: %q is not a version such as \"1.32\"", d.spec.KubernetesVersion)
	}
	d.problems = append(d.problems, v1alpha1.EnumProblems(d.given)...)
	d.checkPods()
	d.checkOpenShift()
	if !isSubdomain(d.spec.HyperShift.KubeconfigSecret) {
		d.problem("spec.hypershift.kubeconfigSecret: %q is not a Secret's name", d.spec.HyperShift.KubeconfigSecret)
	}
	d.checkImages("spec.images", d.spec.Images)
	d.checkImages("spec.roles.controller.images", d.spec.Roles.Controller.Images)
	d.checkImages("spec.roles.node.images", d.spec.Roles.Node.Images)
}

// checkNames refuses names that stand for nothing.
func (d *decider) checkNames(path string, names, allowed []string) {
	slices.Sort(names)
	for _, n := range names {
		if !slices.Contains(allowed, n) {
			d.problem("%s: there is no %q%s (%s)", path, n, DidYouMean(n, allowed), strings.Join(allowed, ", "))
		}
	}
}

// overlay is the image base with each field that over sets. A digest names the content of one tag, so another tag drops it.
func overlay(base, over v1alpha1.Image) v1alpha1.Image {
	if over.Tag != "" {
		base.Digest = ""
	}
	return v1alpha1.Image{
		Registry:   cmp.Or(over.Registry, base.Registry),
		Repository: cmp.Or(over.Repository, base.Repository),
		Tag:        cmp.Or(over.Tag, base.Tag),
		Digest:     cmp.Or(over.Digest, base.Digest),
		PullPolicy: cmp.Or(over.PullPolicy, base.PullPolicy),
	}
}

func sortedSet[T cmp.Ordered](values []T) []T {
	values = slices.Clone(values)
	slices.Sort(values)
	return slices.Compact(values)
}

// merged is a with b over it; neither is changed.
func merged(a, b map[string]string) map[string]string {
	m := map[string]string{}
	maps.Copy(m, a)
	maps.Copy(m, b)
	return m
}

func quoted(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }
