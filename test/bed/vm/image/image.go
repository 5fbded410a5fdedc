// Package image builds the files that the test guest boots: kernels of several Debian releases, and a file system for each. The file system has
// the tools of the driver image, udev, and busybox for everything else. The package installs nothing on this machine.
package image

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/tools/image"
)

// The names of the two files that Build writes.
const (
	Kernel  = "vmlinuz"
	Initial = "initramfs"
)

// packages are the packages of the driver image and of a node's host, without a kernel.
var packages = append(slices.Clone(image.Packages), "busybox-static", "udev", "tgt", "open-iscsi")

// tools are the tools of the driver image, those that create links below /dev/disk in guests with udev, and an iSCSI target and initiator.
var tools = append(slices.Clone(image.Tools), "busybox", "tgtd", "tgtadm", "iscsistart", "udevadm", "usr/lib/systemd/systemd-udevd",
	"usr/lib/udev/scsi_id", "usr/lib/udev/ata_id", "usr/lib/udev/cdrom_id",
	"usr/lib/udev/rules.d/50-udev-default.rules", "usr/lib/udev/rules.d/60-block.rules", "usr/lib/udev/rules.d/60-cdrom_id.rules",
	"usr/lib/udev/rules.d/60-persistent-storage.rules", "usr/lib/udev/rules.d/64-btrfs.rules")

// modules are the modules that the guest loads at boot: buses, disks, the port of the agent, the power button and file systems of volumes. The list has the
// checksum modules too, because the file systems request them by name: see mayLack.
var modules = []string{
	"crc32c_generic", "virtio_pci", "virtio_console", "virtio_net", "virtio_balloon", "virtio_rng", "virtio_blk", "virtio_scsi",
	"sd_mod", "sr_mod", "ata_piix", "ahci", "button", "evdev", "nvme", "loop", "blake2b_generic", "ext4", "xfs", "btrfs",
}

// onDemand are modules in the image that the guest does not load: the file systems of config drives, and the iSCSI initiator. The driver must
// work without them.
var onDemand = []string{"iscsi_tcp", "isofs", "vfat", "nls_ascii", "nls_cp437", "nls_iso8859-1", "nls_utf8"}

//go:embed init.sh
var initScript []byte

// Build writes a kernel and an initial file system into dir/NAME for each of the kernels, by their names. dir also keeps the packages.
func Build(ctx context.Context, dir string, names []string) error {
	all, err := fetchAll(ctx, image.Debian{Dir: dir}, packages, "")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := build(ctx, all, filepath.Join(dir, name), name); err != nil {
			return fmt.Errorf("kernel %s: %w", name, err)
		}
	}
	return nil
}

func build(ctx context.Context, tools image.Tree, dir, name string) error {
	k, ok := kernels[name]
	if !ok {
		return fmt.Errorf("there is no such kernel; there are %v", slices.Sorted(maps.Keys(kernels)))
	}
	kernel, err := k.fetch(ctx, dir)
	if err != nil {
		return err
	}
	root, vmlinuz, err := assemble(tools, kernel)
	if err != nil {
		return err
	}
	return errors.Join(
		write(filepath.Join(dir, Kernel), func(w io.Writer) error { _, err := w.Write(vmlinuz.Data); return err }),
		write(filepath.Join(dir, Initial), func(w io.Writer) error { return WriteCPIO(w, root) }))
}

// fetchAll downloads packages with their dependencies, and returns the files of those whose name has the prefix.
func fetchAll(ctx context.Context, debian image.Debian, names []string, prefix string) (image.Tree, error) {
	fetched, err := debian.Fetch(ctx, names)
	if err != nil {
		return nil, err
	}
	all := image.NewTree()
	for i := range fetched {
		if !strings.HasPrefix(fetched[i].Name, prefix) {
			continue
		}
		if err := all.AddPackage(ctx, &fetched[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func assemble(all, kernel image.Tree) (root image.Tree, vmlinuz *image.File, err error) {
	version, vmlinuz, err := findKernel(kernel)
	if err != nil {
		return nil, nil, err
	}
	if root, err = all.Slim(tools); err != nil {
		return nil, nil, err
	}
	kernelModules, err := readModules(kernel, path.Join("usr/lib/modules", version))
	if err != nil {
		return nil, nil, err
	}
	load, err := kernelModules.add(root, kernelModules.present(modules))
	if err != nil {
		return nil, nil, err
	}
	if _, err := kernelModules.add(root, onDemand); err != nil {
		return nil, nil, err
	}
	kernelModules.index(root)
	root.AddFile("etc/guest-modules", 0o644, []byte(strings.Join(load, "\n")+"\n"))
	root.AddFile("etc/fstab", 0o644, nil)
	root.AddFile("etc/machine-id", 0o444, []byte("0123456789abcdef0123456789abcdef\n"))
	root.AddFile("etc/group", 0o644, groups())
	root.AddFile("init", 0o755, initScript)
	return root, vmlinuz, nil
}

// findKernel finds the kernel in its packages: in /boot, and from Linux 7 on beside its modules.
func findKernel(all image.Tree) (version string, vmlinuz *image.File, err error) {
	for name, file := range all {
		if v, ok := strings.CutPrefix(name, "boot/vmlinuz-"); ok {
			return v, file, nil
		}
		if dir, base := path.Split(name); base == "vmlinuz" {
			return path.Base(dir), file, nil
		}
	}
	return "", nil, errors.New("no package has a kernel")
}

// groups are the groups in the rules of udev.
func groups() []byte {
	var text strings.Builder
	for i, name := range []string{"root", "disk", "cdrom", "tty", "kmem", "dialout", "input", "render", "sgx", "kvm", "lp", "video", "audio", "tape"} {
		fmt.Fprintf(&text, "%s:x:%d:\n", name, i)
	}
	return []byte(text.String())
}

// write replaces a file atomically.
func write(name string, content func(io.Writer) error) error {
	f, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	if err := errors.Join(content(f), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func sortedNames(t image.Tree) []string { return slices.Sorted(maps.Keys(t)) }
