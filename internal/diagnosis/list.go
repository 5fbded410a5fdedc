package diagnosis

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// Row is one volume of a list.
type Row struct {
	Claim    string   `json:"claim"` // NAMESPACE/NAME; empty if no claim uses the volume
	Volume   string   `json:"persistentVolume"`
	ID       string   `json:"cinderVolume"`
	Pods     []string `json:"pods"`
	Nodes    []string `json:"nodes"` // with a VolumeAttachment
	Status   string   `json:"status"`
	Servers  []string `json:"servers"` // that Cinder attaches the volume to
	Size     int      `json:"sizeGiB"`
	Findings []string `json:"findings"`
}

// Listing is the list of all volumes of the driver in a cluster.
type Listing struct {
	Time    time.Time `json:"time"`
	Volumes []Row     `json:"volumes"`
	Unseen  []Gap     `json:"unseen"`
	// Pending are the claims, NAMESPACE/NAME, for which Kubernetes asked the driver for a volume that is not there yet. That is no finding: it may
	// just be made. A claim that waits for its first pod is not among them.
	Pending []string `json:"pending"`
	// CinderRead says whether the volumes were compared with Cinder.
	CinderRead bool `json:"cinderRead"`
}

// Wrong counts the volumes with a finding.
func (l Listing) Wrong() int {
	wrong := 0
	for _, v := range l.Volumes {
		if len(v.Findings) > 0 {
			wrong++
		}
	}
	return wrong
}

// List compares Kubernetes and Cinder volume by volume. It is a pure function. The lists are read one after the other: a volume that
// changes meanwhile may have a finding, which the next list has no more.
func List(f ListReadings) Listing {
	l := Listing{Time: f.Now, Volumes: []Row{}, Unseen: listed(f.Gaps), Pending: f.pending(), CinderRead: f.CinderRead}
	pods, attachments := map[string][]string{}, map[string][]storagev1.VolumeAttachment{}
	for _, p := range f.Pods {
		for _, v := range p.Spec.Volumes {
			claim := claimOfVolumeOf(p, v)
			names := pods[p.Namespace+"/"+claim]
			named := len(names) > 0 && names[len(names)-1] == p.Name // a pod may name a claim thousands of times
			if claim != "" && !named && !ended(p) {
				pods[p.Namespace+"/"+claim] = append(names, p.Name)
			}
		}
	}
	for _, a := range f.Attachments {
		if name := a.Spec.Source.PersistentVolumeName; name != nil {
			attachments[*name] = append(attachments[*name], a)
		}
	}
	same := map[string][]string{}
	for _, v := range f.Volumes {
		id := strings.ToLower(f.handle(v))
		same[id] = append(same[id], v.Name)
	}
	for _, v := range f.Volumes {
		id := f.handle(v)
		if id == "" {
			continue
		}
		row := Row{Claim: claimOfPersistent(v), Volume: v.Name, ID: id, Pods: []string{}, Nodes: []string{}, Servers: []string{}, Findings: []string{}}
		if f.hasClaim(v) {
			row.Pods = append(row.Pods, pods[row.Claim]...)
		}
		for _, a := range attachments[v.Name] {
			row.Nodes = append(row.Nodes, a.Spec.NodeName)
		}
		for _, other := range same[strings.ToLower(id)] {
			if other != v.Name {
				row.Findings = append(row.Findings, "PersistentVolume "+other+" names the same volume")
			}
		}
		f.judge(&row, v, attachments[v.Name])
		l.Volumes = append(l.Volumes, row)
	}
	slices.SortFunc(l.Volumes, func(a, b Row) int { return strings.Compare(a.Claim+" "+a.Volume, b.Claim+" "+b.Volume) })
	return l
}

func (f ListReadings) pending() []string {
	names := []string{}
	for name, c := range f.Claims {
		if c.Status.Phase == corev1.ClaimPending && slices.Contains(f.Drivers, c.Annotations[provisionedBy]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// claimOfPersistent is the claim that a PersistentVolume names: NAMESPACE/NAME; empty if it names none.
func claimOfPersistent(v corev1.PersistentVolume) string {
	if v.Spec.ClaimRef == nil {
		return ""
	}
	return v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name
}

// handle is the ID of the volume in Cinder; empty if it is of another driver.
func (f ListReadings) handle(v corev1.PersistentVolume) string {
	if v.Spec.CSI != nil && !slices.Contains(f.Drivers, v.Spec.CSI.Driver) {
		return ""
	}
	return handleOf(&v)
}

// hasClaim reports whether the claim that a PersistentVolume names is still its own. A volume that was released keeps the name of its claim, and
// somebody may have made another claim of this name.
func (f ListReadings) hasClaim(v corev1.PersistentVolume) bool {
	ref := v.Spec.ClaimRef
	if ref == nil || released(&v) {
		return false
	}
	if f.Claims == nil {
		return true
	}
	c, found := f.Claims[ref.Namespace+"/"+ref.Name]
	return found && (ref.UID == "" || ref.UID == c.UID) && (c.Spec.VolumeName == "" || c.Spec.VolumeName == v.Name)
}

func (f ListReadings) judge(row *Row, v corev1.PersistentVolume, attachments []storagev1.VolumeAttachment) {
	find := func(format string, args ...any) { row.Findings = append(row.Findings, fmt.Sprintf(format, args...)) }
	if v.Status.Phase == corev1.VolumeFailed {
		find("the PersistentVolume is Failed: %s", v.Status.Message)
	}
	for _, a := range attachments {
		f.judgeAttachment(find, a)
	}
	c, found := f.Cinder[strings.ToLower(row.ID)]
	switch {
	case !f.CinderRead:
		return
	case !found:
		row.Status = "missing"
		find("not in this project: lost, or of another project or cloud")
		return
	}
	row.Status, row.Size = c.Status, c.Size
	for _, a := range c.Attachments {
		row.Servers = append(row.Servers, a.Server)
	}
	if strings.HasPrefix(c.Status, "error") {
		find("Cinder shows the volume in status %s", c.Status)
	}
	if size := resource.NewQuantity(int64(c.Size)<<30, resource.BinarySI); size.Cmp(*v.Spec.Capacity.Storage()) < 0 {
		find("Cinder has %d GiB, the PersistentVolume says %s", c.Size, v.Spec.Capacity.Storage())
	}
	f.judgeServers(find, row.Servers, attachments)
}

func (f ListReadings) judgeAttachment(find func(string, ...any), a storagev1.VolumeAttachment) {
	node := a.Spec.NodeName
	switch e, d := a.Status.AttachError, a.Status.DetachError; {
	case a.DeletionTimestamp != nil && d != nil:
		find("detach from node %s fails: %s", node, readable(d.Message))
	case a.DeletionTimestamp != nil && f.Now.Sub(a.DeletionTimestamp.Time) > slowAttach:
		find("detach from node %s takes %s", node, age(f.Now.Sub(a.DeletionTimestamp.Time)))
	case a.DeletionTimestamp == nil && !a.Status.Attached && e != nil:
		find("attach to node %s fails: %s", node, readable(e.Message))
	case a.DeletionTimestamp == nil && !a.Status.Attached && f.Now.Sub(a.CreationTimestamp.Time) > slowAttach:
		find("attach to node %s takes %s", node, age(f.Now.Sub(a.CreationTimestamp.Time)))
	}
}

func (f ListReadings) judgeServers(find func(string, ...any), servers []string, attachments []storagev1.VolumeAttachment) {
	known, complete := map[string]bool{}, !slices.ContainsFunc(f.Gaps, func(g Gap) bool { return g.What == theAttachments })
	for _, a := range attachments {
		server, registered := f.Servers[a.Spec.NodeName]
		known[server] = true
		complete = complete && registered
		// If Cinder attaches the volume nowhere, the server need not be known.
		if (registered || len(servers) == 0) && a.Status.Attached && a.DeletionTimestamp == nil && !slices.Contains(servers, server) {
			find("Kubernetes shows it attached to node %s, Cinder does not", a.Spec.NodeName)
		}
	}
	for _, server := range servers {
		if complete && !known[server] {
			find("Cinder shows it attached to server %s, for which there is no VolumeAttachment", server)
		}
	}
}

// PrintList writes a list for people.
func PrintList(out io.Writer, l Listing, given Given, columns int) error {
	p := newPrinter(out, columns)
	var rows [][]string
	for _, v := range l.Volumes {
		rows = append(rows, []string{orNone(v.Claim), orNone(strings.Join(v.Pods, ",")), orNone(strings.Join(v.Nodes, ",")), orNone(v.Status), fmt.Sprint(v.Size), v.ID})
	}
	p.table("CLAIM\tPODS\tNODES\tCINDER\tGIB\tVOLUME", rows)
	if l.Wrong() > 0 {
		p.line("")
		p.line("Findings:")
	}
	for _, v := range l.Volumes {
		for _, f := range v.Findings {
			p.others("  ", orNone(v.Claim)+" ("+v.ID+"): "+f)
		}
	}
	p.unseen(l.Unseen)
	p.line("")
	p.line(fmt.Sprintf("%s, %d with a finding", Counted(len(l.Volumes), "volume"), l.Wrong()))
	if len(l.Pending) > 0 {
		namespace, name, _ := strings.Cut(l.Pending[0], "/")
		p.copied(fmt.Sprintf("%s Pending; to explain one: %s", Counted(len(l.Pending), "claim"), given.Command("kubectl", "cinder", "volume", shell.Name(namespace, "NAMESPACE")+"/"+claimNamed(name))))
	}
	return p.err
}
