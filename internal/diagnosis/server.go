package diagnosis

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

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
// write its CSINode, and cannot change a provider ID.
func (n *Node) server() string {
	switch {
	case n == nil:
		return ""
	case n.Provider == "" && n.Driver != nil:
		return n.Driver.NodeID
	}
	return n.Provider
}

// disputed reports whether CSINode and the provider ID name different servers.
func (n *Node) disputed() bool {
	return n.Provider != "" && n.Driver != nil && !strings.EqualFold(n.Driver.NodeID, n.Provider)
}

// change are commands that change the server of a node. The first shows it, if the node alone says which it is.
func (n *Node) change(verb string) []string {
	commands := []string{run("openstack", "server", verb, serverWord(n.server()))}
	if n.Provider == "" {
		commands = append([]string{run("openstack", "server", "show", "--column", "name", "--column", "status", serverWord(n.server()))}, commands...)
	}
	return commands
}

// noteUnknownServer adds a gap for a node whose server is needed and not known.
func (s *walk) noteUnknownServer(node string) {
	if g := unknownServer(node); !s.gapAbout(g.What) {
		s.Gaps, s.report.Unseen = append(slices.Clone(s.Gaps), g), append(slices.Clone(s.report.Unseen), g)
	}
}

// completeServers takes the servers of nodes without a CSINode of the driver from their provider IDs. A node with a VolumeAttachment whose server is
// not known then is a gap.
func (f *ListReadings) completeServers(ctx context.Context, r *reader) {
	var without []string
	for _, a := range f.Attachments {
		if _, known := f.Servers[a.Spec.NodeName]; !known && slices.Contains(f.Drivers, a.Spec.Attacher) && !slices.Contains(without, a.Spec.NodeName) {
			without = append(without, a.Spec.NodeName)
		}
	}
	if len(without) == 0 {
		return
	}
	for _, n := range selected[corev1.Node](ctx, r, "the nodes", "/api/v1/nodes", cluster.Selector{}) {
		if id := serverOf(n.Spec.ProviderID); id != "" && slices.Contains(without, n.Name) {
			f.Servers[n.Name] = id
		}
	}
	slices.Sort(without)
	for _, name := range without {
		if f.Servers[name] == "" {
			r.readings.Gaps = append(r.readings.Gaps, unknownServer(name))
		}
	}
}
