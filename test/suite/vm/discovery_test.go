//go:build vm

package vm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
)

// plugs is how many disks a measurement of the discovery time plugs.
const plugs = 20

// soon is a limit that only a broken driver exceeds: the driver reads sysfs every 200 ms, and QEMU emulates the processor. What QEMU waited for a
// processor of the host does not count, so that other work on the host decides nothing. RESULTS.md has the measured times.
const soon = 500 * time.Millisecond

func TestAVirtioDiskIsFoundSoon(t *testing.T) {
	n := boot(t, guest.Machine{})
	n.startDriver(t, nil, "--with-topology=false")
	n.measureDiscovery(t, "virtio")
	recordMemory(t, n)
}

// The driver asks a SCSI disk itself for its serial, so a disk that answers otherwise than the driver reads would never be found.
func TestASCSIDiskIsFoundSoon(t *testing.T) {
	n := boot(t, guest.Machine{SCSI: true})
	n.startDriver(t, nil, "--with-topology=false")
	n.measureDiscovery(t, "scsi")
}

func TestDisksAreFoundSoon(t *testing.T) {
	for _, m := range []guest.Machine{{SCSI: true}, {Type: "q35", Ports: 2, SCSI: true, Udev: true}} {
		t.Run(m.String(), func(t *testing.T) {
			n := boot(t, m)
			n.startDriver(t, nil, "--with-topology=false")
			for _, bus := range []string{"virtio", "scsi", "nvme"} {
				t.Run(bus, func(t *testing.T) { n.measureDiscovery(t, bus) })
			}
		})
	}
}

// measureDiscovery plugs disks that the driver waits for.
func (n *node) measureDiscovery(t *testing.T, bus string) {
	var took, starved, own []time.Duration
	for range plugs {
		found, waited := n.discover(t, bus)
		took, starved, own = append(took, found), append(starved, waited), append(own, found-waited)
	}
	slices.Sort(took)
	slices.Sort(starved)
	slices.Sort(own)
	median, late := percentile(took, 50), percentile(took, 95)
	t.Logf("%s, %s: found after the kernel's event: median %s, 95%% within %s, at most %s", n.Machine, bus, median, late, took[len(took)-1])
	record(t, "From the kernel's event to the answer of NodeStageVolume, and how long QEMU waited for a processor of the host from plug to answer",
		"machine | bus | plugs | least | median | 95% within | most | QEMU waited, median | 95% within",
		n.Machine, bus, len(took), took[0], median, late, took[len(took)-1], percentile(starved, 50), percentile(starved, 95))
	if without := percentile(own, 50); without > soon {
		t.Errorf("want disks found within %s of the kernel's event, got %s in the middle, and %s without what QEMU waited, of %v", soon, median, without, took)
	}
}

// percentile is a percentile of some values.
func percentile(sorted []time.Duration, of int) time.Duration {
	return sorted[(len(sorted)*of+99)/100-1]
}

// discover plugs a disk that the driver waits for. It returns the time from the kernel's event to the answer of the driver, by the clock of the guest.
// Starved is how long QEMU waited for a processor from the plug to the answer.
func (n *node) discover(t *testing.T, bus string) (found, starved time.Duration) {
	t.Helper()
	const polls = 1700 * time.Millisecond // several of them
	c := claim{id: newVolume()}
	before, err := n.Uevents(0)
	must(t, "read the events", err)
	staged := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { staged <- n.stage(ctx, c) }()
	time.Sleep(polls)
	clock := n.startClock(t)
	must(t, "plug", n.Plug(guest.Disk{Volume: c.id, Bus: bus, LUN: 1, Bytes: gib}))
	must(t, "stage", <-staged)
	_, starved = clock()
	answered := n.answered(t, "NodeStageVolume", c.id)
	events, err := n.Uevents(len(before))
	must(t, "read the events", err)
	for _, e := range events {
		if newDisk(e) {
			must(t, "release", n.release(ctx, c))
			n.unplug(t, c.id)
			return answered.Sub(e.At), starved
		}
	}
	t.Fatalf("the kernel reported no disk, only %v", events)
	return 0, 0
}

// startClock begins to measure. The result gives the time since then, and how much of it QEMU waited for a processor of the host.
func (n *node) startClock(t *testing.T) func() (took, starved time.Duration) {
	t.Helper()
	began := time.Now()
	before, err := n.Starved()
	must(t, "read how long QEMU waited", err)
	return func() (time.Duration, time.Duration) {
		t.Helper()
		after, err := n.Starved()
		must(t, "read how long QEMU waited", err)
		return time.Since(began), after - before
	}
}

// answered is the time of the last answer for a volume in the log of the driver.
func (n *node) answered(t *testing.T, method, volume string) time.Time {
	t.Helper()
	text := n.sh(t, fmt.Sprintf("grep -F %q %s | grep -F %q | tail -n 1", method, driverLog, volume))
	var line struct {
		Time time.Time `json:"time"`
	}
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		t.Fatalf("the driver's log has %q: %v", text, err)
	}
	return line.Time
}

// recordMemory records the memory of the driver, and the page cache that the kernel could drop.
func recordMemory(t *testing.T, n *node) {
	t.Helper()
	fields := map[string]string{}
	for line := range strings.Lines(n.sh(t, fmt.Sprintf("cat /proc/%d/status", n.pid))) {
		key, value, _ := strings.Cut(line, ":")
		fields[key] = strings.TrimSpace(value)
	}
	record(t, "Memory of the node role, idle after that", "RssAnon | RssFile | threads", fields["RssAnon"], fields["RssFile"], fields["Threads"])
}
