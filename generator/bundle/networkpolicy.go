package bundle

import "slices"

// networkPolicy limits the pods of the controller. In: the readers of metrics. Out: DNS, the API server, and OpenStack on the ports of
// its catalog.
// kubelet's probes need no rule: no policy keeps a pod's own node out.
func (p *plane) networkPolicy() node {
	n := p.r.NetworkPolicy
	openStack := rule(ports(tcp, n.Value.Ports, Ref{n.ID, "ports"}), part(n, "cidrs", networks(n.Value.CIDRs)))
	return under(object{
		"apiVersion": fixed("networking.k8s.io/v1"), "kind": fixed("NetworkPolicy"),
		"metadata": object{"name": fixed("cinder-csi-controller"), "namespace": whole(p.controllerNS), "labels": fixed(labels("controller"))},
		"spec": object{
			"podSelector": fixed(map[string]any{"matchLabels": map[string]any{"app": "cinder-csi-controller"}}),
			"policyTypes": fixed([]any{"Egress", "Ingress"}),
			"ingress":     p.metricsReaders(),
			"egress":      list{p.dns(), p.apiServer(), openStack},
		},
	}, Ref{n.ID, "enabled"})
}

// rule is one rule of a policy; an empty list of peers allows any.
func rule(ports, peers node) node {
	r := object{"ports": ports}
	if l, some := peers.(list); some && len(l) > 0 {
		r["to"] = peers
	}
	return r
}

// ports are ports of one protocol each, which the decisions open.
func ports(protocols []string, numbers []int, refs ...Ref) list {
	l := list{}
	for _, number := range numbers {
		for _, protocol := range protocols {
			l = append(l, object{"protocol": fixed(protocol), "port": from(number, refs...)})
		}
	}
	return l
}

var (
	tcp       = []string{"TCP"}
	udpAndTCP = []string{"UDP", "TCP"}
)

func networks(cidrs []string) []any {
	var l []any
	for _, c := range cidrs {
		l = append(l, map[string]any{"ipBlock": map[string]any{"cidr": c}})
	}
	return l
}

func namespaceWith(label, value string) map[string]any {
	return map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{label: value}}}
}

const namespaceName = "kubernetes.io/metadata.name"

// metricsReaders are the pods of OpenShift's monitoring and of the namespaces that are configured.
func (p *plane) metricsReaders() node {
	n := p.r.NetworkPolicy
	var readers list
	if p.openShift() {
		readers = append(readers, part(p.r.OpenShift, "", namespaceWith("network.openshift.io/policy-group", "monitoring")))
	}
	for _, name := range n.Value.MetricsNamespaces {
		readers = append(readers, part(n, "metricsNamespaces", namespaceWith(namespaceName, name)))
	}
	if readers == nil {
		return fixed([]any{})
	}
	open := list{}
	for _, name := range p.measured() {
		var port node = object{"protocol": fixed("TCP"), "port": fixed(name)}
		if p.metricsTLS() {
			port = object{"protocol": fixed("TCP"), "port": from(tlsPort(name), p.tlsOn())}
		}
		if name == "snapshotter" {
			port = also(port, p.snapshotsOn(), Ref{n.ID, "enabled"})
		}
		open = append(open, port)
	}
	return list{object{"from": readers, "ports": open}}
}

// dns: OpenShift's is known. Elsewhere the pods that answer differ between distributions, so every pod of the cluster may be asked,
// and nothing outside of it. A management cluster need not be OpenShift.
func (p *plane) dns() node {
	n := p.r.NetworkPolicy
	numbers, to := []int{dnsPort}, map[string]any{"namespaceSelector": map[string]any{}}
	switch {
	case p.hosted():
		numbers = []int{dnsPort, 5353}
	case p.openShift():
		numbers, to = []int{5353}, namespaceWith(namespaceName, "openshift-dns")
	}
	peers := list{from(to, p.platform())}
	for _, network := range networks(n.Value.DNSCIDRs) {
		peers = append(peers, part(n, "dnsCIDRs", network))
	}
	opened := ports(udpAndTCP, numbers, p.platform())
	if len(n.Value.DNSCIDRs) > 0 && !slices.Contains(numbers, dnsPort) { // OpenShift's pods listen elsewhere, other servers do not
		opened = append(opened, ports(udpAndTCP, []int{dnsPort}, Ref{n.ID, "dnsCIDRs"})...)
	}
	return rule(opened, peers)
}

const dnsPort = 53

// apiServer: a hosted control plane's is in the same namespace. Another's no selector can name, and its addresses are no fact of the
// cloud: spec.networkPolicy.apiServerCIDRs says them.
func (p *plane) apiServer() node {
	const service = 443
	n := p.r.NetworkPolicy
	listening := ports(tcp, []int{6443}, p.platform())
	if len(n.Value.APIServerPorts) > 0 {
		listening = ports(tcp, n.Value.APIServerPorts, Ref{n.ID, "apiServerPorts"})
	}
	to := part(n, "apiServerCIDRs", networks(n.Value.APIServerCIDRs))
	switch {
	case p.hosted():
		return rule(listening, from([]any{map[string]any{"podSelector": map[string]any{}}}, p.platform()))
	case p.openShift():
		return rule(listening, to)
	}
	if slices.Contains(n.Value.APIServerPorts, service) {
		return rule(listening, to)
	}
	return rule(append(ports(tcp, []int{service}, p.platform()), listening...), to)
}

// platform is the decision that the platform's own rules come from.
func (p *plane) platform() Ref {
	if p.hosted() {
		return refOf(p.r.Hosted)
	}
	return refOf(p.r.OpenShift)
}

// measured are the containers of the controller that serve metrics. Each has a port of its name.
func (p *plane) measured() []string {
	names := []string{"attacher", "driver", "provisioner", "resizer"}
	if p.snapshots() {
		names = append(names, "snapshotter")
	}
	return names
}
