package diagnosis

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// serverOf is the server of a provider ID, as the OpenStack cloud provider writes it: "openstack:///ID" or "openstack://REGION/ID". Empty for any
// other text.
func serverOf(providerID string) string {
	path, ours := strings.CutPrefix(providerID, "openstack://")
	id := strings.ToLower(path[strings.LastIndex(path, "/")+1:])
	if !ours || !contract.IsUUID(id) {
		return ""
	}
	return id
}

// theServerOf begins the name of a gap: a node whose server nobody knows. What Cinder attaches there cannot be compared.
const theServerOf = "the server of node "

func unknownServer(node string) Gap {
	return Gap{
		What: theServerOf + node, Why: "CSINode " + node + " does not list the driver, and no provider ID of the node names a server. Whether its volumes are attached there is not known",
		Do: "see in Nova whether the server exists, and in Cinder where the volumes are attached",
	}
}

// Blind names what kept a report from comparing Kubernetes with the cloud; empty if nothing did. It is the server of a node that is not known, or
// VolumeAttachments that the user may not read.
func Blind(gaps []Gap) string {
	i := slices.IndexFunc(gaps, func(g Gap) bool { return strings.HasPrefix(g.What, theServerOf) || g.What == theAttachments })
	if i < 0 {
		return ""
	}
	return gaps[i].What
}

// server is the server of a node: as the provider ID names it, or else as the driver registered it. A compromised node can
// write its CSINode, and cannot change a provider ID. It can set one that is empty, and chooses it when it registers.
func (n *Node) server() string {
	switch {
	case n == nil:
		return ""
	case n.Provider == "" && n.Driver != nil:
		return n.Driver.NodeID
	}
	return n.Provider
}

// conflict says why nobody knows which server a node is, though something names one; empty if nothing contradicts that.
func (n *Node) conflict(name string) string {
	switch {
	case n.Rival != "":
		return "node " + name + " and node " + n.Rival + " name the same server"
	case n.Provider != "" && n.Driver != nil && !strings.EqualFold(n.Driver.NodeID, n.Provider):
		return "CSINode " + name + " names server " + n.Driver.NodeID + ", and the provider ID of the node names " + n.Provider
	}
	return ""
}

// compared is whether a command may change the server of a node, as far as other nodes are concerned. One that nobody knows has no ID in a command.
func (n *Node) compared() bool { return n.server() == "" || n.Alone }

// change are commands that change the server of a node. The first shows it: a node may name any server. There are none before all nodes were compared.
func (n *Node) change(verb string) []string {
	if !n.compared() {
		return []string{"first find out whether another node names the same server. This run could not compare it with all Nodes and CSINodes, so it prints no command that changes the server"}
	}
	id := serverWord(n.server())
	return []string{run("openstack", "server", "show", "--column", "name", "--column", "status", id), run("openstack", "server", verb, id)}
}

// noteUnknownServer adds a gap for a node whose server is needed and not known.
func (s *walk) noteUnknownServer(node string) {
	if g := unknownServer(node); !s.gapAbout(g.What) {
		s.Gaps, s.report.Unseen = append(slices.Clone(s.Gaps), g), append(slices.Clone(s.report.Unseen), g)
	}
}

// namedServers reads which servers the nodes of a cluster name, in both places, and which nodes name the same one.
func (r *reader) namedServers(ctx context.Context, drivers []string) map[string]*Node {
	nodes, named := map[string]*Node{}, map[string]string{}
	of := func(name string) *Node {
		if nodes[name] == nil {
			nodes[name] = &Node{}
		}
		return nodes[name]
	}
	add := func(name, id string) {
		if id == "" {
			return
		}
		other := named[strings.ToLower(id)]
		if named[strings.ToLower(id)] = name; other != "" && other != name {
			nodes[name].Rival, nodes[other].Rival = other, name
		}
	}
	for _, n := range selected[storagev1.CSINode](ctx, r, "the CSINodes", "/apis/storage.k8s.io/v1/csinodes", cluster.Selector{}) {
		for _, d := range n.Spec.Drivers {
			if slices.Contains(drivers, d.Name) {
				of(n.Name).Driver = &d
				add(n.Name, d.NodeID)
			}
		}
	}
	for _, n := range selected[corev1.Node](ctx, r, "the nodes", "/api/v1/nodes", cluster.Selector{}) {
		of(n.Name).Provider = serverOf(n.Spec.ProviderID)
		add(n.Name, nodes[n.Name].Provider)
	}
	return nodes
}

// readRivals compares a node with all others if a command would change its server.
func (r *reader) readRivals(ctx context.Context) {
	var named map[string]*Node
	complete := false
	for name, n := range r.readings.Nodes {
		locked := false
		if c := r.readings.Cloud; c != nil {
			server := c.Servers[n.server()]
			locked = server != nil && server.Locked
		}
		if n.server() == "" || (n.Missing || n.Ready) && !locked {
			continue
		}
		if named == nil {
			before := len(r.readings.Gaps)
			named = r.namedServers(ctx, []string{r.readings.Driver})
			complete = len(r.readings.Gaps) == before
		}
		other := named[name]
		if other != nil {
			n.Rival = other.Rival
		}
		// A node writes its CSINode itself, perhaps between the two readings. What was compared is the server of the list.
		n.Alone = complete && n.Rival == "" && other != nil && strings.EqualFold(other.server(), n.server())
	}
}

// readNodeServers takes the servers of the nodes. A node with a VolumeAttachment whose server is not known, or in conflict, is a gap.
func (f *ListReadings) readNodeServers(ctx context.Context, r *reader) {
	f.Nodes = r.namedServers(ctx, f.Drivers)
	for name, n := range f.Nodes {
		if n.server() != "" && n.conflict(name) == "" {
			f.Servers[name] = n.server()
		}
	}
	unknown := map[string]Gap{}
	for _, a := range f.Attachments {
		name := a.Spec.NodeName
		if !slices.Contains(f.Drivers, a.Spec.Attacher) || f.Servers[name] != "" {
			continue
		}
		unknown[name] = unknownServer(name)
		if n := f.Nodes[name]; n != nil && n.server() != "" {
			unknown[name] = Gap{
				What: theServerOf + name, Why: n.conflict(name) + ". Whether its volumes are attached there is not known",
				Do: "change neither server before you know who runs the kubelet there: run kubectl cinder node for it",
			}
		}
	}
	for _, name := range sortedKeys(unknown) {
		r.readings.Gaps = append(r.readings.Gaps, unknown[name])
	}
}
