package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// enforceLabel is the level of Pod Security that a namespace enforces (Kubernetes, "Pod Security Admission").
const enforceLabel = "pod-security.kubernetes.io/enforce"

// strictness orders the levels; a namespace without a label is as privileged, unless the API server has another default.
var strictness = map[string]int{"": 0, "privileged": 0, "baseline": 1, "restricted": 2}

func (c *clusterCheck) checkNamespaces(ctx context.Context) {
	for _, want := range c.Bundle.Namespaces {
		var have corev1.Namespace
		err := c.cluster.Get(ctx, "/api/v1/namespaces/"+url.PathEscape(want.Name), &have)
		is, needs := have.Labels[enforceLabel], want.Labels[enforceLabel]
		switch {
		case errors.Is(err, cluster.ErrNotFound):
			c.report.ok("cluster.namespace", "namespace %s does not exist yet; the bundle brings it", want.Name)
		case c.failed("namespace "+want.Name, err):
		case have.DeletionTimestamp != nil:
			c.report.add("cluster.namespace", Error, "namespace "+want.Name+" is being deleted", "nothing can be created in it", "wait until it is gone")
		case strictness[is] > strictness[needs]:
			c.report.add("cluster.namespace", Warning, fmt.Sprintf("namespace %s enforces the Pod Security level %s; the pods need %s", want.Name, is, needs),
				"the bundle sets the label to "+needs+", for every pod in the namespace; until then the pods are refused", "give the driver a namespace of its own (spec.namespaces), or accept the change")
		default:
			c.report.ok("cluster.namespace", "namespace %s exists, and its Pod Security level lets the pods in", want.Name)
		}
	}
}

func (c *clusterCheck) checkSecrets(ctx context.Context) {
	for _, want := range c.Bundle.Secrets() {
		name := want.Namespace + "/" + want.Name
		const do = "create it with the command in the README.md of the bundle"
		keys, err := c.cluster.SecretKeys(ctx, want.Namespace, want.Name)
		if errors.Is(err, cluster.ErrNotFound) {
			c.report.add("cluster.secret", Error, "Secret "+name+" does not exist", "the pods of the controller wait for it and do not start", do)
			continue
		}
		if c.failed("Secret "+name, err) {
			continue
		}
		if missing := without(want.Keys, keys); len(missing) > 0 {
			c.report.add("cluster.secret", Error, fmt.Sprintf("Secret %s has no key %s; its keys are %s", name, list(missing), cmp.Or(list(keys), "none")),
				"the pods of the controller do not start without it", do+", or name its key in spec.credentials.key")
			continue
		}
		c.report.ok("cluster.secret", "Secret %s has what the pods mount", name)
	}
}

// zoneLabel is the zone of a node as its cloud provider sets it (Kubernetes, "Well-Known Labels").
const zoneLabel = "topology.kubernetes.io/zone"

func (c *clusterCheck) checkNodes(ctx context.Context) {
	nodes, err := cluster.List[corev1.Node](ctx, c.cluster, "/api/v1/nodes")
	if c.failed("the nodes", err) {
		return
	}
	if c.ComputeZones == nil {
		c.report.notChecked("the zones of the nodes", "the compute zones of the cloud are not known", "compare the label "+zoneLabel+" with the zones of the servers")
		return
	}
	var unknown []string
	for _, n := range nodes {
		if zone := n.Labels[zoneLabel]; zone != "" && !slices.Contains(c.ComputeZones, zone) {
			unknown = append(unknown, n.Name+" ("+zone+")")
		}
	}
	if len(unknown) > 0 {
		c.report.add("cluster.nodes", Warning, "nodes have zone labels that are not compute zones of this cloud: "+list(unknown),
			"these may be nodes of another cloud or region; the driver sets a label of its own from the metadata of the server", "check that the kubeconfig and the cloud belong together")
		return
	}
	c.report.ok("cluster.nodes", "the zone labels of %d nodes agree with the compute zones", len(nodes))
}

// distributions of Kubernetes that keep kubelet's directory elsewhere, by a part of kubelet's version or by a label of the node.
var distributions = []struct{ version, label, dir string }{
	{version: "+k0s", dir: "/var/lib/k0s/kubelet"},
	{label: "microk8s.io/cluster", dir: "/var/snap/microk8s/common/var/lib/kubelet"},
}

// checkKubelet compares directories: no API says where kubelet has its own, but other CSI drivers must know it too.
func (c *clusterCheck) checkKubelet(ctx context.Context) {
	ours := c.Bundle.KubeletDir()
	if ours == "" {
		return
	}
	seen := map[string]string{}
	for _, w := range c.workloads {
		if dir := w.KubeletDir(); dir != "" && !c.Bundle.Has(w) {
			seen[dir] = w.String()
		}
	}
	nodes, err := cluster.List[corev1.Node](ctx, c.cluster, "/api/v1/nodes")
	if err != nil {
		nodes = nil // checkNodes says so
	}
	for _, n := range nodes {
		for _, d := range distributions {
			_, labelled := n.Labels[d.label]
			if d.version != "" && strings.Contains(n.Status.NodeInfo.KubeletVersion, d.version) || d.label != "" && labelled {
				seen[d.dir] = "node " + n.Name + " (" + n.Status.NodeInfo.KubeletVersion + ")"
			}
		}
	}
	if _, same := seen[ours]; len(seen) == 0 || same {
		c.report.ok("cluster.kubelet", "nothing contradicts %s as the directory of kubelet", ours)
		return
	}
	for dir, who := range seen {
		c.report.add("cluster.kubelet", Warning, fmt.Sprintf("the bundle expects kubelet in %s, but %s points to %s", ours, who, dir),
			"kubelet would not find the socket of the driver, and no volume could be mounted", "set spec.driver.kubeletDir to "+dir)
	}
}
