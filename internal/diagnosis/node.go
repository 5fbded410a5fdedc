package diagnosis

import (
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/internal/pages"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// nodeTrouble stops the walk if a node or its server keeps the driver from attaching or detaching.
func (s *walk) nodeTrouble(step, name string) bool {
	n := s.Nodes[name]
	if s.blocked || n == nil {
		return s.blocked
	}
	server := s.serverOf(n)
	gone := server != nil && server.Missing
	unknown := gone && n.Ready && !n.Missing && !s.Cloud.Missing && s.Cloud.Volume != nil
	if gone && !unknown && (n.Ready || s.Cloud.Missing) {
		s.hiddenServer(name, server)
	}
	switch {
	case n.conflict(name) != "":
		s.serverDisputed(step, name, n)
	case unknown:
		s.serverUnknown(step, name, server)
	case gone && !n.Ready && !n.Missing && !s.Cloud.Missing:
		s.serverMissing(step, name, server)
	case server != nil && server.Status == "ERROR":
		s.stop(cause.ServerError, Step{
			Name: step, What: "server " + serverName(server) + " of node " + name + " is in status ERROR", Why: "Nova attaches and detaches nothing there",
			Do: []string{"have the operator of the cloud repair or rebuild the server", run("openstack", "server", "show", serverWord(server.ID))},
		})
	case server != nil && server.Locked && !s.attachedAt(name):
		s.stop(cause.ServerLocked, Step{
			Name: step, What: "server " + serverName(server) + " of node " + name + " is locked", Why: "Nova refuses to attach and detach volumes of a locked server",
			Do: append([]string{"ask who locked it; then unlock it, and the driver succeeds by itself"}, n.change("unlock")...),
		})
	case !n.Ready || n.Missing:
		s.notReady(step, name, n)
	case step == stepAttach && n.Seen && n.Driver == nil && s.Driver != "":
		s.unregistered(name)
	}
	return s.blocked
}

// attachedAt reports whether the volume is attached to a node and shall stay there: then the state of the lock does not matter.
func (s *walk) attachedAt(node string) bool {
	a := s.attachmentAt(node)
	return a != nil && a.Status.Attached && a.DeletionTimestamp == nil
}

func (s *walk) serverOf(n *Node) *CloudServer {
	if s.Cloud == nil {
		return nil
	}
	return s.Cloud.Servers[n.server()]
}

func serverName(server *CloudServer) string {
	return strings.TrimSpace(server.Name + " " + server.ID)
}

// serverDisputed is a node that may have named the server of somebody else, so no command changes that.
func (s *walk) serverDisputed(step, name string, n *Node) {
	do := []string{"change neither server, and do not set the taint out-of-service, before you know which of them is the node"}
	if n.Rival != "" {
		do = []string{"do not change the server, and do not set the taint out-of-service, before you know which node it is. Compare the addresses of both nodes with those of the server in Nova"}
	} else {
		do = append(do, run("openstack", "server", "show", serverWord(n.Provider)), run("kubectl", "get", "csinode", nodeNamed(name), "--output", "yaml"),
			"if it is the one of the provider ID, restart the pod of the driver on the node. If CSINode then names the other again, do not trust the node")
	}
	s.stop(cause.ServerConflict, Step{
		Name: step, What: n.conflict(name),
		Why: "a node writes its CSINode itself, and the driver attaches and detaches at the server that stands there",
		Do:  append(do, "shut down a node that you do not trust before you delete it. Otherwise its kubelet registers again, with a provider ID that it chooses"),
	})
}

func (s *walk) serverMissing(step, name string, server *CloudServer) {
	s.stop(cause.ServerMissing, Step{
		Name: step, What: "server " + server.ID + " of node " + name + " is gone from Nova", Since: s.nodeSince(name),
		Why: "a server that does not exist runs no pod, so its volumes are free",
		Do: []string{
			"make sure that the server is gone, and not in another project than the credentials of cloud " + s.Cloud.Name, run("openstack", "server", "show", serverWord(server.ID)),
			"delete the node; Kubernetes then deletes its pods, and the driver detaches the volumes", run("kubectl", "delete", "node", nodeNamed(name)),
		},
	})
}

// serverUnknown is a server that Nova does not have, though its node answers and Cinder shows the volume of the same project.
func (s *walk) serverUnknown(step, name string, server *CloudServer) {
	s.stop(cause.ServerUnknown, Step{
		Name: step, What: "Nova has no server " + server.ID + ", and its node " + name + " is ready; " + s.volumeText(),
		Why: "the machine runs, so it is not gone. Nova attaches and detaches nothing at a server that it does not have",
		Do: []string{
			"do not delete the node. See whether the server is in another project than the credentials of cloud " + s.Cloud.Name, run("openstack", "server", "show", serverWord(server.ID)),
			"or whether CSINode has the ID of an earlier server; then restart the pod of the driver on the node", run("kubectl", "get", "csinode", nodeNamed(name), "--output", "yaml"),
			"otherwise give the ID to the operator of the cloud: somebody deleted the server in Nova while its host did not answer",
		},
	})
}

// hiddenServer notes a server that Nova does not show, and that may well exist: its node answers, or the volume is hidden too.
func (s *walk) hiddenServer(name string, server *CloudServer) {
	what := "server " + server.ID + " of node " + name
	if !s.gapAbout(what) {
		g := Gap{What: what, Why: "Nova has no such server, but other facts contradict that it is gone: the credentials (cloud " + s.Cloud.Name + ") may be for another project", Do: "use credentials for the project of the driver"}
		s.Gaps, s.report.Unseen = append(s.Gaps, g), append(s.report.Unseen, g)
	}
}

func (s *walk) nodeSince(name string) *time.Time {
	if n := s.Nodes[name]; n != nil && !n.Ready {
		return since(n.Since)
	}
	return nil
}

// notReady is a node that does not answer. Kubernetes does not detach its volumes: the node may still write to them.
func (s *walk) notReady(step, name string, n *Node) {
	if n.Missing {
		s.stop(cause.NodeNotReady, Step{
			Name: step, What: "node " + name + " does not exist in Kubernetes", Why: "the volume has a VolumeAttachment or a pod there",
			Do: []string{"Kubernetes deletes both after a few minutes; if they stay, read the log of kube-controller-manager"},
		})
		return
	}
	which := ""
	if server := s.serverOf(n); server != nil && server.Name != "" {
		which = " " + serverName(server)
	}
	do := append([]string{
		"repair the node; or shut down its server" + which + ", and only then set the taint out-of-service. Kubernetes then deletes its pods and detaches its volumes",
	}, n.change("stop")...)
	if n.compared() {
		do = append(do, run("openstack", "server", "show", "--column", "status", serverWord(n.server())), run("kubectl", "taint", "nodes", nodeNamed(name), outOfService),
			"remove the taint when the node is back", run("kubectl", "taint", "nodes", nodeNamed(name), outOfService+"-"))
	}
	s.stop(cause.NodeNotReady, Step{
		Name: step, State: Waiting, What: "node " + name + " is not ready, and the volume is attached or wanted there", Since: since(n.Since), Do: do,
		Why: "Kubernetes does not detach a volume from a node that does not answer, because the node may still write to it",
	})
}

// serverWord is the ID of a server for a command. A node writes its CSINode itself, so that what stands there may be no ID.
func serverWord(id string) string { return shell.ID(id, "SERVER") }

// outOfService is the taint by which Kubernetes detaches the volumes of a node that is shut down.
const outOfService = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"

func (s *walk) unregistered(name string) {
	s.stop(cause.NodeUnregistered, Step{
		Name: stepAttach, What: "driver " + s.Driver + " is not registered on node " + name, Why: "CSINode " + name + " does not list it: its node plugin does not run there, or has just started",
		Do: append([]string{
			"start the node plugin on that node; look at its tolerations, its image and its log",
			run("kubectl", "describe", "csinode", nodeNamed(name)),
		}, s.nodeLog(name)...),
	})
}

// volumeTrouble stops the walk if Cinder shows the volume as gone or in an error status.
func (s *walk) volumeTrouble() bool {
	if s.blocked || s.Cloud == nil {
		return s.blocked
	}
	if s.Cloud.Missing {
		s.stop(cause.VolumeMissing, Step{
			Name: stepAttach, What: "Cinder has no volume " + s.volumeID(), Why: "somebody deleted it, or the credentials are for another project (cloud " + s.Cloud.Name + ")",
			Do: []string{"check the project of the credentials; if the volume is gone, restore its data from a backup into a new claim", run("openstack", "volume", "show", s.volumeWord())},
		})
		return true
	}
	if v := s.Cloud.Volume; v != nil && strings.HasPrefix(v.Status, "error") && v.Status != "error_extending" {
		s.stop(cause.VolumeError, Step{Name: stepAttach, What: s.volumeText(), Since: since(v.Updated.Time), Why: s.Cloud.Message, Do: append([]string{
			"Nova attaches no volume in this status; have the operator of the cloud find the cause and reset the status: " + pages.FreeAStuckVolume.String(),
		}, s.showVolume()...)})
		return true
	}
	return false
}
