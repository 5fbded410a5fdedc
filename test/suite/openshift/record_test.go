//go:build openshift

package openshift

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// facts are what a cluster reports about itself.
type facts struct {
	constraints bool   // it serves SecurityContextConstraints
	standIn     bool   // its admission is the stand-in
	partitioned bool   // it partitions its workloads
	selector    string // its default node selector
}

// record is what a run saw, for a person.
type record struct {
	mu             sync.Mutex
	lines, missing []string
	verdicts       map[string]int
	right, wrong   int
	total, left    int // objects that were created, and those that are there still
}

func (c *record) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}

func (c *record) lacks(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missing = append(c.missing, fmt.Sprintf(format, args...))
}

// add counts objects that were created, or removed if n is negative.
func (c *record) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total, c.left = c.total+max(n, 0), c.left+n
}

func (c *record) count(verdict string, right bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if right {
		c.right++
		if c.verdicts == nil {
			c.verdicts = map[string]int{}
		}
		c.verdicts[strings.Replace(verdict, "no: ", "refused: ", 1)]++
	} else {
		c.wrong++
	}
}

func (c *record) print(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := append([]string{"record of make test-openshift, " + time.Now().UTC().Format("2006-01-02")}, c.lines...)
	all = append(all, fmt.Sprintf("workloads asked for: %d, as expected: %d", c.right+c.wrong, c.right))
	for _, verdict := range slices.Sorted(maps.Keys(c.verdicts)) {
		all = append(all, fmt.Sprintf("  %4d %s", c.verdicts[verdict], verdict))
	}
	for _, m := range c.missing {
		all = append(all, "not possible: "+m)
	}
	all = append(all, fmt.Sprintf("objects created: %d, left behind: %d", c.total, c.left))
	written := strings.Join(all, "\n") + "\n"
	t.Log("\n" + written)
	if *recordFile != "" {
		testenv.Check(t, os.WriteFile(*recordFile, []byte(written), 0o644))
	}
}

// look reads the versions, the constraints and the configuration of admission, and which rights this user has.
func (r *run) look(t *testing.T) {
	t.Helper()
	version := testenv.Value(r.get("/version"))(t)
	r.record.say("Kubernetes %s", text(version, "gitVersion"))
	if cluster, err := r.get("/apis/config.openshift.io/v1/clusterversions/version"); err == nil {
		r.record.say("OpenShift %s", text(cluster, "status", "desired", "version"))
	} else if micro, err := r.get("/api/v1/namespaces/kube-public/configmaps/microshift-version"); err == nil {
		r.record.say("MicroShift %s", text(micro, "data", "version"))
	} else {
		r.record.say("no version of OpenShift, OKD or MicroShift")
	}
	_, err := r.get("/apis/security.openshift.io/v1")
	r.seen.constraints = err == nil
	if constraints, err := r.items("/apis/security.openshift.io/v1/securitycontextconstraints"); err != nil {
		r.record.lacks("list SecurityContextConstraints: %s", reason(err))
	} else {
		var names []string
		for _, c := range constraints {
			names = append(names, text(c, "metadata", "name"))
		}
		r.record.say("SecurityContextConstraints: %s", strings.Join(names, ", "))
	}
	if _, err := r.get("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/openshift-pod"); err == nil {
		r.seen = facts{constraints: true, standIn: true, partitioned: true, selector: "node-role.kubernetes.io/worker="}
		r.record.say("admission: the stand-in of this suite, not OpenShift")
	} else {
		r.configuration()
	}
	if r.write {
		r.rights()
	} else {
		r.record.lacks("the cases and the switches: they create namespaces, accounts, roles and bindings, and WRITE=1 was not given")
	}
}

// configuration reads what decides about plugins of OpenShift's admission. A plugin that is left out of the server says so nowhere.
func (r *run) configuration() {
	partitioning := "unknown"
	if infrastructure, err := r.get("/apis/config.openshift.io/v1/infrastructures/cluster"); err != nil {
		r.record.lacks("read whether workloads are partitioned: %s", reason(err))
	} else if partitioning = text(infrastructure, "status", "cpuPartitioning"); partitioning == "AllNodes" {
		r.seen.partitioned = true
	}
	scheduler, err := r.get("/apis/config.openshift.io/v1/schedulers/cluster")
	if err != nil {
		r.record.lacks("read the default node selector: %s", reason(err))
	}
	r.seen.selector = text(scheduler, "spec", "defaultNodeSelector")
	r.record.say("workload partitioning: %s, default node selector: %q", partitioning, r.seen.selector)
}

// reason is why something could not be read, without names of the cluster.
func reason(err error) string {
	switch {
	case is(err, http.StatusForbidden):
		return "no right"
	case is(err, http.StatusNotFound):
		return "it is not there"
	}
	return err.Error()
}

// rights asks for each right that the cases need. Without one of them the run only reads.
func (r *run) rights() {
	const rbac = "rbac.authorization.k8s.io"
	var missing []string
	for _, right := range []object{
		{"verb": "create", "resource": "namespaces"},
		{"verb": "delete", "resource": "namespaces"},
		{"verb": "create", "resource": "serviceaccounts"},
		{"verb": "create", "group": rbac, "resource": "clusterroles"},
		{"verb": "delete", "group": rbac, "resource": "clusterroles"},
		{"verb": "create", "group": rbac, "resource": "clusterrolebindings"},
		{"verb": "delete", "group": rbac, "resource": "clusterrolebindings"},
		{"verb": "create", "group": "scheduling.k8s.io", "resource": "priorityclasses"},
		{"verb": "delete", "group": "scheduling.k8s.io", "resource": "priorityclasses"},
		{"verb": "use", "group": "security.openshift.io", "resource": "securitycontextconstraints", "name": privileged},
		{"verb": "impersonate", "resource": "serviceaccounts", "namespace": "kube-system"},
		{"verb": "impersonate", "resource": "groups"},
	} {
		if !r.may(right) {
			missing = append(missing, fmt.Sprintf("%s %s", right["verb"], right["resource"]))
		}
	}
	if len(missing) > 0 {
		r.write = false
		r.record.lacks("the cases and the switches: no right to %s", strings.Join(missing, ", "))
	}
}

func (r *run) may(right object) bool {
	review, err := r.send(http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", object{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": object{"resourceAttributes": right},
	}, "")
	return err == nil && at(review, "status", "allowed") == true
}

// readOnly asks by dry run for a pod of the controller in the namespace of the kubeconfig, with the default account there.
func (r *run) readOnly(t *testing.T) {
	namespace := "default"
	if *kubeconfig != "" {
		if config, err := clientcmd.LoadFromFile(*kubeconfig); err == nil {
			if c := config.Contexts[config.CurrentContext]; c != nil && c.Namespace != "" {
				namespace = c.Namespace
			}
		}
	}
	switch {
	case slices.Contains(plan.Unconstrained, namespace):
		r.record.lacks("a dry run of a pod: the namespace of the kubeconfig is %s, where no constraint holds", namespace)
		return
	case !r.may(object{"verb": "create", "resource": "pods", "namespace": namespace}):
		r.record.lacks("a dry run of a pod: no right to create pods in namespace %s", namespace)
		return
	}
	decided := testenv.Value(decide(everything(v1alpha1.Standalone), v1alpha1.Standalone))(t)
	i := install(decided, objectsOf(t, decided, v1alpha1.Kustomize), r.name())
	pod := i.pods("Deployment")[0]
	for _, field := range []string{"serviceAccountName", "priorityClassName"} {
		delete(inside(pod, "spec"), field)
	}
	inside(pod, "metadata")["name"] = r.prefix
	got, err := r.send(http.MethodPost, "/api/v1/namespaces/"+namespace+"/pods?dryRun=All", object{
		"apiVersion": "v1", "kind": "Pod", "metadata": inside(pod, "metadata"), "spec": inside(pod, "spec"),
	}, "")
	by := text(got, "metadata", "annotations", "openshift.io/scc")
	if err != nil || by != restricted {
		t.Errorf("a pod of the controller in namespace %s: want %s, got %q, %v", namespace, restricted, by, err)
	}
	r.record.count(restricted, err == nil && by == restricted)
}

// capacity: with driver.capacity the provisioner writes objects that the Deployment owns, without blockOwnerDeletion. The plugin
// OwnerReferencesPermissionEnforcement, which OpenShift has on, refuses those with it.
func (r *run) capacity(t *testing.T) {
	decided := testenv.Value(decide(everything(v1alpha1.Standalone), v1alpha1.Standalone))(t)
	i := install(decided, nil, r.name())
	r.make(t, object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": i.controller}})
	// The right of the bundle, for an account of this run.
	const account = "capacity"
	r.make(t, object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": account, "namespace": i.controller}})
	rules := capacityRules(t, objectsOf(t, decided, v1alpha1.Kustomize))
	r.make(t, object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": object{"name": i.controller}, "rules": rules})
	r.make(t, object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": i.controller},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": i.controller},
		"subjects": []any{object{"kind": "ServiceAccount", "name": account, "namespace": i.controller}},
	})
	ask := func(owner object) error {
		_, err := r.send(http.MethodPost, "/apis/storage.k8s.io/v1/namespaces/"+i.controller+"/csistoragecapacities?dryRun=All", object{
			"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "storageClassName": "standard", "capacity": "1Gi",
			"metadata": object{"generateName": "csisc-", "ownerReferences": []any{owner}},
		}, i.controller+":"+account)
		return err
	}
	owner := object{"apiVersion": "apps/v1", "kind": "Deployment", "name": "cinder-csi-controller", "uid": "6a0b8f0e-0d5c-4a55-8a39-5f0f2b7b3a11"}
	if problem := r.until(func() string {
		if err := ask(owner); err != nil {
			return err.Error()
		}
		return ""
	}); problem != "" {
		t.Errorf("a CSIStorageCapacity as the provisioner writes it: %s", problem)
	}
	owner["blockOwnerDeletion"] = true
	switch err := ask(owner); {
	case err == nil:
		r.record.say("admission plugin OwnerReferencesPermissionEnforcement: not seen")
		if r.standIn { // the stand-in has no policy for it: the API server has the plugin, or has not
			t.Error("want OwnerReferencesPermissionEnforcement on")
		}
	case strings.Contains(err.Error(), "cannot set blockOwnerDeletion"):
		r.record.say("admission plugin OwnerReferencesPermissionEnforcement: on; it admits the objects of driver.capacity")
	default:
		t.Error(err)
	}
}

// capacityRules are the rules of a bundle about CSIStorageCapacities.
func capacityRules(t *testing.T, objects []object) []any {
	t.Helper()
	var all []any
	for _, o := range objects {
		rules, _ := o["rules"].([]any)
		for _, rule := range rules {
			if resources, _ := rule.(object)["resources"].([]any); slices.Contains(resources, any("csistoragecapacities")) {
				all = append(all, rule)
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("the bundle has no right to write CSIStorageCapacities")
	}
	return all
}
