package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// ConfigError says that nothing was decided because the configuration cannot be right; Problems holds every reason, each a
// sentence that begins with the key.
type ConfigError struct{ Problems []string }

func (e *ConfigError) Error() string {
	return "the configuration cannot be used:\n  " + strings.Join(e.Problems, "\n  ")
}

// FactError says that nothing was decided because the cloud did not answer what a decision needs. An outage is not drift: try
// again.
type FactError struct{ Facts []string }

func (e *FactError) Error() string {
	return "the cloud did not answer what a decision needs, so nothing was decided; try again:\n  " + strings.Join(e.Facts, "\n  ")
}

// Decide makes every decision of a bundle, or none: its error is a *ConfigError or a *FactError. Version is the generator's.
func Decide(inventory v1alpha1.Inventory, distribution v1alpha1.Distribution, target v1alpha1.Target, format v1alpha1.Format, version string) (Result, error) {
	d := &decider{inv: inventory, dist: distribution, given: distribution.Spec, spec: distribution.WithDefaults(), target: target}
	if !d.checkTexts() {
		return Result{}, &ConfigError{Problems: d.problems}
	}
	d.checkSpec()
	d.checkServices()
	r := Result{
		Generator: version,
		Simulated: inventory.Simulated,
		Cloud:     inventory.Cloud,
		Target:    target,
		Format:    format,
	}
	r.OpenShift, r.Hosted = d.platform()
	r.Adopted = d.adopted()
	r.Driver = d.driver()
	r.TopologyKey = Decision[string]{Value: contract.TopologyKeyOf(r.Driver.Value), Source: r.Driver.Source, Reason: "it follows from the driver name: topology.<driver name>/zone"}
	r.CSIDriver = csiDriver()
	r.LogLevel = d.logLevel()
	d.driverSettings(&r)
	r.PVCAnnotations = d.pvcAnnotations()
	r.StartupTaint, r.DrainHook = d.startupTaint(), d.drainHook()
	r.ControllerNamespace, r.NodeNamespace = d.namespaces()
	r.ClusterID = d.clusterID()
	r.Credentials, r.CABundle = d.credentials()
	r.CASource, r.TrustedCA = d.caSource(r.CABundle)
	r.CredentialsRequest = d.credentialsRequest(&r.Credentials)
	r.Monitoring, r.Alerts, r.Dashboards = d.monitoring()
	r.MetricsTLS, r.PlatformMonitoring = d.metricsTLS(r.Monitoring.Value)
	r.DriftCheck = d.driftCheck()
	r.KubeconfigSecret = d.kubeconfigSecret()
	r.GuestAccess = d.guestAccess()
	r.Leases = d.leases()
	r.Topology, r.ZoneMap = d.topology()
	r.BindingMode, r.ReclaimPolicy, r.Expansion = classDefaults()
	r.StorageClasses, r.DefaultClass = d.storageClasses(r)
	r.SnapshotClass = d.snapshotClass()
	r.BackupClass = d.backupClass()
	r.AttributesClasses = d.attributesClasses(r.Driver.Value)
	r.CloudConf = d.cloudConf(r)
	r.AttachLimit = d.attachLimit()
	r.LimitRefresh = d.limitRefresh(r.AttachLimit.Value)
	r.NetworkPolicy = d.networkPolicy()
	r.Controller = d.controller(r.ControllerNamespace.Value)
	r.Node = d.node()
	r.Images = d.images()
	d.warnOfImage(r)
	r.identify()
	r.Config = d.spec
	r.Warnings, r.Notices = d.warnings, d.notices
	d.checkDriftCheckSize(r)
	if len(d.problems) > 0 {
		return Result{}, &ConfigError{Problems: d.problems}
	}
	if len(d.unanswered) > 0 {
		return Result{}, &FactError{Facts: d.unanswered}
	}
	return r, nil
}

// decider is one run of Decide: what it reads and what it has to say besides the decisions.
type decider struct {
	inv    v1alpha1.Inventory
	dist   v1alpha1.Distribution
	given  v1alpha1.Spec // as configured: says whether a value was chosen or is a default
	spec   v1alpha1.Spec // with defaults
	target v1alpha1.Target
	result Result // what is decided so far, for the classes

	proxied bool // kube-rbac-proxy is before the controller's metrics

	problems   []string
	unanswered []string
	warnings   []string
	notices    []string
}

func (d *decider) problem(format string, args ...any) {
	d.problems = append(d.problems, fmt.Sprintf(format, args...))
}

func (d *decider) warn(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(d.warnings, line) { // two roles may give the same reason
		d.warnings = append(d.warnings, line)
	}
}

func (d *decider) notice(format string, args ...any) {
	d.notices = append(d.notices, fmt.Sprintf(format, args...))
}

// known is whether a fact may be used. One that failed stops the run; one that is denied or unsupported is a stable answer that
// the caller decides without.
func known[T any](d *decider, name string, fact v1alpha1.Fact[T]) bool {
	switch fact.State {
	case v1alpha1.Known:
		return true
	case v1alpha1.Denied, v1alpha1.Unsupported:
		return false
	}
	reason := fact.Reason
	if reason == "" {
		reason = "no answer is recorded"
	}
	if line := name + ": " + reason; !slices.Contains(d.unanswered, line) {
		d.unanswered = append(d.unanswered, line)
	}
	return false
}

// checkServices warns of a cloud where the driver has nothing to talk to. Whether the catalog lists them is a known fact or none.
func (d *decider) checkServices() {
	if d.inv.Services.State != v1alpha1.Known {
		return
	}
	for _, name := range []string{blockStorage, "compute"} {
		if !d.inv.Services.Value[name].Present {
			d.warn("the cloud's catalog has no %s service, and the driver cannot work without it", name)
		}
	}
}

// stateOf is a fact for a decision that had to do without its value.
func stateOf[T any](name string, fact v1alpha1.Fact[T]) string {
	return name + " = " + string(fact.State)
}

// list is a fact that is a list of names.
func list(name string, values []string) string {
	if len(values) == 0 {
		return name + " = none"
	}
	return name + " = " + strings.Join(values, ", ")
}

func didYouMean(name string, candidates []string) string {
	if n, near := contract.Nearest(name, candidates); near {
		return "; did you mean " + n + "?"
	}
	return ""
}
