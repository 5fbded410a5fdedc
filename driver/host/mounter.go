package host

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Mounter changes the mount table. What is in it is read from mountinfo, never asked here.
type Mounter interface {
	// Mount mounts the file system on the device source at the directory target.
	Mount(ctx context.Context, source, target, fsType string, options []string) error
	// Bind shows source at target too. readOnly makes that mount alone read-only; nosuid, noexec and their kin of source stay.
	Bind(source, target string, readOnly bool) error
	// FinishReadOnly makes the mount at target read-only if Bind makes such mounts in two steps here, and reports whether it did. A
	// driver that is killed between the two leaves a writable mount behind.
	FinishReadOnly(target string) (bool, error)
	// Unmount takes the topmost mount at target away, without following a link: Busy while something uses it. An error when nothing
	// is mounted there.
	Unmount(target string) error
}

// kernelMounter works on this process's mount namespace: file systems by mount(8), which knows how to tell a file system's own
// options from the kernel's, everything else by the system calls, whose errors need no reading of messages. Of mount-utils it takes
// what knows mount(8); its mounter takes no context, so that a hung mount would hold the call beyond its deadline.
type kernelMounter struct{ run Runner }

func (k kernelMounter) Mount(ctx context.Context, source, target, fsType string, options []string) error {
	args := mount.MakeMountArgs(source, target, fsType, options)
	if !readOnlyAtLast(options) {
		args = append([]string{"--rw"}, args...) // else a write-protected disk is mounted read-only, with success (mount(8))
	}
	result, err := k.run.Run(ctx, "mount", args...)
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return volume.Errorf(volume.Failed, "mount %s (%s, options %q) at %s: %s", source, fsType, strings.Join(options, ","), target, result.Said())
	}
	return nil
}

// readOnlyAtLast says what ro and rw among the options come to, as mount(8) has it.
func readOnlyAtLast(options []string) bool {
	for _, o := range slices.Backward(options) {
		if o == "ro" || o == "rw" {
			return o == "ro"
		}
	}
	return false
}

func (k kernelMounter) Bind(source, target string, readOnly bool) error {
	if !readOnly {
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return volume.Errorf(volume.Failed, "bind %s at %s: %w", source, target, err)
		}
		return nil
	}
	err := bindReadOnly(source, target)
	if errors.Is(err, unix.ENOSYS) {
		err = bindThenMakeReadOnly(source, target)
	}
	if err != nil {
		return volume.Errorf(volume.Failed, "bind %s read-only at %s: %w", source, target, err)
	}
	return nil
}

// bindReadOnly makes a mount that is read-only before anybody can see it. A mount that is made read-only afterwards is so in this
// mount namespace alone: the copy that kubelet got when it was made stays writable (measured on Linux 6.18). Before Linux 5.12 ENOSYS.
func bindReadOnly(source, target string) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// bindThenMakeReadOnly is bindReadOnly in two steps, and never leaves the writable half of a read-only mount behind.
func bindThenMakeReadOnly(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if err := makeReadOnly(target); err != nil {
		return errors.Join(err, unix.Unmount(target, unix.UMOUNT_NOFOLLOW))
	}
	return nil
}

// makeReadOnly makes a bind mount read-only and keeps its other flags.
func makeReadOnly(target string) error {
	flags, err := boundFlags(target)
	if err != nil {
		return err
	}
	return unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags, "")
}

func (k kernelMounter) FinishReadOnly(target string) (bool, error) {
	if bindsInOneStep(target) {
		return false, nil
	}
	if err := makeReadOnly(target); err != nil {
		return false, volume.Errorf(volume.Failed, "make the mount at %s read-only: %w", target, err)
	}
	return true, nil
}

// bindsInOneStep asks the kernel for both system calls of bindReadOnly, in a way that changes nothing.
func bindsInOneStep(target string) bool {
	place, err := unix.OpenTree(unix.AT_FDCWD, target, unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return !errors.Is(err, unix.ENOSYS)
	}
	defer unix.Close(place)
	return !errors.Is(unix.MountSetattr(place, "", unix.AT_EMPTY_PATH, &unix.MountAttr{}), unix.ENOSYS)
}

// boundFlags are the flags a bind mount got from its source. A remount drops every flag that is not named again.
func boundFlags(target string) (uintptr, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(target, &s); err != nil {
		return 0, err
	}
	var flags uintptr
	for st, ms := range map[int64]uintptr{
		unix.ST_NOSUID: unix.MS_NOSUID, unix.ST_NODEV: unix.MS_NODEV, unix.ST_NOEXEC: unix.MS_NOEXEC,
		unix.ST_NOATIME: unix.MS_NOATIME, unix.ST_NODIRATIME: unix.MS_NODIRATIME, unix.ST_RELATIME: unix.MS_RELATIME,
	} {
		if int64(s.Flags)&st != 0 {
			flags |= ms
		}
	}
	return flags, nil
}

func (k kernelMounter) Unmount(target string) error {
	err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EBUSY):
		return volume.Errorf(volume.Busy, "unmount %s: a process still uses it: %w", target, err)
	}
	return volume.Errorf(volume.Failed, "unmount %s: %w", target, err)
}
