package plan

import (
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// OwnDriverName is the driver's name beside OpenShift's built-in driver, which holds upstream's.
const OwnDriverName = "cinder-csi.io"

// platformOpenStack is HyperShift's name of the platform whose built-in driver cannot be turned off.
const platformOpenStack = "OpenStack"

func (d *decider) openShift() bool { return d.target != v1alpha1.Vanilla }

// sideBySide is whether another driver of upstream's name may run in the same cluster.
func (d *decider) sideBySide() bool {
	return d.openShift() && d.spec.OpenShift.Coexistence == v1alpha1.SideBySide
}

func (d *decider) driver() Decision[Driver] {
	d.oneOf("spec.openshift.coexistence", d.spec.OpenShift.Coexistence, v1alpha1.SideBySide, v1alpha1.Adopt)
	decision := Decision[Driver]{Source: Default}
	name := d.given.Driver.Name
	switch {
	case name != "":
		decision.Source, decision.Reason = FromConfig, "spec.driver.name is set"
		d.checkDriverName(name)
	case d.sideBySide():
		name, decision.Reason = OwnDriverName, "OpenShift's built-in driver holds "+contract.DriverName+", and two drivers never share a name"
	case d.openShift():
		name, decision.Source = contract.DriverName, FromConfig
		decision.Reason = "spec.openshift.coexistence is adopt: upstream's name is taken over, and volumes made under it keep working"
	default:
		name, decision.Reason = contract.DriverName, "upstream's name: volumes, classes and node labels made by upstream's driver keep working"
	}
	if d.target == v1alpha1.HostedControlPlane && name == contract.DriverName {
		d.checkPlatform()
	}
	level := *d.spec.Driver.LogLevel
	if level < 0 || level > 10 {
		d.problem("spec.driver.logLevel: %d is not between 0 and 10", level)
	}
	decision.Value = Driver{Name: name, TopologyKey: contract.TopologyKeyOf(name), LogLevel: level}
	return decision
}

func (d *decider) checkDriverName(name string) {
	if !isSubdomain(name) || len(name) > 63 {
		d.problem("spec.driver.name: %q is not a driver name: lower-case letters, digits, '-' and '.', at most 63 characters", name)
	}
	switch {
	case d.sideBySide() && name == contract.DriverName:
		d.problem("spec.driver.name: %s is the name of OpenShift's built-in driver; leave it out, or set spec.openshift.coexistence: adopt to take it over", name)
	case d.openShift() && !d.sideBySide() && name != contract.DriverName:
		d.problem("spec.driver.name: %q contradicts spec.openshift.coexistence: adopt, which takes %s", name, contract.DriverName)
	}
}

// checkPlatform holds for adopt on hypershift: the hosted cluster's built-in driver is forced back to Managed on every reconcile,
// so two drivers would fight for one name.
func (d *decider) checkPlatform() {
	switch platform := d.spec.HyperShift.Platform; {
	case strings.EqualFold(platform, platformOpenStack):
		d.problem("spec.openshift.coexistence: adopt is refused on a hosted cluster of platform OpenStack, whose built-in driver cannot be turned off; use sideBySide")
	case platform == "":
		d.warn("spec.hypershift.platform is not set: adopt works only if the hosted cluster's platform is not OpenStack, whose built-in driver cannot be turned off")
	}
}

// pvcAnnotations: a claim's annotations are read with the token of the pod, which a hosted control plane's does not have for the guest.
func (d *decider) pvcAnnotations() Decision[bool] {
	hosted := d.target == v1alpha1.HostedControlPlane
	given := d.given.Driver.PVCAnnotations
	switch {
	case hosted && given != nil && *given:
		d.problem("spec.driver.pvcAnnotations: on hypershift the controller runs in another cluster than the claims and has no token for it; leave it out")
		return Decision[bool]{}
	case hosted:
		return Decision[bool]{Source: Default, Reason: "the controller runs in another cluster than the claims and has no token for it"}
	case given != nil:
		return Decision[bool]{Value: *given, Source: FromConfig, Reason: "spec.driver.pvcAnnotations is set; with true the driver's container has the pod's token"}
	}
	return Decision[bool]{Value: true, Source: Default, Reason: "upstream's driver reads scheduler hints from claims; for that the driver's container has the pod's token"}
}

func (d *decider) attachLimit() Decision[string] {
	limit := string(d.spec.VolumeAttachLimit)
	if limit == v1alpha1.Auto {
		return Decision[string]{Source: sourceOf(d.given.VolumeAttachLimit != ""), Reason: "each node computes its own limit from its devices; nothing is emitted"}
	}
	if n, err := strconv.Atoi(limit); err != nil || n < 1 || n > 256 || strconv.Itoa(n) != limit {
		d.problem("spec.volumeAttachLimit: %q is neither auto nor a number from 1 to 256", limit)
	}
	return Decision[string]{Value: limit, Source: FromConfig, Reason: "spec.volumeAttachLimit is set; it is emitted as given"}
}

// refreshing is the first Kubernetes whose kubelet asks nodes for their limits again without a feature gate, and refreshPeriod how
// often it is to. Earlier API servers refuse the field, or drop it and so differ from what was applied.
const (
	refreshing    = "1.35"
	refreshPeriod = 60 // seconds; kubelet takes no less than 10
)

func (d *decider) limitRefresh(limit string) Decision[int] {
	if limit != "" || !atLeast(d.spec.KubernetesVersion, refreshing) {
		return Decision[int]{Source: Default, Reason: "kubelet asks a node for its limit when the driver registers"}
	}
	return Decision[int]{
		Value: refreshPeriod, Source: FromConfig,
		Reason: "spec.kubernetesVersion is " + d.spec.KubernetesVersion + ": kubelet asks each node again what it takes now",
	}
}

func sourceOf(configured bool) Source {
	if configured {
		return FromConfig
	}
	return Default
}
