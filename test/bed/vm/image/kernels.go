package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cinder-csi/cinder-csi/tools/image"
)

// kernel is a kernel of a Debian release.
type kernel struct{ suite, packageName string }

// kernels are the kernels that guests can have. Those of Debian's cloud images have the name of their suite.
var kernels = map[string]kernel{
	"bullseye": {suite: "bullseye", packageName: "linux-image-cloud-amd64"}, // Linux 5.10
	"bookworm": {suite: "bookworm", packageName: "linux-image-cloud-amd64"}, // Linux 6.1
	"trixie":   {suite: "trixie", packageName: "linux-image-cloud-amd64"},   // Linux 6.12
	"sid":      {suite: "sid", packageName: "linux-image-cloud-amd64"},      // Linux 7
}

// fetch downloads the kernel from the suite, whatever the apt sources of this machine are. dir keeps the packages.
func (k kernel) fetch(ctx context.Context, dir string) (image.Tree, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	const format = "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: %s\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
	sources := filepath.Join(dir, "suite.sources")
	if err := os.WriteFile(sources, fmt.Appendf(nil, format, k.suite), 0o644); err != nil {
		return nil, err
	}
	return fetchAll(ctx, image.Debian{Dir: dir, Sources: sources}, []string{k.packageName}, "linux-")
}
