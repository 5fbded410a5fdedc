package diagnosis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// controllerLabels are those of the controller pods in manifests/base and in the chart.
const controllerLabels = "app.kubernetes.io/component=controller,app.kubernetes.io/name=cinder-csi"

// usualNamespace is the namespace of manifests/base.
const usualNamespace = "cinder-csi"

// readDriver reads the controller pods, the leader leases of their sidecars, and the operations in progress.
func (r *reader) readDriver(ctx context.Context) {
	r.readControllers(ctx)
	namespaces := []string{}
	for _, p := range r.facts.Controllers {
		namespaces = append(namespaces, p.Namespace)
	}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		r.readLeases(ctx, namespace)
	}
	if r.Page == nil {
		return
	}
	for _, p := range r.facts.Controllers {
		if ready(p) {
			r.readOperations(ctx, p)
		}
	}
}

func (r *reader) readControllers(ctx context.Context) {
	selector := cluster.Selector{Labels: controllerLabels}
	if r.Namespace == "" {
		all, err := cluster.Select[corev1.Pod](ctx, r.Cluster, "/api/v1/pods", selector)
		if err == nil {
			r.facts.Controllers = all
			return
		}
		if !errors.Is(err, cluster.ErrDenied) {
			r.gap("the controller pods of the driver", err)
			return
		}
	}
	namespace := r.Namespace
	if namespace == "" {
		namespace = usualNamespace
	}
	what := "the controller pods of the driver in namespace " + namespace
	r.facts.Controllers = selected[corev1.Pod](ctx, r, what, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/pods", selector)
}

func ready(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// readLeases reads the leases whose name has the name of the driver, as the sidecars form it.
func (r *reader) readLeases(ctx context.Context, namespace string) {
	mark := strings.NewReplacer(".", "-", "/", "-").Replace(r.facts.Driver)
	path := "/apis/coordination.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/leases"
	for _, l := range selected[coordinationv1.Lease](ctx, r, "the leader leases in namespace "+namespace, path, cluster.Selector{}) {
		if mark == "" || !strings.HasSuffix(l.Name, mark) {
			continue
		}
		lease := Lease{Name: namespace + "/" + l.Name}
		if l.Spec.HolderIdentity != nil {
			lease.Holder = *l.Spec.HolderIdentity
		}
		if l.Spec.RenewTime != nil && l.Spec.LeaseDurationSeconds != nil {
			lease.Until = l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second)
		}
		r.facts.Leases = append(r.facts.Leases, lease)
	}
}

// readOperations reads /debug/operations of one controller pod and keeps what concerns this volume.
func (r *reader) readOperations(ctx context.Context, p corev1.Pod) {
	place := "the operations in progress of pod " + p.Namespace + "/" + p.Name
	port, found := httpPort(p)
	if !found {
		r.facts.Gaps = append(r.facts.Gaps, Gap{What: place, Why: "its driver has no --http-endpoint"})
		return
	}
	text, err := r.Page(ctx, p.Namespace, p.Name, port, "/debug/operations")
	var page struct {
		Operations []Operation `json:"operations"`
	}
	if err == nil {
		err = json.Unmarshal(text, &page)
	}
	if err != nil {
		r.facts.Gaps = append(r.facts.Gaps, Gap{What: place, Why: cloud.Clean(err.Error()), Do: fmt.Sprintf(
			"this needs the right to get pods/portforward; or run: kubectl --namespace %s port-forward pod/%s %d, and read http://127.0.0.1:%d/debug/operations", p.Namespace, p.Name, port, port)})
		return
	}
	cloud.CleanStrings(&page)
	for _, o := range page.Operations {
		if r.concerns(o) {
			r.facts.Operations = append(r.facts.Operations, o)
		}
	}
}

func (r *reader) concerns(o Operation) bool {
	var ids []string
	if c := r.facts.Claim; c != nil {
		ids = append(ids, volumeName(*c))
	}
	if v := r.facts.Volume; v != nil && v.Spec.CSI != nil {
		ids = append(ids, v.Spec.CSI.VolumeHandle, v.Name)
	}
	words := strings.Fields(o.Object)
	return slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(words, id) })
}

// volumeName is the name that external-provisioner gives the volume of a claim.
func volumeName(c corev1.PersistentVolumeClaim) string { return "pvc-" + string(c.UID) }

// httpPort is the port of --http-endpoint of the driver in a controller pod.
func httpPort(p corev1.Pod) (port int, found bool) {
	for _, c := range p.Spec.Containers {
		if c.Name != "driver" {
			continue
		}
		for _, arg := range c.Args {
			if address, is := strings.CutPrefix(arg, "--http-endpoint="); is {
				port, err := strconv.Atoi(address[strings.LastIndexByte(address, ':')+1:])
				return port, err == nil
			}
		}
	}
	return 0, false
}
