package plan

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

// readsAsText is whether YAML reads a word without quotes as itself. kustomize drops the quotes of annotations' keys while it builds,
// and then fails (seen with kustomize api 0.21).
func readsAsText(word string) bool {
	var v any
	return yaml.Unmarshal([]byte(word), &v) == nil && v == any(word)
}

func (d *decider) checkAnnotationKey(path, key string) {
	d.problemsOf(path, key, content.IsLabelKey(strings.ToLower(key)))
	if !readsAsText(key) {
		d.problem("%s: kustomize takes the key %q for a number, a date or a truth value; put a domain before it: example.com/%s", path, key, key)
	}
}

// ownAnnotations are those of classes that a person cannot set, and what to do instead.
var ownAnnotations = map[string]string{
	"storageclass.kubernetes.io/is-default-class":      "; use spec.storageClasses.default",
	"storageclass.beta.kubernetes.io/is-default-class": "; use spec.storageClasses.default",
	"argocd.argoproj.io/sync-options":                  ": it keeps the class when what deployed it is gone",
	"helm.sh/resource-policy":                          ": it keeps the class when what deployed it is gone",
	"kustomize.toolkit.fluxcd.io/prune":                ": it keeps the class when what deployed it is gone",
	"snapshot.storage.kubernetes.io/is-default-class":  "; use the key default of the class in spec.snapshots.classes",
}

// checkClassAnnotations refuses keys that Kubernetes, kustomize or the bundle itself does not allow; path is the class.
func (d *decider) checkClassAnnotations(path string, annotations map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		d.checkAnnotationKey(path+".annotations", key)
		if instead, ours := ownAnnotations[key]; ours {
			d.problem("%s.annotations: %s is the generator's own%s", path, key, instead)
		}
	}
}
