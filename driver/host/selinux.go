package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// seLinuxOptions begin the mount options that set labels (mount(8), "context").
var seLinuxOptions = []string{"context=", "fscontext=", "defcontext=", "rootcontext="}

// checkContext checks that the mount has the SELinux labels of the options. mount(8) drops such options, and succeeds, if
// it sees no selinuxfs. kubelet does not have the files relabelled then, so the pod could not read its volume. On a kernel
// without SELinux there is nothing to lose. then says what becomes of the mount.
func (h *Host) checkContext(mounted mount.Entry, id volume.ID, options []string, then string) error {
	for _, prefix := range seLinuxOptions {
		begins := func(option string) bool { return strings.HasPrefix(option, prefix) }
		if slices.ContainsFunc(options, begins) && !slices.ContainsFunc(mounted.SuperOptions, begins) {
			if !h.kernelHasSELinux() {
				h.warnSELinux.Do(func() {
					h.log.Warn("a mount has no SELinux context although the request has one: the kernel of this node has no SELinux; "+
						"later mounts are not logged", "volume", id, "path", mounted.Path)
				})
				continue
			}
			return volume.Errorf(volume.Conflict, "stage volume %s: the mount at %s lost the SELinux option %s; %s. "+
				"The container of the driver needs /etc/selinux and /sys/fs of the host; otherwise set seLinuxMount of the CSIDriver to false",
				id, mounted.Path, strings.TrimSuffix(prefix, "="), then).Cause(cause.MountSELinux)
		}
	}
	return nil
}

// kernelHasSELinux reports whether the kernel has selinuxfs, or that is unknown. A kernel that was booted without SELinux
// does not register it (Linux, security/selinux/selinuxfs.c, init_sel_fs).
func (h *Host) kernelHasSELinux() bool {
	content, err := os.ReadFile(filepath.Join(h.proc, "filesystems"))
	return err != nil || slices.Contains(strings.Fields(string(content)), "selinuxfs")
}
