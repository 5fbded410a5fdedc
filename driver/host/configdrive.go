package host

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// configLabel is the label Nova and Ironic give a config drive; vfat keeps it in capitals.
const configLabel = "config-2"

// configDrive reads a directory, or else the disk or partition labelled config-2. The file system is read here, in the process:
// nothing is mounted.
type configDrive struct {
	dir  string
	host *Host
}

// configDriveTimeout ends the wait for disks that do not answer, so that the next place is asked.
const configDriveTimeout = 10 * time.Second

func (c configDrive) read(ctx context.Context) (Identity, error) {
	if !c.host.searching.CompareAndSwap(false, true) {
		return Identity{}, volume.Errorf(volume.Unavailable, "the disks that may be the config drive have not answered since an earlier look")
	}
	ctx, cancel := context.WithTimeout(ctx, configDriveTimeout)
	defer cancel()
	type answer struct {
		content []byte
		err     error
	}
	answered := make(chan answer, 1)
	go func() {
		content, err := c.content(ctx)
		c.host.searching.Store(false) // one that is stuck in the kernel is not joined by another at each try
		answered <- answer{content, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			return Identity{}, a.err
		}
		return parseMetadata(a.content)
	case <-ctx.Done():
		return Identity{}, ended(ctx, "the disks that may be the config drive have not answered")
	}
}

func (c configDrive) content(ctx context.Context) ([]byte, error) {
	if c.dir != "" {
		return readMetadataFile(c.dir)
	}
	candidates, err := c.host.configDrives(ctx)
	if err != nil {
		return nil, err
	}
	var reasons []error
	for _, path := range candidates {
		content, err := c.host.readConfigDrive(path)
		if err == nil && content != nil {
			return content, nil
		}
		if err != nil {
			reasons = append(reasons, volume.Errorf(volume.Unavailable, "%s: %w", path, err))
		}
	}
	if err := errors.Join(reasons...); err != nil {
		return nil, err
	}
	return nil, volume.Errorf(volume.Unavailable, "no disk here is labelled %s", configLabel)
}

func readMetadataFile(dir string) ([]byte, error) {
	f, err := os.Open(filepath.Join(dir, metadataPath))
	if err != nil {
		return nil, volume.Errorf(volume.Unavailable, "read the config drive: %w", err)
	}
	defer f.Close()
	return readBounded(f)
}

// configDrives lists the disks and partitions that may be a config drive. Volumes are not among them: what is on a volume was
// written by its user, who could give the node any name.
func (h *Host) configDrives(ctx context.Context) ([]string, error) {
	disks, said, err := h.hear(ctx)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, disk := range disks {
		if hasPrefix(disk, "loop", "ram", "zram", "fd", "dm-", "nbd", "rbd", "md") {
			continue // nothing that a hypervisor gave; and a floppy drive takes seconds to say that it is empty
		}
		if l := said[disk]; l.isVolume() || !l.silent.IsZero() {
			continue // one that does not even say whose it is may be a volume, and would hold whoever reads it
		}
		for _, name := range append([]string{disk}, h.partitions(disk)...) {
			paths = append(paths, filepath.Join(h.dev, name))
		}
	}
	return paths, nil
}

// isVolumeSerial reports whether a serial is a volume's id, or what virtio-blk and NVMe keep of one.
func isVolumeSerial(serial string) bool {
	const filler = "00000000-0000-0000-0000-000000000000"
	return isUUID(serial) || len(serial) == shortSerial && isUUID(serial+filler[shortSerial:])
}

// partitions lists a disk's partitions: Ironic puts the config drive into one.
func (h *Host) partitions(disk string) []string {
	files, _ := filepath.Glob(filepath.Join(h.sys, "block", disk, "*", "partition"))
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(filepath.Dir(f)))
	}
	return names
}

// readConfigDrive reads the metadata of a config drive; nil when path is none.
func (h *Host) readConfigDrive(path string) ([]byte, error) {
	d, err := h.openDevice(path)
	if err != nil {
		return nil, nil // a drive without a medium, a device just gone
	}
	defer d.Close()
	switch {
	case strings.EqualFold(isoLabel(d), configLabel):
		return isoImage{d}.readFile(metadataPath, metadataLimit)
	case strings.EqualFold(fatLabel(d), configLabel):
		image, err := openFAT(d)
		if err != nil {
			return nil, err
		}
		return image.readFile(metadataPath, metadataLimit)
	}
	return nil, nil
}

// isoLabel reads the volume identifier of the primary volume descriptor (ECMA-119, 8.4).
func isoLabel(r io.ReaderAt) string {
	descriptor := make([]byte, 72)
	if _, err := r.ReadAt(descriptor, isoDescriptors*isoSector); err != nil || string(descriptor[:6]) != "\x01CD001" {
		return ""
	}
	return strings.TrimRight(string(descriptor[40:]), " \x00")
}

// fatLabel reads the label of the boot sector of FAT12, FAT16 and FAT32 (Microsoft's FAT specification, section 3).
func fatLabel(r io.ReaderAt) string {
	sector := make([]byte, 512)
	if _, err := r.ReadAt(sector, 0); err != nil || binary.LittleEndian.Uint16(sector[510:]) != 0xAA55 {
		return ""
	}
	for _, at := range []struct{ kind, label int }{{54, 43}, {82, 71}} {
		if strings.HasPrefix(string(sector[at.kind:at.kind+8]), "FAT") {
			return strings.TrimRight(string(sector[at.label:at.label+11]), " \x00")
		}
	}
	return ""
}
