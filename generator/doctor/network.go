package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

const (
	apiServerSlice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
	dnsPort        = 53
)

// checkNetwork compares the NetworkPolicy of the bundle with what the controller must reach. These are the API server, and a DNS cache that is
// on the network of the nodes.
func (c *clusterCheck) checkNetwork(ctx context.Context) {
	if len(c.Bundle.Policies) == 0 {
		c.report.ok("cluster.network", "the bundle has no NetworkPolicy")
		return
	}
	var slice discoveryv1.EndpointSlice
	switch err := c.cluster.Get(ctx, apiServerSlice, &slice); {
	case errors.Is(err, cluster.ErrNotFound):
		c.report.notChecked("the ports of the API server", "the cluster has no EndpointSlice default/kubernetes", "compare them with spec.networkPolicy.apiServerPorts by hand")
	case !c.failed("the addresses of the API server", err):
		c.checkAPIServer(slice)
		c.checkCilium(ctx, slice)
	}
	c.checkDNS()
}

func (c *clusterCheck) checkAPIServer(slice discoveryv1.EndpointSlice) {
	var closed []string
	for _, e := range slice.Endpoints {
		for _, address := range e.Addresses {
			for _, p := range slice.Ports {
				if p.Port != nil && !c.allows(address, corev1.ProtocolTCP, int(*p.Port)) {
					closed = append(closed, netip.AddrPortFrom(addressOf(address), uint16(*p.Port)).String())
				}
			}
		}
	}
	if len(closed) > 0 {
		c.report.add("cluster.network", Error, "the NetworkPolicy of the bundle does not let the controller reach the API server at "+list(closed),
			"without it the sidecars do nothing, and no volume can be created or attached",
			"set spec.networkPolicy.apiServerPorts to its ports; if spec.networkPolicy.apiServerCIDRs is set, add its addresses")
		return
	}
	c.report.ok("cluster.network", "the NetworkPolicy lets the controller reach the API server")
}

// checkCilium: by default Cilium applies networks to addresses outside of the cluster alone. An API server has an identity of its own, which only a rule without
// networks opens (Cilium, "Selecting nodes with CIDR / ipBlock").
func (c *clusterCheck) checkCilium(ctx context.Context, slice discoveryv1.EndpointSlice) {
	var restricted []string
	for _, e := range slice.Endpoints {
		for _, address := range e.Addresses {
			for _, p := range slice.Ports {
				if p.Port != nil && c.allows(address, corev1.ProtocolTCP, int(*p.Port)) && !c.allows("", corev1.ProtocolTCP, int(*p.Port)) {
					restricted = append(restricted, address)
				}
			}
		}
	}
	agent := slices.IndexFunc(c.workloads, func(w cluster.Workload) bool {
		return slices.ContainsFunc(w.Pod.Containers, func(c corev1.Container) bool { return c.Name == "cilium-agent" })
	})
	if agent < 0 || len(restricted) == 0 {
		return
	}
	var config corev1.ConfigMap
	if err := c.cluster.Get(ctx, "/api/v1/namespaces/"+c.workloads[agent].Namespace+"/configmaps/cilium-config", &config); err != nil && !errors.Is(err, cluster.ErrNotFound) {
		c.failed("the configuration of Cilium", err)
		return
	}
	if !strings.Contains(config.Data["policy-cidr-match-mode"], "nodes") {
		c.report.add("cluster.network", Error, fmt.Sprintf("%s is Cilium, which does not apply the networks of spec.networkPolicy.apiServerCIDRs to the API server at %s", c.workloads[agent], list(restricted)),
			"the sidecars cannot reach the API server, so no volume can be created or attached",
			"set policyCIDRMatchMode: nodes in the values of Cilium, or remove spec.networkPolicy.apiServerCIDRs")
	}
}

// checkDNS looks for NodeLocal DNSCache. It is on the network of the node, where no selector of pods finds it.
func (c *clusterCheck) checkDNS() {
	for _, w := range c.workloads {
		var closed []string
		for _, address := range localDNS(w) {
			if !c.allows(address, corev1.ProtocolUDP, dnsPort) {
				closed = append(closed, networkOf(address))
			}
		}
		if len(closed) > 0 {
			c.report.add("cluster.network", Error, fmt.Sprintf("%s answers DNS at addresses of the nodes that the NetworkPolicy of the bundle does not open: %s", w, list(closed)),
				"the controller cannot look up the names of OpenStack's endpoints and never becomes ready",
				"set spec.networkPolicy.dnsCIDRs: ["+strings.Join(closed, ", ")+"]")
		}
	}
}

// localDNS are the addresses of NodeLocal DNSCache, from its flag -localip.
func localDNS(w cluster.Workload) []string {
	var addresses []string
	for _, container := range w.Pod.Containers {
		args := slices.Concat(container.Command, container.Args)
		for i, arg := range args {
			name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			if name != "localip" || !strings.HasPrefix(arg, "-") {
				continue
			}
			if !given && i+1 < len(args) {
				value = args[i+1]
			}
			for address := range strings.SplitSeq(value, ",") {
				if addressOf(address).IsValid() {
					addresses = append(addresses, strings.TrimSpace(address))
				}
			}
		}
	}
	return addresses
}

func addressOf(text string) netip.Addr {
	address, _ := netip.ParseAddr(strings.TrimSpace(text)) // the zero address on an error
	return address
}

func networkOf(text string) string {
	address := addressOf(text)
	return netip.PrefixFrom(address, address.BitLen()).String()
}

// allows is whether a policy of the bundle opens a port of an address that is not that of a pod. An empty address stands for every one.
func (c *clusterCheck) allows(address string, protocol corev1.Protocol, port int) bool {
	to := addressOf(address)
	for _, policy := range c.Bundle.Policies {
		for _, rule := range policy.Spec.Egress {
			if opens(rule.Ports, protocol, port) && (len(rule.To) == 0 || slices.ContainsFunc(rule.To, func(peer networkingv1.NetworkPolicyPeer) bool { return holds(peer, to) })) {
				return true
			}
		}
	}
	return false
}

func opens(ports []networkingv1.NetworkPolicyPort, protocol corev1.Protocol, port int) bool {
	return slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		return (p.Protocol == nil && protocol == corev1.ProtocolTCP || p.Protocol != nil && *p.Protocol == protocol) && p.Port != nil && p.Port.IntValue() == port
	})
}

func holds(peer networkingv1.NetworkPolicyPeer, address netip.Addr) bool {
	if peer.IPBlock == nil {
		return false
	}
	network, err := netip.ParsePrefix(peer.IPBlock.CIDR)
	return err == nil && network.Contains(address)
}
