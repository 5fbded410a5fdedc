package ociimage

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// disks are empty, sparse files of 512 MiB for the probes.
var disks = []string{"tmp/ext4", "tmp/xfs", "tmp/btrfs"}

type probeCommand struct {
	command string
	output  string // part of what it prints
}

// probes run every tool once.
var probes = []probeCommand{
	{"mkfs.ext2 -F /tmp/ext4", "Creating filesystem"},
	{"mkfs.ext3 -F /tmp/ext4", "Creating journal"},
	{"mkfs.ext4 -F -m0 /tmp/ext4", "Creating journal"},
	{"blkid -p -o export /tmp/ext4", "TYPE=ext4"},
	{"wipefs --no-act /tmp/ext4", "ext4"},
	{"fsck -a -t ext4 /tmp/ext4", "clean"},
	{"fsck.ext2 -a /tmp/ext4", "clean"},
	{"fsck.ext3 -a /tmp/ext4", "clean"},
	{"fsck.ext4 -a /tmp/ext4", "clean"},
	{"resize2fs /tmp/ext4", "Nothing to do"},
	{"dumpe2fs -h /tmp/ext4", "Filesystem features"},
	{"tune2fs -l /tmp/ext4", "Filesystem features"},
	{"mkfs.xfs -f /tmp/xfs", "meta-data"},
	{"blkid -p -o export /tmp/xfs", "TYPE=xfs"},
	{"fsck -a -t xfs /tmp/xfs", "XFS file system"},
	{"fsck.xfs -a /tmp/xfs", "XFS file system"},
	{"xfs_repair -n /tmp/xfs", "No modify flag set"},
	{"xfs_growfs -V", "xfs_growfs version"},
	{"xfs_io -V", "xfs_io version"},
	{"mkfs.btrfs /tmp/btrfs", "btrfs-progs"},
	{"blkid -p -o export /tmp/btrfs", "TYPE=btrfs"},
	{"fsck.btrfs /tmp/btrfs", "btrfs"},
	{"btrfs --version", "btrfs-progs"},
	{"mount --version", "util-linux"},
	{"umount --version", "util-linux"},
	{"findmnt --version", "util-linux"},
	{"lsblk --version", "util-linux"},
	{"blockdev --version", "util-linux"},
	{"sh -c pwd", "/"},
	{"cinder-csi-driver --version", ""},
	{"cinder-csi-plugin --version", ""},
}

// Probe runs every tool inside the root file system of the image. It fails if a tool does not run, or prints something
// unexpected.
func Probe(ctx context.Context, layers []Tree) error {
	root, err := os.MkdirTemp("", "image-root-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if err := extract(layers, root); err != nil {
		return err
	}
	for _, p := range probes {
		if err := p.run(ctx, root); err != nil {
			return err
		}
	}
	return nil
}

// extract writes the layers, the disks, and a list of no mounts, without which resize2fs and mkfs.btrfs refuse.
func extract(layers []Tree, root string) error {
	whole := Tree{}
	for _, layer := range layers {
		maps.Copy(whole, layer)
	}
	whole.AddFile("proc/self/mounts", 0o444, nil)
	whole.AddSymlink("proc/mounts", "self/mounts")
	for _, disk := range disks {
		whole.AddFile(disk, 0o600, nil)
	}
	if err := whole.Extract(root); err != nil {
		return err
	}
	for _, disk := range disks {
		if err := os.Truncate(filepath.Join(root, disk), 512<<20); err != nil {
			return err
		}
	}
	return nil
}

func (p probeCommand) run(ctx context.Context, root string) error {
	args := strings.Fields(p.command)
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "/usr/bin/"+args[0], args[1:]...)
	if _, err := os.Lstat(filepath.Join(root, "usr/sbin", args[0])); err == nil {
		cmd.Path = "/usr/sbin/" + args[0]
	}
	cmd.Dir = "/"
	cmd.Env = Env
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("in the image, %s: %w: %s", p.command, err, strings.TrimSpace(out.String()))
	}
	if !strings.Contains(out.String(), p.output) {
		return fmt.Errorf("in the image, %s printed no %q: %s", p.command, p.output, strings.TrimSpace(out.String()))
	}
	return nil
}
