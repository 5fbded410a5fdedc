package plan

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/robfig/cron/v3"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Limits of the drain timeout. kubelet kills a pod 30 seconds after SIGTERM; the driver needs some of them to close its servers.
const (
	shortestDrain = time.Second
	longestDrain  = 25 * time.Second
)

// checkDriverSettings checks the driver's settings that need no fact.
func (d *decider) checkDriverSettings() {
	s := d.spec.Driver
	if dir := s.KubeletDir; !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" || strings.ContainsAny(dir, "$:") {
		d.problem("spec.driver.kubeletDir: %q; want an absolute path in its shortest form, such as /var/lib/k0s/kubelet", dir)
	}
	if drain, err := time.ParseDuration(s.DrainTimeout); err != nil || drain < shortestDrain || drain > longestDrain {
		d.problem("spec.driver.drainTimeout: %q; want a duration from %s to %s", s.DrainTimeout, shortestDrain, longestDrain)
	}
	if *s.RequestsPerSecond.Reads < 0 {
		d.problem("spec.driver.requestsPerSecond.reads: %d is less than 0; 0 means no limit", *s.RequestsPerSecond.Reads)
	}
	if *s.RequestsPerSecond.Writes < 0 {
		d.problem("spec.driver.requestsPerSecond.writes: %d is less than 0; 0 means no limit", *s.RequestsPerSecond.Writes)
	}
	d.checkPairs("spec.driver.volumeMetadata", s.VolumeMetadata, contract.CheckMetadata)
	d.checkPairs("spec.driver.serverMetadata", s.ServerMetadata, func(string, string) error { return nil })
	for i, source := range s.Metadata {
		switch {
		case !slices.Contains(config.MetadataSources, source):
			d.problem("%s: %q is not one of %s%s", item("spec.driver.metadata", i), source, strings.Join(config.MetadataSources, ", "), didYouMean(source, config.MetadataSources))
		case slices.Contains(s.Metadata[:i], source):
			d.problem("%s: %s is there twice", item("spec.driver.metadata", i), source)
		}
	}
}

// checkSchedule follows the API server, which reads a CronJob's schedule with the same library and refuses a time zone in it.
func (d *decider) checkSchedule(key, schedule string) {
	if schedule == "" {
		return
	}
	if _, err := cron.ParseStandard(schedule); err != nil || strings.Contains(schedule, "TZ") {
		d.problem("%s: %q is not a schedule such as \"0 6 * * *\" or @daily", key, schedule)
	}
}

// checkPods checks the settings of pods and driver that need no fact.
func (d *decider) checkPods() {
	d.checkDriverSettings()
	d.checkSchedule("spec.driftCheck.schedule", d.spec.DriftCheck.Schedule)
	d.checkExtraArgs("spec.driver.extraArgs.controller", RoleController, d.spec.Driver.ExtraArgs.Controller)
	d.checkExtraArgs("spec.driver.extraArgs.node", RoleNode, d.spec.Driver.ExtraArgs.Node)
	for _, role := range []string{RoleController, RoleNode} {
		path, p := "spec.planes."+role, d.spec.Planes.Controller
		if role == RoleNode {
			p = d.spec.Planes.Node
		}
		d.checkAffinity(path+".affinity", p.Affinity)
		d.checkSpread(path+".topologySpreadConstraints", p.TopologySpreadConstraints)
		d.checkPodAnnotations(path+".podAnnotations", p.PodAnnotations)
		d.checkEnvironment(path+".env", role, p.Env)
		d.checkUpdateStrategy(path+".updateStrategy", role, p.UpdateStrategy)
	}
	if len(d.spec.Planes.Node.TopologySpreadConstraints) > 0 {
		d.problem("spec.planes.node.topologySpreadConstraints: the node's pods are a DaemonSet, one on each node")
	}
}

// driverSettings are the settings of the driver that only a configuration changes.
func (d *decider) driverSettings(r *Result) {
	given, s := d.given.Driver, d.spec.Driver
	r.LogFormat = settingOf(s.LogFormat, given.LogFormat != "", "spec.driver.logFormat", "people read text; spec.driver.logFormat is not set")
	r.KubeletDir = settingOf(s.KubeletDir, given.KubeletDir != "", "spec.driver.kubeletDir", "kubelet's own default; spec.driver.kubeletDir is not set")
	r.Capacity = settingOf(s.Capacity, given.Capacity, "spec.driver.capacity", "the scheduler does not look at quotas; spec.driver.capacity is not set")
	limits := Requests{*s.RequestsPerSecond.Reads, *s.RequestsPerSecond.Writes}
	r.Requests = settingOf(limits, given.RequestsPerSecond != (v1alpha1.RequestsPerSecond{}), "spec.driver.requestsPerSecond", "the driver's own limits; spec.driver.requestsPerSecond is not set")
	r.Metadata = settingOf(s.Metadata, len(given.Metadata) > 0, "spec.driver.metadata", "the metadata service has the current data of a server; the config drive is there without a network")
	r.ProtectOthers = d.protectOthers()
	r.SELinux = d.seLinux()
	r.VolumeMetadata = settingOf(orEmpty(s.VolumeMetadata), len(s.VolumeMetadata) > 0, "spec.driver.volumeMetadata", "volumes have the metadata of their class only; spec.driver.volumeMetadata is not set")
	r.ServerMetadata = settingOf(orEmpty(s.ServerMetadata), len(s.ServerMetadata) > 0, "spec.driver.serverMetadata", "every server of the project may get volumes; spec.driver.serverMetadata is not set")
	r.DrainTimeout = settingOf(s.DrainTimeout, given.DrainTimeout != "", "spec.driver.drainTimeout", "the driver's own default; spec.driver.drainTimeout is not set")
}

// protectOthers: on hypershift the administrator of the guest cluster writes PersistentVolumes, and the driver acts with the credentials of the
// management cluster.
func (d *decider) protectOthers() Decision[bool] {
	switch set := d.spec.Driver.ProtectOtherClusters; {
	case set != v1alpha1.Auto:
		return Decision[bool]{Value: set == v1alpha1.Enabled, Source: FromConfig, Reason: "spec.driver.protectOtherClusters is set"}
	case d.target == v1alpha1.HostedControlPlane:
		return Decision[bool]{Value: true, Source: Default, Reason: "the administrator of the hosted cluster writes PersistentVolumes, and could name volumes of other clusters in the project"}
	}
	return Decision[bool]{Source: Default, Reason: "what a PersistentVolume names is allowed, also a volume of another cluster"}
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

// orEmpty makes {} of what is not set: plan.yaml says so, and null would read as unknown.
func orEmpty(pairs map[string]string) map[string]string {
	if pairs == nil {
		return map[string]string{}
	}
	return pairs
}

// checkPairs checks metadata that becomes one flag of the driver: KEY=VALUE,KEY=VALUE.
func (d *decider) checkPairs(key string, pairs map[string]string, check func(key, value string) error) {
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		if name == "" || strings.ContainsAny(name, ",\"=") || strings.ContainsAny(pairs[name], ",\"") || strings.ContainsFunc(name+pairs[name], unicode.IsControl) {
			d.problem("%s: %q: %q must not have control characters, commas, quotation marks or, in the key, equals signs", key, name, pairs[name])
		} else if err := check(name, pairs[name]); err != nil {
			d.problem("%s: %v", key, err)
		}
	}
}

// settingOf is a setting with its reason: the key that is set, or why the default is what it is.
func settingOf[T any](value T, given bool, key, otherwise string) Decision[T] {
	if given {
		return Decision[T]{Value: value, Source: FromConfig, Reason: key + " is set"}
	}
	return Decision[T]{Value: value, Source: Default, Reason: otherwise}
}
