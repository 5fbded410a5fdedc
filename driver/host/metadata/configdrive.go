package metadata

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// configLabel is the label that Nova and Ironic give a config drive; vfat keeps it in capitals.
const configLabel = "config-2"

// configDriveTimeout ends the wait for disks that do not answer, so that the next source is asked.
const configDriveTimeout = 10 * time.Second

// readConfigDrive reads the config drive: a directory, or else the disk or partition with the label config-2.
func (r *Reader) readConfigDrive(ctx context.Context) (Server, error) {
	ctx, cancel := context.WithTimeout(ctx, configDriveTimeout)
	defer cancel()
	call, fresh := r.drives.Start(struct{}{}, func() (found configDrive) {
		found.content, found.err = r.configDriveContent(ctx)
		return found
	})
	switch {
	case !fresh: // while a search is stuck in the kernel, no further one starts
		return Server{}, volume.Errorf(volume.Unavailable, "an earlier search for the config drive still waits for a disk that does not answer")
	case !call.Wait(ctx):
		return Server{}, volume.Interrupted(ctx, "search the config drive: a disk that may be the config drive has not answered").Cause(cause.NodeIdentity)
	case call.Value.err != nil:
		return Server{}, call.Value.err
	}
	return parseMetadata(call.Value.content)
}

// configDrive is what a search found.
type configDrive struct {
	content []byte
	err     error
}

func (r *Reader) configDriveContent(ctx context.Context) ([]byte, error) {
	if r.drive != "" {
		return readMetadataFile(r.drive)
	}
	candidates, err := r.configDriveCandidates(ctx)
	if err != nil {
		return nil, err
	}
	var reasons []error
	for _, c := range candidates {
		content, err := r.readCandidate(c)
		if err == nil && content != nil {
			return content, nil
		}
		if err != nil {
			reasons = append(reasons, volume.Errorf(volume.Unavailable, "%s: %w", r.disks.Node(c.name), err))
		}
	}
	if err := errors.Join(reasons...); err != nil {
		return nil, err
	}
	return nil, volume.Errorf(volume.Unavailable, "no disk of this server has the label %s", configLabel)
}

func readMetadataFile(dir string) ([]byte, error) {
	f, err := os.Open(filepath.Join(dir, metadataPath))
	if err != nil {
		return nil, volume.Errorf(volume.Unavailable, "read the config drive: %w", err)
	}
	defer f.Close()
	return readBounded(f)
}

// candidate is a disk or partition that may be a config drive.
type candidate struct {
	name      string
	partition bool
}

// configDriveCandidates lists the disks and partitions that may be a config drive. Volumes are not among them: a tenant
// writes what is on a volume, and could give the node any ID.
func (r *Reader) configDriveCandidates(ctx context.Context) ([]candidate, error) {
	disks, err := r.disks.List(ctx)
	if err != nil {
		return nil, err
	}
	var found []candidate
	for _, d := range disks {
		if d.Remote {
			continue // a pod may have brought it
		}
		if d.Serial.IsVolume() || !d.Serial.Answers() {
			continue // a disk that does not even report its serial may be a volume, and would block the reader
		}
		found = append(found, candidate{name: d.Name})
		for _, partition := range r.disks.Partitions(d.Name) {
			found = append(found, candidate{partition, true}) // Ironic puts the config drive into a partition
		}
	}
	return found, nil
}

// fatLimit is the size that Nova gives a config drive with FAT (nova/virt/configdrive.py, CONFIGDRIVESIZE_BYTES). A
// Cinder volume has at least 1 GiB.
const fatLimit = 64 << 20

// readCandidate reads the metadata of a config drive; nil if the candidate is none. Unavailable for one that the driver must not mount.
//
// The driver parses ISO 9660 itself, in bounds. FAT is read by the kernel, so a crafted image could reach a defect of
// the kernel. Hence only a whole disk of at most 64 MiB is mounted: no volume and no partition of an image is.
func (r *Reader) readCandidate(c candidate) ([]byte, error) {
	d, err := r.disks.Open(c.name)
	if err != nil {
		return nil, nil // a drive without a medium, or a device that was just removed
	}
	defer d.Close()
	switch {
	case strings.EqualFold(isoLabel(d), configLabel):
		return isoImage{d}.readFile(metadataPath, metadataLimit)
	case strings.EqualFold(fatLabel(d), configLabel):
		size, err := d.Size()
		if err != nil {
			return nil, err
		}
		if size > fatLimit || c.partition {
			return nil, volume.Errorf(volume.Unavailable, "it has the label %s and a FAT file system; the driver mounts that only from a whole disk of at most %d MiB", configLabel, fatLimit>>20)
		}
		return r.mountFAT(r.disks.Node(c.name))
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

// fatLabel reads the label in the boot sector of FAT12, FAT16 and FAT32 (Microsoft, "FAT32 File System Specification",
// section 3).
func fatLabel(r io.ReaderAt) string {
	sector := make([]byte, 512)
	if _, err := r.ReadAt(sector, 0); err != nil || binary.LittleEndian.Uint16(sector[510:]) != 0xAA55 {
		return ""
	}
	for _, offset := range []struct{ kind, label int }{{54, 43}, {82, 71}} {
		if strings.HasPrefix(string(sector[offset.kind:offset.kind+8]), "FAT") {
			return strings.TrimRight(string(sector[offset.label:offset.label+11]), " \x00")
		}
	}
	return ""
}
