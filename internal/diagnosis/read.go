package diagnosis

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// Sources are where the facts come from.
type Sources struct {
	Cluster *cluster.Cluster
	// Cloud is nil if there is no login; NoCloud says why.
	Cloud   *cloud.Cloud
	NoCloud Gap
	// Namespace of the controller; empty: its pods are looked for in all namespaces, and count if a ClusterRoleBinding of the driver names
	// their account.
	Namespace string
	// Controller is the cluster of the controller, with a hosted control plane; nil: the same as Cluster. It needs a Namespace.
	Controller *cluster.Cluster
	// NodePage reads a page of a pod of a node: PodPage of the cluster of the nodes. Nil reads none.
	NodePage func(ctx context.Context, namespace, pod string, port int, path string) ([]byte, error)
	// Page reads a page of a pod of the controller: PodPage of its cluster.
	Page func(ctx context.Context, namespace, pod string, port int, path string) ([]byte, error)
	Now  time.Time
}

// reader is one run of Read.
type reader struct {
	Sources
	facts *Facts
}

// ReadTarget is Read for a claim or a PersistentVolume.
func ReadTarget(ctx context.Context, from Sources, t Target) (Facts, error) {
	if t.Kind != Volume {
		return Read(ctx, from, t.Namespace, t.Name)
	}
	var v corev1.PersistentVolume
	if err := from.Cluster.Get(ctx, t.path(), &v); err != nil {
		return Facts{}, err
	}
	facts := Facts{Volume: &v}
	if ref := v.Spec.ClaimRef; ref != nil {
		facts.Namespace, facts.Name = ref.Namespace, ref.Name
	}
	return read(ctx, from, facts)
}

// Read collects the facts about a claim. The only error is that of a cluster that does not answer: whatever else cannot be read becomes a
// gap.
func Read(ctx context.Context, from Sources, namespace, name string) (Facts, error) {
	return read(ctx, from, Facts{Namespace: namespace, Name: name})
}

// read completes the facts. A PersistentVolume among them is the one that somebody asked for.
func read(ctx context.Context, from Sources, facts Facts) (Facts, error) {
	facts.Now, facts.Nodes, facts.ControllerNamed = from.Now, map[string]*Node{}, from.Namespace != ""
	r := &reader{Sources: from, facts: &facts}
	asked := facts.Volume
	if facts.Name != "" {
		if err := r.readClaim(ctx); err != nil {
			return Facts{}, err
		}
	}
	if asked == nil {
		r.readVolume(ctx)
	} else if c, ref := facts.Claim, asked.Spec.ClaimRef; c != nil && (c.Spec.VolumeName != "" && c.Spec.VolumeName != asked.Name || ref.UID != "" && ref.UID != c.UID) {
		facts.Claim = nil // the claim of this name is another one, made later
	}
	r.readClass(ctx)
	r.facts.Driver = r.driverName()
	r.readSource(ctx)
	if facts.Claim != nil || asked == nil {
		r.readPods(ctx)
	}
	r.readEvents(ctx)
	r.readAttachments(ctx)
	r.readNodes(ctx)
	r.readFindings(ctx)
	r.readDriver(ctx)
	r.readCloud(ctx)
	r.readMovedAgain(ctx)
	r.readClusterID(ctx)
	return *r.facts, nil
}

// readMovedAgain reads where the volume is a second time if Kubernetes and the cloud contradict each other, and something has changed in
// Kubernetes since. The cloud is read some seconds after Kubernetes, and a pod that ended between the two is no contradiction.
func (r *reader) readMovedAgain(ctx context.Context) {
	if !(&story{Facts: *r.facts, report: &Report{}}).contradicted() {
		return
	}
	before := r.facts.Attachments
	r.facts.Attachments = nil
	r.readAttachments(ctx)
	if slices.EqualFunc(before, r.facts.Attachments, func(a, b storagev1.VolumeAttachment) bool {
		return a.Name == b.Name && a.Status.Attached == b.Status.Attached && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil)
	}) {
		return
	}
	if r.facts.Claim != nil {
		r.facts.Pods = nil
		r.readPods(ctx)
	}
	r.readNodes(ctx)
	r.readCloud(ctx)
	seen := map[Gap]bool{}
	r.facts.Gaps = slices.DeleteFunc(r.facts.Gaps, func(g Gap) bool {
		twice := seen[g]
		seen[g] = true
		return twice
	})
}

// get reads one object and reports whether it is there. What cannot be read is a gap.
func (r *reader) get(ctx context.Context, what, path string, into any) bool {
	err := r.Cluster.Get(ctx, path, into)
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		r.gap(what, err)
	}
	return err == nil
}

// missing is get for objects whose absence is a cause: there is a difference between missing and unreadable.
func (r *reader) missing(ctx context.Context, what, path string, into any) (there, missing bool) {
	err := r.Cluster.Get(ctx, path, into)
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		r.gap(what, err)
	}
	return err == nil, errors.Is(err, cluster.ErrNotFound)
}

func (r *reader) gap(what string, err error) {
	do := ""
	if errors.Is(err, cluster.ErrDenied) {
		do = "use a kubeconfig with the right to read it: " + pages.RightsToDiagnose.String()
	}
	r.facts.Gaps = append(r.facts.Gaps, Gap{What: what, Why: err.Error(), Do: do})
}

func selected[T any](ctx context.Context, r *reader, what, path string, s cluster.Selector) []T {
	return selectedIn[T](ctx, r, r.Cluster, what, path, s)
}

func selectedIn[T any](ctx context.Context, r *reader, c *cluster.Cluster, what, path string, s cluster.Selector) []T {
	all, err := cluster.Select[T](ctx, c, path, s)
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		r.gap(what, err)
	}
	return all
}

func namespaced(namespace, resource, name string) string {
	return "/api/v1/namespaces/" + url.PathEscape(namespace) + "/" + resource + "/" + url.PathEscape(name)
}

func (r *reader) readClaim(ctx context.Context) error {
	var claim corev1.PersistentVolumeClaim
	err := r.Cluster.Get(ctx, namespaced(r.facts.Namespace, "persistentvolumeclaims", r.facts.Name), &claim)
	switch {
	case err == nil:
		r.facts.Claim = &claim
	case errors.Is(err, cluster.ErrUnreachable):
		return err
	case !errors.Is(err, cluster.ErrNotFound):
		r.gap(theClaim, err)
	}
	return nil
}

// readVolume finds the PersistentVolume of the claim. Without a claim it is the newest that belonged to a claim of this name.
func (r *reader) readVolume(ctx context.Context) {
	if r.facts.Claim != nil {
		var v corev1.PersistentVolume
		if name := r.facts.Claim.Spec.VolumeName; name != "" && r.get(ctx, "the PersistentVolume", "/api/v1/persistentvolumes/"+url.PathEscape(name), &v) {
			r.facts.Volume = &v
		}
		return
	}
	for _, v := range selected[corev1.PersistentVolume](ctx, r, "the PersistentVolumes", "/api/v1/persistentvolumes", cluster.Selector{}) {
		ref := v.Spec.ClaimRef
		if ref == nil || ref.Namespace != r.facts.Namespace || ref.Name != r.facts.Name {
			continue
		}
		if r.facts.Volume == nil || r.facts.Volume.CreationTimestamp.Before(&v.CreationTimestamp) {
			r.facts.Volume = &v
		}
	}
}

// theAttachments names a gap that the diagnosis asks for.
const theAttachments = "the VolumeAttachments"

func (r *reader) className() string {
	switch {
	case r.facts.Claim != nil && r.facts.Claim.Spec.StorageClassName != nil:
		return *r.facts.Claim.Spec.StorageClassName
	case r.facts.Volume != nil:
		return r.facts.Volume.Spec.StorageClassName
	}
	return ""
}

func (r *reader) readClass(ctx context.Context) {
	var class storagev1.StorageClass
	if name := r.className(); name != "" && r.get(ctx, "the StorageClass", "/apis/storage.k8s.io/v1/storageclasses/"+url.PathEscape(name), &class) {
		r.facts.Class = &class
	}
}

// provisionedBy names the driver that shall create the volume of a claim (Kubernetes, "Well-Known Labels, Annotations and Taints").
const provisionedBy = "volume.kubernetes.io/storage-provisioner"

func (r *reader) driverName() string {
	name := ""
	switch v := r.facts.Volume; {
	case v != nil && v.Spec.CSI != nil:
		return v.Spec.CSI.Driver
	case v != nil && v.Spec.Cinder != nil:
		name = inTree
	case r.facts.Class != nil:
		name = r.facts.Class.Provisioner
	case r.facts.Claim != nil:
		name = r.facts.Claim.Annotations[provisionedBy]
	}
	if name == inTree {
		return cluster.UpstreamName
	}
	return name
}

// inTree is the plugin that was a part of Kubernetes, which gives its volumes to the driver cluster.UpstreamName now.
const inTree = "kubernetes.io/cinder"

// handleOf is the ID in Cinder of a PersistentVolume of either form; empty if it has none.
func handleOf(v *corev1.PersistentVolume) string {
	switch {
	case v == nil:
		return ""
	case v.Spec.CSI != nil:
		return v.Spec.CSI.VolumeHandle
	case v.Spec.Cinder != nil:
		return v.Spec.Cinder.VolumeID
	}
	return ""
}

func (r *reader) readSource(ctx context.Context) {
	if r.facts.Claim == nil || r.facts.Claim.Spec.DataSource == nil || r.facts.Claim.Spec.DataSource.Kind != "VolumeSnapshot" {
		return
	}
	var snapshot struct {
		Metadata struct {
			CreationTimestamp time.Time `json:"creationTimestamp"`
		} `json:"metadata"`
		Status *struct {
			ReadyToUse bool `json:"readyToUse"`
			Error      struct {
				Message string `json:"message"`
			} `json:"error"`
		} `json:"status"`
	}
	name := r.facts.Claim.Spec.DataSource.Name
	path := "/apis/snapshot.storage.k8s.io/v1/namespaces/" + url.PathEscape(r.facts.Namespace) + "/volumesnapshots/" + url.PathEscape(name)
	there, missing := r.missing(ctx, "the VolumeSnapshot", path, &snapshot)
	if !there && !missing {
		return
	}
	s := &Snapshot{Name: name, Missing: missing}
	if status := snapshot.Status; status != nil {
		s.Handled, s.Ready, s.Error = true, status.ReadyToUse, status.Error.Message
	}
	s.Created.Time = snapshot.Metadata.CreationTimestamp
	r.facts.Snapshot = s
}

func (r *reader) readPods(ctx context.Context) {
	path := "/api/v1/namespaces/" + url.PathEscape(r.facts.Namespace) + "/pods"
	for _, p := range selected[corev1.Pod](ctx, r, "the pods of the namespace", path, cluster.Selector{}) {
		if uses(p, r.facts.Name) && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			r.facts.Pods = append(r.facts.Pods, p)
		}
	}
}

// uses reports whether a pod uses a claim. The claim of a generic ephemeral volume is named for pod and volume.
func uses(p corev1.Pod, claim string) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return usesClaim(p, v, claim) })
}

func usesClaim(p corev1.Pod, v corev1.Volume, claim string) bool {
	return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim || v.Ephemeral != nil && p.Name+"-"+v.Name == claim
}

// readEvents reads the events of the claim and its pods, the newest first.
func (r *reader) readEvents(ctx context.Context) {
	names := []string{r.facts.Name}
	for _, p := range r.facts.Pods {
		names = append(names, p.Name)
	}
	for _, name := range slices.Compact(names) {
		if name == "" {
			continue // a PersistentVolume that never had a claim
		}
		path := "/api/v1/namespaces/" + url.PathEscape(r.facts.Namespace) + "/events"
		r.facts.Events = append(r.facts.Events, selected[corev1.Event](ctx, r, "the events of "+name, path, cluster.Selector{Fields: "involvedObject.name=" + name})...)
	}
	if v := r.facts.Volume; v != nil {
		r.facts.Events = append(r.facts.Events, selected[corev1.Event](ctx, r, "the events of PersistentVolume "+v.Name, "/api/v1/namespaces/default/events", cluster.Selector{Fields: "involvedObject.name=" + v.Name})...)
	}
	slices.SortStableFunc(r.facts.Events, func(a, b corev1.Event) int { return lastOf(b).Compare(lastOf(a)) })
}

// lastOf is when an event occurred last. Which field has it depends on the component.
func lastOf(e corev1.Event) time.Time {
	at := e.LastTimestamp.Time
	for _, other := range []time.Time{e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time} {
		if at.IsZero() {
			at = other
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at
}

// readAttachments needs the name of the PersistentVolume only, which the claim has even where the object may not be read.
func (r *reader) readAttachments(ctx context.Context) {
	name := ""
	switch {
	case r.facts.Volume != nil:
		name = r.facts.Volume.Name
	case r.facts.Claim != nil:
		name = r.facts.Claim.Spec.VolumeName
	}
	if name == "" {
		return
	}
	for _, a := range selected[storagev1.VolumeAttachment](ctx, r, theAttachments, "/apis/storage.k8s.io/v1/volumeattachments", cluster.Selector{}) {
		if v := a.Spec.Source.PersistentVolumeName; v != nil && *v == name {
			r.facts.Attachments = append(r.facts.Attachments, a)
		}
	}
}

// readNodes reads the nodes of the pods and of the VolumeAttachments.
func (r *reader) readNodes(ctx context.Context) {
	var names []string
	for _, p := range r.facts.Pods {
		names = append(names, p.Spec.NodeName)
	}
	for _, a := range r.facts.Attachments {
		names = append(names, a.Spec.NodeName)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name != "" {
			r.readNode(ctx, name)
		}
	}
}

func (r *reader) readNode(ctx context.Context, name string) {
	var object corev1.Node
	there, missing := r.missing(ctx, "node "+name, "/api/v1/nodes/"+url.PathEscape(name), &object)
	if !there && !missing {
		return
	}
	node := &Node{Missing: missing, Ready: true, Provider: serverOf(object.Spec.ProviderID)}
	for _, c := range object.Status.Conditions {
		if c.Type == corev1.NodeReady {
			node.Ready, node.Since = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	r.facts.Nodes[name] = node
	var drivers storagev1.CSINode
	there, missing = r.missing(ctx, "CSINode "+name, "/apis/storage.k8s.io/v1/csinodes/"+url.PathEscape(name), &drivers)
	node.Seen = there || missing
	for _, d := range drivers.Spec.Drivers {
		if d.Name == r.facts.Driver {
			node.Driver = &d
		}
	}
	r.readPlugins(ctx, name, node)
}
