package release

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checksums is the file that sha256sum --check reads.
const checksums = "SHA256SUMS"

// digest is a file of the release with its SHA-256 in hexadecimal.
type digest struct{ name, sha256 string }

// digests lists the files below a directory in the order of their names.
func digests(dir string) ([]digest, error) {
	var all []digest
	err := filepath.WalkDir(dir, func(full string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(full)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, full)
		if err != nil {
			return err
		}
		all = append(all, digest{filepath.ToSlash(name), hexOf(content)})
		return nil
	})
	return all, err
}

func hexOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

func (r *release) writeChecksums(context.Context) error {
	all, err := digests(r.dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, d := range all {
		fmt.Fprintf(&b, "%s  %s\n", d.sha256, d.name)
	}
	return r.write(checksums, []byte(b.String()), 0o644)
}
