package mount

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// stackLimit is how many mounts over one another Unmount removes: upstream adds one at each repeated publication of a
// block volume.
const stackLimit = 64

// Unmount removes every mount at path, and then the empty directory or empty file that was under it. It calls before,
// if it is not nil, ahead of each mount that it removes. It does nothing if nothing is there.
//
// Errors: Busy if a process uses the mount, Conflict if the directory or file is not empty: Unmount leaves that as it
// is.
//
// With the directory the kernel also removes copies of the mount that other mount namespaces have at the same path
// (Linux, namespace.c, detach_mounts).
func (m *Mounts) Unmount(path string, before func(path string) error) error {
	path, err := Resolve(path)
	if err != nil {
		return err
	}
	for range stackLimit {
		table, err := m.Table()
		if err != nil {
			return err
		}
		if _, mounted := table.At(path); !mounted {
			return removeEmpty(path)
		}
		if before != nil {
			if err := before(path); err != nil {
				return err
			}
		}
		if err := m.UnmountTop(path); err != nil {
			return err
		}
	}
	return volume.Errorf(volume.Failed, "unmount %s: the path is still a mount point after the driver removed %d mounts", path, stackLimit).Cause(cause.MountFailed)
}

func removeEmpty(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return volume.Errorf(volume.Failed, "read the mount point: %w", err).Cause(cause.NodeSystem)
	}
	if !info.IsDir() && (!info.Mode().IsRegular() || info.Size() != 0) {
		return notEmpty(path)
	}
	err = os.Remove(path)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTEMPTY):
		return notEmpty(path)
	case errors.Is(err, syscall.EBUSY):
		return volume.Errorf(volume.Busy, "remove the mount point %s: another mount namespace has something mounted there: %w", path, err).Cause(cause.MountBusy)
	}
	return volume.Errorf(volume.Failed, "remove the mount point: %w", err).Cause(cause.NodeSystem)
}

func notEmpty(path string) error {
	return volume.Errorf(volume.Conflict, "remove the mount point %s: it is not empty; the driver leaves it as it is. "+
		"Find out which program wrote there", path).Cause(cause.DiskPath)
}
