package support

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// directory is the one that all files of an archive are in.
const directory = "cinder-csi-report/"

// Write writes an archive as a compressed tar archive.
func Write(out io.Writer, b Archive, at time.Time) error {
	zip := gzip.NewWriter(out)
	archive := tar.NewWriter(zip)
	for _, e := range b.Entries {
		header := &tar.Header{Name: directory + e.Name, Mode: 0o600, Size: int64(len(e.Content)), ModTime: at, Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", e.Name, err)
		}
		if _, err := archive.Write(e.Content); err != nil {
			return fmt.Errorf("write %s: %w", e.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return zip.Close()
}

// Print lists an archive for people.
func Print(out io.Writer, b Archive) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BYTES\tFILE\tWHAT")
	total := 0
	for _, e := range b.Entries {
		fmt.Fprintf(table, "%d\t%s\t%s\n", e.Bytes, printable.Line(e.Name), printable.Line(e.What))
		total += e.Bytes
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(b.Unseen) > 0 {
		fmt.Fprintln(out, "\nNot seen:")
	}
	for _, g := range b.Unseen {
		fmt.Fprintln(out, "  "+printable.Line(g.What+": "+g.Why))
	}
	_, err := fmt.Fprintf(out, "\n%d files, %d bytes before compression. No Secret was read, and values that look like secrets are %s.\n", len(b.Entries), total, Redacted)
	return err
}
