// Package doctor checks before an installation whether a cloud and a cluster can take a bundle. Each check gives findings: what it
// saw, why that matters, and what to do.
//
// Nothing here changes anything: every request to the cloud, the cluster and a registry is a GET or a HEAD. One is a POST: a SubjectAccessReview,
// which an API server answers and does not store. What cannot be checked that way is listed as not checked, and never guessed. No finding holds a secret.
package doctor

import (
	"fmt"
	"slices"
)

// Severity says what a finding means for the installation.
type Severity string

// The severities.
const (
	OK      Severity = "ok"
	Warning Severity = "warning" // the driver works, but not as somebody may expect
	Error   Severity = "error"   // the driver does not work, or not for long
)

// Finding is the result of one check.
type Finding struct {
	ID       string   `json:"id"` // one of Checks; scripts may depend on it
	Severity Severity `json:"severity"`
	What     string   `json:"what"`          // what was seen, on which object
	Why      string   `json:"why,omitempty"` // empty if it is ok
	Do       string   `json:"do,omitempty"`  // empty if it is ok
}

// Gap is something that nobody can check without a change, or that could not be checked this time.
type Gap struct {
	What string `json:"what"`
	Why  string `json:"why"`
	Do   string `json:"do"`
}

// Report is everything that was checked.
type Report struct {
	Cloud      string    `json:"cloud"`
	Cluster    string    `json:"cluster,omitempty"` // empty: no cluster was checked
	Findings   []Finding `json:"findings"`
	NotChecked []Gap     `json:"notChecked"`
}

// NewReport is a report without findings.
func NewReport(cloud string) *Report {
	return &Report{Cloud: cloud, Findings: []Finding{}, NotChecked: []Gap{}}
}

// Count is how many findings have a severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Check is one thing that doctor looks at.
type Check struct{ ID, Means string }

// Checks lists every check, in the order of the report.
var Checks = []Check{
	{"cloud.login", "Keystone accepts the credentials"},
	{"cloud.endpoints", "the catalog has the services, their endpoints answer, and none of them is plain HTTP"},
	{"cloud.tls", "certificates are valid, do not expire soon, and the pods of the driver will trust them"},
	{"cloud.clock", "the clock of this machine agrees with the Date headers of the cloud"},
	{"cloud.credential", "the credential does not expire soon and has no more rights than the driver needs"},
	{"cloud.rights.read", "each reading request of the driver is allowed: it is sent once"},
	{"cloud.rights.write", "the roles of the token allow the writing requests"},
	{"cloud.access-rules", "the access rules of an application credential allow every request of the driver"},
	{"cloud.microversions", "Cinder and Nova are new enough for each feature"},
	{"cloud.zones", "each compute zone has a volume zone, and the zones are available"},
	{"cloud.types", "there are volume types"},
	{"cloud.default-type", "the cloud has a default volume type"},
	{"cloud.quota", "the quota leaves room for volumes, snapshots and backups"},
	{"cloud.backup", "the cloud has the backup service"},
	{"image", "the registry has each image of the bundle"},
	{"cluster.version", "Kubernetes is at least as new as `spec.kubernetesVersion`"},
	{"cluster.snapshots", "the snapshot CRDs and the snapshot controller are there"},
	{"cluster.driver", "no other driver has the name of this one"},
	{"cluster.namespace", "the namespaces can hold the pods (Pod Security, quotas, run level)"},
	{"cluster.scc", "the pods may use the security context constraints that they require"},
	{"cluster.secret", "the Secret with the credentials exists and has the right key"},
	{"cluster.nodes", "the zone labels of the nodes are compute zones of the cloud"},
	{"cluster.kubelet", "kubelet has its directory where the bundle looks for it"},
	{"cluster.rights", "no other bundle of this project has the ClusterRoleBindings or the pods of this one"},
	{"cluster.ports", "no other pod of the cluster declares a host port of the nodes"},
	{"cluster.neighbours", "the nodes of an installed controller, which has the credentials, run no pods of tenants"},
	{"cluster.selinux", "on no node of an installed driver does SELinux keep the sidecars from its socket"},
	{"cluster.network", "the NetworkPolicy of the bundle lets the controller reach the API server and the DNS of the cluster"},
	{"cluster.monitoring", "the Prometheus operator serves the kinds of the monitors and alerts, a Prometheus selects them, and it can reach the metrics"},
	{"cluster.classes", "no class of the bundle collides with one that exists, and at most one is the default"},
}

func (r *Report) add(id string, severity Severity, what, why, do string) {
	if !slices.ContainsFunc(Checks, func(c Check) bool { return c.ID == id }) {
		panic("finding " + id + " is not in Checks")
	}
	r.Findings = append(r.Findings, Finding{ID: id, Severity: severity, What: what, Why: why, Do: do})
}

func (r *Report) ok(id, format string, args ...any) {
	r.add(id, OK, fmt.Sprintf(format, args...), "", "")
}

func (r *Report) notChecked(what, why, do string) {
	r.NotChecked = append(r.NotChecked, Gap{What: what, Why: why, Do: do})
}

// Sort puts the findings into the order of Checks; those of one check keep theirs.
func (r *Report) Sort() {
	place := map[string]int{}
	for i, c := range Checks {
		place[c.ID] = i
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return place[a.ID] - place[b.ID] })
}
