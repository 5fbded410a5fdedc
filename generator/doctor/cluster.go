package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cinder-csi/cinder-csi/generator/migrate"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// Install is what is to be installed into a cluster.
type Install struct {
	Bundle            cluster.Bundle
	KubernetesVersion string   // the lowest minor that the bundle is made for: "1.32"
	Snapshots         bool     // the bundle has the snapshotter
	ComputeZones      []string // of the cloud; nil: not known
}

type clusterCheck struct {
	Install
	report    *Report
	cluster   *cluster.Cluster
	workloads []cluster.Workload
}

// CheckCluster adds the findings about a cluster.
func (r *Report) CheckCluster(ctx context.Context, c *cluster.Cluster, install Install) {
	r.Cluster = c.Name()
	check := &clusterCheck{Install: install, report: r, cluster: c}
	if check.checkVersion(ctx) {
		check.run(ctx)
	}
}

func (c *clusterCheck) run(ctx context.Context) {
	workloads, err := c.cluster.Workloads(ctx)
	c.failed("other drivers, the snapshot controller and the directory of kubelet", err)
	c.workloads = workloads
	if err == nil {
		c.checkDriver(ctx)
		c.checkKubelet(ctx)
	}
	c.checkSnapshots(ctx, err == nil)
	c.checkNamespaces(ctx)
	c.checkConstraints(ctx)
	c.checkSecrets(ctx)
	c.checkNodes(ctx)
	c.checkTaken(ctx, err == nil)
	c.checkPorts(ctx)
	c.checkNetwork(ctx)
	c.checkMonitoring(ctx)
	c.checkClasses(ctx)
}

// failed lists what could not be read; a missing right is no fault of the cluster.
func (c *clusterCheck) failed(what string, err error) bool {
	if err != nil {
		c.report.notChecked(what, err.Error(), "run doctor as a user who may read the objects (an administrator of the cluster)")
	}
	return err != nil
}

var minorVersion = regexp.MustCompile(`^v?(\d+)\.(\d+)`)

// checkVersion is false if the API server does not answer.
func (c *clusterCheck) checkVersion(ctx context.Context) bool {
	var version struct {
		Git string `json:"gitVersion"`
	}
	if err := c.cluster.Get(ctx, "/version", &version); err != nil {
		c.report.add("cluster.version", Error, err.Error(), "nothing else of the cluster can be checked", "check the kubeconfig, its context and the network: kubectl version")
		return false
	}
	have, want := minor(version.Git), minor(c.KubernetesVersion)
	switch {
	case have < 0 || want < 0:
		c.report.notChecked("the version of Kubernetes", fmt.Sprintf("%q is not a version", version.Git), "compare it with spec.kubernetesVersion by hand")
	case have < want:
		c.report.add("cluster.version", Error, fmt.Sprintf("Kubernetes is %s, and the bundle is made for %s", version.Git, c.KubernetesVersion),
			"the API server refuses or drops fields that it does not know", fmt.Sprintf("set spec.kubernetesVersion to \"1.%d\", or upgrade the cluster", have))
	default:
		c.report.ok("cluster.version", "Kubernetes is %s; the bundle is made for %s and later", version.Git, c.KubernetesVersion)
	}
	return true
}

// minor is the minor version of Kubernetes 1, or -1.
func minor(version string) int {
	m := minorVersion.FindStringSubmatch(version)
	if m == nil || m[1] != "1" {
		return -1
	}
	n, err := strconv.Atoi(m[2])
	if err != nil {
		return -1
	}
	return n
}

func (c *clusterCheck) checkSnapshots(ctx context.Context, listed bool) {
	if !c.Snapshots {
		c.report.ok("cluster.snapshots", "the bundle makes no snapshots")
		return
	}
	missing, err := c.notServed(ctx, "/apis/snapshot.storage.k8s.io/v1", "volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses")
	if c.failed("the snapshot CRDs", err) {
		return
	}
	if len(missing) > 0 {
		c.report.add("cluster.snapshots", Error, "the API server does not serve "+list(missing)+" of snapshot.storage.k8s.io/v1",
			"the VolumeSnapshotClass of the bundle cannot be applied, and the snapshotter does not start",
			"install the CRDs of kubernetes-csi/external-snapshotter (client/config/crd), or set spec.snapshots.enabled to false")
		return
	}
	isController := func(w cluster.Workload) bool {
		return slices.ContainsFunc(w.Pod.Containers, func(container corev1.Container) bool { return strings.Contains(container.Image, "snapshot-controller") })
	}
	switch {
	case !listed: // said already
	case slices.ContainsFunc(c.workloads, isController):
		c.report.ok("cluster.snapshots", "the snapshot CRDs and the snapshot controller are there")
	default:
		c.report.add("cluster.snapshots", Warning, "no Deployment runs a snapshot controller", "without it, VolumeSnapshots stay as they are",
			"install the snapshot-controller of kubernetes-csi/external-snapshotter; a managed control plane may run it where nobody sees it")
	}
}

// notServed are the kinds of an API that the API server does not serve.
func (c *clusterCheck) notServed(ctx context.Context, api string, kinds ...string) ([]string, error) {
	var served struct {
		Resources []struct {
			Name string `json:"name"`
		} `json:"resources"`
	}
	if err := c.cluster.Get(ctx, api, &served); err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return nil, err
	}
	for _, r := range served.Resources {
		kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == r.Name })
	}
	return kinds, nil
}

func (c *clusterCheck) checkDriver(ctx context.Context) {
	name := c.Bundle.DriverName
	var others, inline []string
	ours := false
	for _, w := range c.workloads {
		if cluster.InlineVolumes(w.Pod, name) > 0 {
			inline = append(inline, w.String())
		}
		switch {
		case c.Bundle.Has(w):
			ours = true
		case w.DriverName() == name:
			others = append(others, w.String())
		}
	}
	if len(inline) > 0 {
		c.report.add("cluster.driver", Warning, fmt.Sprintf("%d workloads have inline volumes of driver %s: %s", len(inline), name, list(inline)), "kubelet refuses these pods once the CSIDriver of the bundle is there",
			migrate.InlineAdvice)
	}
	var existing struct{}
	err := c.cluster.Get(ctx, "/apis/storage.k8s.io/v1/csidrivers/"+url.PathEscape(name), &existing)
	switch {
	case len(others) > 0:
		c.report.add("cluster.driver", Error, "another driver with the name "+name+" is installed: "+list(others), "two controllers with one name act on the same volumes",
			"generate the bundle, and follow the steps that cinder-csi-generator adopt DIR prints")
	case errors.Is(err, cluster.ErrNotFound) && c.registered(ctx, name):
		c.report.add("cluster.driver", Error, "driver "+name+" is registered on nodes, and the cluster has no CSIDriver of this name",
			"Kubernetes does not apply fsGroup and SELinux labels as the bundle says, and does not refresh the attach limit",
			"apply the bundle with its own names, without namePrefix and nameSuffix above it; kubectl get csidriver shows what there is")
	case errors.Is(err, cluster.ErrNotFound):
		c.report.ok("cluster.driver", "no driver has the name %s yet", name)
	case err != nil:
		c.failed("CSIDriver "+name, err)
	case ours:
		c.report.ok("cluster.driver", "this driver is installed already: %s", name)
	default:
		c.report.add("cluster.driver", Warning, "CSIDriver "+name+" exists, but no workload that doctor knows serves it", "another driver may run under this name, or was removed in part",
			"find out who made it: kubectl get csidriver "+shell.Name(name, "NAME")+" -o yaml; cinder-csi-generator adopt DIR prints how to take over")
	}
}

// registered is whether a driver is registered on a node. Without the right to read CSINodes nobody knows.
func (c *clusterCheck) registered(ctx context.Context, driver string) bool {
	nodes, _ := cluster.List[storagev1.CSINode](ctx, c.cluster, "/apis/storage.k8s.io/v1/csinodes")
	return slices.ContainsFunc(nodes, func(n storagev1.CSINode) bool {
		return slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
	})
}
