package diagnosis

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// DriverPod is a pod of the driver.
type DriverPod struct {
	Role  string `json:"role"` // controller or node
	Pod   string `json:"pod"`  // NAMESPACE/NAME
	Node  string `json:"node"`
	Ready bool   `json:"ready"`
	// Restarts are those of all containers.
	Restarts int    `json:"restarts,omitempty"`
	Image    string `json:"image"`
	ImageID  string `json:"imageID"`
	Version  string `json:"version,omitempty"` // as the driver reports it; empty if its page was not read
}

// DriverPods are the pods of the driver in a cluster.
type DriverPods struct {
	Client string      `json:"client"` // the version of this program
	Pods   []DriverPod `json:"pods"`
	Unseen []Gap       `json:"unseen"`
}

// OperationOf is an operation in progress of one pod.
type OperationOf struct {
	Pod   string `json:"pod"` // NAMESPACE/NAME
	Node  string `json:"node"`
	Claim string `json:"claim"` // NAMESPACE/NAME; empty if none is known
	Operation
}

// AllOperations are the operations in progress of all pods of the driver, the oldest first.
type AllOperations struct {
	Time       time.Time     `json:"time"`
	Pods       int           `json:"pods"` // whose page was read
	Operations []OperationOf `json:"operations"`
	Unseen     []Gap         `json:"unseen"`
}

type rolePod struct {
	corev1.Pod
	role string
	page readsPage
}

// readsPage reads a page of a pod.
type readsPage func(ctx context.Context, namespace, pod string, port int, path string) ([]byte, error)

// The bounds of pages: a pod, or the kubelet before it, may never answer.
const (
	pageTimeout = 5 * time.Second
	pagesAtOnce = 8
)

// page reads a page of a pod that answers in time.
func page(ctx context.Context, read readsPage, p corev1.Pod, port int, path string) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	text, err := read(limited, p.Namespace, p.Name, port, path)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: no complete answer within %s", cluster.ErrUnreachable, pageTimeout)
	}
	return text, err
}

// operationsIn are the operations of the page of a pod. Items bounds their number: a page of some MiB may have a million.
func operationsIn(text []byte) ([]Operation, error) {
	var page struct {
		Operations cloud.Items[Operation] `json:"operations"`
	}
	err := json.Unmarshal(text, &page)
	cloud.CleanStrings(&page)
	return page.Operations, err
}

// pods are the controller pods and the node pods. A node pod has the labels and mounts the directory of a driver from its node, which no
// ordinary pod may.
func (r *reader) pods(ctx context.Context) []rolePod {
	r.readControllers(ctx)
	var all []rolePod
	for _, p := range r.readings.Controllers {
		all = append(all, rolePod{p, "controller", r.Page})
	}
	nodes, err := cluster.Select[corev1.Pod](ctx, r.Cluster, "/api/v1/pods", cluster.Selector{Labels: nodeLabels})
	if err != nil {
		nodes = selected[corev1.Pod](ctx, r, "the node pods of the driver", "/api/v1/namespaces/"+usualNodeNamespace+"/pods", cluster.Selector{Labels: nodeLabels})
	}
	for _, p := range withoutMirrors(nodes) {
		if onNode(p) {
			all = append(all, rolePod{p, "node", r.NodePage})
		}
	}
	slices.SortFunc(all, func(a, b rolePod) int {
		return strings.Compare(a.role+" "+a.Namespace+"/"+a.Name, b.role+" "+b.Namespace+"/"+b.Name)
	})
	return all
}

// onNode reports whether a pod mounts the directory of a CSI driver from its node.
func onNode(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.HostPath != nil && path.Base(path.Dir(path.Clean(v.HostPath.Path))) == "plugins"
	})
}

// pageOf is a page of a pod, or why it was not read.
type pageOf struct {
	rolePod
	text []byte
	gap  *Gap
}

// read reads a page of each pod. What cannot be read is a gap.
func (r *reader) read(ctx context.Context, pods []rolePod, name string) []pageOf {
	pages, free := make([]pageOf, len(pods)), make(chan struct{}, pagesAtOnce)
	var all sync.WaitGroup
	for i, p := range pods {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			pages[i] = r.readOne(ctx, p, name)
		})
	}
	all.Wait()
	for _, p := range pages {
		if p.gap != nil {
			r.readings.Gaps = append(r.readings.Gaps, *p.gap)
		}
	}
	return pages
}

// readOne runs beside others of its kind, so it changes nothing of the reader.
func (r *reader) readOne(ctx context.Context, p rolePod, name string) pageOf {
	gap := func(why, do string) pageOf {
		return pageOf{p, nil, &Gap{What: name + " of pod " + p.Namespace + "/" + p.Name, Why: why, Do: do}}
	}
	switch {
	case !ready(p.Pod):
		return gap("the pod is not ready", "")
	case p.page == nil:
		return gap("no port can be forwarded", "")
	}
	port, found := r.pagePort(ctx, p)
	if !found {
		return gap("its driver has no --http-endpoint", "")
	}
	text, err := page(ctx, p.page, p.Pod, port, name)
	if err != nil {
		return gap(cloud.Public(err.Error()), r.readByHand(err, p.Pod, port, name))
	}
	return pageOf{p, text, nil}
}

// pagePort is httpPort, also for an address that the driver takes from a ConfigMap.
func (r *reader) pagePort(ctx context.Context, p rolePod) (int, bool) {
	if port, found := httpPort(p.Pod); found {
		return port, true
	}
	c := r.Cluster
	if p.role == "controller" {
		c = r.controllerCluster()
	}
	for _, name := range settingsOf(p.Pod) {
		var m corev1.ConfigMap
		if err := c.Get(ctx, namespaced(p.Namespace, "configmaps", name), &m); err != nil {
			continue // the caller says that there is no port
		}
		address := m.Data["METRICS_ADDRESS"]
		if port, err := strconv.Atoi(address[strings.LastIndexByte(address, ':')+1:]); err == nil {
			return port, true
		}
	}
	return 0, false
}

var buildInfo = regexp.MustCompile(`(?m)^cinder_csi_build_info\{[^}\n]*version="([^"\n]*)"`)

// ReadDriverPods says which driver runs in a cluster.
func ReadDriverPods(ctx context.Context, from Clients, client string) DriverPods {
	r := &reader{Clients: from, readings: &Readings{Now: from.Now}}
	d := DriverPods{Client: client, Pods: []DriverPod{}}
	for _, p := range r.read(ctx, r.pods(ctx), "/metrics") {
		one := DriverPod{Role: p.role, Pod: p.Namespace + "/" + p.Name, Node: p.Spec.NodeName, Ready: ready(p.Pod)}
		for _, s := range p.Status.ContainerStatuses {
			one.Restarts += int(s.RestartCount)
		}
		for _, c := range p.Spec.Containers {
			if c.Name == "driver" || cluster.IsCinderDriver(c) {
				one.Image = c.Image
				for _, s := range p.Status.ContainerStatuses {
					if s.Name == c.Name {
						one.ImageID = s.ImageID
					}
				}
				break
			}
		}
		if m := buildInfo.FindSubmatch(p.text); m != nil {
			one.Version = cloud.Clean(string(m[1]))
		}
		d.Pods = append(d.Pods, one)
	}
	d.Unseen = listed(r.readings.Gaps)
	return d
}

// PrintDriverPods writes them for people, alike pods in one line.
func PrintDriverPods(out io.Writer, d DriverPods, columns int) error {
	p := newPrinter(out, columns)
	p.line("kubectl-cinder " + d.Client)
	type kind struct{ role, version, image string }
	count, ready := map[kind]int{}, map[kind]int{}
	var kinds []kind
	for _, one := range d.Pods {
		k := kind{one.Role, one.Version, one.Image}
		if count[k] == 0 {
			kinds = append(kinds, k)
		}
		count[k]++
		if one.Ready {
			ready[k]++
		}
	}
	var rows [][]string
	for _, k := range kinds {
		rows = append(rows, []string{k.role, fmt.Sprint(count[k]), fmt.Sprint(ready[k]), orUnknown(k.version), k.image})
	}
	p.table("\nDRIVER\tPODS\tREADY\tVERSION\tIMAGE", rows)
	if len(d.Pods) == 0 {
		p.line("no pod of the driver was found")
	}
	p.unseen(d.Unseen)
	return p.err
}

// ReadAllOperations reads /debug/operations of every pod of the driver.
func ReadAllOperations(ctx context.Context, from Clients) AllOperations {
	r := &reader{Clients: from, readings: &Readings{Now: from.Now}}
	all := AllOperations{Time: from.Now, Operations: []OperationOf{}}
	claims := r.claimsByWord(ctx)
	for _, p := range r.read(ctx, r.pods(ctx), "/debug/operations") {
		if p.gap != nil {
			continue
		}
		operations, err := operationsIn(p.text)
		if err != nil {
			r.readings.Gaps = append(r.readings.Gaps, Gap{What: "the operations of pod " + p.Namespace + "/" + p.Name, Why: "the page is not what the driver sends: " + cloud.Public(err.Error())})
			continue
		}
		all.Pods++
		for _, o := range operations {
			one := OperationOf{Pod: p.Namespace + "/" + p.Name, Node: p.Spec.NodeName, Operation: o}
			for _, word := range strings.Fields(o.Object) {
				if claim := claims[word]; claim != "" {
					one.Claim = claim
				}
			}
			all.Operations = append(all.Operations, one)
		}
	}
	slices.SortStableFunc(all.Operations, func(a, b OperationOf) int { return a.Since.Compare(b.Since) })
	all.Unseen = listed(r.readings.Gaps)
	return all
}

// claimsByWord are the claims by what an operation calls their volumes: the ID, or the name of the PersistentVolume. That name is known before
// the PersistentVolume exists.
func (r *reader) claimsByWord(ctx context.Context) map[string]string {
	claims := map[string]string{}
	for _, v := range selected[corev1.PersistentVolume](ctx, r, "the PersistentVolumes", "/api/v1/persistentvolumes", cluster.Selector{}) {
		if ref := v.Spec.ClaimRef; ref != nil {
			claims[v.Name] = ref.Namespace + "/" + ref.Name
			if id := handleOf(&v); id != "" {
				claims[id] = claims[v.Name]
			}
		}
	}
	for _, c := range selected[corev1.PersistentVolumeClaim](ctx, r, "the claims", "/api/v1/persistentvolumeclaims", cluster.Selector{}) {
		claims[volumeName(c)] = c.Namespace + "/" + c.Name
	}
	return claims
}

// PrintOperations writes them for people.
func PrintOperations(out io.Writer, a AllOperations, columns int) error {
	p := newPrinter(out, columns)
	for _, o := range a.Operations {
		state := "waits for the next call"
		if o.Running {
			state = "runs"
		}
		p.others("", fmt.Sprintf("%s %s of %s: %s since %s, %d calls", o.Method, o.Object, orNone(o.Claim), state, age(a.Time.Sub(o.Since)), o.RPCs))
		p.text("  ", "pod "+o.Pod+" on node "+orNone(o.Node))
		if o.Step != "" {
			p.text("  ", "step: "+sentence(o.Step, o.State))
		}
		if o.LastError != "" {
			p.text("  ", "last error: "+o.LastCode+": "+o.LastError)
		}
		if len(o.Requests) > 0 {
			p.text("  ", "OpenStack requests: "+strings.Join(o.Requests, " "))
		}
	}
	p.unseen(a.Unseen)
	if len(a.Operations) > 0 || len(a.Unseen) > 0 {
		p.line("")
	}
	p.line(fmt.Sprintf("%d operations in progress, of %d pods of the driver", len(a.Operations), a.Pods))
	return p.err
}
