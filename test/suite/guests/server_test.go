//go:build openstack

package guests

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/status"
)

// What users do to a server that has a volume: each time the volume is there afterwards, with every byte.
func TestAServerIsRebootedStoppedShelvedAndDeletedWithItsVolume(t *testing.T) {
	r := newRegion(t)
	n := r.node(t, r.boot(t, r.image(t, nil), nil))
	c := r.create(t, n, claim{fsType: "ext4"}, 1)
	n.use(t, c)
	sum := n.write(t, c, "kept")
	for _, step := range []struct {
		name   string
		change func() time.Duration
	}{
		{"soft reboot", func() time.Duration {
			return r.act(t, n.server, map[string]any{"reboot": map[string]any{"type": "SOFT"}}, "ACTIVE")
		}},
		{"hard reboot", func() time.Duration {
			return r.act(t, n.server, map[string]any{"reboot": map[string]any{"type": "HARD"}}, "ACTIVE")
		}},
		{"stop and start", func() time.Duration {
			return r.act(t, n.server, map[string]any{"os-stop": nil}, "SHUTOFF") + r.act(t, n.server, map[string]any{"os-start": nil}, "ACTIVE")
		}},
		{"shelve and unshelve", func() time.Duration {
			took := r.act(t, n.server, map[string]any{"shelve": nil}, "SHELVED_OFFLOADED")
			t.Logf("the volume of a shelved server is %s", r.status(t, c.id))
			return took + r.act(t, n.server, map[string]any{"unshelve": nil}, "ACTIVE")
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

	r.act(t, n.server, map[string]any{"os-stop": nil}, "SHUTOFF")
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

// A kernel that hangs acknowledges no request to release a disk. Nova asks eight times within 160 s, and then gives up.
func TestAGuestThatHangsDoesNotReleaseADisk(t *testing.T) {
	r := newRegion(t)
	n := r.node(t, r.serverNamed(t, "node-az1"))
	c := r.create(t, n, claim{fsType: "ext4"}, 1)
	n.use(t, c)
	sum := n.write(t, c, "kept")
	must(t, "unpublish and unstage", n.release(t, c))
	n.hang(t)
	began := time.Now()
	_, err := r.ControllerUnpublishVolume(within(t, 4*time.Minute), &csi.ControllerUnpublishVolumeRequest{VolumeId: c.id, NodeId: n.server})
	t.Logf("%-40s %6.1f s: %v", "detach from a guest that hangs", time.Since(began).Seconds(), err)
	if err == nil {
		t.Fatal("the driver says that a guest that hangs has released its disk")
	}
	if code := status.Code(err).String(); !strings.Contains("DeadlineExceeded Unavailable Aborted Internal", code) {
		t.Errorf("want an error that Kubernetes retries, got %s", code)
	}
	eventually(t, "Nova gives up", func() error {
		if got := r.status(t, c.id); got != "in-use" {
			return fmt.Errorf("the volume is %s", got)
		}
		return nil
	})
	t.Logf("%-40s %6.1f s: the volume is in-use again", "Nova gives up", time.Since(began).Seconds())
	r.act(t, n.server, map[string]any{"reboot": map[string]any{"type": "HARD"}}, "ACTIVE")
	n.again(t)
	timed(t, "detach after a hard reboot", func() error { return n.detach(t, c) })
	timed(t, "attach", func() error { return n.attach(t, c) })
	timed(t, "stage", func() error { return n.stage(t, c) })
	timed(t, "publish", func() error { return n.publish(t, c) })
	n.wantData(t, c, "kept", sum)
	n.leave(t, c)
}

// hang stops the kernel of the guest: it panics and does not start again.
func (n *node) hang(t *testing.T) {
	t.Helper()
	n.sh(t, "echo 0 >/proc/sys/kernel/panic; (sleep 1; echo c >/proc/sysrq-trigger) >/dev/null 2>&1 </dev/null &")
	time.Sleep(3 * time.Second)
}
