package metadata

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// readFAT reads meta_data.json of the FAT file system on a device. It uses a mount that only this process sees:
// read-only, without programs, set-ID bits and device nodes. The mount is in no mount namespace and goes with its file
// descriptor, so a killed driver leaves nothing behind.
//
// It needs Linux 5.2 (fsopen(2)). Error: Unavailable.
func readFAT(device string) ([]byte, error) {
	mount, err := mountFAT(device)
	if err != nil {
		return nil, volume.Errorf(volume.Unavailable, "mount the config drive %s (vfat, needs Linux 5.2): %w", device, err)
	}
	defer unix.Close(mount)
	fd, err := unix.Openat(mount, metadataPath, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, volume.Errorf(volume.Unavailable, "open %s on the config drive %s: %w", metadataPath, device, err)
	}
	f := os.NewFile(uintptr(fd), metadataPath)
	defer f.Close()
	return readBounded(f)
}

// mountFAT returns the descriptor of the root directory of a mount that is attached nowhere.
func mountFAT(device string) (int, error) {
	context, err := unix.Fsopen("vfat", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0, err
	}
	defer unix.Close(context)
	if err := unix.FsconfigSetString(context, "source", device); err != nil {
		return 0, err
	}
	if err := unix.FsconfigSetFlag(context, "ro"); err != nil {
		return 0, err
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return 0, err
	}
	const attributes = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	return unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, attributes)
}
