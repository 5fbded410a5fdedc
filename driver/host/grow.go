package host

import (
	"context"
	"os"
	"path/filepath"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// smaller is by how much a disk may be below the size asked for and still be right: an encrypted volume lacks its LUKS header.
const smaller = volume.Size(32 << 20)

// Growth asks that a mounted or published volume uses at least Size.
type Growth struct {
	Volume volume.ID
	Path   string // where it is mounted or published
	Size   volume.Size
	// Block says that the volume is used as a block device: then only its size is waited for, and Path is not looked at, since
	// kubelet names the empty staging directory while the volume is not published yet.
	Block bool
}

// Grow waits until the volume's disk has the size asked for, grows the file system on it, and gives the size that the disk has then.
// Errors, besides Await's: NotFound when nothing is mounted at Path, so that the file system around it is never grown; Conflict when
// something else is; DeadlineExceeded when the disk did not grow; Failed when the file system did not.
func (h *Host) Grow(ctx context.Context, g Growth) (volume.Size, error) {
	path, err := resolveUsed(g.Path)
	if err != nil {
		return 0, err
	}
	disk, err := h.Find(ctx, g.Volume)
	if err != nil {
		return 0, err
	}
	defer disk.Close()
	if g.Block {
		return h.awaitSize(ctx, disk, g)
	}
	table, err := h.mounts()
	if err != nil {
		return 0, err
	}
	there, ok := table.At(path)
	if !ok {
		return 0, volume.Errorf(volume.NotFound, "volume %s is not mounted at %s", g.Volume, path)
	}
	fileSystem := there.On(disk)
	if !fileSystem {
		if err := checkNode(g.Volume, there, disk); err != nil {
			return 0, err
		}
	}
	size, err := h.awaitSize(ctx, disk, g)
	if err != nil || !fileSystem {
		return size, err
	}
	if there.ReadOnly() {
		return 0, volume.Errorf(volume.Conflict, "volume %s is mounted read-only at %s; its file system cannot be grown", g.Volume, path)
	}
	if err := h.grow(ctx, disk, there.FSType, path); err != nil {
		return 0, err
	}
	return size, nil
}

// awaitSize waits until the disk is as large as asked for. Within the allowance it answers with the size asked for, since a caller
// compares the two.
func (h *Host) awaitSize(ctx context.Context, disk *Disk, g Growth) (volume.Size, error) {
	ctx, cancel := beforeDeadline(ctx)
	defer cancel()
	for {
		size, err := disk.Size()
		switch {
		case err != nil:
			return 0, volume.Errorf(volume.Failed, "ask disk %s of volume %s for its size: %w", disk.Path, g.Volume, err)
		case size >= g.Size:
			return size, nil
		case size >= g.Size-smaller:
			return g.Size, nil
		}
		h.rescanDisk(disk)
		if !sleep(ctx, pollInterval) {
			return 0, ended(ctx, "disk %s of volume %s has %s and not the %s asked for", disk.Path, g.Volume, size, g.Size)
		}
	}
}

// rescanDisk asks a SCSI disk for its size anew; other disks tell by themselves and have no such file.
func (h *Host) rescanDisk(disk *Disk) {
	file := filepath.Join(h.sys, "block", disk.Name, "device", "rescan")
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if _, err := f.WriteString("1"); err != nil {
		h.log.Debug("disk not rescanned", "file", file, "error", err)
	}
}
