package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// gaps that the comparison of Cinder, Nova and Kubernetes asks for.
const cloudAttachments = "the attachments of the volume in Cinder"

func novaVolumes(server string) string { return "the volumes of server " + server + " in Nova" }

// detached stops the walk if Kubernetes shows the volume as attached to a node, and Cinder or Nova does not.
func (s *walk) detached(node string) bool {
	why := s.whyDetached(node)
	if s.blocked || why == "" {
		return s.blocked
	}
	do := []string{
		"programs in the pod get errors from the disk, or write to none. Stop every pod of the claim, wait until the VolumeAttachment is gone, and start them again: Kubernetes then attaches the volume again",
		s.inNamespace("get", "pods", "--output", "wide"),
	}
	if a := s.attachmentAt(node); a != nil {
		do = append(do, run("kubectl", "get", "volumeattachment", attachmentNamed(a.Name)))
	}
	s.stop(cause.AttachLost, Step{
		Name: stepAttach, What: "Kubernetes shows the volume as attached to node " + node + "; " + s.volumeText(), Why: why + ". Somebody detached it behind Kubernetes",
		Do: append(do, s.listAttachments()...),
	})
	return true
}

// whyDetached is what contradicts an attached volume; empty if nothing does, or if it could not be read.
func (s *walk) whyDetached(node string) string {
	c, n := s.Cloud, s.Nodes[node]
	if c == nil || c.Volume == nil {
		return ""
	}
	if a := s.attachmentAt(node); a != nil && a.DeletionTimestamp != nil {
		return "" // Kubernetes wants it detached
	}
	if c.Volume.Status == "available" {
		return "a volume in status available is attached to no server"
	}
	if s.gapAbout(cloudAttachments) {
		return ""
	}
	id := n.server()
	switch {
	case id == "" && len(c.Attachments) == 0:
		return "Cinder has no attachment of the volume to any server"
	case id == "":
		s.noteUnknownServer(node)
		return ""
	}
	if !slices.ContainsFunc(c.Attachments, func(a CloudAttachment) bool { return a.Server == id }) {
		return "Cinder has no attachment of the volume to server " + id + " of that node"
	}
	server := c.Servers[id]
	if server != nil && !server.Missing && !server.Has && !s.gapAbout(novaVolumes(id)) {
		return "Cinder has an attachment to server " + id + " of that node, and Nova does not list the volume there"
	}
	return ""
}

// unknownServers are those that Cinder attaches the volume to, and at which Kubernetes does not want it.
func (s *walk) unknownServers() []string {
	c := s.Cloud
	if c == nil || c.Volume == nil || s.gapAbout(theAttachments) {
		return nil
	}
	known := map[string]bool{}
	for _, a := range s.Attachments {
		server := s.Nodes[a.Spec.NodeName].server()
		if server == "" && len(c.Attachments) > 0 { // any may be its server
			s.noteUnknownServer(a.Spec.NodeName)
			return nil
		}
		known[server] = true
	}
	var servers []string
	for _, a := range c.Attachments {
		if a.Status == "attached" && a.Server != "" && !known[a.Server] {
			servers = append(servers, a.Server)
		}
	}
	slices.Sort(servers)
	return slices.Compact(servers)
}

// contradicted reports whether Kubernetes and the cloud say differently where the volume is attached.
func (s *walk) contradicted() bool {
	return len(s.unknownServers()) > 0 || slices.ContainsFunc(s.Attachments, func(a storagev1.VolumeAttachment) bool {
		return a.Status.Attached && s.whyDetached(a.Spec.NodeName) != ""
	})
}

// attachedBehind stops the walk if Cinder shows the volume at a server where Kubernetes does not want it.
func (s *walk) attachedBehind() bool {
	servers := s.unknownServers()
	if s.blocked || len(servers) == 0 {
		return s.blocked
	}
	do := []string{"find out who uses the disk there before you detach it: " + pages.FreeAStuckVolume.String()}
	for _, id := range servers {
		do = append(do, run("openstack", "server", "show", serverWord(id)))
	}
	s.stop(cause.AttachUnknown, Step{
		Name: stepAttach, What: "Cinder shows the volume attached to server " + strings.Join(servers, ", ") + ", for which Kubernetes has no VolumeAttachment; " + s.volumeText(),
		Why: "somebody attached it behind Kubernetes, or another cluster uses it. Two servers that write to one file system destroy it", Do: append(do, s.listAttachments()...),
	})
	return true
}

// compare looks for what Cinder and the PersistentVolume say differently about a volume that works.
func (s *walk) compare() {
	c, v := s.Cloud, s.Volume
	if s.blocked || c == nil || c.Volume == nil || v == nil {
		return
	}
	size := *resource.NewQuantity(int64(c.Volume.Size)<<30, resource.BinarySI)
	if capacity := v.Spec.Capacity.Storage(); capacity != nil && size.Cmp(*capacity) < 0 {
		s.stop(cause.VolumeSize, Step{
			Name: stepCompare, What: "PersistentVolume " + v.Name + " has capacity " + capacity.String() + "; " + s.volumeText(), Why: "the volume is smaller than Kubernetes says",
			Do: append([]string{"a file system that ends behind its disk is damaged: make a backup of what can be read, before you expand the volume in Cinder"}, s.showVolume()...),
		})
		return
	}
	s.otherCluster(stepCompare)
}

// otherCluster stops the walk if the volume has the mark of another cluster. No step before it may print a command that changes the volume.
func (s *walk) otherCluster(step string) {
	if s.Cloud == nil || s.Cloud.Volume == nil {
		return
	}
	v := s.Cloud.Volume
	if mark := v.Metadata[contract.MetadataCluster]; mark != "" && s.ClusterID != "" && mark != s.ClusterID {
		s.stop(cause.VolumeOtherCluster, Step{
			Name: step, What: fmt.Sprintf("Cinder volume %s has the mark of cluster %q; the driver of this cluster has %q", v.ID, mark, s.ClusterID),
			Why: "another cluster made the volume, or the driver had another cluster ID then",
			Do: append([]string{
				"make sure that the other cluster does not use the volume. If it is this cluster's now, change the mark: " + pages.SeveralClusters.String(),
				run("openstack", "volume", "set", "--property", contract.MetadataCluster+"="+s.ClusterID, s.volumeWord()),
			}, s.showVolume()...),
		})
	}
}
