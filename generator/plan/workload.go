package plan

import (
	"maps"
	"math"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// unprivileged is the user of controller pods where the platform does not choose one: "nobody" of distroless images.
const unprivileged int64 = 65532

const defaultReplicas = 2

// controller is how the controller's pods run. OpenShift's platform components set the pattern: the control plane's nodes on a
// stand-alone cluster; HyperShift's labels, tolerations and priority in a hosted control plane, which its conformance tests check.
func (d *decider) controller(namespace string) Decision[Workload] {
	p := d.spec.Planes.Controller
	w := d.workload("controller", p, controllerImages)
	w.Replicas = defaultReplicas
	if p.Replicas != nil {
		w.Replicas = *p.Replicas
		if w.Replicas < 1 || w.Replicas > math.MaxInt32 {
			d.problem("spec.planes.controller.replicas: %d; want 1 to %d", w.Replicas, math.MaxInt32)
		}
	}
	d.checkUser("spec.planes.controller.runAsUser", p.RunAsUser)
	decision := Decision[Workload]{Source: Default}
	switch d.target {
	case v1alpha1.HostedControlPlane:
		w.PriorityClass = "hypershift-control-plane"
		w.Tolerations = append([]v1alpha1.Toleration{
			{Key: "hypershift.openshift.io/control-plane", Operator: "Equal", Value: "true", Effect: "NoSchedule"},
			{Key: "hypershift.openshift.io/cluster", Operator: "Equal", Value: namespace, Effect: "NoSchedule"},
		}, p.Tolerations...)
		w.PodLabels = merged(w.PodLabels, map[string]string{"hypershift.openshift.io/hosted-control-plane": namespace})
		orElse(&w.ImagePullSecrets, []string{"pull-secret"})
		decision.Reason = "HyperShift's placement, priority and pull secret of a hosted control plane's pods"
	case v1alpha1.Standalone:
		w.PriorityClass = "system-cluster-critical"
		if w.NodeSelector == nil {
			w.NodeSelector = map[string]string{controlPlaneLabel: ""}
		}
		orElse(&w.Tolerations, []v1alpha1.Toleration{criticalAddons, noSchedule("node-role.kubernetes.io/master"), noSchedule(controlPlaneLabel)})
		decision.Reason = "on the control plane's nodes, as OpenShift's own components; the user is chosen by its security context constraints"
	default:
		w.PriorityClass = "system-cluster-critical"
		orElse(&w.Tolerations, []v1alpha1.Toleration{criticalAddons, noSchedule(controlPlaneLabel)})
		if w.RunAsUser == nil {
			user := unprivileged
			w.RunAsUser = &user
		}
		decision.Reason = "anywhere, the control plane's nodes included; as an unprivileged user"
	}
	decision.Value = w
	return d.configured(decision, "controller", d.given.Planes.Controller)
}

// node is how the node's pods run: on every Linux node whatever its taints, or pods there could not mount.
func (d *decider) node() Decision[Workload] {
	p := d.spec.Planes.Node
	w := d.workload("node", p, nodeImages)
	w.PriorityClass = "system-node-critical"
	if p.Replicas != nil {
		d.problem("spec.planes.node.replicas: the node's pods are a DaemonSet, one on each node")
	}
	if p.RunAsUser != nil {
		d.problem("spec.planes.node.runAsUser: mounting needs root")
	}
	if w.NodeSelector == nil {
		w.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
	}
	orElse(&w.Tolerations, []v1alpha1.Toleration{{Operator: "Exists"}})
	return d.configured(Decision[Workload]{Value: w, Source: Default, Reason: "on every Linux node, whatever its taints"}, "node", d.given.Planes.Node)
}

func (d *decider) configured(decision Decision[Workload], plane string, given v1alpha1.Plane) Decision[Workload] {
	if !isZero(given) || len(d.given.Images) > 0 {
		decision.Source = FromConfig
		decision.Reason += "; spec.planes." + plane + " and spec.images apply"
	}
	return decision
}

// workload is what both roles have, as configured.
func (d *decider) workload(plane string, p v1alpha1.Plane, images []string) Workload {
	path := "spec.planes." + plane
	d.checkProxy(path+".proxy.http", p.Proxy.HTTP)
	d.checkProxy(path+".proxy.https", p.Proxy.HTTPS)
	d.checkExpansion(path+".proxy.noProxy", p.Proxy.NoProxy)
	d.checkNames(path+".images", slices.Collect(maps.Keys(p.Images)), images)
	d.checkNames(path+".resources", slices.Collect(maps.Keys(p.Resources)), images)
	d.checkPod(path, plane, p)
	w := Workload{
		NodeSelector:     p.NodeSelector,
		Tolerations:      p.Tolerations,
		PodLabels:        p.PodLabels,
		ImagePullSecrets: p.ImagePullSecrets,
		RunAsUser:        p.RunAsUser,
		Proxy:            p.Proxy,
		Resources:        p.Resources,
	}
	for _, name := range images {
		if image := overlay(d.spec.Images[name], p.Images[name]); image != (v1alpha1.Image{}) {
			if w.Images == nil {
				w.Images = map[string]v1alpha1.Image{}
			}
			w.Images[name] = image
		}
	}
	return w
}

// checkProxy refuses a proxy with a password: it would be written into the bundle.
func (d *decider) checkProxy(key, value string) {
	if value == "" {
		return
	}
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "": // the parser's message would repeat the value
		d.problem("%s: not a URL such as http://proxy.example:3128", key)
	case u.User != nil:
		d.problem("%s: has credentials in it, and the generator writes no secret; use a proxy without them", key)
	case portOf(value) < 1 || portOf(value) > math.MaxUint16:
		d.problem("%s: the port is none from 1 to %d", key, math.MaxUint16)
	default:
		d.checkExpansion(key, value)
	}
}

// checkExpansion: in a container's environment kubelet replaces $(NAME) by a variable of that name.
func (d *decider) checkExpansion(key, value string) {
	if strings.Contains(value, "$(") {
		d.problem("%s: holds $(, which Kubernetes would read as a variable", key)
	}
}

// networkPolicy: ports from the catalog; addresses from the configuration or from endpoints that are addresses, never from DNS.
func (d *decider) networkPolicy() Decision[NetworkPolicy] {
	decision := Decision[NetworkPolicy]{Source: sourceOf(d.given.NetworkPolicy.Enabled), Reason: "spec.networkPolicy.enabled is false"}
	cidrs := d.networks("spec.networkPolicy.openstackCIDRs", d.spec.NetworkPolicy.OpenStackCIDRs)
	apiServer := d.networks("spec.networkPolicy.apiServerCIDRs", d.spec.NetworkPolicy.APIServerCIDRs)
	if len(apiServer) > 0 && d.target == v1alpha1.HostedControlPlane {
		d.warn("spec.networkPolicy.apiServerCIDRs has no effect: on hypershift the API server is in the controller's namespace")
		apiServer = nil
	}
	for i, name := range d.spec.NetworkPolicy.MetricsNamespaces {
		if !isLabel(name) {
			d.problem("%s: %q is not a namespace's name", item("spec.networkPolicy.metricsNamespaces", i), name)
		}
	}
	if !d.spec.NetworkPolicy.Enabled {
		return decision
	}
	decision.Value.Enabled, decision.Reason = true, "spec.networkPolicy.enabled is true; ports are those of Keystone and of the catalog"
	if !known(d, "services", d.inv.Services) {
		if len(d.unanswered) == 0 {
			d.problem("spec.networkPolicy.enabled: the cloud does not tell its endpoints, so no policy can be made")
		}
		return decision
	}
	to := d.openStack()
	switch {
	case len(cidrs) > 0:
		decision.Reason += ", addresses those of spec.networkPolicy.openstackCIDRs"
	case to.named:
		decision.Reason += "; endpoints are host names, so any address on these ports is allowed"
	default:
		cidrs = to.addresses
		decision.Reason += ", addresses those of the endpoints"
	}
	if proxy := d.proxy(); len(proxy.ports) > 0 {
		decision.Reason += "; the controller's proxy is allowed too"
		to.ports = append(to.ports, proxy.ports...)
		if len(cidrs) > 0 {
			cidrs = append(cidrs, proxy.addresses...)
			if proxy.named {
				d.warn("spec.networkPolicy: the controller's proxy is a host name, and names are not looked up: spec.networkPolicy.openstackCIDRs must contain its address")
			}
		}
	}
	decision.Value.APIServerCIDRs = sortedSet(apiServer)
	decision.Value.MetricsNamespaces = sortedSet(d.spec.NetworkPolicy.MetricsNamespaces)
	decision.Value.Ports = sortedSet(to.ports)
	for _, port := range decision.Value.Ports {
		if port < 1 || port > math.MaxUint16 {
			d.problem("spec.networkPolicy.enabled: an endpoint of the cloud's catalog, or its auth URL, has port %d, which no policy can name", port)
		}
	}
	decision.Value.CIDRs = sortedSet(cidrs)
	return decision
}

// networks are configured networks in their one form.
func (d *decider) networks(key string, given []string) []string {
	var cidrs []string
	for _, c := range given {
		prefix, err := netip.ParsePrefix(c)
		if err != nil || prefix != prefix.Masked() {
			d.problem("%s: %q is not a network such as 192.0.2.0/24", key, c)
			continue
		}
		cidrs = append(cidrs, prefix.String())
	}
	return cidrs
}

// destinations are where the controller connects to.
type destinations struct {
	ports     []int
	addresses []string // of those that are addresses, each as a network of one
	named     bool     // at least one is a host name
}

func (t *destinations) add(endpoint string, port int) {
	t.ports = append(t.ports, port)
	if address, ok := literalAddress(endpoint); ok {
		t.addresses = append(t.addresses, address)
	} else {
		t.named = true
	}
}

// openStack are Keystone where the driver logs in, which may be another door than the catalog's, and the catalog's services.
func (d *decider) openStack() destinations {
	var to destinations
	to.add(d.inv.Cloud.AuthURL, portOf(d.inv.Cloud.AuthURL))
	for _, name := range []string{"identity", "compute", blockStorage} {
		if service := d.inv.Services.Value[name]; service.Present {
			to.add(service.Endpoint, service.Port)
		}
	}
	return to
}

// proxy is what the driver connects to instead, if anything.
func (d *decider) proxy() destinations {
	var to destinations
	for _, u := range []string{d.spec.Planes.Controller.Proxy.HTTP, d.spec.Planes.Controller.Proxy.HTTPS} {
		if u != "" {
			to.add(u, portOf(u))
		}
	}
	return to
}

// literalAddress is an endpoint's address as a network of one, if it is an address.
func literalAddress(endpoint string) (string, bool) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", false
	}
	address, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return "", false
	}
	return netip.PrefixFrom(address, address.BitLen()).String(), true
}

// portOf is the port of a URL, its scheme's where it names none.
func portOf(rawURL string) int {
	u, err := url.Parse(rawURL)
	if err != nil {
		return 0
	}
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return port
	}
	if u.Scheme == "http" {
		return 80
	}
	return 443
}

const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

var criticalAddons = v1alpha1.Toleration{Key: "CriticalAddonsOnly", Operator: "Exists"}

func noSchedule(key string) v1alpha1.Toleration {
	return v1alpha1.Toleration{Key: key, Operator: "Exists", Effect: "NoSchedule"}
}
