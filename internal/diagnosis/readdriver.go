package diagnosis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// controllerLabels are those of the controller pods in manifests/base and in the chart.
const controllerLabels = "app.kubernetes.io/component=controller,app.kubernetes.io/name=cinder-csi"

// nodeLabels are those of the node pods.
const nodeLabels = "app.kubernetes.io/component=node,app.kubernetes.io/name=cinder-csi"

// The namespaces of manifests/base.
const (
	usualNamespace     = "cinder-csi"
	usualNodeNamespace = "cinder-csi-node"
)

// readDriver reads the controller pods, the leader leases of their sidecars, and the operations in progress.
func (r *reader) readDriver(ctx context.Context) {
	r.readControllers(ctx)
	namespaces := []string{}
	for _, p := range r.readings.Controllers {
		namespaces = append(namespaces, p.Namespace)
	}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		r.readLeases(ctx, namespace)
	}
	if r.Page == nil {
		return
	}
	for _, p := range r.readings.Controllers {
		if ready(p) {
			r.readOperations(ctx, p)
		}
	}
}

// theControllers begins the name of a gap that the diagnosis asks for.
const theControllers = "the controller pods"

// controllerCluster is where the controller runs.
func (r *reader) controllerCluster() *cluster.Cluster {
	if r.Controller != nil {
		return r.Controller
	}
	return r.Cluster
}

func (r *reader) readControllers(ctx context.Context) {
	selector := cluster.Selector{Labels: controllerLabels}
	if r.Namespace != "" {
		r.readings.Controllers = r.controllersIn(ctx, r.Namespace)
		return
	}
	all, err := cluster.Select[corev1.Pod](ctx, r.Cluster, "/api/v1/pods", selector)
	switch {
	case errors.Is(err, cluster.ErrDenied):
		r.readings.Controllers = r.controllersIn(ctx, usualNamespace)
	case err != nil:
		r.gap(theControllers+" of the driver", err)
	default:
		r.readings.Controllers = r.trusted(ctx, withoutMirrors(all))
	}
}

func (r *reader) controllersIn(ctx context.Context, namespace string) []corev1.Pod {
	path := "/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods"
	return withoutMirrors(selectedIn[corev1.Pod](ctx, r, r.controllerCluster(), theControllers+" of the driver in namespace "+namespace, path, cluster.Selector{Labels: controllerLabels}))
}

// withoutMirrors leaves out mirror pods. A kubelet may make one in any namespace and with any labels, and Kubernetes keeps the annotation.
func withoutMirrors(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(pods, isMirror)
}

func isMirror(p corev1.Pod) bool {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}

// trusted are the pods whose account a ClusterRoleBinding of the driver names. Anybody may give a pod the labels of the controller; only an
// administrator of the cluster makes a ClusterRoleBinding.
func (r *reader) trusted(ctx context.Context, pods []corev1.Pod) []corev1.Pod {
	if len(pods) == 0 {
		return nil
	}
	bindings, err := cluster.Select[rbacv1.ClusterRoleBinding](ctx, r.Cluster, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", cluster.Selector{Labels: "app.kubernetes.io/name=cinder-csi"})
	if err != nil {
		r.gap("the accounts of the driver (ClusterRoleBindings)", err)
	}
	accounts := map[string]bool{}
	for _, b := range bindings {
		for _, s := range b.Subjects {
			accounts[s.Kind+" "+s.Namespace+"/"+s.Name] = true
		}
	}
	var of, others []corev1.Pod
	for _, p := range pods {
		if accounts["ServiceAccount "+p.Namespace+"/"+p.Spec.ServiceAccountName] || err != nil && p.Namespace == usualNamespace {
			of = append(of, p)
		} else {
			others = append(others, p)
		}
	}
	if len(others) > 0 && len(of) == 0 {
		p := others[0]
		r.readings.Gaps = append(r.readings.Gaps, Gap{
			What: "whose pod " + p.Namespace + "/" + p.Name + " is",
			Why:  "it has the labels of the controller, and no ClusterRoleBinding of the driver names its account", Do: "if it is the driver, name its namespace with --driver-namespace",
		})
	}
	return of
}

// pluginsOn names a gap that the report of a node asks for.
func pluginsOn(node string) string { return "the pods of the driver on node " + node }

// readPlugins reads the pods of the driver on a node. Such a pod mounts the directory of the driver from the node, which no ordinary pod may.
func (r *reader) readPlugins(ctx context.Context, name string, node *Node) {
	selector := cluster.Selector{Labels: nodeLabels, Fields: "spec.nodeName=" + name}
	all, err := cluster.Select[corev1.Pod](ctx, r.Cluster, "/api/v1/pods", selector)
	if errors.Is(err, cluster.ErrDenied) {
		// That namespace is a guess. If no pod is there, the driver may run in another, which the gap says.
		all, _ = cluster.Select[corev1.Pod](ctx, r.Cluster, "/api/v1/namespaces/"+usualNodeNamespace+"/pods", selector)
	}
	for _, p := range withoutMirrors(all) {
		if onNode(p) && (cluster.Workload{Pod: p.Spec}).DriverName() == r.readings.Driver {
			node.Plugins = append(node.Plugins, p)
		}
	}
	if err != nil && len(node.Plugins) == 0 {
		r.gap(pluginsOn(name), err)
	}
}

// unhealthy is the metric of a node that names a volume with a finding, and the reason.
var unhealthy = regexp.MustCompile(`(?m)^cinder_csi_node_volume_unhealthy\{reason="([A-Za-z]+)",volume="([0-9a-f-]+)"\} 1$`)

// readFindings reads what the driver of each node with a pod of the claim found wrong with the volume.
func (r *reader) readFindings(ctx context.Context) {
	id := handleOf(r.readings.Volume)
	if r.NodePage == nil || id == "" {
		return
	}
	read := map[string]bool{} // a claim may have many pods on one node
	for _, pod := range r.readings.Pods {
		node := r.readings.Nodes[pod.Spec.NodeName]
		if node == nil || read[pod.Spec.NodeName] {
			continue
		}
		read[pod.Spec.NodeName] = true
		for _, p := range node.Plugins {
			r.readUnhealthy(ctx, p, "what the driver on node "+pod.Spec.NodeName+" found wrong with the volume", func(other, reason string) {
				if other == id {
					node.Finding = reason
				}
			})
		}
	}
}

// readUnhealthy reads which volumes a pod of the driver on a node calls unhealthy, by the page of its metrics.
func (r *reader) readUnhealthy(ctx context.Context, p corev1.Pod, what string, found func(id, reason string)) {
	port, named := portNamed(p, "metrics")
	if !ready(p) || !named {
		return
	}
	text, err := page(ctx, r.NodePage, p, port, "/metrics")
	if err != nil {
		r.gap(what, err)
		return
	}
	for _, m := range unhealthy.FindAllSubmatch(text, -1) {
		found(string(m[2]), string(m[1]))
	}
}

func portNamed(p corev1.Pod, name string) (port int, found bool) {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if c.Name == "driver" && port.Name == name {
				return int(port.ContainerPort), true
			}
		}
	}
	return 0, false
}

// readClusterID reads with which ID the driver marks volumes, if this volume has a mark. A bundle has the ID in a ConfigMap of the controller.
func (r *reader) readClusterID(ctx context.Context) {
	c := r.readings.Cloud
	if c == nil || c.Volume == nil || c.Volume.Metadata[contract.MetadataCluster] == "" {
		return
	}
	if ids := r.driverIDs(ctx).ids; len(ids) == 1 {
		r.readings.ClusterID = ids[0]
	}
}

// driverIDs are the cluster IDs of the controllers that were found, sorted.
type driverIDs struct {
	ids    []string
	hosted string // a controller whose volumes are in another cluster: NAMESPACE/NAME; empty if there is none
}

// hostedKubeconfig is the volume by which the sidecars reach the cluster with the volumes, if that is not their own.
const hostedKubeconfig = "hosted-kubeconfig"

func (r *reader) driverIDs(ctx context.Context) driverIDs {
	var d driverIDs
	settings := map[string]map[string]string{} // replicas share a ConfigMap
	for _, p := range r.readings.Controllers {
		hosted := slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == hostedKubeconfig })
		w := cluster.Workload{Pod: p.Spec}
		id, driver := w.ClusterID(), w.DriverName()
		for _, name := range settingsOf(p) {
			key := p.Namespace + "/" + name
			if _, read := settings[key]; !read {
				var m corev1.ConfigMap
				if err := r.controllerCluster().Get(ctx, namespaced(p.Namespace, "configmaps", name), &m); err != nil {
					r.gap("the cluster ID of the driver", err)
				}
				settings[key] = m.Data
			}
			hosted = hosted || settings[key]["SIDECAR_KUBECONFIG"] != ""
			id = cmp.Or(id, settings[key]["CLUSTER_ID"])
			driver = cmp.Or(driver, settings[key]["DRIVER_NAME"])
		}
		if driver != "" && r.readings.Driver != "" && driver != r.readings.Driver {
			continue // it is of another driver in this cluster
		}
		if hosted {
			d.hosted = p.Namespace + "/" + p.Name
		}
		if id != "" {
			d.ids = append(d.ids, id)
		}
	}
	slices.Sort(d.ids)
	d.ids = slices.Compact(d.ids)
	return d
}

// settingsOf are the ConfigMaps from which the driver in a pod takes its settings.
func settingsOf(p corev1.Pod) []string {
	var names []string
	for _, c := range p.Spec.Containers {
		for _, from := range c.EnvFrom {
			if c.Name == "driver" && from.ConfigMapRef != nil {
				names = append(names, from.ConfigMapRef.Name)
			}
		}
	}
	return names
}

func ready(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// readLeases reads the leases whose name has the name of the driver, as the sidecars form it.
func (r *reader) readLeases(ctx context.Context, namespace string) {
	mark := strings.NewReplacer(".", "-", "/", "-").Replace(r.readings.Driver)
	path := "/apis/coordination.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/leases"
	for _, l := range selectedIn[coordinationv1.Lease](ctx, r, r.controllerCluster(), "the leader leases in namespace "+namespace, path, cluster.Selector{}) {
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
		r.readings.Leases = append(r.readings.Leases, lease)
	}
}

// readOperations reads /debug/operations of one controller pod and keeps what concerns this volume.
func (r *reader) readOperations(ctx context.Context, p corev1.Pod) {
	place := "the operations in progress of pod " + p.Namespace + "/" + p.Name
	port, found := httpPort(p)
	if !found {
		r.readings.Gaps = append(r.readings.Gaps, Gap{What: place, Why: "its driver has no --http-endpoint"})
		return
	}
	text, err := page(ctx, r.Page, p, port, "/debug/operations")
	var operations []Operation
	if err == nil {
		operations, err = operationsIn(text)
	}
	if err != nil {
		r.readings.Gaps = append(r.readings.Gaps, Gap{What: place, Why: cloud.Public(err.Error()), Do: r.readByHand(err, p, port, "/debug/operations")})
		return
	}
	for _, o := range operations {
		if r.concerns(o) {
			r.readings.Operations = append(r.readings.Operations, o)
		}
	}
}

// readByHand is what to do if a page of a pod could not be read. Only a refusal is about rights.
func (r *reader) readByHand(err error, p corev1.Pod, port int, page string) string {
	switch {
	case errors.Is(err, cluster.ErrDenied):
		return "this needs the right to get pods/portforward"
	case errors.Is(err, cluster.ErrNotFound):
		return "the pod or its Node is gone, or just being replaced; see: " + r.Given.command(kubectl(p.Namespace, "get", "pod", podNamed(p.Name), "--output", "wide"))
	}
	return fmt.Sprintf("run: %s, and read http://127.0.0.1:%d%s", r.Given.command(kubectl(p.Namespace, "port-forward", "pod/"+podNamed(p.Name), strconv.Itoa(port))), port, page)
}

func (r *reader) concerns(o Operation) bool {
	var ids []string
	if c := r.readings.Claim; c != nil {
		ids = append(ids, volumeName(*c))
	}
	if id := handleOf(r.readings.Volume); id != "" {
		ids = append(ids, id, r.readings.Volume.Name)
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
