package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
	starts  bool   // it starts another program, which only the kernel can do, not an emulator
}

// probes run every tool once.
var probes = []probeCommand{
	{command: "mkfs.ext2 -F /tmp/ext4", output: "Creating filesystem"},
	{command: "mkfs.ext3 -F /tmp/ext4", output: "Creating journal"},
	{command: "mkfs.ext4 -F -m0 /tmp/ext4", output: "Creating journal"},
	{command: "blkid -p -o export /tmp/ext4", output: "TYPE=ext4"},
	{command: "wipefs --no-act /tmp/ext4", output: "ext4"},
	{command: "fsck -a -t ext4 /tmp/ext4", output: "clean", starts: true},
	{command: "fsck --version", output: "util-linux"},
	{command: "fsck.ext2 -a /tmp/ext4", output: "clean"},
	{command: "fsck.ext3 -a /tmp/ext4", output: "clean"},
	{command: "fsck.ext4 -a /tmp/ext4", output: "clean"},
	{command: "resize2fs /tmp/ext4", output: "Nothing to do"},
	{command: "dumpe2fs -h /tmp/ext4", output: "Filesystem features"},
	{command: "tune2fs -l /tmp/ext4", output: "Filesystem features"},
	{command: "mkfs.xfs -f /tmp/xfs", output: "meta-data"},
	{command: "blkid -p -o export /tmp/xfs", output: "TYPE=xfs"},
	{command: "fsck -a -t xfs /tmp/xfs", output: "XFS file system", starts: true},
	{command: "fsck.xfs -a /tmp/xfs", output: "XFS file system"},
	{command: "xfs_repair -n /tmp/xfs", output: "No modify flag set"},
	{command: "xfs_growfs -V", output: "xfs_growfs version"},
	{command: "xfs_io -V", output: "xfs_io version"},
	{command: "mkfs.btrfs /tmp/btrfs", output: "btrfs-progs"},
	{command: "blkid -p -o export /tmp/btrfs", output: "TYPE=btrfs"},
	{command: "fsck.btrfs /tmp/btrfs", output: "btrfs"},
	{command: "btrfs --version", output: "btrfs-progs"},
	{command: "mount --version", output: "util-linux"},
	{command: "umount --version", output: "util-linux"},
	{command: "findmnt --version", output: "util-linux"},
	{command: "lsblk --version", output: "util-linux"},
	{command: "blockdev --version", output: "util-linux"},
	{command: "sh -c pwd", output: "/"},
	{command: "cinder-csi-driver --version", output: ""},
	{command: "cinder-csi-plugin --version", output: ""},
}

var generatorProbes = []probeCommand{{command: "cinder-csi-generator version", output: "cinder-csi"}}

// Probe runs every program of the image once, inside its root file system, and prints each command with the expected line of
// its output. It fails if a program does not run, or prints something unexpected.
//
// For another architecture than that of this machine, it needs an emulator: a static program of QEMU's user mode (Emulator). An
// emulator does not follow a program into the programs that it starts, so Probe leaves such commands out and prints that.
func (m Image) Probe(ctx context.Context, emulator []byte, report io.Writer) error {
	root, err := os.MkdirTemp("", "image-root-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if err := extract(m.Layers, root); err != nil {
		return err
	}
	if emulator != nil {
		if err := os.WriteFile(filepath.Join(root, emulatorName), emulator, 0o755); err != nil {
			return err
		}
	}
	for _, p := range m.probes {
		if emulator != nil && p.starts {
			fmt.Fprintf(report, "%s: %s: not run, it starts another program\n", m.Architecture, p.command)
			continue
		}
		out, err := p.run(ctx, root, emulator != nil)
		if err != nil {
			return err
		}
		fmt.Fprintf(report, "%s: %s: %s\n", m.Architecture, p.command, lineWith(out, p.output))
	}
	return nil
}

// lineWith returns the first line with the text. Some programs print a warning first, because the root file system has no devices.
func lineWith(out, text string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, text) {
			return strings.TrimSpace(line)
		}
	}
	return ""
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

func (p probeCommand) run(ctx context.Context, root string, emulated bool) (string, error) {
	args := strings.Fields(p.command)
	program := "/usr/bin/" + args[0]
	if _, err := os.Lstat(filepath.Join(root, "usr/sbin", args[0])); err == nil {
		program = "/usr/sbin/" + args[0]
	}
	args[0] = program
	if emulated {
		args = emulate(root, args)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
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
		return "", fmt.Errorf("in the image, %s: %w: %s", p.command, err, strings.TrimSpace(out.String()))
	}
	if !strings.Contains(out.String(), p.output) {
		return "", fmt.Errorf("in the image, %s printed no %q: %s", p.command, p.output, strings.TrimSpace(out.String()))
	}
	return out.String(), nil
}
