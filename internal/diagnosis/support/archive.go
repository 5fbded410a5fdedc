package support

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
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
func Print(out io.Writer, b Archive, columns int) error {
	var rows [][]string
	total := 0
	for _, e := range b.Entries {
		rows = append(rows, []string{fmt.Sprint(e.Bytes), e.Name, e.What})
		total += e.Bytes
	}
	end := fmt.Sprintf("%d files, %d bytes before compression. No Secret was read, and values that look like secrets are %s.", len(b.Entries), total, Redacted)
	return diagnosis.PrintTable(out, "BYTES\tFILE\tWHAT", rows, b.Unseen, end, columns)
}
