//go:build openshift

package openshift

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/switches"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// run is one run of the suite on a cluster.
type run struct {
	*client
	standIn bool
	write   bool
	few     bool   // only the first cases, and no row of switches but the first
	prefix  string // of the names of all that is created
	seen    facts
	number  atomic.Int32
	record  *record
}

func TestOpenShiftAdmitsWhatItShouldAndNothingElse(t *testing.T) {
	if *kubeconfig != "" {
		c := newClient(t, *kubeconfig)
		newRun(t, c, false, *write).all(t)
		return
	}
	admin, reader := startStandIn(t)
	t.Run("stand-in", func(t *testing.T) {
		c := newClient(t, admin)
		newRun(t, c, true, true).all(t)
	})
	t.Run("as on a cluster of somebody", func(t *testing.T) {
		c := newClient(t, admin)
		before := namespacesOf(t, c)
		r := newRun(t, c, false, true)
		r.few = true // the stand-in has shown the verdicts: here it is about what is left behind
		r.all(t)
		if after := namespacesOf(t, c); !slices.Equal(before, after) {
			t.Errorf("want the namespaces as they were before:\n%q\n%q", before, after)
		}
	})
	t.Run("by a reader", func(t *testing.T) {
		c := newClient(t, reader)
		r := newRun(t, c, false, true)
		r.all(t)
		if r.record.total != 0 || len(r.record.missing) == 0 {
			t.Errorf("want nothing created, and the record to say what was not possible, got %d and %q", r.record.total, r.record.missing)
		}
	})
}

// namespacesOf are those that are not being deleted.
func namespacesOf(t *testing.T, c *client) []string {
	t.Helper()
	all := testenv.Value(c.items("/api/v1/namespaces"))(t)
	var names []string
	for _, n := range all {
		if text(n, "metadata", "deletionTimestamp") == "" {
			names = append(names, text(n, "metadata", "name"))
		}
	}
	return names
}

func newRun(t *testing.T, c *client, standIn, write bool) *run {
	t.Helper()
	id := make([]byte, 3)
	_, _ = rand.Read(id)
	r := &run{client: c, standIn: standIn, write: write, prefix: "cinder-csi-test-" + hex.EncodeToString(id), record: &record{}}
	r.look(t)
	return r
}

// all asks for everything that the cluster and the rights allow.
func (r *run) all(t *testing.T) {
	defer r.record.print(t)
	if !r.seen.constraints {
		t.Error("the API server serves no SecurityContextConstraints: it is not OpenShift")
		return
	}
	if !r.write {
		r.readOnly(t)
		return
	}
	constrained := false
	t.Run("plugins", func(t *testing.T) { constrained = r.plugins(t) })
	if !constrained {
		t.Error("the API server serves SecurityContextConstraints and does not apply them to pods: the cases would say nothing")
		return
	}
	t.Run("cases", r.cases)
	if r.standIn {
		t.Run("mutations", r.mutations)
	}
	t.Run("switches", r.switches)
	t.Run("capacity", r.capacity)
}

// everything is a configuration with each object that a stand-alone cluster can have.
func everything(target v1alpha1.Target) map[string]any {
	spec := map[string]any{
		"monitoring": map[string]any{"kind": "ServiceMonitor", "alerts": true}, "networkPolicy": map[string]any{"enabled": true, "metricsNamespaces": []any{"monitoring"}},
		"driver": map[string]any{"capacity": true}, "nodeLifecycle": map[string]any{"drainHook": true},
		"driftCheck": map[string]any{"schedule": "@daily"}, "images": map[string]any{"registry": "registry.example"},
	}
	if target == v1alpha1.Standalone {
		spec["trustedCA"], spec["nodeLifecycle"] = true, map[string]any{"drainHook": true, "startupTaint": true}
	}
	return spec
}

var formats = []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm}

func (r *run) cases(t *testing.T) {
	for _, target := range []v1alpha1.Target{v1alpha1.Standalone, v1alpha1.HostedControlPlane, v1alpha1.Vanilla} {
		decided := testenv.Value(decide(everything(target), target))(t)
		for _, format := range formats {
			objects := objectsOf(t, decided, format)
			for n, c := range cases {
				if r.few && n > 2 || c.only != target && (c.only != "" || target == v1alpha1.Vanilla) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", target, format, c.name), func(t *testing.T) {
					t.Parallel()
					i := install(decided, objects, r.name())
					if c.change != nil {
						c.change(i)
					}
					r.judge(t, i, c, target, r.standIn)
				})
			}
		}
	}
}

// name begins the names of one installation. Names of one run have the same length: the stand-in gives ranges by it.
func (r *run) name() string { return fmt.Sprintf("%s-%03d", r.prefix, r.number.Add(1)) }

// judge creates what admission reads, and compares what becomes of the pods: those of dry runs and, if so asked, those that controllers make.
func (r *run) judge(t *testing.T, i *installation, c testCase, target v1alpha1.Target, made bool) {
	t.Helper()
	ranges := r.create(t, i)
	if c.change == nil {
		for _, kind := range ofController {
			for _, pod := range i.pods(kind) {
				security(pod)["runAsUser"] = ranges[i.node][0]
			}
		}
	}
	for _, w := range i.objects {
		pod := template(w)
		if pod == nil {
			continue
		}
		want := c.verdict(r, w["kind"] == "DaemonSet", pod)
		selector := c.selector && r.seen.selector != "" && (target == v1alpha1.Standalone || w["kind"] == "DaemonSet")
		warned := c.warned && r.seen.partitioned && text(pod, "metadata", "annotations", "target.workload.openshift.io/management") != ""
		check := func(how string, got object, err error) string {
			if problem := compare(want, got, err, ranges[text(w, "metadata", "namespace")], template(w), selector, warned); problem != "" {
				return fmt.Sprintf("%s %s, %s: want %s: %s", w["kind"], text(w, "metadata", "name"), how, want, problem)
			}
			return ""
		}
		problem := r.dry(w, check)
		if problem == "" && made {
			problem = r.real(w, check)
		}
		if problem != "" {
			t.Error(problem)
		}
		r.record.count(want, problem == "")
	}
}

// verdict is what must become of the pods on this cluster.
func (c testCase) verdict(r *run, node bool, pod object) string {
	want, at := c.controller, 0
	if node {
		want, at = c.node, 1
	}
	if strict := c.strict[at]; r.seen.standIn && strict != "" {
		want = strict
	}
	// The pods of a drift check and of a hosted control plane do not ask for the CPUs of management.
	if partitioned := c.partitioned[at]; r.seen.partitioned && partitioned != "" && text(pod, "metadata", "annotations", "target.workload.openshift.io/management") != "" {
		want = partitioned
	}
	return want
}

// compare gives the difference between the verdict and what admission made of a pod.
func compare(want string, got object, err error, of [2]int64, template object, selector, warned bool) string {
	words, refused := strings.CutPrefix(want, "no: ")
	switch {
	case refused && err == nil:
		return "admitted by " + text(got, "metadata", "annotations", "openshift.io/scc")
	case refused && !strings.Contains(err.Error(), words):
		return "other words: " + err.Error()
	case refused:
		return ""
	case err != nil:
		return "refused: " + err.Error()
	}
	if by := text(got, "metadata", "annotations", "openshift.io/scc"); by != want {
		return fmt.Sprintf("admitted by %q", by)
	}
	before, _ := at(template, "spec", "nodeSelector").(object)
	after, _ := at(got, "spec", "nodeSelector").(object)
	if added := len(after) > len(before); added != selector {
		return fmt.Sprintf("node selector %v, want one that is added: %t", after, selector)
	}
	if warning := text(got, "metadata", "annotations", "workload.openshift.io/warning"); (warning != "") != warned {
		return fmt.Sprintf("warning of workload partitioning %q, want one: %t", warning, warned)
	}
	return outside(got, want, of)
}

// outside names the users and the group of a restricted pod that are not in the range of its namespace.
func outside(pod object, constraint string, of [2]int64) string {
	if constraint != restricted {
		return ""
	}
	for _, user := range users(pod) {
		if number, err := strconv.ParseInt(user, 10, 64); err != nil || number < of[0] || number >= of[0]+of[1] {
			return fmt.Sprintf("user %s is not in the range of the namespace, %d/%d", user, of[0], of[1])
		}
	}
	if group, _ := at(pod, "spec", "securityContext", "fsGroup").(float64); int64(group) < of[0] || int64(group) >= of[0]+of[1] {
		return fmt.Sprintf("group %.0f is not in the range of the namespace, %d/%d", group, of[0], of[1])
	}
	return ""
}

// makers are the accounts with which Kubernetes makes the pods of a kind.
var makers = map[string]string{"Deployment": "kube-system:replicaset-controller", "DaemonSet": "kube-system:daemon-set-controller", "CronJob": "kube-system:job-controller"}

const patience = 15 * time.Second

// dry asks for a pod without creating it, until the answer is the wanted one: admission reads rights and namespaces from caches.
func (r *run) dry(w object, check func(string, object, error) string) (problem string) {
	pod := copyOf(object{"apiVersion": "v1", "kind": "Pod", "metadata": inside(template(w), "metadata"), "spec": inside(template(w), "spec")})
	inside(pod, "metadata")["name"] = text(w, "metadata", "name")
	path := "/api/v1/namespaces/" + text(w, "metadata", "namespace") + "/pods?dryRun=All"
	return r.until(func() string {
		got, err := r.send(http.MethodPost, path, pod, makers[w["kind"].(string)])
		return check("dry run", got, err)
	})
}

func (r *run) until(ask func() string) (problem string) {
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		if problem = ask(); problem == "" || time.Now().After(deadline) {
			return problem
		}
	}
}

// real creates the workload, and waits for the pod that the controllers make, or for the event of the refusal.
func (r *run) real(w object, check func(string, object, error) string) string {
	kind, name, namespace := w["kind"].(string), text(w, "metadata", "name"), text(w, "metadata", "namespace")
	path, o := "/apis/apps/v1/namespaces/"+namespace+"/"+strings.ToLower(kind)+"s", copyOf(w)
	switch kind {
	case "Deployment":
		inside(o, "spec")["replicas"] = 1
	case "CronJob":
		path, o = "/apis/batch/v1/namespaces/"+namespace+"/jobs", object{"metadata": object{"name": name}, "spec": at(o, "spec", "jobTemplate", "spec")}
	}
	if _, err := r.send(http.MethodPost, path, o, ""); err != nil {
		return check("the "+kind+" itself", nil, err)
	}
	return r.until(func() string {
		pods, err := r.items("/api/v1/namespaces/" + namespace + "/pods")
		if err != nil {
			return err.Error()
		}
		for _, pod := range pods {
			if strings.HasPrefix(text(pod, "metadata", "name"), name+"-") {
				return check("by the controllers", pod, nil)
			}
		}
		events, err := r.items("/api/v1/namespaces/" + namespace + "/events?fieldSelector=" + url.QueryEscape("reason=FailedCreate"))
		if err != nil {
			return err.Error()
		}
		problem := "no pod and no event of a refusal"
		for _, e := range events {
			if owner := text(e, "involvedObject", "name"); owner == name || strings.HasPrefix(owner, name+"-") {
				if problem = check("by the controllers", nil, fmt.Errorf("%s", text(e, "message"))); problem == "" {
					return ""
				}
			}
		}
		return problem
	})
}

// paths are where the kinds that admission reads are created.
func pathOf(o object) string {
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	switch o["kind"] {
	case "Namespace":
		return "/api/v1/namespaces"
	case "ServiceAccount":
		return "/api/v1/namespaces/" + text(o, "metadata", "namespace") + "/serviceaccounts"
	case "ClusterRole":
		return rbac + "clusterroles"
	case "ClusterRoleBinding":
		return rbac + "clusterrolebindings"
	case "PriorityClass":
		return "/apis/scheduling.k8s.io/v1/priorityclasses"
	}
	return ""
}

// make creates an object, and removes it when the test ends. What is in a namespace goes with that.
func (r *run) make(t *testing.T, o object) object {
	t.Helper()
	inside(o, "metadata", "labels")["cinder-csi.io/test"] = r.prefix
	path := pathOf(o)
	made, err := r.send(http.MethodPost, path, o, "")
	if err != nil && !is(err, http.StatusConflict) {
		t.Fatalf("create %s %s: %v", o["kind"], text(o, "metadata", "name"), err)
	}
	if err != nil || o["kind"] == "ServiceAccount" {
		return made
	}
	r.record.add(1)
	name := text(o, "metadata", "name")
	t.Cleanup(func() {
		if _, err := r.send(http.MethodDelete, path+"/"+name, object{}, ""); err != nil && !is(err, http.StatusNotFound) {
			t.Errorf("%s %s is left in the cluster: %v", o["kind"], name, err)
		}
		r.record.add(-1)
	})
	return made
}

// create creates what admission reads of an installation, and returns the first user and the size of the range of each namespace.
func (r *run) create(t *testing.T, i *installation) map[string][2]int64 {
	t.Helper()
	have := map[string]bool{}
	for _, n := range i.each("Namespace") {
		have[text(n, "metadata", "name")] = true
	}
	for _, name := range []string{i.controller, i.node} {
		if !have[name] { // the namespace of a hosted control plane as HyperShift labels it, or one that comes with the cluster
			have[name] = true
			labels := object{}
			if to, changed := i.levels[name]; !changed && name == i.controller && i.controller != i.node {
				labels["pod-security.kubernetes.io/enforce"] = "restricted"
			} else if to != "" {
				labels["pod-security.kubernetes.io/enforce"] = to
			}
			i.objects = append(i.objects, object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{
				"name": name, "labels": labels, "annotations": object{"openshift.io/node-selector": ""},
			}})
		}
	}
	for class := range i.classes {
		r.make(t, object{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": object{"name": class}, "value": 1000})
	}
	for _, kind := range []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"} {
		for _, o := range i.each(kind) {
			r.make(t, o)
		}
	}
	ranges := map[string][2]int64{}
	for name := range have {
		if problem := r.until(func() string {
			namespace, err := r.get("/api/v1/namespaces/" + name)
			if err != nil {
				return err.Error()
			}
			first, size, _ := strings.Cut(text(namespace, "metadata", "annotations", "openshift.io/sa.scc.uid-range"), "/")
			low, err := strconv.ParseInt(first, 10, 64)
			count, _ := strconv.ParseInt(size, 10, 64)
			ranges[name] = [2]int64{low, count}
			if err != nil {
				return "namespace " + name + " has no range of users"
			}
			return ""
		}); problem != "" {
			t.Fatal(problem)
		}
	}
	if i.controller != i.node && ranges[i.controller][0] == ranges[i.node][0] {
		t.Errorf("want two ranges of users, got %v for both namespaces", ranges[i.node])
	}
	return ranges
}

// switches asks for the pods of rows of all switches: each must be admitted by the constraint that it requires.
func (r *run) switches(t *testing.T) {
	for _, target := range []v1alpha1.Target{v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
		for n, row := range switches.Rows() {
			whole := n < switches.WholeRows
			if !whole && !r.standIn && !*every || r.few && n > 0 {
				continue
			}
			for turn, format := range formats {
				if !whole && n%len(formats) != turn { // Kustomize and Helm give the same objects: a test of generator/verify
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", target, format, n), func(t *testing.T) {
					t.Parallel()
					var decided plan.Result
					_, err := switches.Configure(row, func(spec map[string]any) error {
						if at(spec, "roles", "controller", "runAsUser") != nil {
							return errors.New("for a management cluster that is not OpenShift")
						}
						result, err := decide(spec, target)
						if err == nil {
							decided = result
						}
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
					r.judge(t, install(decided, objectsOf(t, decided, format), r.name()), cases[0], target, false)
				})
			}
		}
	}
}
