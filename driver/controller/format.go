package controller

import (
	"cmp"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// makeable says why the file system that one of the capabilities is for cannot be made as the StorageClass has it.
func (s *Server) makeable(format contract.Format, capabilities []*csi.VolumeCapability) error {
	if format == (contract.Format{}) {
		return nil
	}
	for _, c := range capabilities {
		if c.GetBlock() != nil {
			return volume.Errorf(volume.InvalidArgument, "the StorageClass says how a file system is made (%s, %s, %s or %s), and a block volume has none; "+
				"use volumeMode Filesystem, or a class without these parameters",
				contract.ParameterBlockSize, contract.ParameterInodeSize, contract.ParameterBytesPerInode, contract.ParameterInodes)
		}
		if err := format.Check(cmp.Or(c.GetMount().GetFsType(), s.o.DefaultFSType, "ext4")); err != nil {
			return volume.Errorf(volume.InvalidArgument, "the StorageClass: parameter %w", err)
		}
	}
	return nil
}

// fits says why a new volume has no room for the inodes that the StorageClass asks for. A size that cannot be is for the domain to refuse.
func fits(format contract.Format, wanted volume.Range) error {
	size, err := wanted.Smallest()
	if err != nil {
		return nil // the domain says it, in its turn
	}
	if err := format.CheckSize(int64(size)); err != nil {
		return volume.Errorf(volume.InvalidArgument, "the StorageClass: parameter %w", err)
	}
	return nil
}
