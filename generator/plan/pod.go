package plan

import (
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The API server checks these rules when it creates the pods, after the Deployment was applied; kubelet checks some when a pod
// starts. A configuration that breaks one cannot run, so the generator refuses it before it writes anything.

// selectorLabel is what Deployment, DaemonSet, disruption budget and network policy find their pods by.
const selectorLabel = "app"

// osLabel is the label by which kubelet says the operating system of its node. The pods in manifests/ select linux.
const osLabel, linux = "kubernetes.io/os", "linux"

// checkPod checks the part of a role's configuration that is about pods.
func (d *decider) checkPod(path, role string, p v1alpha1.RolePods) {
	d.checkLabelSet(path+".podLabels", p.PodLabels)
	if value, given := p.PodLabels[selectorLabel]; given && value != "cinder-csi-"+role {
		d.problem("%s.podLabels: %s is how the pods are found and cannot be changed", path, selectorLabel)
	}
	d.checkLabelSet(path+".nodeSelector", p.NodeSelector)
	if system, given := p.NodeSelector[osLabel]; given && system != linux {
		d.problem("%s.nodeSelector.%s: %q; the pods run on Linux only, so leave it out", path, osLabel, system)
	}
	for i, t := range p.Tolerations {
		d.checkToleration(path+item(".tolerations", i), t)
	}
	if p.PriorityClassName != "" && !isSubdomain(p.PriorityClassName) {
		d.problem("%s.priorityClassName: %q is not the name of a PriorityClass", path, p.PriorityClassName)
	}
	for i, name := range p.ImagePullSecrets {
		switch {
		case !isSubdomain(name):
			d.problem("%s: %q is not a Secret's name", path+item(".imagePullSecrets", i), name)
		case slices.Contains(p.ImagePullSecrets[:i], name):
			d.problem("%s: %q is there twice", path+item(".imagePullSecrets", i), name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Resources)) {
		d.checkResources(path+".resources."+name, p.Resources[name], d.requests(role, name))
	}
}

// checkUser: the controller's pods say runAsNonRoot, so kubelet starts none of user 0.
func (d *decider) checkUser(path string, user *int64) {
	if user != nil && (*user < 1 || *user > math.MaxInt32) {
		d.problem("%s: %d; want a user from 1 to %d: the pods do not run as root", path, *user, math.MaxInt32)
	}
}

func (d *decider) checkLabelSet(path string, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		d.problemsOf(path, key, content.IsLabelKey(key))
		d.problemsOf(path+"."+key, labels[key], content.IsLabelValue(labels[key]))
	}
}

// problemsOf reports what apimachinery has to say of a text.
func (d *decider) problemsOf(path, text string, complaints []string) {
	for _, c := range complaints {
		d.problem("%s: %q: %s", path, text, c)
	}
}

// checkToleration follows the API server's ValidateTolerations.
func (d *decider) checkToleration(path string, t v1alpha1.Toleration) {
	const exists = "Exists"
	switch {
	case t.Key != "":
		d.problemsOf(path+".key", t.Key, content.IsLabelKey(t.Key))
	case t.Operator != exists:
		d.problem("%s: without a key, which means every key, operator must be %s", path, exists)
	}
	if t.Operator == exists && t.Value != "" {
		d.problem("%s: operator %s takes no value", path, exists)
	}
	d.problemsOf(path+".value", t.Value, content.IsLabelValue(t.Value))
	if t.TolerationSeconds != nil && t.Effect != "NoExecute" {
		d.problem("%s: tolerationSeconds is for effect NoExecute alone", path)
	}
}

// checkResources follows the API server's ValidateResourceRequirements.
func (d *decider) checkResources(path string, r v1alpha1.Resources, base map[string]string) {
	requests := d.quantities(path+".requests", merged(base, r.Requests))
	limits := d.quantities(path+".limits", r.Limits)
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		request := requests[name]
		limit, limited := limits[name]
		_, given := r.Requests[name]
		switch {
		case limited && request.Cmp(limit) > 0 && !given:
			d.problem("%s.limits.%s: %s is less than the %s that the container asks for; set requests.%s too", path, name, limit.String(), request.String(), name)
		case limited && request.Cmp(limit) > 0:
			d.problem("%s.requests.%s: %s is more than the limit, %s", path, name, request.String(), limit.String())
		case !overcommitted(name) && (!limited || request.Cmp(limit) != 0):
			d.problem("%s.requests.%s: of this resource, request and limit must be the same", path, name)
		}
	}
}

func (d *decider) quantities(path string, texts map[string]string) map[string]resource.Quantity {
	parsed := map[string]resource.Quantity{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		d.problemsOf(path, name, content.IsLabelKey(name))
		if !strings.Contains(name, "/") && !strings.HasPrefix(name, hugePages) && !overcommitted(name) {
			d.problem("%s: there is no resource %q (cpu, memory, ephemeral-storage, %s<size>, or one with a domain)", path, name, hugePages)
		}
		q, err := resource.ParseQuantity(texts[name])
		switch {
		case err != nil || !strings.ContainsAny(texts[name], "0123456789"): // the parser takes "-" for 0
			d.problem("%s.%s: %q is not a quantity such as 100m or 64Mi", path, name, texts[name])
		case q.Sign() < 0:
			d.problem("%s.%s: %q is less than nothing", path, name, texts[name])
		case !overcommitted(name) && q.MilliValue()%1000 != 0:
			d.problem("%s.%s: %q; want a whole number", path, name, texts[name])
		default:
			parsed[name] = q
		}
	}
	return parsed
}

const hugePages = "hugepages-"

// overcommitted is whether a node may promise more of a resource than it has; only those have requests below their limits.
func overcommitted(name string) bool {
	return slices.Contains([]string{"cpu", "memory", "ephemeral-storage"}, name)
}
