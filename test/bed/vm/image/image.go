// Package image builds the files that the test guest boots: Debian's kernel and a file system. The file system has the tools of the driver
// image, udev, and busybox for everything else. The package installs nothing on this machine.
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

// packages are the packages of the driver image and of a node's host. The kernel is that of Debian's cloud images.
var packages = append(slices.Clone(image.Packages), "linux-image-cloud-amd64", "busybox-static", "udev")

// tools are the tools of the driver image, and those that create links below /dev/disk in guests with udev.
var tools = append(slices.Clone(image.Tools), "busybox", "udevadm", "usr/lib/systemd/systemd-udevd",
	"usr/lib/udev/scsi_id", "usr/lib/udev/ata_id", "usr/lib/udev/cdrom_id",
	"usr/lib/udev/rules.d/50-udev-default.rules", "usr/lib/udev/rules.d/60-block.rules", "usr/lib/udev/rules.d/60-cdrom_id.rules",
	"usr/lib/udev/rules.d/60-persistent-storage.rules", "usr/lib/udev/rules.d/64-btrfs.rules")

// modules are the modules that the guest loads at boot: buses, disks, the port of the agent and file systems of volumes. The list has the
// checksum modules too, because the file systems request them by name.
var modules = []string{
	"crc32c_generic", "virtio_pci", "virtio_console", "virtio_net", "virtio_balloon", "virtio_rng", "virtio_blk", "virtio_scsi",
	"sd_mod", "sr_mod", "ata_piix", "nvme", "blake2b_generic", "ext4", "xfs", "btrfs",
}

// onDemand are modules in the image that the guest does not load: the file systems of config drives. The driver must work without them.
var onDemand = []string{"isofs", "vfat", "nls_ascii", "nls_cp437", "nls_iso8859-1", "nls_utf8"}

//go:embed init.sh
var initScript []byte

// Build writes the kernel and the initial file system into dir, which also keeps the packages.
func Build(ctx context.Context, dir string) error {
	debian := image.Debian{Dir: dir}
	fetched, err := debian.Fetch(ctx, packages)
	if err != nil {
		return err
	}
	all := image.NewTree()
	for i := range fetched {
		if err := all.AddPackage(ctx, &fetched[i]); err != nil {
			return err
		}
	}
	root, kernel, err := assemble(all)
	if err != nil {
		return err
	}
	return errors.Join(
		write(filepath.Join(dir, Kernel), func(w io.Writer) error { _, err := w.Write(kernel.Data); return err }),
		write(filepath.Join(dir, Initial), func(w io.Writer) error { return WriteCPIO(w, root) }))
}

func assemble(all image.Tree) (root image.Tree, kernel *image.File, err error) {
	version := ""
	for name := range all {
		if v, ok := strings.CutPrefix(name, "boot/vmlinuz-"); ok {
			version = v
		}
	}
	if version == "" {
		return nil, nil, errors.New("no package has a kernel")
	}
	if root, err = all.Slim(tools); err != nil {
		return nil, nil, err
	}
	kernelModules, err := readModules(all, path.Join("usr/lib/modules", version))
	if err != nil {
		return nil, nil, err
	}
	load, err := kernelModules.add(root, modules)
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
	return root, all["boot/vmlinuz-"+version], nil
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
