package controller

import (
	"cmp"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// validateFormat refuses formatting parameters of the StorageClass that the file system of a capability does not have.
func (s *Server) validateFormat(format contract.Format, capabilities []*csi.VolumeCapability) error {
	if format == (contract.Format{}) {
		return nil
	}
	for _, c := range capabilities {
		if c.GetBlock() != nil {
			return volume.Errorf(volume.InvalidArgument, "the StorageClass has parameters of a file system (%s, %s, %s or %s), which a block volume does not have. "+
				"Use volumeMode Filesystem, or a class without these parameters",
				contract.ParameterBlockSize, contract.ParameterInodeSize, contract.ParameterBytesPerInode, contract.ParameterInodes)
		}
		if err := format.Check(cmp.Or(c.GetMount().GetFsType(), s.o.DefaultFSType, "ext4")); err != nil {
			return volume.Errorf(volume.InvalidArgument, "StorageClass: parameter %w", err)
		}
	}
	return nil
}

// validateInodes refuses a size that is too small for the inodes that the StorageClass requires. The domain refuses an
// invalid size.
func validateInodes(format contract.Format, wanted volume.Range) error {
	size, err := wanted.Smallest()
	if err != nil {
		return nil // the domain reports it
	}
	if err := format.CheckSize(int64(size)); err != nil {
		return volume.Errorf(volume.InvalidArgument, "StorageClass: parameter %w", err)
	}
	return nil
}
