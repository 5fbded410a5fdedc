package plan

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/config"
)

var environmentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// otherVariables are set in another way, or would change a sidecar behind the back of its flags.
var otherVariables = map[string]string{
	"HTTP_PROXY": "use the key proxy", "HTTPS_PROXY": "use the key proxy", "NO_PROXY": "use the key proxy",
	config.ExtraArgsVariable: "use spec.driver.extraArgs",
	"KUBECONFIG":             "some sidecars prefer it to their own flag",
	"POD_NAME":               "the bundle sets it",
	"NODE_NAME":              "the bundle sets it",
}

// checkEnvironment checks variables that a person adds to the settings of a role, where every container reads them.
func (d *decider) checkEnvironment(path, role string, env map[string]string) {
	if len(env) == 0 {
		return
	}
	own := base().settings[role] // what the bundle gives every container
	for _, name := range slices.Sorted(maps.Keys(env)) {
		_, ours := own[name]
		instead := otherVariables[strings.ToUpper(name)]
		switch {
		case !environmentName.MatchString(name):
			d.problem("%s: %q is not a variable's name: letters, digits and '_', no digit first", path, name)
		case ours:
			d.problem("%s.%s: the bundle sets it; its own key does", path, name)
		case instead != "":
			d.problem("%s.%s: %s", path, name, instead)
		}
	}
}

// ownPodAnnotations begin the keys of annotations that a bundle sets on pods.
var ownPodAnnotations = []string{"cinder-csi.io/", "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes", "cluster-autoscaler.kubernetes.io/enable-ds-eviction", "openshift.io/required-scc", "target.workload.openshift.io/"}

func (d *decider) checkPodAnnotations(path string, annotations map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		d.checkAnnotationKey(path, key)
		if slices.ContainsFunc(ownPodAnnotations, func(own string) bool { return strings.HasPrefix(key, own) }) {
			d.problem("%s: the bundle sets %s itself", path, key)
		}
	}
}
