//go:build openstack

package guests

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// Two guests have one disk. What one writes, the other reads.
func TestTwoGuestsShareARawBlockVolume(t *testing.T) {
	r := newRegion(t)
	one, two := r.node(t, r.serverNamed(t, "node-az1")), r.node(t, r.serverNamed(t, "node-az2"))
	c := r.create(t, one, claim{shared: true}, 1, ofType("multiattach"))
	one.use(t, c)
	two.use(t, c)
	sum := one.sh(t, "dd if=/dev/urandom of=/run/data bs=1M count=8 2>/dev/null; dd if=/run/data of="+c.target()+" bs=1M seek=500 oflag=direct 2>/dev/null; md5sum </run/data")
	read := "dd if=" + c.target() + " bs=1M skip=500 count=8 iflag=direct 2>/dev/null | md5sum"
	if got := two.sh(t, read); got != sum {
		t.Errorf("want the other guest to read %s, got %s", sum, got)
	}
	one.leave(t, c)
	if got := two.sh(t, read); got != sum {
		t.Errorf("after the first guest left the volume: want %s, got %s", sum, got)
	}
	two.leave(t, c)
	if got := r.status(t, c.id); got != "available" {
		t.Errorf("want the volume available, got %s", got)
	}
}

// Disks of a virtio-scsi controller, which an image may ask for, come and go without a slot.
func TestAVolumeLivesOnVirtioSCSI(t *testing.T) {
	r := newRegion(t)
	n := r.node(t, r.boot(t, r.image(t, map[string]string{"hw_scsi_model": "virtio-scsi", "hw_disk_bus": "scsi"}), nil))
	t.Logf("the driver says %d volumes", n.info.GetMaxVolumesPerNode())
	c := r.create(t, n, claim{fsType: "xfs"}, 1)
	n.use(t, c)
	if got := n.sh(t, "awk '$2 == \""+c.target()+"\" {print $1}' /proc/mounts"); !strings.HasPrefix(got, "/dev/sd") {
		t.Errorf("want a SCSI disk, got %s", got)
	}
	sum := n.write(t, c, "kept")
	timed(t, "expand in use", func() error { return r.expand(t, c, 2<<30) })
	timed(t, "expand in use: node", func() error { return n.expand(t, c, 2<<30) })
	n.leave(t, c)
	n.use(t, c)
	n.wantData(t, c, "kept", sum)
	n.leave(t, c)
}

// A machine takes as many disks as it has free slots: q35 by Nova's num_pcie_ports, pc by the slots of its one bus. The driver must not promise
// more, or Kubernetes sends pods to a node that cannot have their volumes.
func TestAMachineTakesAsManyDisksAsTheDriverSays(t *testing.T) {
	for _, machine := range []string{"q35", "pc"} {
		t.Run(machine, func(t *testing.T) {
			r := newRegion(t)
			n := r.node(t, r.boot(t, r.image(t, map[string]string{"hw_machine_type": machine}), nil))
			if zone := n.info.GetAccessibleTopology().GetSegments(); fmt.Sprint(zone) != "map[topology.cinder.csi.openstack.org/zone:az1]" {
				t.Errorf("want zone az1 from the config drive of a machine %s, got %v", machine, zone)
			}
			said := int(n.info.GetMaxVolumesPerNode())
			claims := make([]claim, 31)
			var makes sync.WaitGroup
			for i := range claims {
				makes.Go(func() { claims[i] = r.create(t, n, claim{}, 1) })
			}
			makes.Wait()
			taken, began := 0, time.Now()
			var refusal error
			for _, c := range claims {
				if refusal = n.attach(t, c); refusal != nil {
					break
				}
				taken++
			}
			t.Logf("machine %s: the driver says %d volumes, %d were attached in %.1f s, then: %v", machine, said, taken, time.Since(began).Seconds(), refusal)
			if said > taken {
				t.Errorf("want at most the %d disks that the machine takes, the driver says %d", taken, said)
			}
			n.awaitDisk(t, claims[taken-1])
			timed(t, "stage the last one", func() error { return n.stage(t, claims[taken-1]) })
			must(t, "unstage it", n.release(t, claims[taken-1]))
			for _, c := range claims[:min(taken+1, len(claims))] {
				must(t, "detach", n.detach(t, c))
			}
		})
	}
}
