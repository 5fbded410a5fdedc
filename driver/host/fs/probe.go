package fs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/command"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Content is what a disk holds. The zero value is a disk that was read and counts as empty. It has no signature that blkid, wipefs or
// extraSignatures know, and no copy of copyFormats. No tool can tell data without a signature from an empty disk.
type Content struct {
	FSType string // of the one file system that fills the disk, by the name of blkid; the driver may not support it (Supported)
	Other  string // a description of anything else: a partition table, LUKS, LVM, two signatures at once, one that only wipefs knows
	// Lost describes copies of a file system whose first superblock is lost, and Repair is the command that repairs it from them.
	Lost, Repair string
	// Unfinished is true if mkfs was killed while it made the file system, so that it cannot be mounted and holds no
	// file. FSType is empty if no tool shows it.
	Unfinished bool
}

// What is read of a disk before it counts as empty. blkid also answers "nothing found" for a disk that it cannot read.
const (
	headSize = 4 << 20
	tailSize = 1 << 20
)

// Probe finds out what a disk holds, and decides nothing: what to do with the disk is the decision of the caller (package host, prepare).
// Only a disk with the zero Content, or with an unfinished file system, may be formatted.
//
// Errors: DataLoss if the disk cannot be read or a tool gives no answer. Unavailable if the disk has no size yet.
func (t *Tools) Probe(ctx context.Context, d *disk.Disk) (Content, error) {
	err := readEnds(d)
	if errors.Is(err, errNoSize) {
		return Content{}, volume.Errorf(volume.Unavailable, "probe disk %s with serial %q: the kernel shows a size of 0, so its content is unknown and "+
			"the driver does not use it. The driver reads the size again at the next try. If it stays 0, the hypervisor has not opened the disk: detach the volume and attach it again",
			d.Path, d.Serial).Cause(cause.DiskUnreadable)
	}
	if err != nil {
		return Content{}, volume.Errorf(volume.DataLoss, "probe disk %s with serial %q: the disk cannot be read, so its content is unknown and "+
			"the driver does not use it: %w", d.Path, d.Serial, err).Cause(cause.DiskUnreadable)
	}
	// Both tools are asked, since blkid without memory exits with 2, "nothing found", and prints nothing. wipefs does not.
	probe, err := command.Ask(ctx, t.run, "blkid", "-p", "-o", "export", "--", d.Path)
	if err != nil {
		return Content{}, err
	}
	signatures, err := command.Ask(ctx, t.run, "wipefs", "--no-act", "--noheadings", "--output", "OFFSET,TYPE", "--", d.Path)
	if err != nil {
		return Content{}, err
	}
	if signatures.Code != 0 {
		return Content{}, volume.Errorf(volume.DataLoss, "probe disk %s: wipefs failed, so its content is unknown and the driver does not use it: %s",
			d.Path, signatures.Message()).Cause(cause.DiskUnreadable)
	}
	found, ok := parseProbe(probe, strings.Join(strings.Fields(signatures.Stdout), " "))
	if !ok {
		return Content{}, volume.Errorf(volume.DataLoss, "probe disk %s: blkid failed with exit code %d, so its content is unknown and "+
			"the driver does not use it: %s", d.Path, probe.Code, probe.Message()).Cause(cause.DiskUnreadable)
	}
	if found == (Content{}) {
		found.Other, err = findExtraSignature(d)
	}
	if err == nil && found.FSType == "xfs" { // mkfs of the other types writes its signature last
		found.Unfinished, err = xfsUnfinished(d)
	}
	if err == nil && (found == (Content{}) || found.Unfinished) {
		err = probeCopies(ctx, d, &found)
	}
	if ended := ctx.Err(); ended != nil {
		return Content{}, volume.Errorf(volume.KindOf(ended), "probe disk %s with serial %q: the call ended while the driver read the disk: %w", d.Path, d.Serial, ended)
	}
	if err != nil {
		return Content{}, volume.Errorf(volume.DataLoss, "probe disk %s with serial %q: the disk can no longer be read, so the driver does not use it: %w",
			d.Path, d.Serial, err).Cause(cause.DiskUnreadable)
	}
	return found, nil
}

// probeCopies looks for copies of a file system before a disk counts as empty, or as one whose mkfs was killed.
func probeCopies(ctx context.Context, d *disk.Disk, found *Content) error {
	copies, err := FindCopies(ctx, d)
	if err != nil || len(copies) == 0 {
		return err
	}
	if found.Unfinished { // mkfs.xfs makes its copies early
		if found.Unfinished = !slices.ContainsFunc(copies, func(c Copy) bool { return c.Format != "xfs" }); found.Unfinished {
			return nil
		}
	} else if found.Unfinished, err = extUnfinished(d, copies); err != nil || found.Unfinished {
		return err
	}
	found.FSType = ""
	found.Lost, found.Repair = describeCopies(copies, d.Path)
	return nil
}

var errNoSize = errors.New("its size is 0")

type sized interface {
	io.ReaderAt
	Size() (volume.Size, error)
}

// readEnds reads the parts of the disk in which every known signature lies.
func readEnds(d sized) error {
	size, err := d.Size()
	if err != nil {
		return err
	}
	if size <= 0 {
		return errNoSize
	}
	head := min(int64(size), headSize)
	if _, err := io.Copy(io.Discard, io.NewSectionReader(d, 0, head)); err != nil {
		return err
	}
	tail := min(int64(size), tailSize)
	n, err := io.Copy(io.Discard, io.NewSectionReader(d, int64(size)-tail, tail))
	if err == nil && n != tail {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// parseProbe evaluates the exit code and output of blkid (blkid(8), "Exit codes", "export") and the list of wipefs,
// which knows signatures that blkid skips. It returns false if they allow no conclusion.
func parseProbe(probe command.Result, signatures string) (c Content, ok bool) {
	const nothingFound, ambivalent = 2, 8
	switch probe.Code {
	case nothingFound:
		if signatures != "" {
			c.Other = "signatures that blkid does not recognise: " + signatures
		}
		return c, true
	case ambivalent:
		c.Other = "several signatures at once: " + signatures
		return c, true
	case 0:
	default:
		return c, false
	}
	tags := map[string]string{}
	for line := range strings.Lines(probe.Stdout) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		tags[key] = value
	}
	switch {
	case tags["TYPE"] != "" && tags["USAGE"] == "filesystem" && tags["PTTYPE"] == "":
		c.FSType = tags["TYPE"]
	case tags["TYPE"] != "":
		c.Other = strings.TrimSpace(tags["TYPE"] + " " + tags["PTTYPE"])
	case tags["PTTYPE"] != "":
		c.Other = "a " + tags["PTTYPE"] + " partition table"
	default:
		return c, false
	}
	return c, true
}

// extraSignatures are those that blkid and wipefs of util-linux 2.38 do not find (measured); the driver image has that
// version. They look for the BSD label only inside a DOS partition, not on a whole disk. They do not know bcachefs. The
// magic of bcachefs is at byte 24 of the superblock at sector 8, where bcache has its own. The first versions of
// bcachefs used that of bcache.
var extraSignatures = []struct {
	name, magic string
	offsets     []int64
}{
	{"a bsd partition table", "\x57\x45\x56\x82", []int64{64, 128, 512}},
	{"bcachefs", "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef", []int64{4096 + 24}},
	{"bcachefs", "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", []int64{4096 + 24}},
}

// findExtraSignature returns the name of the first of extraSignatures on the disk; empty if there is none.
func findExtraSignature(r io.ReaderAt) (string, error) {
	head := make([]byte, 8<<10)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	head = head[:n]
	for _, s := range extraSignatures {
		for _, at := range s.offsets {
			if at < int64(len(head)) && bytes.HasPrefix(head[at:], []byte(s.magic)) {
				return s.name, nil
			}
		}
	}
	return "", nil
}
