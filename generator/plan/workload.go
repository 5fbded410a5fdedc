package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// controller decides how the pods of the controller run, as OpenShift does for its platform components. On a stand-alone cluster they
// run on the nodes of the control plane. In a hosted control plane they get the labels, tolerations and priority that the
// conformance tests of HyperShift check.
func (d *decider) controller(namespace string) Workload {
	p := d.spec.Roles.Controller
	w := d.workload(v1alpha1.ControllerRole, p, d.imagesOf(v1alpha1.ControllerRole))
	d.replicas(&w, p.Replicas)
	w.Memory = d.memory()
	d.checkUser("spec.roles.controller.runAsUser", p.RunAsUser)
	switch d.target {
	case v1alpha1.HostedControlPlane:
		hostedPods(&w, p, namespace)
		if p.RunAsUser != nil {
			d.warn("spec.roles.controller.runAsUser is for a management cluster that is not OpenShift: OpenShift refuses a pod whose user is not in the range of namespace %s", namespace)
		}
		orElse(&w.RunAsUser, nil, "OpenShift's security context constraints choose the user")
	case v1alpha1.Standalone:
		if p.RunAsUser != nil {
			d.problem("spec.roles.controller.runAsUser: OpenShift chooses the user from the range of the namespace, and refuses a pod with another one; leave it out")
		}
		orElse(&w.PriorityClass, base().roles[v1alpha1.ControllerRole].PriorityClass, "without the controller no volume is made or attached in the cluster")
		d.byControlPlane(&w)
		orElse(&w.Tolerations, []v1alpha1.Toleration{criticalAddons, noSchedule("node-role.kubernetes.io/master"), noSchedule(controlPlaneLabel)}, "the nodes of the control plane have these taints")
		orElse(&w.RunAsUser, nil, "OpenShift's security context constraints choose the user")
	default:
		orElse(&w.PriorityClass, base().roles[v1alpha1.ControllerRole].PriorityClass, "without the controller no volume is made or attached in the cluster")
		orElse(&w.NodeSelector, nil, "many clusters run no pods on their control plane. The pods prefer its nodes all the same, because a kubelet may read the Secrets of its pods")
		orElse(&w.Tolerations, base().roles[v1alpha1.ControllerRole].Tolerations, "the nodes of the control plane may run the controller too")
		orElse(&w.RunAsUser, base().roles[v1alpha1.ControllerRole].RunAsUser, "an unprivileged user, nonroot of distroless images")
	}
	return w
}

func (d *decider) replicas(w *Workload, given *int) {
	w.Replicas = Decision[int]{Value: base().roles[v1alpha1.ControllerRole].Replicas, Source: Default, Reason: "one leads and the other takes over; spec.roles.controller.replicas is not set"}
	if given == nil {
		return
	}
	w.Replicas = Decision[int]{Value: *given, Source: FromConfig, Reason: "spec.roles.controller.replicas is set"}
	if *given < 1 || *given > math.MaxInt32 {
		d.problem("spec.roles.controller.replicas: %d; want 1 to %d", *given, math.MaxInt32)
	}
}

// hostedPods are HyperShift's own rules for the pods of a hosted control plane.
func hostedPods(w *Workload, given v1alpha1.RolePods, namespace string) {
	orElse(&w.PriorityClass, "hypershift-control-plane", "HyperShift's priority of the pods of a hosted control plane")
	also := func(source Source, key string) string {
		if source == FromConfig {
			return "; spec.roles.controller." + key + " is added"
		}
		return ""
	}
	w.Tolerations.Value = append([]v1alpha1.Toleration{
		{Key: "hypershift.openshift.io/control-plane", Operator: "Equal", Value: "true", Effect: "NoSchedule"},
		{Key: "hypershift.openshift.io/cluster", Operator: "Equal", Value: namespace, Effect: "NoSchedule"},
	}, given.Tolerations...)
	w.Tolerations.Reason = "HyperShift's taints of the nodes for hosted control planes" + also(w.Tolerations.Source, "tolerations")
	w.PodLabels.Value = merged(w.PodLabels.Value, map[string]string{"hypershift.openshift.io/hosted-control-plane": namespace})
	w.PodLabels.Reason = "HyperShift finds the pods of a hosted control plane by this label" + also(w.PodLabels.Source, "podLabels")
	orElse(&w.ImagePullSecrets, []string{"pull-secret"}, "HyperShift's pull secret of the hosted control plane")
}

// node is how the node's pods run: on every Linux node whatever its taints, or pods there could not mount.
func (d *decider) node() Workload {
	p := d.spec.Roles.Node
	w := d.workload(v1alpha1.NodeRole, p, d.imagesOf(v1alpha1.NodeRole))
	orElse(&w.PriorityClass, base().roles[v1alpha1.NodeRole].PriorityClass, "without it no pod of its node can mount a volume")
	if p.Replicas != nil {
		d.problem("spec.roles.node.replicas: the node's pods are a DaemonSet, one on each node")
	}
	if p.RunAsUser != nil {
		d.problem("spec.roles.node.runAsUser: mounting needs root")
	}
	orElse(&w.NodeSelector, map[string]string{osLabel: linux}, "the driver runs on Linux only")
	orElse(&w.Tolerations, base().roles[v1alpha1.NodeRole].Tolerations, "the driver runs on every node, whatever its taints, or pods there could not mount volumes")
	return w
}

func (d *decider) workload(role string, p v1alpha1.RolePods, images []string) Workload {
	path := "spec.roles." + role
	d.checkProxy(path+".proxy.http", p.Proxy.HTTP)
	d.checkProxy(path+".proxy.https", p.Proxy.HTTPS)
	d.checkExpansion(path+".proxy.noProxy", p.Proxy.NoProxy)
	ofSpec, ofRole := d.spec.Images.ByName(), p.Images.ByName()
	d.checkNames(path+".images", slices.Collect(maps.Keys(ofRole)), images)
	d.checkNames(path+".resources", slices.Collect(maps.Keys(p.Resources)), images)
	d.checkPod(path, role, p)
	w := Workload{
		PriorityClass:    configuredAs(p.PriorityClassName, p.PriorityClassName != "", path+".priorityClassName"),
		NodeSelector:     configuredAs(p.NodeSelector, p.NodeSelector != nil, path+".nodeSelector"),
		Tolerations:      configuredAs(p.Tolerations, p.Tolerations != nil, path+".tolerations"),
		PodLabels:        configuredAs(p.PodLabels, p.PodLabels != nil, path+".podLabels"),
		ImagePullSecrets: configuredAs(p.ImagePullSecrets, p.ImagePullSecrets != nil, path+".imagePullSecrets"),
		RunAsUser:        configuredAs(p.RunAsUser, p.RunAsUser != nil, path+".runAsUser"),
		Proxy:            d.completed(configuredAs(p.Proxy, p.Proxy != (v1alpha1.Proxy{}), path+".proxy")),
		Resources:        configuredAs(p.Resources, p.Resources != nil, path+".resources"),
		Images:           map[string]Decision[string]{},
		Affinity:         configuredAs(p.Affinity, p.Affinity != nil, path+".affinity"),
		Spread:           configuredAs(p.TopologySpreadConstraints, len(p.TopologySpreadConstraints) > 0, path+".topologySpreadConstraints"),
		PodAnnotations:   configuredAs(p.PodAnnotations, len(p.PodAnnotations) > 0, path+".podAnnotations"),
		Env:              configuredAs(p.Env, len(p.Env) > 0, path+".env"),
		UpdateStrategy:   configuredAs(effectiveStrategy(role, p.UpdateStrategy), p.UpdateStrategy != (v1alpha1.UpdateStrategy{}), path+".updateStrategy"),
	}
	args := d.spec.Driver.ExtraArgs.Controller
	if role == v1alpha1.NodeRole {
		args = d.spec.Driver.ExtraArgs.Node
	}
	w.ExtraArgs = configuredAs(args, len(args) > 0, "spec.driver.extraArgs."+role)
	policies := map[string]string{}
	for _, name := range images {
		over := overlay(ofSpec[name], ofRole[name])
		if over.PullPolicy != "" {
			policies[name] = over.PullPolicy
		}
		switch {
		case withoutPolicy(ofRole[name]) != (v1alpha1.Image{}):
			w.Images[name] = d.image(role, name, d.mirrored(over, p.Images.Registry), path+".images."+name)
		case p.Images.Registry != "" && ofSpec[name].Registry == "":
			w.Images[name] = d.image(role, name, d.mirrored(over, p.Images.Registry), path+".images.registry")
		}
	}
	w.PullPolicies = configuredAs(policies, len(policies) > 0, "pullPolicy in spec.images or "+path+".images")
	return w
}

// configuredAs is a decision that only the configuration makes.
func configuredAs[T any](value T, given bool, key string) Decision[T] {
	if !given {
		return Decision[T]{Source: Default}
	}
	return Decision[T]{Value: value, Source: FromConfig, Reason: key + " is set"}
}

// orElse gives a decision that the configuration does not make its default.
func orElse[T any](d *Decision[T], value T, reason string) {
	if d.Source != FromConfig {
		d.Value, d.Reason = value, reason
	}
}

// checkProxy refuses a proxy with a password: it would be written into the bundle.
func (d *decider) checkProxy(key, value string) {
	if value == "" {
		return
	}
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || strings.ContainsAny(value, " \t"): // the parser's message would repeat the value
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
	dns := d.networks("spec.networkPolicy.dnsCIDRs", d.spec.NetworkPolicy.DNSCIDRs)
	for i, port := range d.spec.NetworkPolicy.APIServerPorts {
		if port < 1 || port > math.MaxUint16 {
			d.problem("%s: %d is no port from 1 to %d", item("spec.networkPolicy.apiServerPorts", i), port, math.MaxUint16)
		}
	}
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
	if !d.catalog() {
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
	d.checkReaders()
	decision.Value.APIServerCIDRs, decision.Value.APIServerPorts = sortedSet(apiServer), sortedSet(d.spec.NetworkPolicy.APIServerPorts)
	decision.Value.DNSCIDRs = sortedSet(dns)
	decision.Value.MetricsNamespaces = sortedSet(d.spec.NetworkPolicy.MetricsNamespaces)
	decision.Value.Ports = sortedSet(to.ports)
	for _, port := range decision.Value.Ports {
		if port < 1 || port > math.MaxUint16 {
			d.unanswered = append(d.unanswered, fmt.Sprintf("services: an endpoint of the cloud's catalog, or its auth URL, has port %d, which no policy can name", port))
		}
	}
	decision.Value.CIDRs = sortedSet(cidrs)
	return decision
}

// catalog is whether the inventory has the catalog. It comes with the login; only an inventory of an earlier generator may lack it.
func (d *decider) catalog() bool {
	for _, s := range d.inv.Services.Value {
		if s.Present {
			return true
		}
	}
	d.unanswered = append(d.unanswered, "services: "+cmp.Or(d.inv.Services.Reason, "the catalog is empty")+"; inspect the cloud again")
	return false
}

// checkReaders refuses a policy that shuts Prometheus out: each target would be down, and the alert that the controller is absent would fire
// for ever. OpenShift's monitoring may always read the metrics. Whether a management cluster is OpenShift is not known.
func (d *decider) checkReaders() {
	const key = "spec.networkPolicy.metricsNamespaces"
	if d.spec.Monitoring.Kind == v1alpha1.None || len(d.spec.NetworkPolicy.MetricsNamespaces) > 0 {
		return
	}
	switch d.target {
	case v1alpha1.Vanilla:
		d.problem("%s: is empty, so spec.networkPolicy would keep Prometheus from the metrics. Set it to the namespace of your Prometheus, such as [monitoring]", key)
	case v1alpha1.HostedControlPlane:
		d.warn("%s is not set: only OpenShift's monitoring may read the metrics of the controller. If the management cluster is not OpenShift, set it to the namespace of its Prometheus", key)
	}
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
	for _, u := range []string{d.spec.Roles.Controller.Proxy.HTTP, d.spec.Roles.Controller.Proxy.HTTPS} {
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
