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

// Clients are where the readings come from.
type Clients struct {
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
	// Given are the flags for the commands of the gaps.
	Given Given
	Now   time.Time
}

// reader is one run of Read.
type reader struct {
	Clients
	readings *Readings
}

// ReadSubject is Read for a claim or a PersistentVolume.
func ReadSubject(ctx context.Context, from Clients, t Subject) (Readings, error) {
	if t.Kind != Volume {
		return Read(ctx, from, t.Namespace, t.Name)
	}
	var v corev1.PersistentVolume
	if err := from.Cluster.Get(ctx, t.path(), &v); err != nil {
		return Readings{}, err
	}
	readings := Readings{Volume: &v}
	if ref := v.Spec.ClaimRef; ref != nil {
		readings.Namespace, readings.Name = ref.Namespace, ref.Name
	}
	return read(ctx, from, readings)
}

// Read collects the readings about a claim. The only error is that of a cluster that does not answer: whatever else cannot be read becomes a
// gap.
func Read(ctx context.Context, from Clients, namespace, name string) (Readings, error) {
	return read(ctx, from, Readings{Namespace: namespace, Name: name})
}

// read completes the readings. A PersistentVolume among them is the one that somebody asked for.
func read(ctx context.Context, from Clients, readings Readings) (Readings, error) {
	readings.Now, readings.Nodes, readings.ControllerNamed = from.Now, map[string]*Node{}, from.Namespace != ""
	r := &reader{Clients: from, readings: &readings}
	asked := readings.Volume
	if readings.Name != "" {
		if err := r.readClaim(ctx); err != nil {
			return Readings{}, err
		}
	}
	switch c := readings.Claim; {
	case asked == nil:
		if r.readVolume(ctx); readings.others() {
			return readings, nil
		}
	case c != nil && (c.Spec.VolumeName != "" && c.Spec.VolumeName != asked.Name || readings.others()):
		readings.Claim = nil // the claim of this name is another one, made later
	}
	r.readClass(ctx)
	r.readings.Driver = r.driverName()
	r.readSource(ctx)
	if readings.Claim != nil || asked == nil {
		r.readPods(ctx)
	}
	r.readEvents(ctx)
	r.readAttachments(ctx)
	r.readNodes(ctx)
	r.readDriver(ctx)
	r.readCloud(ctx)
	r.readMovedAgain(ctx)
	r.readRivals(ctx)
	r.readClusterID(ctx)
	r.readFindings(ctx) // last: pods of a node that do not answer must take no time from what decides about commands
	return *r.readings, nil
}

// readMovedAgain reads where the volume is a second time if Kubernetes and the cloud contradict each other, and something has changed in
// Kubernetes since. The cloud is read some seconds after Kubernetes, and a pod that ended between the two is no contradiction.
func (r *reader) readMovedAgain(ctx context.Context) {
	if !(&walk{Readings: *r.readings, report: &Report{}}).contradicted() {
		return
	}
	before := r.readings.Attachments
	r.readings.Attachments = nil
	r.readAttachments(ctx)
	if slices.EqualFunc(before, r.readings.Attachments, func(a, b storagev1.VolumeAttachment) bool {
		return a.Name == b.Name && a.Status.Attached == b.Status.Attached && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil)
	}) {
		return
	}
	if r.readings.Claim != nil {
		r.readings.Pods = nil
		r.readPods(ctx)
	}
	r.readNodes(ctx)
	r.readCloud(ctx)
	seen := map[Gap]bool{}
	r.readings.Gaps = slices.DeleteFunc(r.readings.Gaps, func(g Gap) bool {
		twice := seen[g]
		seen[g] = true
		return twice
	})
}

// get reads one object and reports whether it is there. What cannot be read is a gap.
func (r *reader) get(ctx context.Context, what, path string, into any) bool {
	there, _ := r.missing(ctx, what, path, into)
	return there
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
	r.readings.Gaps = append(r.readings.Gaps, Gap{What: what, Why: err.Error(), Do: do})
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
	err := r.Cluster.Get(ctx, namespaced(r.readings.Namespace, "persistentvolumeclaims", r.readings.Name), &claim)
	switch {
	case err == nil:
		r.readings.Claim = &claim
	case errors.Is(err, cluster.ErrUnreachable):
		return err
	case !errors.Is(err, cluster.ErrNotFound):
		r.gap(theClaim, err)
	}
	return nil
}

// readVolume finds the PersistentVolume of the claim. Without a claim it is the newest that belonged to a claim of this name.
func (r *reader) readVolume(ctx context.Context) {
	if r.readings.Claim != nil {
		var v corev1.PersistentVolume
		if name := r.readings.Claim.Spec.VolumeName; name != "" && r.get(ctx, "the PersistentVolume", "/api/v1/persistentvolumes/"+url.PathEscape(name), &v) {
			r.readings.Volume = &v
		}
		return
	}
	for _, v := range selected[corev1.PersistentVolume](ctx, r, "the PersistentVolumes", "/api/v1/persistentvolumes", cluster.Selector{}) {
		ref := v.Spec.ClaimRef
		if ref == nil || ref.Namespace != r.readings.Namespace || ref.Name != r.readings.Name {
			continue
		}
		if r.readings.Volume == nil || r.readings.Volume.CreationTimestamp.Before(&v.CreationTimestamp) {
			r.readings.Volume = &v
		}
	}
}

// theAttachments names a gap that the diagnosis asks for.
const theAttachments = "the VolumeAttachments"

func (r *reader) className() string {
	switch {
	case r.readings.Claim != nil && r.readings.Claim.Spec.StorageClassName != nil:
		return *r.readings.Claim.Spec.StorageClassName
	case r.readings.Volume != nil:
		return r.readings.Volume.Spec.StorageClassName
	}
	return ""
}

func (r *reader) readClass(ctx context.Context) {
	var class storagev1.StorageClass
	if name := r.className(); name != "" && r.get(ctx, "the StorageClass", "/apis/storage.k8s.io/v1/storageclasses/"+url.PathEscape(name), &class) {
		r.readings.Class = &class
	}
}

// provisionedBy names the driver that shall create the volume of a claim (Kubernetes, "Well-Known Labels, Annotations and Taints"). Kubernetes
// writes it when the claim needs the volume.
const provisionedBy = "volume.kubernetes.io/storage-provisioner"

func (r *reader) driverName() string {
	name := ""
	switch v := r.readings.Volume; {
	case v != nil && v.Spec.CSI != nil:
		return v.Spec.CSI.Driver
	case v != nil && v.Spec.Cinder != nil:
		name = inTree
	case r.readings.Class != nil:
		name = r.readings.Class.Provisioner
	case r.readings.Claim != nil:
		name = r.readings.Claim.Annotations[provisionedBy]
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
	if r.readings.Claim == nil || r.readings.Claim.Spec.DataSource == nil || r.readings.Claim.Spec.DataSource.Kind != "VolumeSnapshot" {
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
	name := r.readings.Claim.Spec.DataSource.Name
	path := "/apis/snapshot.storage.k8s.io/v1/namespaces/" + url.PathEscape(r.readings.Namespace) + "/volumesnapshots/" + url.PathEscape(name)
	there, missing := r.missing(ctx, "the VolumeSnapshot", path, &snapshot)
	if !there && !missing {
		return
	}
	s := &Snapshot{Name: name, Missing: missing}
	if status := snapshot.Status; status != nil {
		s.Handled, s.Ready, s.Error = true, status.ReadyToUse, status.Error.Message
	}
	s.Created.Time = snapshot.Metadata.CreationTimestamp
	r.readings.Snapshot = s
}

func (r *reader) readPods(ctx context.Context) {
	path := "/api/v1/namespaces/" + url.PathEscape(r.readings.Namespace) + "/pods"
	for _, p := range selected[corev1.Pod](ctx, r, "the pods of the namespace", path, cluster.Selector{}) {
		if uses(p, r.readings.Name) && !ended(p) {
			r.readings.Pods = append(r.readings.Pods, p)
		}
	}
}

// ended reports whether no container of a pod runs any more: then it uses no volume.
func ended(p corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func uses(p corev1.Pod, claim string) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return claimOfVolumeOf(p, v) == claim })
}

// claimOfVolumeOf is the claim of a volume of a pod; empty if it has none. That of a generic ephemeral volume is named for pod and volume. No claim is
// made for a pod that a kubelet makes from a file.
func claimOfVolumeOf(p corev1.Pod, v corev1.Volume) string {
	switch {
	case isMirror(p):
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return p.Name + "-" + v.Name
	}
	return ""
}

// readEvents reads the events of the claim and its pods, the newest first.
func (r *reader) readEvents(ctx context.Context) {
	names := []string{r.readings.Name}
	for _, p := range r.readings.Pods {
		names = append(names, p.Name)
	}
	for _, name := range slices.Compact(names) {
		if name == "" {
			continue // a PersistentVolume that never had a claim
		}
		path := "/api/v1/namespaces/" + url.PathEscape(r.readings.Namespace) + "/events"
		r.readings.Events = append(r.readings.Events, selected[corev1.Event](ctx, r, "the events of "+name, path, cluster.Selector{Fields: "involvedObject.name=" + name})...)
	}
	if v := r.readings.Volume; v != nil {
		r.readings.Events = append(r.readings.Events, selected[corev1.Event](ctx, r, "the events of PersistentVolume "+v.Name, "/api/v1/namespaces/default/events", cluster.Selector{Fields: "involvedObject.name=" + v.Name})...)
	}
	slices.SortStableFunc(r.readings.Events, func(a, b corev1.Event) int { return lastOf(b).Compare(lastOf(a)) })
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

// readAttachments needs the name of the PersistentVolume only, which a bound claim has even where the object may not be read. Who writes a claim may
// give it the name of any other.
func (r *reader) readAttachments(ctx context.Context) {
	name := ""
	switch {
	case r.readings.Volume != nil:
		name = r.readings.Volume.Name
	case r.readings.Claim != nil && r.readings.Claim.Status.Phase == corev1.ClaimBound:
		name = r.readings.Claim.Spec.VolumeName
	}
	if name == "" {
		return
	}
	for _, a := range selected[storagev1.VolumeAttachment](ctx, r, theAttachments, "/apis/storage.k8s.io/v1/volumeattachments", cluster.Selector{}) {
		if v := a.Spec.Source.PersistentVolumeName; v != nil && *v == name {
			r.readings.Attachments = append(r.readings.Attachments, a)
		}
	}
}

func (r *reader) readNodes(ctx context.Context) {
	var names []string
	for _, p := range r.readings.Pods {
		names = append(names, p.Spec.NodeName)
	}
	for _, a := range r.readings.Attachments {
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
	r.readings.Nodes[name] = node
	var drivers storagev1.CSINode
	there, missing = r.missing(ctx, "CSINode "+name, "/apis/storage.k8s.io/v1/csinodes/"+url.PathEscape(name), &drivers)
	node.Seen = there || missing
	for _, d := range drivers.Spec.Drivers {
		if d.Name == r.readings.Driver {
			node.Driver = &d
		}
	}
	r.readPlugins(ctx, name, node)
}
