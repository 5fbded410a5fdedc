package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

const (
	monitoringAPI  = "/apis/monitoring.coreos.com/v1"
	prometheusList = monitoringAPI + "/prometheuses"
)

// readerKinds are the kinds of the Prometheus operator that select monitors, rules, or both.
var readerKinds = []struct {
	kind, path      string
	monitors, rules bool
}{
	{"Prometheus", prometheusList, true, true},
	{"PrometheusAgent", "/apis/monitoring.coreos.com/v1alpha1/prometheusagents", true, false},
	{"ThanosRuler", monitoringAPI + "/thanosrulers", false, true},
}

// prometheus is what an object of the Prometheus operator reads. A nil selector selects nothing, and a nil selector of namespaces its own one.
type prometheus struct {
	kind            string
	monitors, rules bool
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            struct {
		PodMonitorSelector       *metav1.LabelSelector `json:"podMonitorSelector"`
		PodMonitorNamespaces     *metav1.LabelSelector `json:"podMonitorNamespaceSelector"`
		ServiceMonitorSelector   *metav1.LabelSelector `json:"serviceMonitorSelector"`
		ServiceMonitorNamespaces *metav1.LabelSelector `json:"serviceMonitorNamespaceSelector"`
		RuleSelector             *metav1.LabelSelector `json:"ruleSelector"`
		RuleNamespaces           *metav1.LabelSelector `json:"ruleNamespaceSelector"`
	} `json:"spec"`
}

func (p prometheus) String() string {
	return p.kind + " " + p.Metadata.Namespace + "/" + p.Metadata.Name
}

// reads is whether such an object reads objects of a kind at all.
func (p prometheus) reads(kind string) bool {
	if kind == "PrometheusRule" {
		return p.rules
	}
	return p.monitors
}

// selectors are those of the objects of a kind, and of their namespaces.
func (p prometheus) selectors(kind string) (objects, namespaces *metav1.LabelSelector) {
	switch kind {
	case "PodMonitor":
		return p.Spec.PodMonitorSelector, p.Spec.PodMonitorNamespaces
	case "ServiceMonitor":
		return p.Spec.ServiceMonitorSelector, p.Spec.ServiceMonitorNamespaces
	}
	return p.Spec.RuleSelector, p.Spec.RuleNamespaces
}

// checkMonitoring compares monitors and alerts of the bundle with what the Prometheus operator of the cluster serves and selects. What no
// Prometheus selects is silently unread, its alerts too.
func (c *clusterCheck) checkMonitoring(ctx context.Context) {
	kinds := map[string]string{} // to the name in the API
	for _, m := range c.Bundle.Monitors {
		kinds[m.Kind] = strings.ToLower(m.Kind) + "s"
	}
	if len(kinds) == 0 {
		c.report.ok("cluster.monitoring", "the bundle has no PodMonitor, ServiceMonitor or PrometheusRule")
		return
	}
	missing, err := c.notServed(ctx, monitoringAPI, slices.Sorted(maps.Values(kinds))...)
	switch {
	case c.failed("the CRDs of the Prometheus operator", err):
		return
	case len(missing) > 0:
		c.report.add("cluster.monitoring", Error, "the API server does not serve "+list(missing)+" of monitoring.coreos.com/v1", "these objects of the bundle cannot be applied",
			"install the CRDs of the Prometheus operator, or set spec.monitoring.kind to none")
		return
	}
	all, err := c.readers(ctx)
	switch {
	case c.failed("which Prometheus reads the metrics", err):
	case len(all) == 0:
		c.report.notChecked("who reads the metrics and the alerts", "the cluster has no object of kind Prometheus", "compare the labels of the monitors with what your reader selects; spec.monitoring.labels sets them")
	default:
		c.checkReaders(ctx, all)
	}
}

func (c *clusterCheck) readers(ctx context.Context) ([]prometheus, error) {
	var all []prometheus
	for _, k := range readerKinds {
		found, err := cluster.List[prometheus](ctx, c.cluster, k.path)
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return nil, err
		}
		for _, p := range found {
			p.kind, p.monitors, p.rules = k.kind, k.monitors, k.rules
			all = append(all, p)
		}
	}
	return all, nil
}

// checkReaders reports once for each kind what nobody selects, and each reader that the NetworkPolicy keeps out.
func (c *clusterCheck) checkReaders(ctx context.Context, all []prometheus) {
	namespaces := map[string]labels.Set{}
	unread, shut := map[string]bool{}, map[string]bool{}
	for _, m := range c.Bundle.Monitors {
		of, err := c.labelsOf(ctx, m.Metadata.Namespace, namespaces)
		if c.failed("the labels of the namespace "+m.Metadata.Namespace, err) {
			return
		}
		read := false
		for _, p := range all {
			if !p.selects(m, of) {
				continue
			}
			read = true
			if own, err := c.labelsOf(ctx, p.Metadata.Namespace, namespaces); err == nil && m.Kind != "PrometheusRule" && !c.letsIn(m.Metadata.Namespace, own) {
				shut[p.String()+" from namespace "+p.Metadata.Namespace] = true
			}
		}
		if !read {
			unread[m.Kind] = true
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(unread)) {
		c.report.add("cluster.monitoring", Warning, fmt.Sprintf("no Prometheus selects each %s of the bundle: %s", kind, list(conditions(all, kind))),
			"what nobody selects is silently unread; without the metrics and the rules no alert fires", "set spec.monitoring.labels to the labels that your Prometheus selects"+suggestion(all, kind)+
				". If it selects by namespace, give the namespace of the bundle its label")
	}
	if len(shut) > 0 {
		readers := slices.Sorted(maps.Keys(shut))
		c.report.add("cluster.monitoring", Warning, "the NetworkPolicy of the bundle does not let in "+list(readers), "every scrape of the controller fails, and CinderCSIControllerAbsent fires for ever",
			"add the namespace to spec.networkPolicy.metricsNamespaces")
	}
	if len(unread)+len(shut) == 0 {
		c.report.ok("cluster.monitoring", "a Prometheus selects every monitor and alert of the bundle")
	}
}

// labelsOf are the labels that a namespace will have: those of the cluster, and those of the bundle.
func (c *clusterCheck) labelsOf(ctx context.Context, name string, known map[string]labels.Set) (labels.Set, error) {
	if known[name] != nil {
		return known[name], nil
	}
	var n struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := c.cluster.Get(ctx, "/api/v1/namespaces/"+url.PathEscape(name), &n); err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return nil, err
	}
	all := labels.Set{}
	maps.Copy(all, n.Metadata.Labels)
	for _, ours := range c.Bundle.Namespaces {
		if ours.Name == name {
			maps.Copy(all, ours.Labels)
		}
	}
	all["kubernetes.io/metadata.name"] = name // which Kubernetes sets
	known[name] = all
	return all, nil
}

func (p prometheus) selects(m cluster.Monitor, namespace labels.Set) bool {
	objects, namespaces := p.selectors(m.Kind)
	if !p.reads(m.Kind) || !matches(objects, m.Metadata.Labels) {
		return false
	}
	if namespaces == nil {
		return p.Metadata.Namespace == m.Metadata.Namespace
	}
	return matches(namespaces, namespace)
}

// matches is false for no selector.
func matches(s *metav1.LabelSelector, of labels.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(of)
}

// letsIn is whether the policies of a namespace allow pods of another one to read metrics there. No policy allows everything.
func (c *clusterCheck) letsIn(namespace string, reader labels.Set) bool {
	restricted := false
	for _, policy := range c.Bundle.Policies {
		if policy.Namespace != namespace || !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			continue
		}
		restricted = true
		for _, rule := range policy.Spec.Ingress {
			if len(rule.From) == 0 || slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool { return matches(peer.NamespaceSelector, reader) }) {
				return true
			}
		}
	}
	return !restricted
}

// conditions say what each Prometheus selects.
func conditions(all []prometheus, kind string) []string {
	var texts []string
	for _, p := range all {
		if !p.reads(kind) {
			continue
		}
		objects, namespaces := p.selectors(kind)
		where := "its own namespace"
		switch {
		case namespaces != nil && len(namespaces.MatchLabels)+len(namespaces.MatchExpressions) == 0:
			where = "every namespace"
		case namespaces != nil:
			where = "namespaces with " + metav1.FormatLabelSelector(namespaces)
		}
		what := "nothing"
		switch {
		case objects != nil && len(objects.MatchLabels)+len(objects.MatchExpressions) == 0:
			what = "all in " + where
		case objects != nil:
			what = metav1.FormatLabelSelector(objects) + " in " + where
		}
		texts = append(texts, fmt.Sprintf("%s (%s)", p, what))
	}
	return texts
}

// suggestion is the value of spec.monitoring.labels for the one Prometheus of a cluster.
func suggestion(all []prometheus, kind string) string {
	all = slices.DeleteFunc(slices.Clone(all), func(p prometheus) bool { return !p.reads(kind) })
	if len(all) != 1 {
		return ""
	}
	objects, _ := all[0].selectors(kind)
	if objects == nil || len(objects.MatchLabels) == 0 || len(objects.MatchExpressions) > 0 {
		return ""
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(objects.MatchLabels)) {
		pairs = append(pairs, key+": "+strconv.Quote(objects.MatchLabels[key]))
	}
	return ": {" + strings.Join(pairs, ", ") + "}"
}
