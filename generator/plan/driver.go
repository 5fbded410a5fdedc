package plan

import (
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// platformOpenStack is HyperShift's name of the platform whose built-in driver cannot be turned off.
const platformOpenStack = "OpenStack"

func (d *decider) openShift() bool { return d.target != v1alpha1.Vanilla }

// sideBySide is whether another driver of upstream's name may run in the same cluster.
func (d *decider) sideBySide() bool {
	return d.openShift() && d.spec.OpenShift.Coexistence == v1alpha1.SideBySide
}

// platform is what the target means for the bundle: OpenShift's rules, and whether the controller runs beside the cluster it serves.
func (d *decider) platform() (openShift, hosted Decision[bool]) {
	reason := "--target " + string(d.target)
	return Decision[bool]{Value: d.openShift(), Source: FromConfig, Reason: reason},
		Decision[bool]{Value: d.target == v1alpha1.HostedControlPlane, Source: FromConfig, Reason: reason}
}

func (d *decider) driver() Decision[string] {
	if d.spec.OpenShift.Coexistence == v1alpha1.Adopt && !d.openShift() { // the default is written out in the configuration of a drift check
		d.warn("spec.openshift.coexistence: %s has no effect on vanilla, where no built-in driver has the name", d.given.OpenShift.Coexistence)
	}
	decision := Decision[string]{Source: Default}
	name := d.given.Driver.Name
	switch {
	case name != "":
		decision.Source, decision.Reason = FromConfig, "spec.driver.name is set"
		d.checkDriverName(name)
	case d.sideBySide():
		name, decision.Reason = v1alpha1.OwnDriverName, "OpenShift's built-in driver holds "+contract.DriverName+", and two drivers never share a name"
	case d.openShift():
		name, decision.Source = contract.DriverName, FromConfig
		decision.Reason = "spec.openshift.coexistence is adopt: the driver takes over upstream's name, and volumes made under it keep working"
	default:
		name, decision.Reason = contract.DriverName, "the name of the upstream driver, so its volumes, classes and node labels keep working"
	}
	if d.target == v1alpha1.HostedControlPlane && name == contract.DriverName {
		d.checkPlatform()
	}
	decision.Value = name
	return decision
}

func (d *decider) checkDriverName(name string) {
	if !isSubdomain(name) || len(name) > 63 {
		d.problem("spec.driver.name: %q is not a driver name: lower-case letters, digits, '-' and '.', at most 63 characters", name)
	}
	snapshots, backups := v1alpha1.SnapshotClassNames(contract.DriverName)
	switch {
	case name == snapshots, name == backups:
		d.problem("spec.driver.name: with %q, objects of the whole cluster would have the names of those of %s, such as VolumeSnapshotClass %[1]s. "+
			"Two bundles of one cluster would take each other's; choose another name, such as %[1]s.example.com", name, contract.DriverName)
	case d.sideBySide() && name == contract.DriverName:
		d.problem("spec.driver.name: %s is the name of OpenShift's built-in driver; leave it out, or set spec.openshift.coexistence: adopt to take it over", name)
	case d.openShift() && !d.sideBySide() && name != contract.DriverName:
		d.problem("spec.driver.name: %q contradicts spec.openshift.coexistence: adopt, which takes %s", name, contract.DriverName)
	}
}

// checkPlatform is the check of adopt on hypershift. On a hosted cluster of platform OpenStack, each reconcile sets the built-in
// driver back to Managed. Two drivers would then use one name.
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
	return Decision[bool]{Source: Default, Reason: "as upstream's default; with true the driver reads scheduler hints from claims, and its container has the pod's token"}
}

func (d *decider) attachLimit() Decision[string] {
	limit := string(d.spec.VolumeAttachLimit)
	if limit == v1alpha1.Auto {
		if d.sideBySide() {
			d.warn("spec.volumeAttachLimit is auto beside the built-in driver, and both use the same slots of a server. The limit of that driver does not count the volumes of this one. " +
				"If nodes hold volumes of both, set a number, or keep pods with volumes of the built-in driver on other nodes")
		}
		return Decision[string]{Value: limit, Source: sourceOf(d.given.VolumeAttachLimit != ""), Reason: "each node computes its own limit from its devices; the bundle sets none"}
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
	if limit != v1alpha1.Auto || !atLeast(d.spec.KubernetesVersion, refreshing) {
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

// leases are how long a sidecar stays leader without an answer of the API server. On OpenShift they outlast the minute in which the
// API server of a single node restarts; elsewhere they are those of the base.
func (d *decider) leases() Decision[Leases] {
	if d.openShift() {
		return Decision[Leases]{
			Value: Leases{LeaseDuration: "137s", RenewDeadline: "107s", RetryPeriod: "26s"}, Source: Default,
			Reason: "OpenShift's own leases: they outlast the minute in which the API server of a single node restarts",
		}
	}
	return Decision[Leases]{Value: base().leases, Source: Default, Reason: "the defaults of Kubernetes' client library: another replica leads after 15 seconds"}
}

// kubeconfigSecret is what a hosted control plane's sidecars reach the guest cluster with.
func (d *decider) kubeconfigSecret() Decision[string] {
	if d.target != v1alpha1.HostedControlPlane {
		return Decision[string]{Source: Default}
	}
	h := d.given.HyperShift
	return settingOf(d.spec.HyperShift.KubeconfigSecret, h.KubeconfigSecret != "", "spec.hypershift.kubeconfigSecret", "HyperShift makes this Secret in the namespace of each hosted control plane")
}

// tokenKubernetes is the first minor with init containers that stay, as the one does that renews the token of the guest.
const tokenKubernetes = "1.29"

// guestAccess is how the sidecars of a hosted control plane log in to the guest.
func (d *decider) guestAccess() Decision[string] {
	if d.target != v1alpha1.HostedControlPlane {
		return Decision[string]{Source: Default}
	}
	access := d.spec.HyperShift.GuestAccess
	reason := "the sidecars have only the rights of the guest's service account; one container renews its token and alone has the kubeconfig of an administrator"
	if access == v1alpha1.AdminKubeconfig {
		reason = "every sidecar has the kubeconfig of an administrator, as HyperShift's own do; spec.hypershift.guestAccess: " + v1alpha1.ServiceAccountToken + " leaves it to one container"
	}
	if access == v1alpha1.ServiceAccountToken && !atLeast(d.spec.KubernetesVersion, tokenKubernetes) {
		d.problem("spec.hypershift.guestAccess: %s needs Kubernetes %s in the management cluster, and spec.kubernetesVersion is %s; %s needs no version", access, tokenKubernetes, d.spec.KubernetesVersion, v1alpha1.AdminKubeconfig)
	}
	return Decision[string]{Value: access, Source: sourceOf(d.given.HyperShift.GuestAccess != ""), Reason: reason}
}
