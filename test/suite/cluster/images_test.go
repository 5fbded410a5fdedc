//go:build cluster

package cluster

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

var imageLine = regexp.MustCompile(`(?m)^\s*(?:- )?image: "?([^"\s]+)"?$`)

// programs are those for the sidecars' images. The registrar and the liveness probe are stand-ins, see programs/.
var programs = map[string]string{
	"csi-provisioner": "csi-provisioner", "csi-attacher": "csi-attacher", "csi-resizer": "csi-resizer", "csi-snapshotter": "csi-snapshotter",
	"csi-node-driver-registrar": "registrar", "livenessprobe": "livenessprobe",
	"kube-rbac-proxy": "kube-rbac-proxy",
}

// loadImages gives every node each image that the objects name and that is not imported yet: no registry is asked.
func (c *cluster) loadImages(t *testing.T, objects string, imported map[string]bool) {
	t.Helper()
	var names []string
	for _, match := range imageLine.FindAllStringSubmatch(objects, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		t.Fatal("the bundle names no image")
	}
	for _, name := range names {
		if imported[name] {
			continue
		}
		archive := testenv.Value(c.image(t, name))(t)
		for _, node := range nodes {
			said := c.onNode(t, node, "ctr", "--namespace=k8s.io", "images", "import", archive)
			if have := importedName(said); have != name {
				c.onNode(t, node, "ctr", "--namespace=k8s.io", "images", "tag", "--force", have, name)
			}
		}
		imported[name] = true
	}
}

// image is the archive of an image by the bundle's name for it. The test may have made one. The driver's is of `make image`, and that of a sidecar is
// made of its program.
func (c *cluster) image(t *testing.T, name string) (archive string, err error) {
	t.Helper()
	if archive := c.archives[name]; archive != "" {
		return archive, nil
	}
	repository, _, _ := strings.Cut(path.Base(name), ":")
	switch repository {
	case "cinder-csi-driver":
		return filepath.Join(c.repo, "bin", "cinder-csi-image.tar"), nil
	case "cinder-csi-generator":
		return filepath.Join(c.repo, "bin", "cinder-csi-generator-image.tar"), nil
	}
	program, known := programs[repository]
	if !known {
		return "", fmt.Errorf("nothing here makes the image %s", name)
	}
	bin := filepath.Join(cache(), "bin")
	archive = filepath.Join(c.work, repository+".tar")
	c.run(t, filepath.Join(bin, "static-image"), "-output", archive, "-name", name, filepath.Join(bin, program))
	return archive, nil
}

// cache is where up.sh keeps the built programs.
func cache() string {
	if dir := os.Getenv("CLUSTER_CACHE"); dir != "" {
		return dir
	}
	dir, _ := os.UserCacheDir()
	return filepath.Join(dir, "cluster-bed")
}

// importedName is the name in what `ctr images import` prints: "unpacking NAME (sha256:…)...done".
func importedName(said string) string {
	_, rest, _ := strings.Cut(said, "unpacking ")
	name, _, _ := strings.Cut(rest, " ")
	return name
}
