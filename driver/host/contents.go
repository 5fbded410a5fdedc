package host

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// contents is what is on a disk. The zero value is a disk that was read and shown to be empty.
type contents struct {
	fsType  string // of the one file system that fills the disk
	foreign string // anything else, described: a partition table, LUKS, LVM, two signatures at once
	// unfinished says that the tool that makes the file system was killed on the way, so that it cannot be mounted and holds no file.
	unfinished bool
}

// What is read of a disk before it may be called empty. blkid answers "nothing found" also for a disk it could not read.
const (
	headRead = 4 << 20
	tailRead = 1 << 20
)

// inspect finds out what is on a disk. Whoever gets no error and the zero contents, or an unfinished file system, may make one there,
// nobody else.
func (h *Host) inspect(ctx context.Context, d *Disk) (contents, error) {
	if err := readable(d); err != nil {
		return contents{}, volume.Errorf(volume.DataLoss, "disk %s of volume %s cannot be read, so what is on it is unknown and it is not used: %w",
			d.Path, d.Serial, err)
	}
	probe, err := h.run.Run(ctx, "blkid", "-p", "-o", "export", "--", d.Path)
	if err != nil {
		return contents{}, err
	}
	signatures, err := h.run.Run(ctx, "wipefs", "--no-act", "--noheadings", "--output", "OFFSET,TYPE", "--", d.Path)
	if err != nil {
		return contents{}, err
	}
	if signatures.Code != 0 {
		return contents{}, volume.Errorf(volume.DataLoss, "wipefs cannot tell what is on disk %s, so it is not used: %s", d.Path, signatures.Said())
	}
	found, ok := judge(probe, strings.Join(strings.Fields(signatures.Stdout), " "))
	if !ok {
		return contents{}, volume.Errorf(volume.DataLoss, "blkid cannot tell what is on disk %s (exit code %d), so it is not used: %s",
			d.Path, probe.Code, probe.Said())
	}
	if found == (contents{}) {
		if found.foreign, err = findOverlooked(d); err != nil {
			return contents{}, volume.Errorf(volume.DataLoss, "disk %s of volume %s cannot be read any more, so it is not used: %w", d.Path, d.Serial, err)
		}
	}
	if found.fsType == "xfs" { // mkfs of the other kinds writes its signature last
		if found.unfinished, err = xfsUnfinished(d); err != nil {
			return contents{}, volume.Errorf(volume.DataLoss, "disk %s of volume %s cannot be read any more, so it is not used: %w", d.Path, d.Serial, err)
		}
	}
	return found, nil
}

// readable reads the places where every known signature lies.
func readable(d *Disk) error {
	size, err := d.Size()
	if err != nil {
		return err
	}
	if size <= 0 {
		return errors.New("it has no size")
	}
	head := min(int64(size), headRead)
	if _, err := io.Copy(io.Discard, io.NewSectionReader(d, 0, head)); err != nil {
		return err
	}
	tail := min(int64(size), tailRead)
	n, err := io.Copy(io.Discard, io.NewSectionReader(d, int64(size)-tail, tail))
	if err == nil && n != tail {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// judge reads blkid's exit codes and words (blkid(8), "Exit codes", "export") beside the list of wipefs, which knows signatures
// that blkid's probing passes over. ok is false when they give no verdict.
func judge(probe Result, signatures string) (c contents, ok bool) {
	const nothingFound, ambivalent = 2, 8
	switch probe.Code {
	case nothingFound:
		if signatures != "" {
			c.foreign = "signatures that blkid does not recognise: " + signatures
		}
		return c, true
	case ambivalent:
		c.foreign = "several signatures at once: " + signatures
		return c, true
	case 0:
	default:
		return c, false
	}
	says := map[string]string{}
	for line := range strings.Lines(probe.Stdout) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		says[key] = value
	}
	switch {
	case says["TYPE"] != "" && says["USAGE"] == "filesystem" && says["PTTYPE"] == "":
		c.fsType = says["TYPE"]
	case says["TYPE"] != "":
		c.foreign = strings.TrimSpace(says["TYPE"] + " " + says["PTTYPE"])
	case says["PTTYPE"] != "":
		c.foreign = "a " + says["PTTYPE"] + " partition table"
	default:
		return c, false
	}
	return c, true
}
