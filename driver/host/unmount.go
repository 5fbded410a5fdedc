package host

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// stacked is how many mounts over one another are taken away: upstream stacked one at each repeated publication of a block volume.
const stacked = 64

// Unmount takes away whatever is mounted at path, and then the empty directory or empty file that was under it. It does nothing if
// there is none. Errors: Busy while something uses the mount, Conflict when the place is not empty; what is in it is left alone.
//
// Copies of the mount that other mount namespaces have at the same place, as agents that see the server's files do, go with the
// directory (Linux, namespace.c, detach_mounts).
func (h *Host) Unmount(path string) error {
	return h.unmount(path, func(string) error { return nil })
}

// unmount does first before each mount is taken away.
func (h *Host) unmount(path string, first func(path string) error) error {
	path, err := resolve(path)
	if err != nil {
		return err
	}
	for range stacked {
		table, err := h.mounts()
		if err != nil {
			return err
		}
		if _, mounted := table.At(path); !mounted {
			h.lenient.Delete(path)
			return removeEmpty(path)
		}
		if err := first(path); err != nil {
			return err
		}
		if err := h.mounter.Unmount(path); err != nil {
			return err
		}
	}
	return volume.Errorf(volume.Failed, "%s is still a mount point after %d mounts were taken away", path, stacked)
}

func removeEmpty(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return volume.Errorf(volume.Failed, "look at the place of the mount: %w", err)
	}
	if !info.IsDir() && (!info.Mode().IsRegular() || info.Size() != 0) {
		return volume.Errorf(volume.Conflict, "%s is no mount and not empty; it is left alone, look what wrote there", path)
	}
	err = os.Remove(path)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTEMPTY):
		return volume.Errorf(volume.Conflict, "%s is no mount and not empty; it is left alone, look what wrote there", path)
	case errors.Is(err, syscall.EBUSY):
		return volume.Errorf(volume.Busy, "remove %s: it is a mount point in another mount namespace: %w", path, err)
	}
	return volume.Errorf(volume.Failed, "remove the place of the mount: %w", err)
}
