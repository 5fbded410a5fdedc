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

type place struct {
	name, level string // level of Pod Security that the pods need
	ours        bool   // the bundle has the Namespace
	workloads   []cluster.Workload
}

// places are the namespaces of the bundle: its own and those that the cluster brings along.
func (c *clusterCheck) places() []*place {
	var all []*place
	for _, n := range c.Bundle.Namespaces {
		all = append(all, &place{name: n.Name, level: n.Labels[enforceLabel], ours: true})
	}
	for _, w := range c.Bundle.Workloads {
		at := slices.IndexFunc(all, func(p *place) bool { return p.name == w.Namespace })
		if at < 0 {
			at, all = len(all), append(all, &place{name: w.Namespace, level: "restricted"})
		}
		if p := all[at]; !p.ours && w.OnNodes() {
			p.level = "privileged"
		}
		all[at].workloads = append(all[at].workloads, w)
	}
	return all
}

func (c *clusterCheck) checkNamespaces(ctx context.Context) {
	for _, p := range c.places() {
		var have corev1.Namespace
		err := c.cluster.Get(ctx, "/api/v1/namespaces/"+url.PathEscape(p.name), &have)
		switch {
		case errors.Is(err, cluster.ErrNotFound) && p.ours:
			c.report.ok("cluster.namespace", "namespace %s does not exist yet; the bundle brings it", p.name)
		case errors.Is(err, cluster.ErrNotFound):
			c.report.add("cluster.namespace", Error, "namespace "+p.name+" does not exist", "the bundle does not bring it, because clusters have namespaces of such names", "give the driver a namespace of its own (spec.namespaces)")
		case c.failed("namespace "+p.name, err):
		case have.DeletionTimestamp != nil:
			c.report.add("cluster.namespace", Error, "namespace "+p.name+" is being deleted", "nothing can be created in it", "wait until it is gone")
		default:
			c.checkPlace(ctx, p, have)
		}
	}
}

// checkPlace compares what a namespace that exists decides about the pods in it.
func (c *clusterCheck) checkPlace(ctx context.Context, p *place, have corev1.Namespace) {
	is, before := have.Labels[enforceLabel], len(c.report.Findings)
	tooStrict := fmt.Sprintf("namespace %s enforces the Pod Security level %s; the pods need %s", p.name, is, p.level)
	switch {
	case strictness[is] <= strictness[p.level]:
	case p.ours:
		c.report.add("cluster.namespace", Warning, tooStrict, "the bundle sets the label to "+p.level+", for every pod in the namespace; until then the pods are refused",
			"give the driver a namespace of its own (spec.namespaces), or accept the change")
	default:
		c.report.add("cluster.namespace", Error, tooStrict, "the bundle does not label a namespace that comes with the cluster, so the pods are refused", "give the driver a namespace of its own (spec.namespaces)")
	}
	if c.forOpenShift() && exempt(have.Labels) {
		c.report.add("cluster.namespace", Error, "namespace "+p.name+" has the label "+runLevel, "OpenShift applies no security context constraint there, so nothing chooses the user and group of the pods",
			"remove the label, or give the driver a namespace of its own (spec.namespaces)")
	}
	if c.forOpenShift() && !p.ours {
		if selector := c.selector(ctx, have.Annotations); selector != "" {
			c.report.add("cluster.namespace", Warning, "OpenShift adds the node selector "+selector+" to the pods in namespace "+p.name, "other nodes do not get the driver, and their pods no volumes",
				"give the driver a namespace of its own (spec.namespaces), which the bundle annotates")
		}
	}
	c.checkQuotas(ctx, p)
	if len(c.report.Findings) == before {
		c.report.ok("cluster.namespace", "namespace %s exists, and its Pod Security level lets the pods in", p.name)
	}
}

// checkQuotas: a quota of limits or requests refuses a pod with a container that has none.
func (c *clusterCheck) checkQuotas(ctx context.Context, p *place) {
	quotas, err := cluster.List[corev1.ResourceQuota](ctx, c.cluster, "/api/v1/namespaces/"+url.PathEscape(p.name)+"/resourcequotas")
	if c.failed("the quotas of namespace "+p.name, err) {
		return
	}
	for _, q := range quotas {
		var lacking []string
		for resource := range q.Spec.Hard {
			if slices.ContainsFunc(p.workloads, func(w cluster.Workload) bool { return lacks(w, resource) }) {
				lacking = append(lacking, string(resource))
			}
		}
		if slices.Sort(lacking); len(lacking) > 0 {
			c.report.add("cluster.namespace", Warning, fmt.Sprintf("ResourceQuota %s/%s counts %s, and containers of the bundle have none", p.name, q.Name, list(lacking)),
				"the API server refuses their pods, unless a LimitRange of the namespace has defaults", "set spec.roles.*.resources, or give the driver a namespace of its own (spec.namespaces)")
		}
	}
}

// lacks reports whether a container of the workload has no request or limit that a quota counts. The quota names it limits.cpu or requests.memory.
func lacks(w cluster.Workload, counted corev1.ResourceName) bool {
	kind, name, _ := strings.Cut(string(counted), ".")
	if kind != "limits" && kind != "requests" || name != "cpu" && name != "memory" {
		return false
	}
	return slices.ContainsFunc(cluster.Containers(w.Pod), func(container corev1.Container) bool {
		_, limited := container.Resources.Limits[corev1.ResourceName(name)]
		_, requested := container.Resources.Requests[corev1.ResourceName(name)]
		return !limited && (kind == "limits" || !requested)
	})
}

func (c *clusterCheck) checkSecrets(ctx context.Context) {
	for _, want := range c.Bundle.Secrets() {
		name := want.Namespace + "/" + want.Name
		const do = "create it with the command in the README.md of the bundle"
		keys, err := c.cluster.SecretKeys(ctx, want.Namespace, want.Name)
		if errors.Is(err, cluster.ErrNotFound) {
			if want.Maker != "" {
				c.checkMaker(ctx, want)
				continue
			}
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

// checkMaker: a Secret that is not there yet is no fault if the cluster has the part that makes it once the bundle is applied.
func (c *clusterCheck) checkMaker(ctx context.Context, want cluster.SecretRef) {
	name := want.Namespace + "/" + want.Name
	if want.Maker == cluster.ServiceCA {
		c.report.ok("cluster.secret", "Secret %s does not exist yet; %s makes it for the Service of the bundle", name, want.Maker)
		return
	}
	const do = "set spec.credentials.request to disabled, generate the bundle, and create the Secret with the command in its README.md"
	var operator struct {
		Spec struct {
			CredentialsMode string `json:"credentialsMode"`
		} `json:"spec"`
	}
	switch err := c.cluster.Get(ctx, "/apis/operator.openshift.io/v1/cloudcredentials/cluster", &operator); {
	case errors.Is(err, cluster.ErrNotFound):
		c.report.add("cluster.secret", Error, "Secret "+name+" does not exist, and the cluster has no Cloud Credential Operator", "nothing acts on the CredentialsRequest of the bundle, and the controller does not start", do)
	case c.failed("the mode of the Cloud Credential Operator, which makes Secret "+name, err):
	case operator.Spec.CredentialsMode == "Manual":
		c.report.add("cluster.secret", Error, "Secret "+name+" does not exist, and the Cloud Credential Operator is in mode Manual", "it does not act on the CredentialsRequest of the bundle, and the controller does not start", do)
	default:
		c.report.ok("cluster.secret", "Secret %s does not exist yet; %s makes it once the bundle is applied", name, want.Maker)
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
