//go:build cluster

package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// changeBehind detaches a volume that a pod uses, and deletes another, in OpenStack. Kubernetes sees neither. `kubectl cinder volume` names both, and what
// it says puts them right.
func changeBehind(t *testing.T, c *cluster) {
	r := &recovery{cluster: c, began: time.Now()}
	r.install(t, "first", false)
	shop := r.in("shop")
	shop.makeNamespace(t)
	shop.start(t, []claim{{name: "detached", gib: 1}, {name: "gone", gib: 1}}, pod{name: "detached", claim: "detached", node: "node-az2"}, pod{name: "gone", claim: "gone", node: "node-az2"})
	sum := shop.write(t, "detached", "/data/file", "detached")
	detached, gone, volume := shop.volumeOf(t, "detached"), shop.volumeOf(t, "gone"), shop.volumeName(t, "gone")
	shop.deletePod(t, "gone")
	c.awaitAvailable(t, gone)
	r.step(t, "bundle installed, 2 volumes written")

	r.shell(t, "openstack server remove volume node-az2 "+detached+"\nopenstack volume delete "+gone+"\n")
	eventually(t, patience, "detached and deleted in Cinder", func() error {
		if status := c.cinder(t, detached, "status"); status != "available" {
			return fmt.Errorf("volume %s is %s", detached, status)
		}
		if out, _, err := r.try(t.Context(), "", "/usr/bin/openstack", "--os-cloud", "lab-demo", "volume", "show", gone); err == nil {
			return fmt.Errorf("volume %s is there: %s", gone, out)
		}
		return nil
	})
	r.step(t, "detached and deleted behind Kubernetes")
	for claim, want := range map[string]string{"detached": "Cause: attach.lost ", "gone": "Cause: volume.missing "} {
		out, err := r.cinderCommand(t, "volume", "shop/"+claim, "--os-cloud", "lab-demo")
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("volume shop/%s: %v, want a finding with %q", claim, err, want)
		}
		r.step(t, "kubectl cinder volume shop/%s", claim)
	}
	if out, err := r.cinderCommand(t, "lost", "--os-cloud", "lab-demo"); err == nil || !strings.Contains(out, volume) {
		t.Errorf("lost: %v, want PersistentVolume %s", err, volume)
	}

	// The pod that lost its disk starts again, on another attachment.
	shop.deletePod(t, "detached")
	eventually(t, patience, "no VolumeAttachment of the volume", func() error {
		if out := r.kubectl(t, "get", "volumeattachments", "-o", "name"); out != "" {
			return fmt.Errorf("there is %s", out)
		}
		return nil
	})
	shop.start(t, nil, pod{name: "detached", claim: "detached", node: "node-az2"})
	shop.expectSum(t, "detached", "/data/file", sum)
	r.kubectl(t, "delete", "pvc", "gone", "--namespace=shop", atMost)
	r.kubectl(t, "wait", "persistentvolume/"+volume, "--for=delete", atMost)
	r.step(t, "put right; %d MiB compared", written)
	if out, err := r.cinderCommand(t, "list", "--wrong", "--os-cloud", "lab-demo"); err != nil {
		t.Errorf("want no finding, got %v: %s", err, out)
	}
	r.deleteTeam(t, "shop")
	r.remove(t)
	r.step(t, "everything deleted")
}
