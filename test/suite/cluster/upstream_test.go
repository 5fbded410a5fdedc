//go:build cluster

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// upstreamManifests are those of upstream's plugin. The Secret among them is an example.
var upstreamManifests = []string{
	"cinder-csi-controllerplugin-rbac.yaml", "cinder-csi-nodeplugin-rbac.yaml", "csi-cinder-driver.yaml",
	"cinder-csi-controllerplugin.yaml", "cinder-csi-nodeplugin.yaml",
}

// upstreamPlugin is upstream's plugin as its plain manifests install it.
type upstreamPlugin struct {
	*cluster
	dir string // of the manifests as they are applied here
}

// upstream imports the images of upstream's manifests, which are in a checkout, UPSTREAM. The image of the plugin is made here, of the program PLUGIN
// and the tools of this project's image. The bed changes two things in the manifests: no image is pulled, and verbosity is the log level.
func (c *cluster) upstream(t *testing.T, verbosity int) upstreamPlugin {
	t.Helper()
	checkout := os.Getenv("UPSTREAM")
	u := upstreamPlugin{cluster: c, dir: filepath.Join(c.work, "upstream")}
	testenv.Must(t, os.MkdirAll(u.dir, 0o755))
	var all strings.Builder
	for _, name := range upstreamManifests {
		content, err := os.ReadFile(filepath.Join(checkout, "manifests", "cinder-csi-plugin", name))
		if err != nil {
			t.Fatalf("UPSTREAM is no checkout of cloud-provider-openstack: %v", err)
		}
		text := strings.NewReplacer("imagePullPolicy: Always", "imagePullPolicy: IfNotPresent", `"--v=1"`, fmt.Sprintf(`"--v=%d"`, verbosity)).Replace(string(content))
		testfile.Write(t, filepath.Join(u.dir, name), text, 0o644)
		all.WriteString(text)
	}
	archive := filepath.Join(cache(), "upstream", "image.tar")
	testenv.Must(t, os.MkdirAll(filepath.Dir(archive), 0o755))
	for _, match := range imageLine.FindAllStringSubmatch(all.String(), -1) {
		if strings.Contains(match[1], "/cinder-csi-plugin:") && c.archives[match[1]] == "" {
			c.build(t, "go", "-C", c.repo, "run", "./tools/image/cmd/oci-image", "-driver", os.Getenv("PLUGIN"), "-name", match[1], "-output", archive)
			c.archives[match[1]] = archive
		}
	}
	c.loadImages(t, all.String(), map[string]bool{})
	return u
}
