//go:build vm

package vm

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/vm/guest"
)

// alone is how long a driver without events may take: it looks once a second.
const alone = 3 * time.Second

func TestADiskIsFoundWhenTheKernelsEventsAreDenied(t *testing.T) {
	n := boot(t, guest.Machine{})
	n.startDriver(t, []string{"/usr/bin/guest-agent", "deaf"}, "--with-topology=false")
	var most time.Duration
	for range 5 {
		most = max(most, n.discover(t, "virtio", func() {}))
	}
	n.sh(t, "grep -q 'no events of disks' "+driverLog)
	wantAlone(t, most)
	recordLost(t, "denied: no netlink socket for the driver", 5, most)
}

func TestADiskIsFoundWhenItsEventWasLost(t *testing.T) {
	n := boot(t, guest.Machine{})
	n.startDriver(t, nil, "--with-topology=false")
	lost := 0
	took := n.discover(t, "virtio", func() {
		n.sh(t, fmt.Sprintf("kill -STOP %d", n.pid))
		lost = n.drown(t)
		go func() { // once the disk's own event is lost too
			time.Sleep(2 * time.Second)
			_, _ = n.run(fmt.Sprintf("kill -CONT %d", n.pid))
		}()
	})
	wantAlone(t, took-2*time.Second)
	recordLost(t, fmt.Sprintf("lost: %d events dropped while the driver was stopped for 2 s", lost), 1, took)
}

func wantAlone(t *testing.T, took time.Duration) {
	t.Helper()
	if took > alone {
		t.Errorf("want a disk found within %s without events, got %s", alone, took)
	}
}

func recordLost(t *testing.T, how string, plugs int, most time.Duration) {
	record(t, "Without the kernel's events, found all the same", "events | plugs | most", how, plugs, most)
}

// drown makes events until the kernel has dropped some of the driver's, and gives how many.
func (n *node) drown(t *testing.T) int {
	t.Helper()
	const ofEvents = "15" // NETLINK_KOBJECT_UEVENT
	dropped := fmt.Sprintf("awk '$2==%s && $3==%d {print $9}' /proc/net/netlink", ofEvents, n.pid)
	for range 50 {
		n.sh(t, "for i in $(seq 200); do echo change > /sys/block/vda/uevent; done")
		if lost, err := strconv.Atoi(n.sh(t, dropped)); err != nil {
			t.Fatalf("the driver listens to no events while it waits: %v", err)
		} else if lost > 0 {
			return lost
		}
	}
	t.Fatal("the driver's events were not lost")
	return 0
}
