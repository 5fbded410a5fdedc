package support

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
)

// The bounds of a bundle: a cluster may have a thousand nodes.
const (
	logLines = 2000             // the last lines of each container
	logBytes = 512 << 10        // of each container
	nodeLogs = 20               // the pods of nodes whose logs are read, those with trouble first
	podTime  = 15 * time.Second // for the logs of a pod: its kubelet may never answer
)

// Entry is one file of a bundle. Its content has passed the Redactor.
type Entry struct {
	Name    string `json:"name"`
	What    string `json:"what"`
	Content []byte `json:"-"`
	Bytes   int    `json:"bytes"`
}

// Archive is what a report contains.
type Archive struct {
	Entries []Entry         `json:"entries"`
	Unseen  []diagnosis.Gap `json:"unseen"` // what could not be read
}

// collector is one run of Collect.
type collector struct {
	diagnosis.Clients
	redactor *Redactor
	out      Archive
	drivers  []string
	names    []string        // of the objects of the driver in namespaces
	troubled map[string]bool // nodes with a volume that has a finding
}

// Collect reads what a bundle contains. It sends GET requests only, and none for a Secret. What cannot be read is listed as not seen. Version is that
// of this program.
func Collect(ctx context.Context, from diagnosis.Clients, r *Redactor, version string) Archive {
	c := &collector{Clients: from, redactor: r, troubled: map[string]bool{}, out: Archive{Entries: []Entry{}, Unseen: []diagnosis.Gap{}}}
	alone := from // without pages, which come last: a kubelet that does not answer may take all the time that is left
	alone.Page, alone.NodePage = nil, nil
	pods := diagnosis.ReadDriverPods(ctx, alone, version).Pods
	c.findings(ctx)
	c.shared(ctx)
	for _, place := range c.places(pods) {
		c.namespace(ctx, place)
	}
	c.logs(ctx, pods)
	c.pages(ctx, version)
	c.add("unseen.json", "what could not be read, and why", c.out.Unseen)
	for i := range c.out.Entries { // a value that one file names may stand in one that was read earlier
		e := &c.out.Entries[i]
		e.Content = []byte(r.Known(string(e.Content)))
		e.Bytes = len(e.Content)
	}
	for i := range c.out.Unseen {
		g := &c.out.Unseen[i]
		g.What, g.Why = r.Text(g.What), r.Text(g.Why)
	}
	slices.SortFunc(c.out.Entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return c.out
}

func (c *collector) add(name, what string, value any) {
	text, err := json.Marshal(value)
	if err == nil {
		value, err = decode(text)
	}
	var b bytes.Buffer
	if err == nil {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		err = e.Encode(c.redactor.Value(value))
	}
	if err != nil {
		c.gap(name, err)
		return
	}
	c.out.Entries = append(c.out.Entries, Entry{Name: name, What: what, Content: b.Bytes()})
}

func (c *collector) gap(what string, err error) {
	c.gaps([]diagnosis.Gap{{What: what, Why: err.Error()}})
}

func (c *collector) gaps(all []diagnosis.Gap) {
	for _, g := range all {
		if !slices.Contains(c.out.Unseen, g) {
			c.out.Unseen = append(c.out.Unseen, g)
		}
	}
}

// pages are what the pods of the driver say.
func (c *collector) pages(ctx context.Context, version string) {
	d := diagnosis.ReadDriverPods(ctx, c.Clients, version)
	c.gaps(d.Unseen)
	c.add("versions.json", "the versions of this program, the driver and the API server", map[string]any{"driver": d, "kubernetes": c.server(ctx, c.Cluster), "time": c.Now})
	operations := diagnosis.ReadAllOperations(ctx, c.Clients)
	c.gaps(operations.Unseen)
	c.add("operations.json", "kubectl cinder operations", operations)
}

func (c *collector) server(ctx context.Context, of *cluster.Cluster) any {
	var version map[string]any
	if err := of.Get(ctx, "/version", &version); err != nil {
		c.gap("the version of the API server", err)
	}
	return version
}

// findings are what the other commands say.
func (c *collector) findings(ctx context.Context) {
	readings, err := diagnosis.ReadList(ctx, c.Clients)
	if err != nil {
		c.gap("the list of volumes", err)
		return
	}
	c.drivers = readings.Drivers
	list := diagnosis.List(readings)
	c.gaps(list.Unseen)
	for _, v := range list.Volumes {
		for _, node := range v.Nodes {
			c.troubled[node] = c.troubled[node] || len(v.Findings) > 0
		}
	}
	c.add("list.json", "kubectl cinder list", list)
	if c.Cloud == nil {
		return
	}
	if orphans, err := diagnosis.FindOrphans(ctx, c.Clients, ""); err != nil {
		c.gap("the orphans", err)
	} else {
		c.gaps(orphans.Unseen)
		c.add("orphans.json", "kubectl cinder orphans", orphans)
	}
	if lost, err := diagnosis.FindMissing(ctx, c.Clients); err != nil {
		c.gap("what is lost", err)
	} else {
		c.gaps(lost.Unseen)
		c.add("lost.json", "kubectl cinder lost", lost)
	}
}

// object is the part of an object that says whose it is.
type object struct {
	Provisioner string `json:"provisioner"`
	Driver      string `json:"driver"`
	Spec        struct {
		Attacher string `json:"attacher"`
		CSI      *struct {
			Driver string `json:"driver"`
		} `json:"csi"`
		Cinder  *struct{} `json:"cinder"`
		Drivers []struct {
			Name string `json:"name"`
		} `json:"drivers"`
	} `json:"spec"`
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

func (c *collector) ours(o object) bool {
	names := []string{o.Provisioner, o.Driver, o.Spec.Attacher, o.Metadata.Name}
	if o.Spec.CSI != nil {
		names = append(names, o.Spec.CSI.Driver)
	}
	for _, d := range o.Spec.Drivers {
		names = append(names, d.Name)
	}
	return o.Spec.Cinder != nil || slices.ContainsFunc(names, func(name string) bool { return slices.Contains(c.drivers, name) })
}

// shared are the objects of the driver that are in no namespace.
func (c *collector) shared(ctx context.Context) {
	for _, kind := range []struct{ name, path string }{
		{"csidrivers", "/apis/storage.k8s.io/v1/csidrivers"},
		{"csinodes", "/apis/storage.k8s.io/v1/csinodes"},
		{"persistentvolumes", "/api/v1/persistentvolumes"},
		{"storageclasses", "/apis/storage.k8s.io/v1/storageclasses"},
		{"volumeattachments", "/apis/storage.k8s.io/v1/volumeattachments"},
		{"volumesnapshotclasses", "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses"},
	} {
		all, err := cluster.List[json.RawMessage](ctx, c.Cluster, kind.path)
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			c.gap("the "+kind.name, err)
		}
		of := []json.RawMessage{}
		for _, text := range all {
			var o object
			if json.Unmarshal(text, &o) == nil && c.ours(o) {
				of = append(of, text)
			}
		}
		if err == nil {
			c.add("objects/"+kind.name+".json", fmt.Sprintf("%d %s of the driver", len(of), kind.name), of)
		}
	}
}

type place struct {
	cluster   *cluster.Cluster
	prefix    string // of the files: a hosted control plane has its own cluster
	namespace string
}

func (c *collector) places(pods []diagnosis.DriverPod) []place {
	var all []place
	for _, p := range pods {
		one := c.placeOf(p)
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

func (c *collector) placeOf(p diagnosis.DriverPod) place {
	namespace, _, _ := strings.Cut(p.Pod, "/")
	if p.Role == "controller" && c.Controller != nil {
		return place{c.Controller, "controller/", namespace}
	}
	return place{c.Cluster, "", namespace}
}

// ofDriver selects the objects of the bundle. A namespace of a hosted control plane has many others.
const ofDriver = "app.kubernetes.io/name=cinder-csi"

func (c *collector) namespace(ctx context.Context, p place) {
	for _, kind := range []struct{ api, name string }{
		{"/apis/apps/v1", "deployments"},
		{"/apis/apps/v1", "daemonsets"},
		{"/apis/batch/v1", "cronjobs"},
		{"/apis/batch/v1", "jobs"},
		{"/api/v1", "pods"},
		{"/api/v1", "configmaps"},
		{"/apis/networking.k8s.io/v1", "networkpolicies"},
	} {
		c.list(ctx, p, kind.api, kind.name, ofDriver)
	}
	c.list(ctx, p, "/api/v1", "events", "")
	c.list(ctx, p, "/apis/coordination.k8s.io/v1", "leases", "")
}

func (c *collector) list(ctx context.Context, p place, api, kind, labels string) {
	path := api + "/namespaces/" + url.PathEscape(p.namespace) + "/" + kind
	all, err := cluster.Select[json.RawMessage](ctx, p.cluster, path, cluster.Selector{Labels: labels})
	if err != nil {
		c.gap("the "+kind+" in namespace "+p.namespace, err)
		return
	}
	switch {
	case kind == "events":
		all = slices.DeleteFunc(all, func(text json.RawMessage) bool { return !c.about(text) })
	case kind == "leases":
		all = slices.DeleteFunc(all, func(text json.RawMessage) bool { return !c.leads(text) })
	case labels != "":
		for _, text := range all {
			var o object
			if json.Unmarshal(text, &o) != nil || o.Metadata.Name == "" {
				continue
			}
			if _, mirror := o.Metadata.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
				c.names = append(c.names, o.Metadata.Name)
			}
		}
	}
	c.add(p.prefix+"namespaces/"+p.namespace+"/"+kind+".json", fmt.Sprintf("%d %s in namespace %s", len(all), kind, p.namespace), all)
}

// about reports whether an event is about an object of the driver. The name of an object that such an object made begins with that of its owner
// and a dash.
// Events of other tenants of the namespace do not belong into the bundle.
func (c *collector) about(text json.RawMessage) bool {
	var e corev1.Event
	if json.Unmarshal(text, &e) != nil {
		return false
	}
	return slices.ContainsFunc(c.names, func(name string) bool { return strings.HasPrefix(e.InvolvedObject.Name+"-", name+"-") })
}

// notInLease is what the sidecars replace by a dash when they name a lease after the driver.
var notInLease = regexp.MustCompile(`[^a-zA-Z0-9-]`)

// leads reports whether a lease is of a sidecar of one of the drivers: its name ends with that of the driver. Sidecars give it no label to select
// by, and a namespace of a hosted control plane has the leases of all its controllers.
func (c *collector) leads(text json.RawMessage) bool {
	var o object
	if json.Unmarshal(text, &o) != nil {
		return false
	}
	drivers := c.drivers
	if len(drivers) == 0 { // the volumes could not be listed
		drivers = []string{cluster.UpstreamName}
	}
	return slices.ContainsFunc(drivers, func(driver string) bool {
		return driver != "" && strings.HasSuffix(o.Metadata.Name, notInLease.ReplaceAllString(driver, "-"))
	})
}

// rank orders the pods of the driver by how likely their logs tell what is wrong. Of one rank, the pod with the most restarts comes first.
func (c *collector) rank(p diagnosis.DriverPod) int {
	switch {
	case p.Role == "controller":
		return 0
	case !p.Ready:
		return 1
	case c.troubled[p.Node]:
		return 2
	case p.Restarts > 0:
		return 3
	}
	return 4
}

func (c *collector) order(pods []diagnosis.DriverPod) {
	slices.SortStableFunc(pods, func(a, b diagnosis.DriverPod) int { return cmp.Or(c.rank(a)-c.rank(b), b.Restarts-a.Restarts) })
}

// logs reads the end of the logs of the driver's pods.
func (c *collector) logs(ctx context.Context, pods []diagnosis.DriverPod) {
	nodes := 0
	c.order(pods)
	for i, p := range pods {
		if p.Role == "node" {
			if nodes++; nodes > nodeLogs {
				c.gap(fmt.Sprintf("the logs of %d more pods of nodes", len(pods)-i), fmt.Errorf("a bundle has those of %d; read others with kubectl logs", nodeLogs))
				return
			}
		}
		c.logsOf(ctx, p)
	}
}

func (c *collector) logsOf(ctx context.Context, p diagnosis.DriverPod) {
	ctx, cancel := context.WithTimeoutCause(ctx, podTime, fmt.Errorf("no complete answer within %s", podTime))
	defer cancel()
	at := c.placeOf(p)
	_, name, _ := strings.Cut(p.Pod, "/")
	var pod corev1.Pod
	if err := at.cluster.Get(ctx, "/api/v1/namespaces/"+url.PathEscape(at.namespace)+"/pods/"+url.PathEscape(name), &pod); err != nil {
		c.gap("the logs of pod "+p.Pod, err)
		return
	}
	read := map[string]bool{} // its kubelet writes the status, and may name a container twice
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if read[s.Name] {
			continue
		}
		read[s.Name] = true
		file := at.prefix + "logs/" + at.namespace + "/" + name + "/" + s.Name
		c.log(ctx, at, name, s.Name, file+".log", false)
		if s.RestartCount > 0 {
			c.log(ctx, at, name, s.Name, file+".previous.log", true)
		}
	}
}

func (c *collector) log(ctx context.Context, at place, pod, container, file string, previous bool) {
	text, err := at.cluster.Log(ctx, at.namespace, pod, container, logLines, logBytes, previous)
	if err != nil {
		c.gap(file, err)
		return
	}
	what := fmt.Sprintf("the last %d lines of container %s", logLines, container)
	if previous {
		what += " before its last restart"
	}
	c.out.Entries = append(c.out.Entries, Entry{Name: file, What: what, Content: []byte(c.redactor.Text(string(text)))})
}
