package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/pages"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// ConfigError says that nothing was decided because the configuration cannot be right; Problems holds every reason, each a
// sentence that begins with the key.
type ConfigError struct{ Problems []string }

func (e *ConfigError) Error() string {
	return "the configuration cannot be used:\n  " + printable.Lines("\n  ", e.Problems)
}

// HasRows says that the error has rows on purpose, as that of [printable.Rows].
func (*ConfigError) HasRows() {}

// FactError says that nothing was decided, because a fact that a decision needs is missing. Facts are those that the cloud did not answer:
// an outage is not drift, and the next run may succeed. Rights are those that every member of a project has, and this credential lacks. They
// are an error of the credential, or of a gateway before the cloud.
type FactError struct{ Facts, Rights []string }

func (e *FactError) Error() string {
	var parts []string
	if len(e.Facts) > 0 {
		parts = append(parts, "the cloud did not answer what a decision needs, so nothing was decided; try again:\n  "+printable.Lines("\n  ", e.Facts))
	}
	if len(e.Rights) > 0 {
		parts = append(parts, "this credential may not read what every member of a project may, so nothing was decided. Give it the role reader or member, "+
			"or add the access rule ("+pages.AccessRules.Title()+"). After HTTP 401, cinder-csi-generator doctor says whether a rule is missing or a clock is wrong:\n  "+printable.Lines("\n  ", e.Rights))
	}
	return strings.Join(parts, "\n")
}

// HasRows says that the error has rows on purpose, as that of [printable.Rows].
func (*FactError) HasRows() {}

// Decide makes every decision of a bundle, or none: its error is a *ConfigError or a *FactError. Version is the generator's.
func Decide(inventory v1alpha1.Inventory, distribution v1alpha1.Distribution, target v1alpha1.Target, format v1alpha1.Format, version string) (Result, error) {
	return Again(nil, inventory, distribution, target, format, version)
}

// Again is Decide for a bundle that is there, with the last plan of it. What the configuration named then, and the cloud has changed since, is no mistake of
// the configuration. The plan does without it, with a warning, and the guard reports the change. Inventory should be what Remember gives.
func Again(last *v1alpha1.Plan, inventory v1alpha1.Inventory, distribution v1alpha1.Distribution, target v1alpha1.Target, format v1alpha1.Format, version string) (Result, error) {
	if err := checkSize(inventory); err != nil {
		return Result{}, err
	}
	d := &decider{inv: inventory, dist: distribution, given: distribution.Spec, spec: distribution.WithDefaults(), target: target}
	if last != nil && sameCloud(*last, inventory) {
		was, _, _ := Restore(*last)
		d.last = &was
	}
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
	r.KubernetesVersion = settingOf(d.spec.KubernetesVersion, d.given.KubernetesVersion != "", "spec.kubernetesVersion", "the lowest version that the bundle is made for, if nobody says which the clusters have")
	r.Size, r.Attacher = d.size()
	r.Driver = d.driver()
	r.TopologyKey = Decision[string]{Value: contract.TopologyKeyOf(r.Driver.Value), Source: r.Driver.Source, Reason: "it follows from the driver name: topology.<driver name>/zone"}
	// Kubernetes refuses to change these fields of a CSIDriver that exists. The guard compares decisions alone, and must see a version that has others.
	r.CSIDriver = Decision[CSIDriver]{Value: base().csiDriver, Source: Default, Reason: "a volume is attached to a server before a node mounts it, and it outlives its pod"}
	r.Settings = d.settings()
	r.Metadata = settingOf(d.spec.Driver.Metadata, len(d.given.Driver.Metadata) > 0, "spec.driver.metadata", "the metadata service has the current data of a server; the config drive is there without a network")
	r.SELinux = d.seLinux()
	r.PVCAnnotations = d.pvcAnnotations()
	r.StartupTaint, r.DrainHook = d.startupTaint(), d.drainHook()
	r.ControllerNamespace, r.NodeNamespace = d.namespaces()
	r.ClusterID = d.clusterID()
	r.Credentials, r.CABundle = d.credentials()
	r.CASource, r.TrustedCA = d.caSource(r.CABundle)
	r.CAKey = d.caKey(r.CASource)
	r.CredentialsRequest = d.credentialsRequest(&r.Credentials)
	r.Monitoring, r.Alerts, r.Dashboards = d.monitoring()
	r.RunbookBase = d.runbookBase()
	r.MonitoringLabels = d.monitoringLabels()
	r.NodePorts = d.nodePorts(r.Monitoring.Value)
	r.MetricsTLS, r.PlatformMonitoring = d.metricsTLS(r.Monitoring.Value)
	r.DriftCheck = d.driftCheck()
	r.KubeconfigSecret = d.kubeconfigSecret()
	r.GuestAccess = d.guestAccess()
	r.Leases = d.leases()
	r.Topology, r.ZoneMap = d.topology()
	r.BindingMode, r.ReclaimPolicy, r.Expansion = d.classDefaults()
	r.StorageClasses, r.DefaultClass = d.storageClasses(r)
	r.Topology.Facts = append(r.Topology.Facts, d.unserved...)
	r.SnapshotClass = d.snapshotClass(r.Driver.Value)
	r.BackupClass = d.backupClass(r.Driver.Value)
	r.SnapshotClasses = d.snapshotClasses(r.Driver.Value, r.SnapshotClass)
	r.AttributesClasses = d.attributesClasses(r.Driver.Value)
	r.CloudConf = d.cloudConf(r)
	r.AttachLimit = d.attachLimit()
	r.LimitRefresh = d.limitRefresh(r.AttachLimit.Value)
	r.NetworkPolicy = d.networkPolicy()
	r.Controller = d.controller(r.ControllerNamespace.Value)
	r.Node, r.NodePools = d.node(), d.nodePools()
	r.Images = d.images()
	d.warnOfImage(r)
	d.checkSidecars(r)
	r.identify()
	r.Config, r.Given = d.spec, v1alpha1.GivenBy(distribution, d.spec, UnnamedCluster)
	r.Warnings, r.Failures, r.Notices = d.warnings, d.failures, d.notices
	d.checkDriftCheckSize(r)
	if len(d.problems) > 0 {
		return Result{}, &ConfigError{Problems: d.problems}
	}
	if len(d.unanswered)+len(d.rights) > 0 {
		return Result{}, &FactError{Facts: d.unanswered, Rights: d.rights}
	}
	return r, nil
}

// mostZones are the zones of one service that a bundle is made for. Each volume type is compared with each.
const mostZones = 1_000

// checkSize refuses a cloud whose bundle would take minutes and gigabytes, and whose plan.yaml no later run could read.
func checkSize(inv v1alpha1.Inventory) error {
	types, zones := len(inv.VolumeTypes.Value), max(len(inv.Zones.Compute.Value), len(inv.Zones.Volume.Value))
	if types <= v1alpha1.MostTypes && zones <= mostZones {
		return nil
	}
	return fmt.Errorf("nothing was decided, because the cloud lists %d volume types, and up to %d zones for one service. A bundle is made for at most %d and %d: ask the operator of the cloud for a project that sees fewer",
		types, zones, v1alpha1.MostTypes, mostZones)
}

// decider is one run of Decide: what it reads and what it has to say besides the decisions.
type decider struct {
	last   *Result // what the bundle that is there was made of; nil: there is none, or it is of another cloud
	inv    v1alpha1.Inventory
	dist   v1alpha1.Distribution
	given  v1alpha1.Spec // as configured: says whether a value was chosen or is a default
	spec   v1alpha1.Spec // with defaults
	target v1alpha1.Target
	result Result // what is decided so far, for the classes

	proxied bool // kube-rbac-proxy is before the controller's metrics

	unserved []v1alpha1.NamedFact // zones of the volume types that have no class because of them

	hints      int // that were asked for
	problems   []string
	unanswered []string
	rights     []string // that the credential lacks
	warnings   []string
	failures   []string // those of the warnings that say that something fails
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

// fail warns of something that fails as long as the cloud is as it is. A new one is drift.
func (d *decider) fail(format string, args ...any) {
	d.warn(format, args...)
	d.failures = append(d.failures, fmt.Sprintf(format, args...))
}

func (d *decider) notice(format string, args ...any) {
	d.notices = append(d.notices, fmt.Sprintf(format, args...))
}

// known is whether a fact may be used. One that failed stops the run. Without one that is unsupported the caller decides. One that is denied is here
// only if no last plan has it, see Remember. Then the caller takes the safe value with a warning, except where listed says otherwise.
func known[T any](d *decider, name string, fact v1alpha1.Fact[T]) bool {
	switch fact.State {
	case v1alpha1.Known:
		return true
	case v1alpha1.Denied, v1alpha1.Unsupported:
		return false
	}
	if line := name + ": " + cmp.Or(fact.Reason, "no answer is recorded"); !slices.Contains(d.unanswered, line) {
		d.unanswered = append(d.unanswered, line)
	}
	return false
}

// listed is whether a fact is known that every member of a project may read. Every other state ends the run: a missing right is not a fact of the cloud.
func listed[T any](d *decider, name string, fact v1alpha1.Fact[T]) bool {
	if known(d, name, fact) {
		return true
	}
	if fact.State == v1alpha1.Denied || fact.State == v1alpha1.Unsupported {
		line := fmt.Sprintf("%s is %s (%s): the access rule is %s", name, fact.State, cmp.Or(fact.Reason, "no reason is recorded"), rights[name])
		if !slices.Contains(d.rights, line) {
			d.rights = append(d.rights, line)
		}
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
			d.fail("the cloud's catalog has no %s service, and the driver cannot work without it", name)
		}
	}
}

// stateOf is a fact for a decision that had to do without its value.
func stateOf[T any](name string, fact v1alpha1.Fact[T]) v1alpha1.NamedFact {
	return v1alpha1.NamedFact{Name: name, Value: string(fact.State)}
}

func list(name string, values []string) v1alpha1.NamedFact {
	return v1alpha1.NamedFact{Name: name, Value: namesText(values)}
}

func namesText(names []string) string {
	if len(names) == 0 {
		return none
	}
	return strings.Join(names, ", ")
}

// mostHints are given in one run. Each compares a word with every name of a cloud, and a configuration may have thousands that name nothing.
const mostHints = 20

func (d *decider) hint(name string, candidates []string) string {
	if d.hints++; d.hints > mostHints {
		return ""
	}
	return DidYouMean(name, candidates)
}

// typeHint is hint for the name of a volume type.
func (d *decider) typeHint(name string, types []v1alpha1.VolumeType) string {
	if d.hints >= mostHints {
		return ""
	}
	return d.hint(name, typeNames(types))
}

// DidYouMean ends a message about a word with the nearest one that would be right; empty where none is near.
func DidYouMean(name string, candidates []string) string {
	if n, near := contract.Nearest(name, candidates); near {
		return "; did you mean " + n + "?"
	}
	return ""
}
