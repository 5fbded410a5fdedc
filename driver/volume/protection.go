package volume

import "github.com/cinder-csi/cinder-csi/driver/contract"

// Protection refuses objects that carry the mark of another cluster. Who may write PersistentVolumes or VolumeSnapshotContents in one cluster can
// name any object of the project. An object without a mark is allowed: a static one, or one of another program. The zero Protection allows all.
type Protection struct{ Cluster string }

// Check returns PermissionDenied for an object whose metadata has the mark of another cluster. Object names it, for the error.
func (p Protection) Check(object string, metadata map[string]string) error {
	other := metadata[contract.MetadataCluster]
	if p.Cluster == "" || other == "" || other == p.Cluster {
		return nil
	}
	return Errorf(PermissionDenied, "%s carries the mark of cluster %q, and this driver serves cluster %q. With --protect-other-clusters it leaves the objects of other clusters alone",
		object, other, p.Cluster)
}

// CheckVolume is Check for a volume.
func (p Protection) CheckVolume(v Volume) error { return p.Check("volume "+string(v.ID), v.Metadata) }
