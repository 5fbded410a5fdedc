//go:build cluster

package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// cloned reads the original again on another node, so that no cache answers.
func cloned(t *testing.T, c *cluster) {
	c.start(t, []claim{{name: "original", gib: 1}}, pod{name: "original", claim: "original", node: "node-az1"})
	sum := c.write(t, "original", "/data/file", "original")
	c.start(t, []claim{{name: "clone", gib: 1, clone: "original"}}, pod{name: "clone", claim: "clone", node: "node-az1"})
	c.expectSum(t, "clone", "/data/file", sum)
	if other := c.write(t, "clone", "/data/file", "clone"); other == sum {
		t.Fatal("the clone was not written")
	}
	c.deletePod(t, "original")
	c.start(t, nil, pod{name: "again", claim: "original", node: "node-az1-2"})
	c.expectSum(t, "again", "/data/file", sum)
}

// backupInOtherZone deletes the source before it restores: a backup does not depend on its volume.
func backupInOtherZone(t *testing.T, c *cluster) {
	class := c.kubectl(t, "get", "volumesnapshotclasses", "-o", `jsonpath={.items[?(@.parameters.type=="backup")].metadata.name}`)
	if class == "" {
		t.Fatal("the bundle has no VolumeSnapshotClass for backups")
	}
	c.start(t, []claim{{name: "source", gib: 1}}, pod{name: "source", claim: "source", zone: "az1"})
	sum := c.write(t, "source", "/data/file", "source")
	began := time.Now()
	c.saveAs(t, "saved", class, "source")
	c.measured("- backup of 1 GiB ready", began)
	backup := c.kubectl(t, "get", "volumesnapshotcontents", "-o", fmt.Sprintf(`jsonpath={.items[?(@.spec.volumeSnapshotRef.namespace==%q)].status.snapshotHandle}`, c.namespace))
	if ids := c.openstackLists(t, []string{"volume backup list --all-projects -c ID"})[0]; !contains(ids, backup) {
		t.Fatalf("the snapshot %q is not a backup in Cinder: %v", backup, ids)
	}
	c.deletePod(t, "source")
	c.kubectl(t, "delete", "pvc", "source", "--namespace="+c.namespace, atMost)
	eventually(t, patience, "the source volume gone", func() error {
		if left := c.volumes(t); len(left) > 0 {
			return fmt.Errorf("%v is there", left)
		}
		return nil
	})
	began = time.Now()
	c.start(t, []claim{{name: "restored", gib: 1, from: "saved"}}, pod{name: "restored", claim: "restored", zone: "az2"})
	c.measured("- restored in the other zone, pod ready", began)
	if zone := c.cinder(t, c.volumeOf(t, "restored"), "availability_zone"); zone != "az2" {
		t.Errorf("the restored volume is in %s", zone)
	}
	c.expectSum(t, "restored", "/data/file", sum)
	c.deletePod(t, "restored")
	c.kubectl(t, "delete", "pvc/restored", "volumesnapshot/saved", "--namespace="+c.namespace, atMost)
}

// saveAs makes a VolumeSnapshot of a claim and waits until it is ready.
func (c *cluster) saveAs(t *testing.T, name, class, claim string) {
	t.Helper()
	c.apply(t, fmt.Sprintf(`
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: %s, namespace: %s}
spec: {volumeSnapshotClassName: %s, source: {persistentVolumeClaimName: %s}}
`, name, c.namespace, class, claim))
	c.kubectl(t, "wait", "volumesnapshot/"+name, "--namespace="+c.namespace, "--for=jsonpath={.status.readyToUse}=true", atMost)
}

// attributesChange sets metadata when the volume is created, and later changes its type. The new type is in another pool, so Cinder copies the
// volume. While a server has it, Cinder would leave the copy to Nova, and the Nova of the bed copies nothing.
func attributesChange(t *testing.T, c *cluster) {
	c.start(t, []claim{{name: "data", gib: 1, class: "standard", attributes: "team-a"}}, pod{name: "before", claim: "data"})
	sum := c.write(t, "before", "/data/file", "before")
	volume := c.volumeOf(t, "data")
	if kind, metadata := c.cinder(t, volume, "type"), c.cinder(t, volume, "properties"); kind != "standard" || !strings.Contains(metadata, "'team': 'a'") {
		t.Errorf("volume %s has the type %s and the metadata %s; want standard, and team a", volume, kind, metadata)
	}
	c.deletePod(t, "before")
	c.awaitDetached(t, "data")
	began := time.Now()
	c.kubectl(t, "patch", "pvc", "data", "--namespace="+c.namespace, "-p", `{"spec": {"volumeAttributesClassName": "to-fast"}}`)
	c.kubectl(t, "wait", "pvc/data", "--namespace="+c.namespace, "--for=jsonpath={.status.currentVolumeAttributesClassName}=to-fast", atMost)
	c.measured("- type of 1 GiB changed, with a copy to another pool", began)
	if kind := c.cinder(t, volume, "type"); kind != "fast" {
		t.Errorf("the claim says to-fast, and Cinder shows the type %s", kind)
	}
	c.start(t, nil, pod{name: "after", claim: "data"})
	c.expectSum(t, "after", "/data/file", sum)
}

// awaitDetached waits until no VolumeAttachment has the volume of a claim.
func (c *cluster) awaitDetached(t *testing.T, claim string) {
	t.Helper()
	volume := c.kubectl(t, "get", "pvc", claim, "--namespace="+c.namespace, "-o", "jsonpath={.spec.volumeName}")
	eventually(t, patience, "the volume of claim "+claim+" detached", func() error {
		attached := c.kubectl(t, "get", "volumeattachments", "-o", "jsonpath={.items[*].spec.source.persistentVolumeName}")
		if contains(strings.Fields(attached), volume) {
			return fmt.Errorf("volume %s is attached", volume)
		}
		return nil
	})
}
