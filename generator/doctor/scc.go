package doctor

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

const constraintsAPI = "/apis/security.openshift.io/v1"

// checkConstraints asks what OpenShift's admission asks of each pod: does the security context constraint that it requires exist, and may its
// account use it? What the pod itself has is not compared: make test-apiserver does that.
func (c *clusterCheck) checkConstraints(ctx context.Context) {
	missing, err := c.notServed(ctx, constraintsAPI, "securitycontextconstraints")
	if c.failed("the security context constraints", err) {
		return
	}
	served, required := len(missing) == 0, c.forOpenShift()
	switch {
	case !served && !required:
		c.report.ok("cluster.scc", "the cluster has no security context constraints, and the bundle requires none")
	case !served:
		c.report.add("cluster.scc", Error, "the API server serves no SecurityContextConstraints, and the bundle requires them", "the cluster is not OpenShift, so nothing chooses the user of the controller",
			"generate the bundle with --target vanilla")
	case !required:
		c.report.add("cluster.scc", Error, "the cluster has security context constraints, and the bundle requires none", "the bundle is not for OpenShift, which refuses its pods",
			"generate the bundle with --target standalone")
	default:
		for _, w := range c.Bundle.Workloads {
			c.checkConstraint(ctx, w)
		}
	}
}

// forOpenShift reports whether pods of the bundle require security context constraints.
func (c *clusterCheck) forOpenShift() bool {
	return slices.ContainsFunc(c.Bundle.Workloads, func(w cluster.Workload) bool { return w.Constraint != "" })
}

func (c *clusterCheck) checkConstraint(ctx context.Context, w cluster.Workload) {
	var have struct{}
	err := c.cluster.Get(ctx, constraintsAPI+"/securitycontextconstraints/"+url.PathEscape(w.Constraint), &have)
	if errors.Is(err, cluster.ErrNotFound) {
		c.report.add("cluster.scc", Error, "SecurityContextConstraints "+w.Constraint+", which "+w.String()+" requires, does not exist",
			"OpenShift refuses the pods: failed to retrieve the required SCC", "restore the constraint, which OpenShift has by default")
		return
	}
	if c.failed("SecurityContextConstraints "+w.Constraint, err) {
		return
	}
	account := w.Pod.ServiceAccountName
	may, err := c.cluster.May(ctx, w.Namespace, account, authorizationv1.ResourceAttributes{
		Verb: "use", Group: "security.openshift.io", Resource: "securitycontextconstraints", Name: w.Constraint, Namespace: w.Namespace,
	})
	if c.failed("whether the account of "+w.String()+" may use SecurityContextConstraints "+w.Constraint, err) {
		return
	}
	if may {
		c.report.ok("cluster.scc", "the account of %s may use SecurityContextConstraints %s", w, w.Constraint)
		return
	}
	do := shell.Line("oc", "--namespace", shell.Name(w.Namespace, "NAMESPACE"), "adm", "policy", "add-scc-to-user", shell.Name(w.Constraint, "CONSTRAINT"),
		"--serviceaccount", shell.Name(account, "ACCOUNT"))
	if binding := c.Bundle.Grant(w.Namespace, account, w.Constraint); binding != "" {
		err := c.cluster.Get(ctx, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/"+url.PathEscape(binding), &have)
		if errors.Is(err, cluster.ErrNotFound) {
			c.report.ok("cluster.scc", "the bundle brings the right of %s to use SecurityContextConstraints %s", w, w.Constraint)
			return
		}
		do = "apply the bundle again, and look at ClusterRoleBinding " + binding + " and its role"
	}
	c.report.add("cluster.scc", Error, "service account "+w.Namespace+"/"+account+" may not use SecurityContextConstraints "+w.Constraint,
		"OpenShift refuses the pods of "+w.String()+": not usable by user or serviceaccount", do)
}

// runLevel exempts a namespace of OpenShift's own from security context constraints.
const runLevel = "openshift.io/run-level"

// exempt reports whether OpenShift applies no security context constraint in a namespace. The generator refuses those that are so by name.
func exempt(labels map[string]string) bool { return labels[runLevel] == "0" || labels[runLevel] == "1" }

// selector is what OpenShift adds to the node selector of each pod in a namespace that the bundle does not annotate.
func (c *clusterCheck) selector(ctx context.Context, annotations map[string]string) string {
	if own, has := annotations["openshift.io/node-selector"]; has {
		return strings.TrimSpace(own)
	}
	var scheduler struct {
		Spec struct {
			DefaultNodeSelector string `json:"defaultNodeSelector"`
		} `json:"spec"`
	}
	err := c.cluster.Get(ctx, "/apis/config.openshift.io/v1/schedulers/cluster", &scheduler)
	if errors.Is(err, cluster.ErrNotFound) || c.failed("the default node selector", err) {
		return ""
	}
	return scheduler.Spec.DefaultNodeSelector
}
