package mount

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/command"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Mounter changes mounts.
type Mounter interface {
	// Mount mounts the file system on the device source at the directory target.
	Mount(ctx context.Context, source, target, fsType string, options []string) error
	// Bind mounts source at target too. readOnly makes only the new mount read-only; it keeps nosuid, noexec and such
	// flags of source.
	Bind(source, target string, readOnly bool) error
	// FinishReadOnly makes the mount at target read-only if Bind needs two steps for that on this kernel, and reports
	// whether it did. A driver that is killed between the two steps leaves a writable mount behind.
	FinishReadOnly(target string) (bool, error)
	// UnmountTop removes the topmost mount at target and does not follow a link. Busy if a process uses it. It is an
	// error if nothing is mounted there.
	UnmountTop(target string) error
}

// Kernel mounts file systems by mount(8), which tells the options of a file system from those of the kernel. It does
// everything else by system calls, whose errors need no parsing. It takes only mount(8)'s arguments from mount-utils:
// the mounter there has no context, so a mount that hangs would hold the call beyond its deadline.
type Kernel struct {
	Commands command.Runner

	calls *calls // those of the kernel if nil; tests replace them
}

// calls are the system calls that change mounts or read their flags.
type calls struct {
	mount        func(source, target, fsType string, flags uintptr, data string) error
	unmount      func(target string, flags int) error
	bindReadOnly func(source, target string) error
	oneStep      func(target string) bool
	statfs       func(path string, s *unix.Statfs_t) error
}

var kernelCalls = calls{mount: unix.Mount, unmount: unix.Unmount, bindReadOnly: bindReadOnly, oneStep: bindsInOneStep, statfs: unix.Statfs}

func (k Kernel) sys() *calls {
	if k.calls != nil {
		return k.calls
	}
	return &kernelCalls
}

// Mount implements Mounter.
func (k Kernel) Mount(ctx context.Context, source, target, fsType string, options []string) error {
	args := mountutils.MakeMountArgs(source, target, fsType, options)
	if !readOnly(options) {
		args = append([]string{"--rw"}, args...) // else mount(8) mounts a write-protected disk read-only, and succeeds
	}
	result, err := command.Ask(ctx, k.Commands, "mount", args...)
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return volume.Errorf(volume.Failed, "mount %s (%s, options %q) at %s: %s", source, fsType, strings.Join(options, ","), target, result.Message()).Cause(cause.MountFailed)
	}
	return nil
}

// readOnly reports what mount(8) makes of several ro and rw among the options: the last one counts.
func readOnly(options []string) bool {
	for _, o := range slices.Backward(options) {
		if o == "ro" || o == "rw" {
			return o == "ro"
		}
	}
	return false
}

// Bind implements Mounter.
func (k Kernel) Bind(source, target string, readOnly bool) error {
	if !readOnly {
		if err := k.sys().mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return volume.Errorf(volume.Failed, "bind %s at %s: %w", source, target, err).Cause(cause.MountFailed)
		}
		return nil
	}
	err := k.sys().bindReadOnly(source, target)
	if errors.Is(err, unix.ENOSYS) {
		err = k.sys().bindThenRemount(source, target)
	}
	if err != nil {
		return volume.Errorf(volume.Failed, "bind %s read-only at %s: %w", source, target, err).Cause(cause.MountFailed)
	}
	return nil
}

// bindReadOnly makes a mount that is read-only before anybody can see it. A mount that becomes read-only afterwards is
// read-only in this mount namespace alone. The copy that kubelet received at the bind stays writable (measured on Linux
// 6.18). ENOSYS before Linux 5.12.
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

// bindThenRemount is bindReadOnly in two steps. If the second fails, it removes the writable mount.
func (c *calls) bindThenRemount(source, target string) error {
	if err := c.mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if err := c.remountReadOnly(target); err != nil {
		return errors.Join(err, c.unmount(target, unix.UMOUNT_NOFOLLOW))
	}
	return nil
}

// remountReadOnly makes a bind mount read-only and keeps its other flags.
func (c *calls) remountReadOnly(target string) error {
	flags, err := c.bindFlags(target)
	if err != nil {
		return err
	}
	return c.mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags, "")
}

// FinishReadOnly implements Mounter.
func (k Kernel) FinishReadOnly(target string) (bool, error) {
	if k.sys().oneStep(target) {
		return false, nil
	}
	if err := k.sys().remountReadOnly(target); err != nil {
		return false, volume.Errorf(volume.Failed, "make the mount at %s read-only: %w", target, err).Cause(cause.MountFailed)
	}
	return true, nil
}

// bindsInOneStep tries both system calls of bindReadOnly in a way that changes nothing.
func bindsInOneStep(target string) bool {
	fd, err := unix.OpenTree(unix.AT_FDCWD, target, unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return !errors.Is(err, unix.ENOSYS)
	}
	defer unix.Close(fd)
	return !errors.Is(unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{}), unix.ENOSYS)
}

// bindFlags returns the flags that a bind mount has from its source. A remount drops every flag that is not repeated.
func (c *calls) bindFlags(target string) (uintptr, error) {
	var s unix.Statfs_t
	if err := c.statfs(target, &s); err != nil {
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

// UnmountTop implements Mounter.
func (k Kernel) UnmountTop(target string) error {
	err := k.sys().unmount(target, unix.UMOUNT_NOFOLLOW)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EBUSY):
		return volume.Errorf(volume.Busy, "unmount %s: a process still uses it: %w", target, err).Cause(cause.MountBusy)
	}
	return volume.Errorf(volume.Failed, "unmount %s: %w", target, err).Cause(cause.MountFailed)
}
