package host

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// configLabel is the label Nova and Ironic give a config drive; vfat keeps it in capitals.
const configLabel = "config-2"

// configDrive reads a directory, or else the disk or partition labelled config-2.
type configDrive struct {
	dir  string
	host *Host
}

func (c configDrive) read(ctx context.Context) ([]byte, error) {
	if c.dir != "" {
		return readMetadataFile(c.dir)
	}
	path, fsType, err := c.host.findConfigDrive()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "cinder-csi-config-drive-")
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "make a directory to mount the config drive at: %w", err)
	}
	defer os.Remove(dir) // never more: were the drive still mounted, this must not delete from it
	if err := c.host.mounter.Mount(ctx, path, dir, fsType, []string{"ro", "nosuid", "nodev", "noexec"}); err != nil {
		return nil, err
	}
	content, err := readMetadataFile(dir)
	return content, errors.Join(err, c.host.mounter.Unmount(dir))
}

func readMetadataFile(dir string) ([]byte, error) {
	f, err := os.Open(filepath.Join(dir, metadataPath))
	if err != nil {
		return nil, volume.Errorf(volume.Unavailable, "read the config drive: %w", err)
	}
	defer f.Close()
	return readBounded(f)
}

// findConfigDrive looks at the labels of all disks and partitions: without udev there is no /dev/disk/by-label.
func (h *Host) findConfigDrive() (path, fsType string, err error) {
	disks, err := h.diskNames()
	if err != nil {
		return "", "", err
	}
	for _, disk := range disks {
		if hasPrefix(disk, "loop", "ram", "zram", "fd") {
			continue // the first three hold nothing a hypervisor gave; a floppy drive takes seconds to say it is empty
		}
		for _, name := range append([]string{disk}, h.partitions(disk)...) {
			path := filepath.Join(h.dev, name)
			if fsType := h.configFileSystem(path); fsType != "" {
				return path, fsType, nil
			}
		}
	}
	return "", "", volume.Errorf(volume.Unavailable, "no disk here is labelled %s", configLabel)
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

// configFileSystem is the kind of file system of a config drive; empty when path is none.
func (h *Host) configFileSystem(path string) string {
	d, err := h.openDevice(path)
	if err != nil {
		return "" // a drive without a medium, a device just gone
	}
	defer d.Close()
	switch strings.ToLower(configLabel) {
	case strings.ToLower(isoLabel(d)):
		return "iso9660"
	case strings.ToLower(fatLabel(d)):
		return "vfat"
	}
	return ""
}

// isoLabel reads the volume identifier of the primary volume descriptor (ECMA-119, 8.4).
func isoLabel(r io.ReaderAt) string {
	descriptor := make([]byte, 72)
	if _, err := r.ReadAt(descriptor, 16*2048); err != nil || string(descriptor[:6]) != "\x01CD001" {
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
