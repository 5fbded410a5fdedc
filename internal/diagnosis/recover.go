package diagnosis

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// FillIn stands in a recovered object for what only a person knows. No API server accepts it as a volume mode, a name or a namespace.
const FillIn = "FILL-IN"

// Remains are the objects of Cinder from which a cluster is recovered.
type Remains struct {
	Volumes            []RecoverableVolume
	Snapshots, Backups []RecoverableSnapshot
	Gaps               []Gap
}

// RecoverableVolume is a volume in a list of Cinder.
type RecoverableVolume struct {
	ListedVolume
	Type        string `json:"volume_type"`
	Multiattach bool   `json:"multiattach"`
}

// RecoverableSnapshot is a snapshot or a backup in a list of Cinder.
type RecoverableSnapshot struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Status   string            `json:"status"`
	Volume   string            `json:"volume_id"`
	Metadata map[string]string `json:"metadata"`
}

// RecoverOptions say of which cluster the objects are, and what Cinder does not know about them.
type RecoverOptions struct {
	Cluster   string   // the ID of the lost cluster
	New       string   // the ID of the new cluster; empty: the same
	Driver    string   // the name of the driver in the new cluster
	Namespace string   // only claims of this namespace; empty: all
	IDs       []string // only these objects of Cinder; none: all
	// Classes are StorageClasses by volume type. The entry of the empty type is for all others.
	Classes map[string]string
	// Zones maps compute zones to volume zones, as the driver of the new cluster has it.
	Zones contract.ZoneMap
	// AnyZone leaves the zone out: for a driver without topology.
	AnyZone   bool
	OpenStack []string // flags of the openstack commands, which name the cloud
}

// Recovery is what Kubernetes needs to use the volumes, snapshots and backups of a lost cluster again.
type Recovery struct {
	RecoverOptions
	Namespaces []string   // of the objects, sorted
	Objects    []Restored // by namespace and name
	LeftOut    []LeftOut
	Unclassed  []string // the volume types for which no class was named, sorted
	Gaps       []Gap
}

// Restored is one object of Cinder: a PersistentVolume and its claim, or a VolumeSnapshotContent and its VolumeSnapshot.
type Restored struct {
	Kind      string // volume, snapshot or backup
	ID        string
	Namespace string // empty if it is not known
	Name      string // of the claim or the VolumeSnapshot
	Size      int    // of a volume, in GiB
	Mode      string // of a volume
	Notes     []string
	FillIns   int // in how many places a person must decide
	Documents []any
	Mark      []string   // the command that gives the object the mark of the new cluster; nil if it needs none
	Detach    [][]string // the commands that take a volume from the servers that still have it
}

// LeftOut is an object of Cinder with the mark of the cluster that is not recovered.
type LeftOut struct{ Kind, ID, Why string }

// FillIns counts the objects for which a person must decide.
func (r Recovery) FillIns() int {
	n := 0
	for _, o := range r.Objects {
		if o.FillIns > 0 {
			n++
		}
	}
	return n
}

// ReadRemains reads the volumes, snapshots and backups of the project, whatever their mark. Without the volumes there is nothing to recover, so
// that is an error; the others become gaps.
func ReadRemains(ctx context.Context, c *cloud.Cloud) (Remains, error) {
	r := &reader{Clients: Clients{Cloud: c}, readings: &Readings{}}
	var lost Remains
	var err error
	if lost.Volumes, err = cinderList(ctx, r, "volumes", "", func(v RecoverableVolume) string { return v.ID }); err != nil {
		return lost, fmt.Errorf("list the volumes in Cinder: %w", err)
	}
	id := func(s RecoverableSnapshot) string { return s.ID }
	if lost.Snapshots, err = cinderList(ctx, r, "snapshots", "", id); err != nil {
		lost.Gaps = append(lost.Gaps, Gap{What: "the snapshots in Cinder", Why: err.Error()})
	}
	if lost.Backups, err = cinderList(ctx, r, "backups", "3.43", id); err != nil {
		lost.Gaps = append(lost.Gaps, Gap{What: "the backups in Cinder", Why: err.Error()})
	}
	return lost, nil
}

// Marks counts the volumes of each cluster.
func (l Remains) Marks() map[string]int {
	marks := map[string]int{}
	for _, v := range l.Volumes {
		if mark := v.Metadata[contract.MetadataCluster]; mark != "" {
			marks[mark]++
		}
	}
	return marks
}

// ClassesOf are the StorageClasses of a driver by volume type, from a cluster that has them. A type with several classes has none here.
func ClassesOf(ctx context.Context, c *cluster.Cluster, driver string) (map[string]string, error) {
	all, err := cluster.List[storagev1.StorageClass](ctx, c, "/apis/storage.k8s.io/v1/storageclasses")
	if err != nil {
		return nil, err
	}
	classes, several := map[string]string{}, map[string]bool{}
	for _, class := range all {
		kind := class.Parameters[contract.ParameterType]
		if class.Provisioner != driver || kind == "" {
			continue
		}
		_, twice := classes[kind]
		several[kind] = several[kind] || twice
		classes[kind] = class.Name
	}
	maps.DeleteFunc(classes, func(kind, _ string) bool { return several[kind] })
	return classes, nil
}

// What the status of a volume means for its recovery. A status that is not here means nothing.
var (
	withoutData = map[string]string{
		"creating": "Cinder creates it", "downloading": "Cinder creates it", "restoring-backup": "Cinder restores a backup into it",
		"error_restoring": "Cinder did not restore its backup completely", "deleting": "Cinder deletes it", "error_deleting": "its deletion failed in Cinder",
		"awaiting-transfer": "somebody gives it to another project",
	}
	unfinished = map[string]string{
		"creating": "Cinder makes it", "deleting": "Cinder deletes it", "error_deleting": "its deletion failed in Cinder", "error": "Cinder did not make it",
	}
)

// Recover writes objects of Kubernetes for what a lost cluster left in Cinder. It is a pure function. Where the
// metadata is ambiguous, the objects are not valid: FillIn stands for what a person must decide.
func Recover(l Remains, o RecoverOptions) Recovery {
	r := recovery{Recovery: Recovery{RecoverOptions: o, Gaps: l.Gaps}, modes: map[string]string{}, classless: map[string]bool{}}
	r.New = cmp.Or(o.New, o.Cluster)
	r.volumes(l.Volumes)
	r.snapshots("snapshot", l.Snapshots)
	r.snapshots("backup", l.Backups)
	r.keepNamed()
	order := map[string]int{"volume": 0, "snapshot": 1, "backup": 2}
	slices.SortStableFunc(r.Objects, func(a, b Restored) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), cmp.Compare(order[a.Kind], order[b.Kind]), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	for _, one := range r.Objects {
		if one.Namespace != "" {
			r.Namespaces = append(r.Namespaces, one.Namespace)
		}
	}
	r.Namespaces = slices.Compact(r.Namespaces)
	r.Unclassed = sortedKeys(r.classless)
	return r.Recovery
}

// keepNamed keeps the objects that the options name. It comes last, so that two volumes of one claim are seen although only one is named.
func (r *recovery) keepNamed() {
	if len(r.IDs) == 0 {
		return
	}
	unnamed := func(id string) bool {
		return !slices.ContainsFunc(r.IDs, func(named string) bool { return strings.EqualFold(named, id) })
	}
	r.Objects = slices.DeleteFunc(r.Objects, func(o Restored) bool { return unnamed(o.ID) })
	r.LeftOut = slices.DeleteFunc(r.LeftOut, func(l LeftOut) bool { return unnamed(l.ID) })
}

// recovery is one run of Recover.
type recovery struct {
	Recovery
	modes     map[string]string // of the volumes, by ID
	classless map[string]bool   // volume types
}

// owner is the object of Kubernetes for which an object of Cinder was made. It is zero if the metadata names none.
type owner struct{ namespace, name string }

func ownerOf(metadata map[string]string, namespaceKey, nameKey string) owner {
	o := owner{metadata[namespaceKey], metadata[nameKey]}
	if !shell.IsLabel(o.namespace) || !shell.IsName(o.name) {
		return owner{}
	}
	return o
}

// ambiguous are the owners and the names that several objects claim.
type ambiguous struct {
	owners map[owner][]string // IDs
	names  map[string]int
}

func (a *ambiguous) add(id string, o owner, name string) {
	if a.owners == nil {
		a.owners, a.names = map[owner][]string{}, map[string]int{}
	}
	if o != (owner{}) {
		a.owners[o] = append(a.owners[o], id)
	}
	a.names[name]++
}

func (r *recovery) leaveOut(kind, id, why string) {
	r.LeftOut = append(r.LeftOut, LeftOut{Kind: kind, ID: id, Why: why})
}

// name is that of the object of Kubernetes, or one that is made of the ID if the metadata has none.
func nameOr(name, id string) string {
	if shell.IsName(name) {
		return name
	}
	return "recovered-" + strings.ToLower(id)
}

func (r *recovery) volumes(all []RecoverableVolume) {
	var mine []RecoverableVolume
	var claims ambiguous
	for _, v := range all {
		r.modes[v.ID] = knownMode(v.Metadata)
		backup := contract.RestoreFrom(v.Metadata)
		switch why, is := withoutData[v.Status]; {
		case v.Metadata[contract.MetadataCluster] != r.Cluster:
		case !shell.IsID(v.ID):
			r.leaveOut("volume", v.ID, "its ID is no UUID")
		case is:
			r.leaveOut("volume", v.ID, "status "+v.Status+": "+why)
		case backup != "":
			r.leaveOut("volume", v.ID, fmt.Sprintf("it does not have the data of backup %q yet: the driver had still to restore that into it", backup))
		default:
			mine = append(mine, v)
			claims.add(v.ID, claimOfVolume(v), volumeNameOf(v))
		}
	}
	for _, v := range mine {
		if r.Namespace == "" || r.Namespace == claimOfVolume(v).namespace {
			r.Objects = append(r.Objects, r.volume(v, claims))
		}
	}
}

func claimOfVolume(v RecoverableVolume) owner {
	return ownerOf(v.Metadata, contract.MetadataPVCNamespace, contract.MetadataPVCName)
}

func volumeNameOf(v RecoverableVolume) string {
	return nameOr(cmp.Or(v.Metadata[contract.MetadataPVName], v.Name), v.ID)
}

// knownMode is the volume mode in the metadata; empty if it has none.
func knownMode(metadata map[string]string) string {
	mode := metadata[contract.MetadataVolumeMode]
	if mode != contract.ModeFilesystem && mode != contract.ModeBlock {
		return ""
	}
	return mode
}

// object is an object of Kubernetes without the status that the types of corev1 would write.
type object[Spec any] struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        objectMeta `json:"metadata"`
	Spec            Spec       `json:"spec"`
}

type objectMeta struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// provisionedByVolume is the annotation of a PersistentVolume by which external-provisioner deletes it, once its policy is Delete.
const provisionedByVolume = "pv.kubernetes.io/provisioned-by"

func (r *recovery) volume(v RecoverableVolume, claims ambiguous) Restored {
	claim, name := claimOfVolume(v), volumeNameOf(v)
	one := Restored{Kind: "volume", ID: v.ID, Namespace: claim.namespace, Name: claim.name, Size: v.Size, Mode: r.modes[v.ID]}
	note := func(format string, args ...any) { one.Notes = append(one.Notes, fmt.Sprintf(format, args...)) }
	fill := func(format string, args ...any) { one.FillIns++; note(FillIn+": "+format, args...) }
	switch others := claims.owners[claim]; {
	case claim == (owner{}):
		fill("the metadata names no claim (%q, %q). Write the namespace and the name of the claim in place of %s, four times",
			v.Metadata[contract.MetadataPVCNamespace], v.Metadata[contract.MetadataPVCName], FillIn)
		claim = owner{FillIn, FillIn}
	case len(others) > 1:
		fill("%d volumes are of claim %s/%s: %s. Keep one, and replace %s in it by the name of its PersistentVolume, %s. Delete these two documents for the others",
			len(others), claim.namespace, claim.name, strings.Join(others, ", "), FillIn, name)
		name = FillIn
	}
	if name != FillIn && claims.names[name] > 1 {
		note("another volume has the name %q too, so that the PersistentVolume has a new name", name)
		name = nameOr("", v.ID)
	}
	mode := one.Mode
	if mode == "" {
		fill("the metadata has no volume mode. Write Filesystem, or Block if the claim had volumeMode Block. A wrong Filesystem destroys nothing: the node never formats this volume")
		mode = FillIn
	}
	fsType := v.Metadata[contract.MetadataFSType]
	if fsType != "" && !slices.Contains(contract.FileSystems, fsType) {
		note("the metadata has the file system %q, which the driver does not know; it mounts what it finds on the disk", fsType)
		fsType = ""
	}
	if mode == contract.ModeBlock {
		fsType = ""
	}
	access := corev1.ReadWriteOnce
	if v.Metadata[contract.MetadataShared] != "" {
		access = corev1.ReadWriteMany
	} else if v.Multiattach && one.Mode != contract.ModeFilesystem {
		note("the volume type allows several servers: the claim may have had the access mode ReadWriteMany")
	}
	for _, a := range v.Attachments {
		note("server %s still has the volume: stop what uses it there, and detach it, before a pod of the new cluster uses the claim", a.Server)
		one.Detach = append(one.Detach, r.openstack("server", "remove", "volume", shell.ID(a.Server, "SERVER"), v.ID))
	}
	if v.Status != "available" && v.Status != "in-use" {
		note("Cinder shows status %s: the driver attaches the volume when Cinder shows available", v.Status)
	}
	class, known := r.Classes[v.Type]
	if !known {
		class, known = r.Classes[""]
	}
	if !known {
		r.classless[v.Type] = true
	}
	size := *resource.NewQuantity(int64(v.Size)<<30, resource.BinarySI)
	volumeMode := corev1.PersistentVolumeMode(mode)
	spec := corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: size}, AccessModes: []corev1.PersistentVolumeAccessMode{access},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: class, VolumeMode: &volumeMode,
		ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.namespace, Name: claim.name},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: r.Driver, VolumeHandle: v.ID, FSType: fsType, VolumeAttributes: map[string]string{contract.ContextResizeRequired: "true"},
		}},
		NodeAffinity: r.affinity(v, note),
	}
	one.Documents = []any{
		object[corev1.PersistentVolumeSpec]{metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, objectMeta{Name: name, Annotations: map[string]string{provisionedByVolume: r.Driver}}, spec},
		object[corev1.PersistentVolumeClaimSpec]{
			metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			objectMeta{Name: claim.name, Namespace: claim.namespace},
			corev1.PersistentVolumeClaimSpec{
				AccessModes: spec.AccessModes, Resources: corev1.VolumeResourceRequirements{Requests: spec.Capacity}, StorageClassName: &class, VolumeMode: &volumeMode, VolumeName: name,
			},
		},
	}
	one.Mark = r.mark("volume", "set", "--property", r.newMark(), v.ID)
	return one
}

// affinity is that of the nodes in the zones which a volume serves.
func (r *recovery) affinity(v RecoverableVolume, note func(string, ...any)) *corev1.VolumeNodeAffinity {
	if r.AnyZone {
		return nil
	}
	labels := r.Zones.Labels(v.Zone)
	if len(labels) == 0 {
		note("no compute zone is known for the volume zone %q. The PersistentVolume names no zone, so a pod may start where the volume cannot be attached", v.Zone)
		return nil
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: contract.TopologyKeyOf(r.Driver), Operator: corev1.NodeSelectorOpIn, Values: labels}},
	}}}}
}

func (r *recovery) newMark() string { return contract.MetadataCluster + "=" + r.New }

// mark is an openstack command that changes the mark, if the new cluster has another.
func (r *recovery) mark(words ...string) []string {
	if r.New == r.Cluster {
		return nil
	}
	return r.openstack(words...)
}

func (r *recovery) openstack(words ...string) []string {
	return slices.Concat([]string{"openstack"}, r.OpenStack, words)
}

// The API of external-snapshotter.
const snapshotAPI = "snapshot.storage.k8s.io/v1"

type contentSpec struct {
	DeletionPolicy string            `json:"deletionPolicy"`
	Driver         string            `json:"driver"`
	Source         map[string]string `json:"source"`
	VolumeMode     string            `json:"sourceVolumeMode,omitempty"`
	Ref            map[string]string `json:"volumeSnapshotRef"`
}

func (r *recovery) snapshots(kind string, all []RecoverableSnapshot) {
	var mine []RecoverableSnapshot
	var owners ambiguous
	for _, s := range all {
		switch why, is := unfinished[s.Status]; {
		case s.Metadata[contract.MetadataCluster] != r.Cluster:
		case !shell.IsID(s.ID):
			r.leaveOut(kind, s.ID, "its ID is no UUID")
		case s.Metadata[contract.MetadataTemporary] != "":
			r.leaveOut(kind, s.ID, "the driver made it only to make a backup from it")
		case is:
			r.leaveOut(kind, s.ID, "status "+s.Status+": "+why)
		default:
			mine = append(mine, s)
			owners.add(s.ID, snapshotOf(s), contentNameOf(s))
		}
	}
	for _, s := range mine {
		if r.Namespace == "" || r.Namespace == snapshotOf(s).namespace {
			r.Objects = append(r.Objects, r.snapshot(kind, s, owners))
		}
	}
}

func snapshotOf(s RecoverableSnapshot) owner {
	return ownerOf(s.Metadata, contract.MetadataSnapshotNamespace, contract.MetadataSnapshotName)
}

func contentNameOf(s RecoverableSnapshot) string {
	return nameOr(s.Metadata[contract.MetadataSnapshotContentName], s.ID)
}

func (r *recovery) snapshot(kind string, s RecoverableSnapshot, owners ambiguous) Restored {
	of, name := snapshotOf(s), contentNameOf(s)
	one := Restored{Kind: kind, ID: s.ID, Namespace: of.namespace, Name: of.name}
	note := func(format string, args ...any) { one.Notes = append(one.Notes, fmt.Sprintf(format, args...)) }
	fill := func(format string, args ...any) { one.FillIns++; note(FillIn+": "+format, args...) }
	switch others := owners.owners[of]; {
	case of == (owner{}):
		fill("the metadata names no VolumeSnapshot (%q, %q). Write its namespace and name in place of %s, four times",
			s.Metadata[contract.MetadataSnapshotNamespace], s.Metadata[contract.MetadataSnapshotName], FillIn)
		of = owner{FillIn, FillIn}
	case len(others) > 1:
		fill("%d objects are of VolumeSnapshot %s/%s: %s. Keep one, and replace %s in it by %s. Delete these two documents for the others",
			len(others), of.namespace, of.name, strings.Join(others, ", "), FillIn, name)
		name = FillIn
	}
	if name != FillIn && owners.names[name] > 1 {
		name = nameOr("", s.ID)
	}
	if s.Status != "available" {
		note("Cinder shows status %s: the VolumeSnapshot is ready when Cinder shows available", s.Status)
	}
	one.Documents = []any{
		object[contentSpec]{metav1.TypeMeta{APIVersion: snapshotAPI, Kind: "VolumeSnapshotContent"}, objectMeta{Name: name}, contentSpec{
			DeletionPolicy: "Retain", Driver: r.Driver, Source: map[string]string{"snapshotHandle": s.ID}, VolumeMode: r.modes[s.Volume],
			Ref: map[string]string{"namespace": of.namespace, "name": of.name},
		}},
		object[map[string]map[string]string]{metav1.TypeMeta{APIVersion: snapshotAPI, Kind: "VolumeSnapshot"}, objectMeta{Name: of.name, Namespace: of.namespace}, map[string]map[string]string{
			"source": {"volumeSnapshotContentName": name},
		}},
	}
	if kind == "backup" {
		one.Mark = r.mark("--os-volume-api-version", "3.43", "volume", "backup", "set", "--property", r.newMark(), s.ID)
	} else {
		one.Mark = r.mark("volume", "snapshot", "set", "--property", r.newMark(), s.ID)
	}
	return one
}
