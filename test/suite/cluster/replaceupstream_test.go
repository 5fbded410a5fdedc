//go:build cluster

package cluster

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// upstreamClasses are what users of upstream's plugin have: a default StorageClass and a default VolumeSnapshotClass. XFS is for the bed, see growing.
const upstreamClasses = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: csi-cinder, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: ` + driverName + `
parameters: {csi.storage.k8s.io/fstype: xfs}
allowVolumeExpansion: true
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: csi-cinder-snapshots, annotations: {snapshot.storage.kubernetes.io/is-default-class: "true"}}
driver: ` + driverName + `
deletionPolicy: Delete
`

// install applies the manifests, and the Secret with the bed's cloud.conf.
func (u upstreamPlugin) install(t *testing.T) {
	t.Helper()
	u.kubectl(t, "create", "secret", "generic", "cloud-config", "--namespace=kube-system", "--from-file=cloud.conf="+filepath.Join(u.openstack, "cloud.conf"))
	for _, name := range upstreamManifests {
		u.kubectl(t, "create", "-f", filepath.Join(u.dir, name))
	}
	u.awaitDriver(t, upstreamWorkloads)
}

func (u upstreamPlugin) uninstall(t *testing.T) {
	t.Helper()
	u.removeWorkloads(t, upstreamWorkloads)
	u.kubectl(t, "delete", "-f", u.dir, "--ignore-not-found", atMost)
	u.kubectl(t, "delete", "secret", "cloud-config", "--namespace=kube-system", "--ignore-not-found")
}

const replaceUpstream = "docs/how-to/replace-upstream.md"

// guide is the how-to whose code blocks run as they stand, in the work directory.
type guide struct {
	*cluster
	text string
}

func (c *cluster) openGuide(t *testing.T) guide {
	t.Helper()
	text := testfile.Text(t, filepath.Join(c.repo, replaceUpstream))
	return guide{c, strings.NewReplacer("bin/cinder-csi-generator", "cinder-csi-generator", "mycloud", "lab-appcred").Replace(text)}
}

// blockWith is the code block of a section that has a text.
func (g guide) blockWith(t *testing.T, section, has string) string {
	t.Helper()
	block, err := readme.BlockWith(g.text, section, has)
	if err != nil {
		t.Fatalf("%s: %v", replaceUpstream, err)
	}
	return block
}

// follow runs a block.
func (g guide) follow(t *testing.T, section, has string) string {
	t.Helper()
	return g.run(t, "bash", "-eo", "pipefail", "-c", g.blockWith(t, section, has))
}

// replaceUpstreamAndBack follows docs/how-to/replace-upstream.md on the cluster, while pods write to volumes of upstream's plugin.
func replaceUpstreamAndBack(t *testing.T, c *cluster) {
	c.replaced(t, func(t *testing.T) {
		old := c.upstream(t, 1)
		defer func() { // also after a failure: the next run installs the same objects
			old.uninstall(t)
			c.kubectl(t, "delete", "--ignore-not-found", "storageclass/csi-cinder", "volumesnapshotclass/csi-cinder-snapshots")
		}()
		old.install(t)
		c.apply(t, upstreamClasses)
		u := c.startUse(t)
		g := c.openGuide(t)
		b := g.prepare(t)

		tried("upstream replaced, from the first deletion until every node has this driver", func() { g.swap(t) })
		u.undisturbed(t, "the swap")
		c.liveOn(t, u)
		tried("back to upstream, from the first deletion until every node has its plugin", func() {
			g.follow(t, "The way back", "kubectl create -f upstream-csidriver.json")
			c.awaitDriver(t, upstreamWorkloads)
		})
		u.undisturbed(t, "the way back")
		c.useFor(t, "upstream-again", "csi-cinder")
		u.move(t)
		u.end(t)
		c.kubectl(t, "delete", "--ignore-not-found", "-k", b.dir, atMost)
	})
}

// prepare is everything of the how-to before anything stops.
func (g guide) prepare(t *testing.T) *bundle {
	t.Helper()
	check, _, _ := strings.Cut(g.blockWith(t, "Check first", "kubectl get pv"), "cinder-csi-generator doctor")
	t.Log(g.run(t, "bash", "-eo", "pipefail", "-c", check))
	testfile.Write(t, filepath.Join(g.work, "distribution.yaml"), g.blockWith(t, "The configuration", "kind: Distribution"), 0o600)
	annotate := g.blockWith(t, "The configuration", "kubectl annotate")
	g.run(t, "bash", "-eo", "pipefail", "-c", strings.ReplaceAll(annotate, "OLD", "csi-cinder-snapshots"))
	const section = "Before anything stops"
	g.follow(t, section, "upstream-controller.json")
	g.follow(t, section, "generate --os-cloud")
	b := g.bundleIn(t, filepath.Join(g.work, "deploy", "cinder-csi"))
	b.loadImages(t, b.objects(t, "kustomize"), map[string]bool{})
	b.follow(t, "The credentials")
	// The API server may refuse only the CSIDriver, whose fields do not change in place.
	_, messages, err := g.try(t.Context(), "", "bash", "-eo", "pipefail", "-c", g.blockWith(t, section, "--dry-run=server"))
	if err != nil && strings.Count(messages, "Error") != strings.Count(messages, "The CSIDriver ") {
		t.Fatalf("the dry run refuses more than the CSIDriver:\n%s", messages)
	}
	return b
}

// swap is the how-to's section of that name.
func (g guide) swap(t *testing.T) {
	t.Helper()
	pods := g.follow(t, "The swap", "delete deployment")
	if strings.Contains("\n"+pods, "\ncsi-cinder-") { // not the line that says what was deleted
		t.Fatalf("pods of upstream's plugin are left when the CSIDriver is deleted:\n%s", pods)
	}
	g.follow(t, "The swap", "kubectl apply")
	g.awaitDriver(t, ownWorkloads)
	t.Log(g.follow(t, "The swap", "kubectl get csinode"))
}

// liveOn uses volumes of upstream's plugin with this driver: they expand, are saved and restored, move, and go.
func (c *cluster) liveOn(t *testing.T, u *use) {
	t.Helper()
	first := u.writers.pods()[0]
	grown := "data-" + first
	tried("a volume of upstream expanded in use", func() {
		c.kubectl(t, "patch", "pvc", grown, "--namespace="+c.namespace, "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
		c.kubectl(t, "wait", "pvc/"+grown, "--namespace="+c.namespace, "--for=jsonpath={.status.capacity.storage}=2Gi", atMost)
	})
	sum := c.write(t, first, "/data/file", "before the snapshot")
	class := c.kubectl(t, "get", "volumesnapshotclasses", "-o", `jsonpath={.items[?(@.metadata.labels.app\.kubernetes\.io/name=="cinder-csi")].metadata.name}`)
	tried("a volume of upstream saved and restored", func() {
		c.apply(t, fmt.Sprintf(`
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: saved, namespace: %s}
spec: {volumeSnapshotClassName: %s, source: {persistentVolumeClaimName: %s}}
`, c.namespace, strings.Fields(class)[0], grown))
		c.kubectl(t, "wait", "volumesnapshot/saved", "--namespace="+c.namespace, "--for=jsonpath={.status.readyToUse}=true", atMost)
		c.start(t, []claim{{name: "restored", gib: 2, class: "csi-cinder", from: "saved"}}, pod{name: "restored", claim: "restored", node: "node-az1"})
	})
	c.expectSum(t, "restored", "/data/file", sum)
	tried("pods of upstream's volumes moved to the other node", func() { u.move(t) })
	c.deletePod(t, "restored")
	c.kubectl(t, "delete", "pvc/restored", "volumesnapshot/saved", "--namespace="+c.namespace, atMost)
	c.useFor(t, "new", "csi-cinder")
}
