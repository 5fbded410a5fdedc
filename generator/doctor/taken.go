package doctor

import (
	"context"
	"errors"
	"net/url"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// checkTaken looks for another bundle of this project. With the same driver name its ClusterRoleBindings have the same names, so the bundle that
// is applied last takes the rights of the other. Its pods may have the same namespace and name.
func (c *clusterCheck) checkTaken(ctx context.Context, listed bool) {
	do := "give this bundle its own spec.driver.name and spec.namespaces: see " + pages.TwoBundles.String()
	var bound, workloads []string
	for _, want := range c.Bundle.Bindings {
		var have rbacv1.ClusterRoleBinding
		err := c.cluster.Get(ctx, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/"+url.PathEscape(want.Name), &have)
		switch {
		case errors.Is(err, cluster.ErrNotFound):
		case c.failed("ClusterRoleBinding "+want.Name, err):
			return
		case len(have.Subjects) > 0 && !slices.Equal(have.Subjects, want.Subjects):
			bound = append(bound, want.Name+" (of "+have.Subjects[0].Namespace+"/"+have.Subjects[0].Name+")")
		}
	}
	for _, w := range c.workloads {
		if name := w.DriverName(); c.Bundle.Has(w) && name != "" && name != c.Bundle.DriverName {
			workloads = append(workloads, w.String()+" (driver "+name+")")
		}
	}
	if len(bound) > 0 {
		c.report.add("cluster.rights", Error, "ClusterRoleBindings of the bundle belong to another installation: "+list(bound),
			"when this bundle is applied, the sidecars of the other one lose their rights", do)
	}
	if len(workloads) > 0 {
		c.report.add("cluster.rights", Error, "the bundle would replace another driver: "+list(workloads), "volumes of the other driver can no longer be attached or mounted", do)
	}
	if listed && len(bound)+len(workloads) == 0 {
		c.report.ok("cluster.rights", "no other bundle has the rights and the pods of this one")
	}
}
