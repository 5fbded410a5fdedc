//go:build openshift

package openshift

import (
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// A verdict is the constraint that must admit the pods of a workload, or "no: " and words of the refusal.
const (
	restricted = "restricted-v2"
	privileged = "privileged"
	notUsable  = "no: not usable by user or serviceaccount"
)

// testCase is one change of a bundle, and what becomes of the pods. The pods of a drift check are like those of the controller.
type testCase struct {
	name             string
	change           func(i *installation)
	controller, node string
	// strict are the verdicts of the stand-in where they differ from those of OpenShift.
	strict [2]string
	// partitioned are the verdicts of a cluster that partitions its workloads, as the stand-in does.
	partitioned [2]string
	selector    bool // the cluster adds its default node selector
	warned      bool // a partitioned cluster says that the namespace does not allow its pods the CPUs of management
	only        v1alpha1.Target
}

func annotate(i *installation, kinds []string, key string, value any) {
	for _, kind := range kinds {
		for _, pod := range i.pods(kind) {
			if annotations := inside(pod, "metadata", "annotations"); value == nil {
				delete(annotations, key)
			} else {
				annotations[key] = value
			}
		}
	}
}

// ofController are the kinds with the pods of the controller's namespace.
var ofController, ofNode = []string{"Deployment", "CronJob"}, []string{"DaemonSet"}

const requires = "openshift.io/required-scc"

// level sets the labels of Pod Security of namespaces; "" removes them.
func level(i *installation, to string, namespaces ...string) {
	for _, name := range namespaces {
		i.levels[name] = to // of those that the bundle does not have
	}
	for _, n := range i.each("Namespace") {
		labels := inside(n, "metadata", "labels")
		for key := range labels {
			if !strings.HasPrefix(key, "pod-security") || !slices.Contains(namespaces, text(n, "metadata", "name")) {
				continue
			}
			if labels[key] = to; to == "" {
				delete(labels, key)
			}
		}
	}
}

// hostile changes the pods of the controller. Their namespace has no level of Pod Security: otherwise that would refuse some of them first.
func hostile(change func(pod object)) func(i *installation) {
	return func(i *installation) {
		level(i, "", i.controller)
		for _, kind := range ofController {
			for _, pod := range i.pods(kind) {
				change(pod)
			}
		}
	}
}

// security is the security context of a pod.
func security(pod object) object { return inside(pod, "spec", "securityContext") }

// ofNamespaces changes the annotations of the namespaces.
func ofNamespaces(key string, value any) func(i *installation) {
	return func(i *installation) {
		for _, n := range i.each("Namespace") {
			if annotations := inside(n, "metadata", "annotations"); value == nil {
				delete(annotations, key)
			} else {
				annotations[key] = value
			}
		}
	}
}

var cases = []testCase{
	{name: "as generated", change: func(*installation) {}, controller: restricted, node: privileged},
	{name: "no binding of the SCC", change: func(i *installation) { i.drop("ClusterRoleBinding") }, controller: restricted, node: notUsable},
	{name: "no role of the SCC", change: func(i *installation) { i.drop("ClusterRole") }, controller: restricted, node: notUsable},
	{name: "the binding of another account", change: func(i *installation) {
		for _, b := range i.each("ClusterRoleBinding") {
			b["subjects"].([]any)[0].(object)["name"] = "default"
		}
	}, controller: restricted, node: notUsable},
	{name: "the role of another SCC", change: func(i *installation) {
		for _, r := range i.each("ClusterRole") {
			for _, rule := range r["rules"].([]any) {
				if rule.(object)["resourceNames"] != nil {
					rule.(object)["resourceNames"] = []any{"hostaccess"}
				}
			}
		}
	}, controller: restricted, node: notUsable},
	{name: "no SCC required", change: func(i *installation) {
		annotate(i, ofController, requires, nil)
		annotate(i, ofNode, requires, nil)
	}, controller: restricted, node: privileged, strict: [2]string{restricted, "no: Host network is not allowed to be used"}},
	{
		name: "the controller requires restricted", change: func(i *installation) { annotate(i, ofController, requires, "restricted") },
		controller: notUsable, node: privileged,
	},
	{
		name: "the controller requires an SCC that does not exist", change: func(i *installation) { annotate(i, ofController, requires, "restricted-v9") },
		controller: "no: failed to retrieve the required SCC", node: privileged,
	},
	{
		name: "the node requires restricted-v2", change: func(i *installation) { annotate(i, ofNode, requires, restricted) },
		controller: restricted, node: "no: Host network is not allowed to be used",
	},
	{
		name: "the namespace of the node is restricted", change: func(i *installation) { level(i, "restricted", i.node) },
		controller: restricted, node: `no: violates PodSecurity "restricted`,
	},
	{name: "no Pod Security label on the namespace of the node", change: func(i *installation) { level(i, "", i.node) }, controller: restricted, node: privileged},
	{name: "no Pod Security labels", change: func(i *installation) { level(i, "", i.node, i.controller) }, controller: restricted, node: privileged},
	{
		name: "user 65532", change: hostile(func(pod object) { security(pod)["runAsUser"] = 65532 }),
		controller: "no: runAsUser: Invalid value", node: privileged,
	},
	{
		name: "group 65532", change: hostile(func(pod object) { security(pod)["fsGroup"] = 65532 }),
		controller: "no: is not an allowed group", node: privileged,
	},
	{
		name: "the user of the namespace of the node", change: nil, // set when the range is known
		controller: "no: runAsUser: Invalid value", node: privileged,
	},
	{name: "no security context of the controller", change: func(i *installation) {
		for _, kind := range ofController {
			for _, pod := range i.pods(kind) {
				delete(inside(pod, "spec"), "securityContext")
				for _, c := range containers(pod) {
					delete(c, "securityContext")
				}
			}
		}
	}, controller: restricted, node: privileged, strict: [2]string{`no: violates PodSecurity "restricted`, privileged}},
	{name: "containers as root", change: hostile(func(pod object) {
		for _, c := range containers(pod) {
			inside(c, "securityContext")["runAsUser"] = 0
		}
	}), controller: "no: runAsUser: Invalid value", node: privileged},
	{name: "a directory of the host", change: hostile(func(pod object) {
		spec := inside(pod, "spec")
		volumes, _ := spec["volumes"].([]any)
		spec["volumes"] = append(volumes, object{"name": "host", "hostPath": object{"path": "/etc"}})
	}), controller: "no: hostPath volumes are not allowed to be used", node: privileged},
	{name: "a capability", change: hostile(func(pod object) {
		inside(containers(pod)[0], "securityContext", "capabilities")["add"] = []any{"SYS_ADMIN"}
	}), controller: "no: capability may not be added", node: privileged},
	{
		name: "no seccomp profile", change: hostile(func(pod object) { security(pod)["seccompProfile"] = object{"type": "Unconfined"} }),
		controller: "no: seccomp", node: privileged,
	},
	{name: "no privileged containers on the nodes", change: func(i *installation) {
		for _, pod := range i.pods("DaemonSet") {
			for _, c := range containers(pod) {
				delete(inside(c, "securityContext"), "privileged")
			}
		}
	}, controller: restricted, node: "no: Bidirectional mount propagation is available only to privileged containers"},
	{name: "no annotation of the node selector", change: ofNamespaces("openshift.io/node-selector", nil), controller: restricted, node: privileged, selector: true},
	{name: "no annotation of workload partitioning", change: ofNamespaces("workload.openshift.io/allowed", nil), controller: restricted, node: privileged, warned: true},
	{
		name: "another workload type", change: ofNamespaces("workload.openshift.io/allowed", "other"), controller: restricted, node: privileged,
		partitioned: [2]string{"no: does not allow the workload type management", "no: does not allow the workload type management"},
	},
	{name: "the pods do not ask for the CPUs of management", change: func(i *installation) {
		annotate(i, ofController, "target.workload.openshift.io/management", nil)
		annotate(i, ofNode, "target.workload.openshift.io/management", nil)
	}, controller: restricted, node: privileged},
	{name: "no account of the controller", change: func(i *installation) {
		for _, kind := range ofController {
			for _, pod := range i.pods(kind) {
				delete(inside(pod, "spec"), "serviceAccountName")
			}
		}
	}, controller: restricted, node: privileged},
	{name: "no account of the node", change: func(i *installation) {
		for _, pod := range i.pods("DaemonSet") {
			delete(inside(pod, "spec"), "serviceAccountName")
		}
	}, controller: restricted, node: notUsable},
	{
		name: "no PriorityClass of HyperShift", change: func(i *installation) { clear(i.classes) }, only: v1alpha1.HostedControlPlane,
		controller: "no: no PriorityClass with name", node: privileged,
	},
	{name: "a bundle for vanilla", change: func(*installation) {}, only: v1alpha1.Vanilla, controller: "no: runAsUser: Invalid value", node: "no: Host network is not allowed to be used"},
}
