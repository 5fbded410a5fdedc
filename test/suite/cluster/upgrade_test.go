//go:build cluster

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// versioned is the Distribution of the upgrade, with the driver's image under a tag of its own.
func versioned(tag string) string {
	return `apiVersion: generator.cinder-csi.io/v1alpha1
kind: Distribution
metadata: {name: upgrade}
spec:
  images:
    driver: {tag: ` + tag + `}
`
}

// upgradeAndBack upgrades with volumes in use as docs/how-to/upgrade.md says, and goes back.
func upgradeAndBack(t *testing.T, c *cluster) {
	commit := os.Getenv("PREVIOUS")
	old := c.checkout(t, commit)
	c.replaced(t, func(t *testing.T) {
		before := old.generate(t, "kustomize", versioned("previous"))
		now := c.generate(t, "kustomize", versioned("now"))
		imported := map[string]bool{}
		objects := before.objects(t, "kustomize")
		old.archives[imageTagged(t, objects, ":previous")] = filepath.Join(old.work, "image.tar")
		old.loadImages(t, objects, imported)
		c.loadImages(t, now.objects(t, "kustomize"), imported)
		before.follow(t, "The credentials")
		before.install(t)
		u := c.startUse(t)

		tried("upgraded from "+commit+", all pods rolled out", func() { now.upgradeBy(t, "Steps") })
		u.undisturbed(t, "the upgrade")
		c.useFor(t, "after-upgrade", "")
		tried("rolled back to "+commit, func() { before.upgradeBy(t, "Go back") })
		u.undisturbed(t, "the rollback")
		c.useFor(t, "after-rollback", "")
		tried("pods moved to the other node after the rollback", func() { u.move(t) })
		u.end(t)
		c.kubectl(t, "delete", "--ignore-not-found", "-k", before.dir, atMost)
		c.kubectl(t, "delete", "--ignore-not-found", "-k", now.dir, atMost)
	})
}

// checkout builds the programs and the image of a commit outside of the repository. The cluster that it gives runs them.
func (c *cluster) checkout(t *testing.T, commit string) *cluster {
	t.Helper()
	old := *c
	old.repo, old.work, old.archives = t.TempDir(), t.TempDir(), map[string]string{}
	if _, _, err := c.try(t.Context(), "", "bash", "-o", "pipefail", "-c", `git -C "$0" archive "$1" | tar -x -C "$2"`, c.repo, commit, old.repo); err != nil {
		t.Fatalf("PREVIOUS names no commit: %v", err)
	}
	c.build(t, "bash", "-c", `cd "$0" && CGO_ENABLED=0 nice -n 5 go build -buildvcs=false -trimpath -o bin/ ./cmd/cinder-csi-driver ./cmd/cinder-csi-generator`, old.repo)
	c.build(t, "bash", "-c", `cd "$0" && go run ./tools/image/cmd/oci-image -driver "$1" -name registry.invalid/cinder-csi/cinder-csi-driver:previous -output "$2"`,
		c.repo, filepath.Join(old.repo, "bin", "cinder-csi-driver"), filepath.Join(old.work, "image.tar"))
	old.env = append(old.env[:len(old.env):len(old.env)], "PATH="+filepath.Join(old.repo, "bin")+":"+filepath.Join(c.repo, "bin", "tools")+":"+os.Getenv("PATH"))
	// exec-node.sh and the README's helm chart are those of today.
	old.repo = c.repo
	return &old
}

// imageTagged is the image of some objects with a tag.
func imageTagged(t *testing.T, objects, tag string) string {
	t.Helper()
	for _, match := range imageLine.FindAllStringSubmatch(objects, -1) {
		if strings.HasSuffix(match[1], tag) {
			return match[1]
		}
	}
	t.Fatalf("no image has the tag %s", tag)
	return ""
}

// upgradeBy runs the kubectl commands of a section of the page that apply this bundle, and waits until every node has its driver.
func (b *bundle) upgradeBy(t *testing.T, section string) {
	t.Helper()
	text := testfile.Text(t, filepath.Join(b.repo, "docs", "how-to", "upgrade.md"))
	_, rest, found := strings.Cut(text, "\n## "+section+"\n")
	if !found {
		t.Fatalf("upgrade.md has no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	applied := false
	for _, block := range readme.Fenced(rest, "sh") {
		for _, line := range strings.Split(strings.TrimSpace(block), "\n") {
			if !strings.HasPrefix(line, "kubectl ") || strings.HasPrefix(line, "kubectl diff ") {
				continue
			}
			applied = applied || strings.Contains(line, "apply ")
			b.run(t, "bash", "-c", strings.ReplaceAll(line, "deploy/cinder-csi", b.dir))
		}
	}
	if !applied {
		t.Fatalf("section %q of upgrade.md applies nothing", section)
	}
	b.awaitDriver(t, ownWorkloads)
}
