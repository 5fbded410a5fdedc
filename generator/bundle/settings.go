package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strconv"
)

// kubeconfigPath is where a hosted control plane's sidecars find the guest's kubeconfig.
const kubeconfigPath = "/etc/hosted-kubernetes/kubeconfig"

// election is how long a sidecar's lease lasts.
type election struct {
	LeaseDuration string `json:"leaseDuration"`
	RenewDeadline string `json:"renewDeadline"`
	RetryPeriod   string `json:"retryPeriod"`
}

// leases: client-go's defaults; on OpenShift its own, which outlast a minute without API server on a single node.
func (p *plane) leases() election {
	if p.openShift() {
		return election{LeaseDuration: "137s", RenewDeadline: "107s", RetryPeriod: "26s"}
	}
	return election{LeaseDuration: "15s", RenewDeadline: "10s", RetryPeriod: "5s"}
}

// leaseNamespace: leases are in the cluster the sidecars serve, so in a hosted control plane in the guest.
func (p *plane) leaseNamespace() string {
	if p.hosted() {
		return p.r.Namespaces.Value.Node
	}
	return p.r.Namespaces.Value.Controller
}

func (p *plane) controllerSettings() map[string]string {
	kubeconfig := ""
	if p.hosted() {
		kubeconfig = kubeconfigPath
	}
	l := p.leases()
	s := p.nodeSettings()
	maps.Copy(s, map[string]string{
		"CLUSTER_ID":           p.r.ClusterID.Value,
		"LEASE_DURATION":       l.LeaseDuration,
		"LEASE_NAMESPACE":      p.leaseNamespace(),
		"LEASE_RENEW_DEADLINE": l.RenewDeadline,
		"LEASE_RETRY_PERIOD":   l.RetryPeriod,
		"PVC_ANNOTATIONS":      strconv.FormatBool(p.r.PVCAnnotations.Value),
		"SIDECAR_KUBECONFIG":   kubeconfig,
	})
	return s
}

func (p *plane) nodeSettings() map[string]string {
	return map[string]string{
		"DRIVER_NAME":     p.r.Driver.Value.Name,
		"ENABLE_TOPOLOGY": strconv.FormatBool(p.r.Topology.Value.Enabled),
		"LOG_LEVEL":       strconv.Itoa(p.r.Driver.Value.LogLevel),
	}
}

// configHash is a pod annotation's value: pods read settings when they start, so a change must replace them. The chart computes
// the same over the same JSON.
func configHash(settings map[string]string, conf, ca string) string {
	all := maps.Clone(settings)
	all["cloud.conf"], all["ca.pem"] = conf, ca
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings always marshal
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
