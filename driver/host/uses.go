package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// paths lists where the disk's file system is mounted.
func (t Table) paths(d *Disk) (paths []string) {
	for _, m := range t {
		if m.On(d) {
			paths = append(paths, m.Path)
		}
	}
	return paths
}

// uses lists where a disk is in use: mounts of its file system, and its device node where it was bound for a block volume.
func (h *Host) uses(t Table, d *Disk) []string {
	paths := t.paths(d)
	nodes, known := fileSystemOf(d.Path)
	for _, m := range t {
		if known && m.Device == nodes && !inPodsVolume(m.Path) && isNode(m.Path, d.Number) {
			paths = append(paths, m.Path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths) // a mount in a shared tree may be listed twice at one path
}

// fileSystemOf gives the number of the file system that holds the machine's device nodes, which is that of each bind of one. A container with
// CAP_MKNOD can make a node with any number, but only in a file system of its own.
func fileSystemOf(node string) (Number, bool) {
	var s unix.Stat_t
	if err := unix.Stat(node, &s); err != nil {
		return Number{}, false
	}
	return numberOf(s.Dev), true
}

func isNode(path string, number Number) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&(os.ModeDevice|os.ModeCharDevice) == os.ModeDevice && numberOf(stat.Rdev) == number
}

// inPodsVolume reports whether a tenant can have a part of such a path: it is in a pod's directory below kubelet's, wherever that is, and
// not in pods/UID/volumeDevices, where kubelet binds the device nodes of block volumes. A tenant chooses what kubelet binds by subPath, in
// pods/UID/volume-subpaths. Elsewhere only root mounts: kubelet's plugins directory, or whatever an orchestrator other than kubelet names.
func inPodsVolume(path string) bool {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if part == "pods" && len(parts) > i+2 {
			return parts[i+2] != "volumeDevices"
		}
	}
	return false
}

// checkAlone refuses a publication where the volume's access mode allows one, and there is another.
func (h *Host) checkAlone(t Table, d *Disk, p Publication, staging, target string) error {
	if !p.Alone {
		return nil
	}
	for _, path := range h.uses(t, d) {
		// kubelet stages at .../globalmount; a staging of an older kubelet has another path before that.
		if path != staging && path != target && filepath.Base(path) != "globalmount" {
			return volume.Errorf(volume.Conflict, "volume %s is published at %s, and its access mode allows one publication; unpublish it there first", p.Volume, path)
		}
	}
	return nil
}

// Unstage writes out what is mounted at the staging path and takes it away, as Unmount does. While the volume is in use anywhere else it
// is Busy, also where only another mount namespace has it mounted, so that its disk is not detached under a mount.
func (h *Host) Unstage(ctx context.Context, id volume.ID, path string) error {
	flush := func(path string) error { return h.flush(ctx, path) }
	if err := h.unmount(path, flush); err != nil || checkID(id) != nil {
		return err
	}
	disk, err := h.locate(ctx, id) // which a disk that hangs now does not hold up
	if disk == nil || err != nil {
		return nil // no disk, or none that could be told: whatever is mounted is not this volume for sure
	}
	defer disk.Close()
	table, err := h.mounts()
	if err != nil {
		return err
	}
	if left := h.uses(table, disk); len(left) > 0 {
		return volume.Errorf(volume.Busy, "volume %s is not staged any more, and disk %s is still in use at %s; unpublish it there, or unmount by hand what nobody knows",
			id, disk.Path, firstFew(left))
	}
	return h.checkLetGo(ctx, id, disk)
}

// firstFew keeps a list of places from filling a message.
func firstFew(places []string) string {
	const most = 8
	if len(places) <= most {
		return strings.Join(places, ", ")
	}
	return fmt.Sprintf("%s and %d more places", strings.Join(places[:most], ", "), len(places)-most)
}
