//go:build openshift

package openshift

import (
	"net/http"
	"strings"
	"testing"
)

// plugins looks for the parts of OpenShift that decide about a pod: a server may leave them out and says so nowhere. It reports whether constraints
// are applied at all.
func (r *run) plugins(t *testing.T) (constrained bool) {
	t.Helper()
	space := func(labels, annotations object) string {
		name := r.name()
		r.make(t, object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name, "labels": labels, "annotations": annotations}})
		return name
	}
	const allowed, selector, enforce = "workload.openshift.io/allowed", "openshift.io/node-selector", "pod-security.kubernetes.io/enforce"
	plain, other := space(object{}, object{}), space(object{}, object{allowed: "other", selector: ""})
	strict := space(object{enforce: "restricted"}, object{selector: ""})
	ask := func(namespace, field string, value any) (object, string) {
		pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "plugins", "annotations": object{}}, "spec": object{
			"containers": []any{object{"name": "c", "image": "registry.example/none", "securityContext": object{
				"allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": object{"drop": []any{"ALL"}}, "seccompProfile": object{"type": "RuntimeDefault"},
			}}},
		}}
		inside(pod, "spec")["securityContext"] = object{}
		if strings.Contains(field, "/") {
			inside(pod, "metadata", "annotations")[field] = value
		} else {
			inside(pod, "spec")[field] = value
		}
		got, err := r.send(http.MethodPost, "/api/v1/namespaces/"+namespace+"/pods?dryRun=All", pod, "")
		if err != nil {
			return nil, err.Error()
		}
		return got, ""
	}
	var missing []string
	found := func(name string, seen bool) {
		if !seen {
			missing = append(missing, name)
			r.record.say("%s: not seen", name)
			return
		}
		r.record.say("%s: seen", name)
	}
	var pod object
	problem := r.until(func() string {
		got, refusal := ask(plain, "hostname", "a")
		if pod = got; refusal == "" && text(got, "metadata", "annotations", "openshift.io/scc") == "" {
			return "no constraint"
		}
		return refusal
	})
	constrained = problem == ""
	found("admission by security context constraints", constrained)
	namespace, _ := r.get("/api/v1/namespaces/" + plain)
	found("ranges of users for namespaces", text(namespace, "metadata", "annotations", "openshift.io/sa.scc.uid-range") != "")
	found("labels of Pod Security by the label syncer", text(namespace, "metadata", "labels", enforce) != "")
	added, _ := at(pod, "spec", "nodeSelector").(object)
	found("a default node selector", len(added) > 0)
	_, refusal := ask(strict, "hostNetwork", true)
	found("Pod Security", strings.Contains(refusal, "violates PodSecurity"))
	_, refusal = ask(other, "target.workload.openshift.io/management", `{"effect": "PreferredDuringScheduling"}`)
	found("workload partitioning", strings.Contains(refusal, "does not allow the workload type management"))
	if r.seen.partitioned && !strings.Contains(refusal, "does not allow the workload type") {
		r.record.lacks("the case of another workload type: the cluster is partitioned, and its API server lacks the plugin")
		r.seen.partitioned = false
	}
	r.record.lacks("see whether ClusterResourceQuota and RestrictSubjectBindings are on: no object of a bundle shows them")
	if r.seen.standIn && strings.Join(missing, ", ") != "labels of Pod Security by the label syncer" {
		t.Errorf("want all but the label syncer in the stand-in, not seen: %q", missing)
	}
	return constrained
}
