package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// kubeconfigPath is where a hosted control plane's sidecars find the guest's kubeconfig.
const kubeconfigPath = "/etc/hosted-kubernetes/kubeconfig"

// leaseNamespace: leases are in the cluster the sidecars serve, so in a hosted control plane in the guest.
func (p *plane) leaseNamespace() plan.Decision[string] {
	if p.hosted() {
		return p.r.NodeNamespace
	}
	return p.r.ControllerNamespace
}

func (p *plane) controllerSettings() object {
	kubeconfig := ""
	if p.hosted() {
		kubeconfig = kubeconfigPath
	}
	l := p.r.Leases
	owner := "2" // the Deployment, seen from the pod
	if p.hosted() {
		owner = "-1"
	}
	sweep := "0s" // never
	if p.snapshots() {
		sweep = "5m"
	}
	a := p.r.Attacher
	return merge(merge(p.sharedSettings(plan.RoleController, p.r.Controller), p.tlsSettings()), object{
		"ATTACHER_API_BURST":      part(a, "apiBurst", strconv.Itoa(a.Value.Burst)),
		"ATTACHER_API_QPS":        part(a, "apiRequestsPerSecond", strconv.Itoa(a.Value.QPS)),
		"ATTACHER_RECONCILE_SYNC": part(a, "reconcileSync", a.Value.ReconcileSync),
		"CAPACITY_OWNER_LEVEL":    part(p.r.Hosted, "", owner),
		"CLUSTER_ID":              whole(p.r.ClusterID),
		"LEASE_DURATION":          part(l, "leaseDuration", l.Value.LeaseDuration),
		"LEASE_NAMESPACE":         whole(p.leaseNamespace()),
		"LEASE_RENEW_DEADLINE":    part(l, "renewDeadline", l.Value.RenewDeadline),
		"LEASE_RETRY_PERIOD":      part(l, "retryPeriod", l.Value.RetryPeriod),
		"NAMESPACE":               whole(p.leaseNamespace()),
		"PVC_ANNOTATIONS":         textOf(p.r.PVCAnnotations),
		"REMOVE_STARTUP_TAINT":    textOf(p.r.StartupTaint),
		"SIDECAR_KUBECONFIG":      part(p.r.Hosted, "", kubeconfig),
		// Only with snapshots the provisioner has the right to list them.
		"SNAPSHOT_SWEEP_INTERVAL": part(p.r.SnapshotClass, "enabled", sweep),
	})
}

func (p *plane) nodeSettings() object {
	return merge(p.sharedSettings(plan.RoleNode, p.r.Node), p.portSettings())
}

// sharedSettings are those of both roles, with what a person adds to one.
func (p *plane) sharedSettings(role string, w plan.Workload) object {
	settings := object{
		"DRIVER_NAME":     whole(p.r.Driver),
		"ENABLE_TOPOLOGY": textOf(p.r.Topology),
	}
	for _, s := range v1alpha1.Settings {
		if s.Role != "" && s.Role != role {
			continue
		}
		if d, field, value := p.setting(s); value != nil {
			settings[s.Variable] = part(d, field, s.Bounds.Text(value))
		}
	}
	return merge(settings, ownSettings(w))
}

// setting is the value of a row of the table, with its decision and the field of that. It is nil where an older version made the plan.
func (p *plane) setting(s v1alpha1.Setting) (plan.Decision[plan.Setting], string, any) {
	id, field := s.ID()
	d := p.r.Setting(id)
	if field == "" {
		return d, field, d.Value.Value
	}
	fields, _ := d.Value.Value.(map[string]any)
	return d, field, fields[field]
}

// ownSettings are the variables that a person adds, and further flags of the driver.
func ownSettings(w plan.Workload) object {
	settings := object{}
	for name, value := range w.Env.Value {
		settings[name] = part(w.Env, name, value)
	}
	if len(w.ExtraArgs.Value) > 0 {
		settings[config.ExtraArgsVariable] = part(w.ExtraArgs, "", strings.Join(w.ExtraArgs.Value, "\n"))
	}
	return settings
}

// textOf is a decision as an environment variable has it.
func textOf[T any](d plan.Decision[T]) node { return part(d, "", fmt.Sprint(d.Value)) }

// configHash is a pod annotation's value: pods read settings when they start, so a change must replace them. It comes from every
// decision that is in them. The chart computes the same over the same JSON.
func configHash(settings object, conf node, ca node) node {
	read := maps.Clone(settings)
	read["cloud.conf"], read["ca.pem"] = conf, ca
	text, err := json.Marshal(plain(read))
	if err != nil {
		panic(err) // strings always marshal
	}
	sum := sha256.Sum256(text)
	return from(hex.EncodeToString(sum[:]), refsOf(read)...)
}
