//go:build cluster

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// TestThePagesRunOnTheCluster follows the tutorial, and then imports the volume of its claim as the page about that says. It stays out of
// TestBundle, whose cloud is the same.
func TestThePagesRunOnTheCluster(t *testing.T) {
	c := running(t)
	t.Cleanup(func() { c.diagnose(t) })
	before := c.takeStock(t)
	for _, name := range []string{"examples", "bin"} {
		testenv.Must(t, os.Symlink(filepath.Join(c.repo, name), filepath.Join(c.work, name)))
	}
	p := &pages{cluster: c}
	tutorial := p.read(t, "tutorial/first-volume.md")
	p.write(t, "distribution.yaml", readme.Fenced(tutorial, "yaml")[0])
	steps, cleanUp, _ := strings.Cut(tutorial, "\n## 9. ")
	p.follow(t, steps)
	step := func(name string, do func(t *testing.T)) {
		t.Helper()
		began := time.Now()
		do(t)
		fmt.Printf("measured: pages     %-47s %6.1f s\n", name, time.Since(began).Seconds())
	}
	step("snapshot and restore", p.snapshot)
	step("volume kept, imported into a new claim, read", p.importVolume)
	p.awaitVolumes(t, 0)
	p.kubectl(t, "apply", "-f", "examples/workloads/claim-and-pod.yaml") // the import has deleted them
	p.kubectl(t, "wait", "--for=condition=Ready", "pod/writer", atMost)
	p.follow(t, cleanUp)
	before.compare(t, c.takeStock(t))
}

type pages struct{ *cluster }

func (p *pages) read(t *testing.T, page string) string {
	t.Helper()
	text := testfile.Text(t, filepath.Join(p.repo, "docs", page))
	return strings.ReplaceAll(text, "mycloud", "lab-demo")
}

func (p *pages) write(t *testing.T, name, text string) {
	t.Helper()
	testfile.Write(t, filepath.Join(p.work, name), text, 0o600)
}

var assignment = regexp.MustCompile(`^[a-z]+=`)

// follow runs the blocks of commands. Images come from this machine instead of a registry, and the cluster has the snapshot CRDs. A line that
// sets a variable runs together with the next one.
func (p *pages) follow(t *testing.T, text string) {
	t.Helper()
	for _, block := range readme.Fenced(text, "sh") {
		variables := ""
		for _, line := range strings.Split(strings.TrimSpace(block), "\n") {
			switch {
			case assignment.MatchString(line):
				variables += line + "\n"
			case strings.HasPrefix(line, "make ") || strings.HasPrefix(line, "skopeo ") || strings.Contains(line, "https://"):
			case strings.Contains(line, "generator doctor "):
				// The Secret is missing at that step, so doctor ends with 1.
				out, _, _ := p.try(t.Context(), "", "bash", "-c", line)
				t.Logf("%s\n%s", line, out)
			case line == "kubectl get persistentvolumes":
				p.awaitVolumes(t, 0) // "when no PersistentVolume is left", says the page
			case strings.Contains(line, "application credential create"):
				p.credential(t, p.run(t, "bash", "-c", line+" -f json"))
			default:
				t.Logf("%s\n%s", line, p.run(t, "bash", "-e", "-o", "pipefail", "-c", variables+line))
			}
			if strings.Contains(line, "generator generate ") {
				p.images(t)
			}
		}
	}
}

// credential writes the driver's clouds.yaml, as the tutorial shows it.
func (p *pages) credential(t *testing.T, created string) {
	t.Helper()
	t.Cleanup(func() { // the last step of the tutorial deletes it, unless a step before has failed
		_, _, _ = p.try(context.Background(), "", "openstack", "--os-cloud", "lab-demo", "application", "credential", "delete", "cinder-csi")
	})
	var c struct{ ID, Secret string }
	if err := json.Unmarshal([]byte(created), &c); err != nil || c.Secret == "" {
		t.Fatalf("the application credential: %v", err)
	}
	url := p.run(t, "openstack", "--os-cloud", "lab-demo", "configuration", "show", "-f", "value", "-c", "auth.auth_url")
	p.write(t, "driver-clouds.yaml", fmt.Sprintf("clouds: {openstack: {auth_type: v3applicationcredential, region_name: RegionOne, auth: {auth_url: %q, application_credential_id: %q, application_credential_secret: %q}}}\n",
		strings.TrimSpace(url), c.ID, c.Secret))
}

// images imports those of the bundle, and busybox of this machine for the pod of examples/workloads.
func (p *pages) images(t *testing.T) {
	t.Helper()
	imported := map[string]bool{}
	p.loadImages(t, p.kubectl(t, "kustomize", "deploy/cinder-csi"), imported)
	shell, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatalf("install busybox-static: %v", err)
	}
	testfile.Write(t, filepath.Join(p.work, "sh"), shell, 0o700)
	const name = "registry.k8s.io/e2e-test-images/busybox:1.36.1-1"
	archive := filepath.Join(p.work, "busybox.tar")
	p.run(t, filepath.Join(cache(), "bin", "static-image"), "-output", archive, "-name", name, filepath.Join(p.work, "sh"))
	for _, node := range nodes {
		p.onNode(t, node, "ctr", "--namespace=k8s.io", "images", "import", archive)
	}
}

// document is the first object of a kind that a page shows, with replacements.
func (p *pages) document(t *testing.T, page, kind string, replace ...string) string {
	t.Helper()
	documents := strings.Split(strings.Join(readme.Fenced(p.read(t, page), "yaml"), "\n---\n"), "\n---\n")
	i := slices.IndexFunc(documents, func(document string) bool { return strings.Contains(document, "\nkind: "+kind+"\n") })
	if i < 0 {
		t.Fatalf("%s shows no %s", page, kind)
	}
	return strings.NewReplacer(replace...).Replace(documents[i])
}

// The pages of the objects that the test makes.
const (
	backups = "how-to/backup-and-restore.md"
	imports = "how-to/import-a-volume.md"
)

// reader is a pod that is ready if the file that the tutorial's pod wrote is on the claim's volume.
func (p *pages) reader(t *testing.T, name, claim string) {
	t.Helper()
	text := testfile.Text(t, filepath.Join(p.repo, "examples/workloads/claim-and-pod.yaml"))
	_, pod, _ := strings.Cut(text, "\n---\n")
	zone := p.zone(t) // Cinder restores a snapshot in its zone only
	p.apply(t, strings.NewReplacer("\nspec:\n", "\nspec:\n  nodeSelector: {topology.cinder.csi.openstack.org/zone: "+zone+"}\n", "name: writer", "name: "+name, "claimName: data", "claimName: "+claim, "date >> /data/log; sync;", "test -s /data/log &&").Replace(pod))
	p.kubectl(t, "wait", "--for=condition=Ready", "pod/"+name, atMost)
	p.kubectl(t, "delete", "pod", name, atMost)
}

// zone is that of the only PersistentVolume from the tutorial, or of those that were made from it.
func (p *pages) zone(t *testing.T) string {
	t.Helper()
	zones := strings.Fields(p.kubectl(t, "get", "persistentvolumes", "-o", "jsonpath={.items[*].spec.nodeAffinity.required.nodeSelectorTerms[*].matchExpressions[*].values[*]}"))
	slices.Sort(zones)
	zones = slices.Compact(zones)
	if len(zones) != 1 {
		t.Fatalf("want volumes in one zone, got %q", zones)
	}
	return zones[0]
}

func (p *pages) snapshot(t *testing.T) {
	p.write(t, "snapshot.yaml", p.document(t, backups, "VolumeSnapshot"))
	p.run(t, "bash", "-c", "kubectl apply -f snapshot.yaml && kubectl wait --for=jsonpath='{.status.readyToUse}'=true volumesnapshot/data-monday --timeout=5m")
	// A container that stands for a machine may not grow a mounted ext4, so the claim has the size of its source.
	p.apply(t, p.document(t, backups, "PersistentVolumeClaim", "10Gi", "1Gi"))
	p.reader(t, "restored", "data-restored")
	p.kubectl(t, "delete", "persistentvolumeclaim/data-restored", "volumesnapshot/data-monday", atMost)
	p.awaitVolumes(t, 1)
}

// awaitVolumes waits for the number of PersistentVolumes: they are deleted after their claims.
func (p *pages) awaitVolumes(t *testing.T, want int) {
	t.Helper()
	eventually(t, patience, "PersistentVolumes deleted", func() error {
		if left := strings.Fields(p.kubectl(t, "get", "persistentvolumes", "-o", "name")); len(left) != want {
			return fmt.Errorf("want %d, there are %s", want, left)
		}
		return nil
	})
}

// importVolume keeps the volume of the claim as the page about removal says, and imports it.
func (p *pages) importVolume(t *testing.T) {
	for _, block := range readme.Fenced(p.read(t, "how-to/uninstall.md"), "sh")[:2] {
		t.Log(p.run(t, "bash", "-o", "pipefail", "-c", block))
	}
	volume := p.kubectl(t, "get", "persistentvolumeclaim", "data", "-o", "jsonpath={.spec.volumeName}")
	handle := p.kubectl(t, "get", "persistentvolume", volume, "-o", "jsonpath={.spec.csi.volumeHandle}")
	zone := p.zone(t)
	p.kubectl(t, "delete", "-f", "examples/workloads/claim-and-pod.yaml", atMost)
	p.kubectl(t, "delete", "persistentvolume", volume, atMost)
	replace := []string{"5a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d", handle, "values: [az1]", "values: [" + zone + "]", "10Gi", "1Gi"}
	p.apply(t, p.document(t, imports, "PersistentVolume", replace...))
	p.apply(t, strings.NewReplacer("name: data-restored", "name: imported", "dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: data-monday}", "volumeName: imported", "10Gi", "1Gi").
		Replace(p.document(t, backups, "PersistentVolumeClaim")))
	p.reader(t, "importer", "imported")
	p.kubectl(t, "patch", "persistentvolume", "imported", "-p", `{"spec": {"persistentVolumeReclaimPolicy": "Delete"}}`)
	p.kubectl(t, "delete", "persistentvolumeclaim", "imported", atMost)
}
