package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/image"
	oci "github.com/cinder-csi/cinder-csi/tools/image"
)

const (
	systemFile  = "system.raw"
	initialFile = "initramfs"
)

// Image has the paths of the parts of a guest.
type Image struct {
	Dir             string // has a directory for each kernel, with its initial file system
	Driver, Program string // the driver, and the agent
}

// Write writes what a guest boots into dir: the kernel, an initial file system with the programs, and the disk that it runs from.
func (i Image) Write(ctx context.Context, kernel, dir string) error {
	data, err := os.ReadFile(filepath.Join(i.Dir, kernel, image.Kernel))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, image.Kernel), data, 0o600), i.writeInitial(kernel, dir), makeSystemDisk(ctx, dir))
}

// writeInitial joins the initial file system of all guests with the programs of this source tree.
func (i Image) writeInitial(kernel, dir string) error {
	content, err := os.ReadFile(filepath.Join(i.Dir, kernel, image.Initial))
	if err != nil {
		return err
	}
	programs := oci.Tree{}
	for name, file := range map[string]string{"usr/bin/cinder-csi-driver": i.Driver, "usr/bin/guest-agent": i.Program} {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		programs[name] = &oci.File{Mode: 0o755, Data: data}
	}
	joined := bytes.NewBuffer(content)
	if err := image.WriteCPIO(joined, programs); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, initialFile), joined.Bytes(), 0o600)
}

// makeSystemDisk makes a disk that the driver takes for the system disk of the server, because it has the kubelet directory.
func makeSystemDisk(ctx context.Context, dir string) error {
	file := filepath.Join(dir, systemFile)
	if err := makeFile(file, 64<<20); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "mkfs.ext4", "-q", "-L", SystemLabel, file).CombinedOutput(); err != nil {
		return fmt.Errorf("mkfs.ext4: %w: %s", err, out)
	}
	return nil
}
