package plan

import (
	"regexp"
	"slices"
	"strings"

	"github.com/robfig/cron/v3"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func (d *decider) checkDriverSettings() {
	s := d.spec.Driver
	d.checkSettings()
	for i, source := range s.Metadata {
		switch {
		case !slices.Contains(config.MetadataSources, source):
			d.problem("%s: %q is not one of %s%s", item("spec.driver.metadata", i), source, strings.Join(config.MetadataSources, ", "), DidYouMean(source, config.MetadataSources))
		case slices.Contains(s.Metadata[:i], source):
			d.problem("%s: %s is there twice", item("spec.driver.metadata", i), source)
		}
	}
}

// scheduleText is what the chart takes. The library also reads a time zone, which the API server refuses, signs, and a negative period, which
// it takes for a second.
var scheduleText = regexp.MustCompile(`^(@(yearly|annually|monthly|weekly|daily|midnight|hourly|every ([0-9]+\.?[0-9]*(ns|us|ms|s|m|h))+)|` +
	scheduleField + `( +` + scheduleField + `){4})?$`)

const scheduleField = `([*?]|0*[0-5]?[0-9]|[A-Za-z]{3})([-,]([*?]|0*[0-5]?[0-9]|[A-Za-z]{3})|/0*[1-9][0-9]*)*`

// checkSchedule follows the API server, which reads a CronJob's schedule with the same library.
func (d *decider) checkSchedule(key, schedule string) {
	if schedule == "" {
		return
	}
	if _, err := cron.ParseStandard(schedule); err != nil || !scheduleText.MatchString(schedule) {
		d.problem("%s: %q is not a schedule such as \"0 6 * * *\" or @daily", key, schedule)
	}
}

// checkPods checks the settings of pods and driver that need no fact.
func (d *decider) checkPods() {
	d.checkDriverSettings()
	d.checkSchedule("spec.driftCheck.schedule", d.spec.DriftCheck.Schedule)
	d.checkExtraArgs("spec.driver.extraArgs.controller", v1alpha1.ControllerRole, d.spec.Driver.ExtraArgs.Controller)
	d.checkExtraArgs("spec.driver.extraArgs.node", v1alpha1.NodeRole, d.spec.Driver.ExtraArgs.Node)
	for _, role := range []string{v1alpha1.ControllerRole, v1alpha1.NodeRole} {
		path, p := "spec.roles."+role, d.spec.Roles.Controller
		if role == v1alpha1.NodeRole {
			p = d.spec.Roles.Node
		}
		d.checkAffinity(path+".affinity", p.Affinity)
		d.checkSpread(path+".topologySpreadConstraints", p.TopologySpreadConstraints)
		d.checkPodAnnotations(path+".podAnnotations", p.PodAnnotations)
		d.checkEnvironment(path+".env", role, p.Env)
		d.checkUpdateStrategy(path+".updateStrategy", role, p.UpdateStrategy)
	}
	if len(d.spec.Roles.Node.TopologySpreadConstraints) > 0 {
		d.problem("spec.roles.node.topologySpreadConstraints: the node's pods are a DaemonSet, one on each node")
	}
}

// seLinux: the CSIDriver may ask kubelet for SELinux contexts only where the driver sees the SELinux of the host. mount(8) drops them otherwise.
func (d *decider) seLinux() Decision[bool] {
	switch set := d.spec.Driver.SELinux; {
	case set != v1alpha1.Auto:
		return Decision[bool]{Value: set == v1alpha1.Enabled, Source: FromConfig, Reason: "spec.driver.seLinux is set"}
	case d.target != v1alpha1.Vanilla:
		return Decision[bool]{Value: true, Source: Default, Reason: "the nodes of OpenShift enforce SELinux"}
	}
	return Decision[bool]{Source: Default, Reason: "the container runtime labels the files of volumes where nodes enforce SELinux; spec.driver.seLinux is not set"}
}

// settingOf is a setting with its reason: the key that is set, or why the default is what it is.
func settingOf[T any](value T, given bool, key, otherwise string) Decision[T] {
	if given {
		return Decision[T]{Value: value, Source: FromConfig, Reason: key + " is set"}
	}
	return Decision[T]{Value: value, Source: Default, Reason: otherwise}
}
