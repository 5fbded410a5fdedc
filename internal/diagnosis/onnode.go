package diagnosis

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// NodeReport is what the driver has on one node.
type NodeReport struct {
	Node    string         `json:"node"`
	Time    time.Time      `json:"time"`
	State   string         `json:"state"` // Ready, NotReady, missing or unknown
	Taints  []string       `json:"taints"`
	Drivers []DriverOnNode `json:"drivers"`
	Volumes []VolumeOnNode `json:"volumes"`
	// Others are volumes in Cinder that are attached to the server, and that no PersistentVolume names. They take places of the limit too.
	Others   []string `json:"others"`
	Findings []string `json:"findings"`
	Waiting  []Report `json:"waiting"` // the report of each volume that waits on the node
	// NotDiagnosed are the PersistentVolumes that wait too, and whose objects were not read.
	NotDiagnosed []string `json:"notDiagnosed"`
	Unseen       []Gap    `json:"unseen"`
	CinderRead   bool     `json:"cinderRead"` // whether the volumes were compared with Cinder
}

// DriverOnNode is a driver that is registered on the node, that has a pod there, or for which there are VolumeAttachments.
type DriverOnNode struct {
	Name       string     `json:"name"`
	Registered bool       `json:"registered"`       // CSINode lists it
	Server     string     `json:"server,omitempty"` // the ID that the provider ID of the node names, or that it registered
	Status     string     `json:"status,omitempty"` // of the server in Nova; empty if it was not read
	Limit      *int32     `json:"limit,omitempty"`  // of volumes at the node; absent if the driver reports none
	Attached   int        `json:"attached"`         // VolumeAttachments
	Pods       []NodePod  `json:"pods"`
	Taint      *TaintedAt `json:"startupTaint,omitempty"`
}

// NodePod is a pod of the driver on the node.
type NodePod struct {
	Name     string `json:"name"` // NAMESPACE/NAME
	Ready    bool   `json:"ready"`
	Restarts int32  `json:"restarts"` // of all containers
	Waits    string `json:"waits,omitempty"`
}

// TaintedAt is the start-up taint of a driver on the node.
type TaintedAt struct {
	Key   string     `json:"key"`
	Since *time.Time `json:"since,omitempty"`
}

// VolumeOnNode is a volume that is attached to the node, or shall be, or was.
type VolumeOnNode struct {
	Row
	State   string `json:"state"`   // attached, attaching, detaching or none; as Kubernetes says
	Mounted bool   `json:"mounted"` // kubelet says that it may be in use
}

// OnNode judges the readings about one node. It is a pure function.
func OnNode(f NodeReadings) NodeReport {
	r := NodeReport{
		Node: f.Name, Time: f.Now, State: f.state(), Taints: []string{}, Drivers: []DriverOnNode{}, Volumes: []VolumeOnNode{}, Others: []string{}, Findings: []string{},
		Waiting: listed(f.Waiting), NotDiagnosed: listed(f.NotDiagnosed), Unseen: listed(f.Gaps), CinderRead: f.CinderRead,
	}
	j := &nodeJudge{NodeReadings: f, report: &r}
	j.node()
	for _, name := range f.Drivers {
		j.driver(name)
	}
	j.volumes()
	return r
}

// nodeJudge is one run of OnNode.
type nodeJudge struct {
	NodeReadings
	report *NodeReport
}

func (j *nodeJudge) find(format string, args ...any) {
	j.report.Findings = append(j.report.Findings, fmt.Sprintf(format, args...))
}

func (f NodeReadings) state() string {
	switch {
	case f.NoNode:
		return "missing"
	case f.Node == nil:
		return "unknown"
	case f.notReadySince() != nil:
		return "NotReady"
	}
	return "Ready"
}

// notReadySince is when the node was ready last; nil if it is ready.
func (f NodeReadings) notReadySince() *time.Time {
	for _, c := range f.Node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			at := c.LastTransitionTime.UTC()
			return &at
		}
	}
	return nil
}

func (j *nodeJudge) node() {
	switch {
	case j.NoNode:
		j.find("node %s does not exist in Kubernetes, and VolumeAttachments or a CSINode name it", j.Name)
		return
	case j.Node == nil:
		return
	}
	if at := j.notReadySince(); at != nil {
		j.find("the node has not been ready for %s: Kubernetes detaches no volume from it, because it may still write", age(j.Now.Sub(*at)))
	}
	if n := j.Nodes[j.Name]; n != nil && n.Rival != "" {
		j.find("%s: find out who runs the kubelet there", n.conflict(j.Name))
	}
	for _, t := range j.Node.Spec.Taints {
		j.report.Taints = append(j.report.Taints, t.ToString())
	}
}

// driver judges one driver. One that has nothing to do with the node is left out.
func (j *nodeJudge) driver(name string) {
	d := DriverOnNode{Name: name, Pods: j.podsOfDriver(name)}
	for _, a := range j.attachmentsHere() {
		if a.Spec.Attacher == name {
			d.Attached++
		}
	}
	if j.CSINode != nil {
		for _, registered := range j.CSINode.Spec.Drivers {
			if registered.Name == name {
				d.Registered, d.Server = true, registered.NodeID
				if registered.Allocatable != nil {
					d.Limit = registered.Allocatable.Count
				}
			}
		}
	}
	if id := j.provider(); id != "" {
		if d.Server != "" && !strings.EqualFold(d.Server, id) {
			j.find("CSINode %s names server %s, and the provider ID of the node names %s: find out who runs the kubelet there", j.Name, d.Server, id)
		}
		d.Server = id
	}
	d.Taint = j.startupTaint(name)
	if !d.Registered && d.Attached == 0 && len(d.Pods) == 0 && d.Taint == nil {
		return
	}
	j.judgeDriver(d)
	j.judgeServer(&d)
	j.report.Drivers = append(j.report.Drivers, d)
}

func (j *nodeJudge) podsOfDriver(name string) []NodePod {
	pods := []NodePod{}
	for _, p := range j.Plugins {
		if (cluster.Workload{Pod: p.Spec}).DriverName() != name {
			continue
		}
		one := NodePod{Name: p.Namespace + "/" + p.Name, Ready: ready(p)}
		for _, c := range containers(p) {
			one.Restarts += c.RestartCount
			if w := c.State.Waiting; w != nil && one.Waits == "" {
				one.Waits = sentence("container "+c.Name+": "+w.Reason, readable(w.Message))
			}
		}
		pods = append(pods, one)
	}
	return pods
}

func (j *nodeJudge) startupTaint(driver string) *TaintedAt {
	if j.Node == nil {
		return nil
	}
	for _, t := range j.Node.Spec.Taints {
		if t.Key != contract.StartupTaint(driver) {
			continue
		}
		tainted := &TaintedAt{Key: t.Key}
		if t.TimeAdded != nil {
			tainted.Since = since(t.TimeAdded.Time)
		}
		return tainted
	}
	return nil
}

func (j *nodeJudge) judgeDriver(d DriverOnNode) {
	if slices.Contains(j.Undeclared, d.Name) {
		text := ""
		for _, name := range j.Declared {
			if strings.HasSuffix(name, d.Name) || strings.HasPrefix(name, d.Name) {
				text = fmt.Sprintf(" (there is %s: a namePrefix or nameSuffix above the bundle changed the name)", name)
			}
		}
		j.find("the cluster has no CSIDriver %s%s, so Kubernetes applies no fsGroup and SELinux settings of it: apply the bundle with its own names", d.Name, text)
	}
	switch {
	case j.CSINode == nil && !j.NoCSINode: // unread
	case !d.Registered:
		j.find("driver %s is not registered: CSINode %s does not list it, so Kubernetes attaches no volume here", d.Name, j.Name)
	case d.Limit != nil && d.Attached >= int(*d.Limit):
		j.find("driver %s has no room for one more volume: %d are attached, and the limit is %d", d.Name, d.Attached, *d.Limit)
	case d.Taint != nil && d.Limit == nil:
		j.find("driver %s reports no attach limit: the driver removes the start-up taint once CSINode has one", d.Name)
	}
	if d.Taint != nil {
		text := "start-up taint " + d.Taint.Key + " keeps pods off the node"
		if d.Taint.Since != nil {
			text += ", for " + age(j.Now.Sub(*d.Taint.Since)) + " now"
		}
		j.find("%s: the controller of the driver removes it once the driver is registered", text)
	}
	seen := !slices.ContainsFunc(j.Gaps, func(g Gap) bool { return g.What == pluginsOn(j.Name) })
	if len(d.Pods) == 0 && seen && !j.NoNode {
		j.find("no pod of driver %s runs on the node", d.Name)
	}
	for _, p := range d.Pods {
		if !p.Ready {
			j.find("%s", sentence("pod "+p.Name+" of the driver is not ready", p.Waits))
		}
	}
}

func (j *nodeJudge) judgeServer(d *DriverOnNode) {
	server := j.CloudServers[d.Server]
	if d.Server == "" || server == nil {
		return
	}
	switch d.Status = server.Status; {
	case server.Missing:
		d.Status = "missing"
		j.find("Nova has no server %s: it is gone, or the credentials are for another project", d.Server)
	case server.Locked:
		j.find("server %s is locked: Nova refuses to attach and detach volumes", serverName(server))
	case server.Status != "ACTIVE":
		j.find("server %s is in status %s", serverName(server), server.Status)
	}
}

// volumes are those with a VolumeAttachment for the node, those of a pod there, and those that Cinder or kubelet has there.
func (j *nodeJudge) volumes() {
	servers := map[string]bool{}
	for _, d := range j.report.Drivers {
		servers[d.Server] = d.Server != ""
	}
	known, inUse, drivers, states := map[string]bool{}, map[string]bool{}, map[string]string{}, j.attachments()
	for _, v := range j.Volumes {
		drivers[v.Name] = driverOfVolume(&v)
	}
	if j.Node != nil {
		for _, name := range j.Node.Status.VolumesInUse { // kubelet says that these may be mounted
			inUse[strings.ToLower(string(name))] = true
		}
	}
	for _, row := range List(j.ListReadings).Volumes {
		known[strings.ToLower(row.ID)] = true
		one := VolumeOnNode{Row: row, State: cmp.Or(states[row.Volume], "none"), Mounted: inUse[strings.ToLower("kubernetes.io/csi/"+drivers[row.Volume]+"^"+row.ID)]}
		one.Pods = slices.Compact(row.Pods) // one may use a claim twice
		atServer := slices.ContainsFunc(row.Servers, func(id string) bool { return servers[id] })
		if one.State == "none" && !one.Mounted && len(one.Pods) == 0 && !atServer {
			continue
		}
		if reason := j.Unhealthy[strings.ToLower(row.ID)]; reason != "" {
			one.Findings = append(one.Findings, "the driver of the node found: "+reason)
		}
		if one.State == "none" && one.Mounted {
			one.Findings = append(one.Findings, "kubelet still uses it here, and there is no VolumeAttachment for the node")
		}
		for _, f := range one.Findings {
			j.find("%s (%s): %s", orNone(row.Claim), row.ID, f)
		}
		j.report.Volumes = append(j.report.Volumes, one)
	}
	for _, id := range sortedKeys(j.Cinder) {
		if !known[id] && j.Cinder[id].attachedTo(servers) {
			j.report.Others = append(j.report.Others, id)
		}
	}
}

// attachments are what Kubernetes says about volumes at the node, by PersistentVolume.
func (f NodeReadings) attachments() map[string]string {
	states := map[string]string{}
	for _, a := range f.Attachments {
		name := a.Spec.Source.PersistentVolumeName
		switch {
		case a.Spec.NodeName != f.Name || name == nil || states[*name] != "":
		case a.DeletionTimestamp != nil:
			states[*name] = "detaching"
		case a.Status.Attached:
			states[*name] = "attached"
		default:
			states[*name] = "attaching"
		}
	}
	return states
}

// PrintNode writes a report for people.
func PrintNode(out io.Writer, r NodeReport, columns int) error {
	p := newPrinter(out, columns)
	p.line("Node " + r.Node + ": " + r.State)
	for _, d := range r.Drivers {
		p.driverOnNode(d, r.Time)
	}
	if len(r.Taints) > 0 {
		p.text("", "Taints: "+strings.Join(r.Taints, " "))
	}
	var rows [][]string
	for _, v := range r.Volumes {
		uses := "no"
		if v.Mounted {
			uses = "yes"
		}
		rows = append(rows, []string{orNone(v.Claim), orNone(strings.Join(v.Pods, ",")), v.State, uses, orUnknown(v.Status), fmt.Sprint(v.Size), v.ID})
	}
	p.table("\nCLAIM\tPODS\tSTATE\tMOUNTED\tCINDER\tGIB\tVOLUME", rows)
	if len(r.Others) > 0 {
		p.line("")
		p.text("", "Other volumes at the server, which no PersistentVolume names: "+strings.Join(r.Others, " "))
	}
	p.waiting(r)
	if len(r.Findings) > 0 {
		p.line("")
		p.line("Findings:")
	}
	for _, f := range r.Findings {
		p.others("  ", f)
	}
	p.unseen(r.Unseen)
	p.line("")
	p.line(fmt.Sprintf("%s, %d waiting, %s", Counted(len(r.Volumes), "volume"), len(r.Waiting)+len(r.NotDiagnosed), Counted(len(r.Findings), "finding")))
	return p.err
}

func (p *printer) driverOnNode(d DriverOnNode, now time.Time) {
	registered, limit, server := "registered", "no limit", "server "+orUnknown(d.Server)
	if !d.Registered {
		registered = "not registered"
	}
	if d.Limit != nil {
		limit = fmt.Sprintf("limit %d", *d.Limit)
	}
	if d.Status != "" {
		server += " (" + d.Status + ")"
	}
	p.text("", fmt.Sprintf("Driver %s: %s, %s, %d attached, %s", d.Name, registered, limit, d.Attached, server))
	for _, pod := range d.Pods {
		state := "ready"
		if !pod.Ready {
			state = "not ready"
		}
		p.text("  ", sentence(fmt.Sprintf("pod %s: %s, %d restarts", pod.Name, state, pod.Restarts), pod.Waits))
	}
	if d.Taint != nil && d.Taint.Since != nil {
		p.text("  ", "start-up taint for "+age(now.Sub(*d.Taint.Since)))
	}
}

func (p *printer) waiting(r NodeReport) {
	if len(r.Waiting)+len(r.NotDiagnosed) > 0 {
		p.line("")
		p.line("Waiting:")
	}
	for _, w := range r.Waiting {
		p.others("  ", causeLine(w.Claim+": ", w.Cause))
		for _, s := range w.Steps {
			if s.State == Waiting || s.State == Failed {
				p.step(s, w.Time)
			}
		}
	}
	if len(r.NotDiagnosed) > 0 {
		p.text("  ", fmt.Sprintf("and %d more: %s", len(r.NotDiagnosed), strings.Join(r.NotDiagnosed, " ")))
	}
}
