//go:build cluster

package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// bundle is a generated bundle. What is done with it is what its README says, command by command.
type bundle struct {
	*cluster
	dir    string
	readme string
}

// distribution names a mirror, as an administrator does who built the driver's image. No registry answers here: the nodes get the images from files.
const distribution = `apiVersion: generator.cinder-csi.io/v1alpha1
kind: Distribution
metadata: {name: cluster-bed}
spec:
  images:
    registry: mirror.invalid
`

// generate makes the bundle of a Distribution from the running cloud, as the user that a driver should have.
func (c *cluster) generate(t *testing.T, format, distribution string) *bundle {
	t.Helper()
	dir := filepath.Join(c.work, "bundle-"+format)
	testfile.Write(t, filepath.Join(c.work, "distribution.yaml"), c.ofItsVersion(t, distribution), 0o600)
	c.run(t, "cinder-csi-generator", "generate", "--os-cloud", "lab-appcred", "--config", "distribution.yaml", "--target", "vanilla", "--format", format, "--output-dir", dir)
	return c.bundleIn(t, dir)
}

// ofItsVersion is a configuration for the Kubernetes of the cluster: make cluster-up takes older ones, too.
func (c *cluster) ofItsVersion(t *testing.T, distribution string) string {
	t.Helper()
	var version struct{ Major, Minor string }
	testenv.Must(t, json.Unmarshal([]byte(c.kubectl(t, "get", "--raw=/version")), &version))
	minor := testenv.Value(strconv.Atoi(version.Minor))(t)
	line := fmt.Sprintf("  kubernetesVersion: %q\n", version.Major+"."+version.Minor)
	switch newest := "  kubernetesVersion: \"1.37\"\n"; {
	case strings.Contains(distribution, newest):
		distribution = strings.Replace(distribution, newest, line, 1)
	case minor < 32: // the default
		distribution = strings.Replace(distribution, "spec:\n", "spec:\n"+line, 1)
	}
	if minor < 29 {
		distribution = strings.Replace(distribution, ", drainHook: true", "", 1)
	}
	if minor < 34 {
		distribution = strings.Replace(distribution, attributesClasses, "", 1)
	}
	return distribution
}

// bundleIn is the bundle in a directory, with what its README's commands need beside it.
func (c *cluster) bundleIn(t *testing.T, dir string) *bundle {
	t.Helper()
	text := testfile.Text(t, filepath.Join(dir, "README.md"))
	b := &bundle{cluster: c, dir: dir, readme: text}
	// The README's commands name the chart and the credentials by these paths.
	for link, target := range map[string]string{"charts": filepath.Join(c.repo, "charts")} {
		if err := os.Symlink(target, filepath.Join(c.work, link)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	clouds := testfile.Read(t, filepath.Join(c.openstack, "clouds.yaml"))
	credentials := strings.Replace(string(clouds), "  lab-appcred:", "  openstack:", 1)
	// driver-clouds.yaml is the file of the README. The rotation of the credentials overwrites it, and goes back to clouds.yaml, which is also what the
	// README of an older version names.
	for _, name := range []string{"clouds.yaml", "driver-clouds.yaml"} {
		testfile.Write(t, filepath.Join(c.work, name), credentials, 0o600)
	}
	if ca, err := os.ReadFile(filepath.Join(c.openstack, "state", "tls", "ca.pem")); err == nil {
		testfile.Write(t, filepath.Join(c.work, "ca.pem"), ca, 0o600)
	}
	return b
}

// warned finds a warning of the API server; kubectl has its own in its log.
var warned = regexp.MustCompile(`(?m)^Warning:`)

// follow runs the commands of a section of the README, in its order. Each must succeed and warn of nothing.
func (b *bundle) follow(t *testing.T, section string) {
	t.Helper()
	commands := testenv.Value(b.commands(section))(t)
	for _, command := range commands {
		out, messages, err := b.try(t.Context(), "", "bash", "-o", "pipefail", "-c", command)
		// kubectl diff ends with 1 where it finds a difference, which is what a first look at a bundle does.
		if err != nil && !(strings.Contains(command, "kubectl diff") && strings.Contains(out, "+++ ")) {
			t.Fatalf("the README's section %q: %v", section, err)
		}
		if warned.MatchString(messages) {
			t.Fatalf("the README's section %q: %s\n%s", section, command, messages)
		}
	}
}

// commands are the commands of a section of the README, with this bundle's directory as $DIR. Each has a shell of its own.
func (b *bundle) commands(section string) ([]string, error) {
	return readme.Commands(b.readme, section, map[string]string{"DIR": b.dir, "CHART": "charts/cinder-csi"})
}
