//go:build openstack

package guests

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// What users do to a server that has a volume: each time the volume is there afterwards, with every byte. Nova asks for the key of an encrypted
// volume again whenever it starts the server.
func TestAServerIsRebootedStoppedShelvedAndDeletedWithItsVolume(t *testing.T) {
	for _, volumeType := range []string{"standard", encryptedType} {
		t.Run(volumeType, func(t *testing.T) { serverKeepsItsVolume(t, volumeType) })
	}
}

func serverKeepsItsVolume(t *testing.T, volumeType string) {
	r := newRegion(t)
	n := r.node(t, r.boot(t, r.image(t, nil), nil))
	c := r.create(t, n, claim{fsType: "ext4"}, 1, ofType(volumeType))
	n.use(t, c)
	sum := n.write(t, c, "kept")
	act := func(action string, kind any, status string) time.Duration {
		return r.act(t, n.server, map[string]any{action: kind}, status)
	}
	for _, step := range []struct {
		name   string
		change func() time.Duration
	}{
		{"soft reboot", func() time.Duration { return act("reboot", map[string]any{"type": "SOFT"}, "ACTIVE") }},
		{"hard reboot", func() time.Duration { return act("reboot", map[string]any{"type": "HARD"}, "ACTIVE") }},
		{"stop and start", func() time.Duration { return act("os-stop", nil, "SHUTOFF") + act("os-start", nil, "ACTIVE") }},
		{"shelve and unshelve", func() time.Duration {
			took := act("shelve", nil, "SHELVED_OFFLOADED")
			t.Logf("the volume of a shelved server is %s", r.status(t, c.id))
			return took + act("unshelve", nil, "ACTIVE")
		}},
	} {
		took := step.change()
		began := time.Now()
		n.again(t)
		t.Logf("%-40s %6.1f s, then %.1f s until the driver answers", step.name, took.Seconds(), time.Since(began).Seconds())
		timed(t, "attach after "+step.name, func() error { return n.attach(t, c) })
		timed(t, "stage after "+step.name, func() error { return n.stage(t, c) })
		timed(t, "publish after "+step.name, func() error { return n.publish(t, c) })
		n.wantData(t, c, "kept", sum)
	}

	act("os-stop", nil, "SHUTOFF")
	timed(t, "detach from a stopped server", func() error { return n.detach(t, c) })
	timed(t, "attach to a stopped server", func() error { return n.attach(t, c) })
	began := time.Now()
	r.deleteServer(t, n.server)
	t.Logf("%-40s %6.1f s", "delete the server with its volume", time.Since(began).Seconds())
	timed(t, "detach from a deleted server", func() error { return n.detach(t, c) })
	if got := r.status(t, c.id); got != "available" {
		t.Errorf("want the volume of a deleted server available, got %s", got)
	}
	other := r.node(t, r.serverNamed(t, "node-az2"))
	other.use(t, c)
	other.wantData(t, c, "kept", sum)
	other.leave(t, c)
}

// A server can have its root disk on a volume (boot from volume). The node role leaves that disk alone, and the driver neither deletes nor
// detaches its volume.
func TestAServerWithItsRootDiskOnAVolumeTakesAnother(t *testing.T) {
	r := newRegion(t)
	id := r.boot(t, "", map[string]any{"block_device_mapping_v2": []map[string]any{{
		"boot_index": 0, "uuid": r.image(t, nil), "source_type": "image", "destination_type": "volume", "volume_size": 1, "delete_on_termination": true,
	}}})
	n := r.node(t, id)
	s, err := r.server(t, id)
	must(t, "read the server", err)
	if len(s.Volumes) != 1 {
		t.Fatalf("want one volume of the server, got %v", s.Volumes)
	}
	root := claim{id: s.Volumes[0].ID}
	t.Logf("the driver says %d volumes", n.info.GetMaxVolumesPerNode())

	c := r.create(t, n, claim{fsType: "ext4"}, 1)
	n.use(t, c)
	sum := n.write(t, c, "kept")
	if _, err := r.DeleteVolume(within(t, time.Minute), &csi.DeleteVolumeRequest{VolumeId: root.id}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("delete of the root disk of a server: want FailedPrecondition, got %v", err)
	}
	_, err = r.ControllerUnpublishVolume(within(t, time.Minute), &csi.ControllerUnpublishVolumeRequest{VolumeId: root.id, NodeId: id})
	if status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "Cannot detach a root device volume") {
		t.Errorf("detach of the root disk of a server: want Aborted with Nova's refusal, got %v", err)
	}
	if got := r.status(t, root.id); got != "in-use" {
		t.Errorf("want the root disk in-use, got %s", got)
	}
	r.act(t, id, map[string]any{"reboot": map[string]any{"type": "HARD"}}, "ACTIVE")
	n.again(t)
	n.use(t, c)
	n.wantData(t, c, "kept", sum)
	n.leave(t, c)
}

// A guest that stands still acknowledges no request to release a disk. Nova asks eight times within 160 s, and then gives up.
func TestAGuestThatStandsStillDoesNotReleaseADisk(t *testing.T) {
	r := newRegion(t)
	n := &node{r: r, server: r.serverNamed(t, "node-az1"), info: &csi.NodeGetInfoResponse{AccessibleTopology: &csi.Topology{
		Segments: map[string]string{contract.TopologyKey: "az1"},
	}}}
	c := r.create(t, n, claim{fsType: "ext4"}, 1)
	timed(t, "attach", func() error { return n.attach(t, c) })
	n.virsh(t, "suspend")
	resumed := false
	t.Cleanup(func() {
		if !resumed {
			n.virsh(t, "resume")
		}
	})
	began := time.Now()
	_, err := r.ControllerUnpublishVolume(within(t, time.Minute), &csi.ControllerUnpublishVolumeRequest{VolumeId: c.id, NodeId: n.server})
	t.Logf("%-40s %6.1f s: %v", "detach, one minute", time.Since(began).Seconds(), err)
	if code := status.Code(err); !slices.Contains([]codes.Code{codes.DeadlineExceeded, codes.Unavailable, codes.Aborted}, code) {
		t.Errorf("want an error that Kubernetes retries, got %v", err)
	}
	eventually(t, "Nova gives up", func() error {
		if got := r.status(t, c.id); got != "in-use" {
			return fmt.Errorf("the volume is %s", got)
		}
		return nil
	})
	t.Logf("%-40s %6.1f s: the volume is in-use again", "Nova gives up", time.Since(began).Seconds())
	n.virsh(t, "resume")
	resumed = true
	timed(t, "detach from the guest that runs again", func() error { return n.detach(t, c) })
	if got := r.status(t, c.id); got != "available" {
		t.Errorf("want the volume available, got %s", got)
	}
}

// virsh is a command of libvirt about the guest, past Nova. It returns the output.
func (n *node) virsh(t *testing.T, command string) string {
	t.Helper()
	uri := "qemu:///system?socket=" + filepath.Join(n.r.bed, "run", "libvirt-az1", "run", "libvirt-sock")
	out, err := exec.Command("virsh", "-c", uri, command, n.server).CombinedOutput()
	must(t, "virsh "+command+": "+string(out), err)
	return string(out)
}
