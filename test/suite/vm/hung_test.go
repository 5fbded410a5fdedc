//go:build vm

package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// A backend that hangs completes no request and refuses none. What the kernel does then depends on its version and on the bus.
func TestABackendHangs(t *testing.T) {
	testenv.NeedTools(t, "qemu-nbd", "qemu-utils")
	for i, kernel := range strings.Split(*kernels, ",") {
		buses := []string{"virtio"}
		if i == 0 {
			buses = []string{"virtio", "scsi"}
		}
		for _, bus := range buses {
			t.Run(kernel+" "+bus, func(t *testing.T) {
				t.Parallel()
				n := boot(t, guest.Machine{Kernel: kernel, SCSI: bus == "scsi"})
				n.startInContainer(t)
				n.hangsInUse(t, bus)
				n.hangsBeforeStage(t, bus)
				n.hangsDuringMkfs(t, bus)
				if bus == "scsi" {
					n.newLUNWhileOneHangs(t)
				}
			})
		}
	}
}

// answersIn is within what time a call on a hung disk answers: ten seconds, and the time of an emulated processor. What QEMU waited for a processor of
// the host does not count.
const answersIn = 13 * time.Second

// hangsInUse stops the backend of a volume to which a pod writes and of one that is idle. Volumes on other disks are not affected.
func (n *node) hangsInUse(t *testing.T, bus string) {
	written, idle := claim{newVolume(), "ext4"}, claim{newVolume(), "xfs"}
	healthy, later := claim{newVolume(), "ext4"}, claim{newVolume(), "ext4"}
	all := backends{n.plugBackend(t, written, bus, 1), n.plugBackend(t, idle, bus, 2)}
	n.plug(t, guest.Disk{Volume: healthy.id, Bus: "virtio"})
	sums := map[claim]string{}
	for _, c := range []claim{written, idle, healthy} {
		n.use(t, c)
		sums[c] = n.write(t, c)
	}
	n.sh(t, "sync")
	stop := n.keepWriting(t, written)
	n.sh(t, "until [ -s "+written.target()+"/more ]; do usleep 50000; done")
	all.hang(t)
	defer all.resume(t)
	n.sh(t, `completed() { awk '{print $1, $5}' /sys/block/[vs]d*/stat; }; while a=$(completed); sleep 3; [ "$a" != "$(completed)" ]; do :; done`) // what was answered before
	n.wantAnswer(t, idle, "NodePublishVolume, another pod", "Unavailable", []string{"has completed no request since"}, func(ctx context.Context) error {
		return csitest.Outcome(n.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId: idle.id, StagingTargetPath: idle.staging(), TargetPath: idle.target() + "-2", VolumeCapability: idle.capability(),
		}))
	})
	var calls sync.WaitGroup
	for _, c := range []claim{written, idle} {
		calls.Go(func() { n.statsOfHung(t, c) })
		calls.Go(func() { n.healthOfHung(t, c) })
	}
	n.anotherDisk(t, later)
	calls.Wait()
	for _, c := range []claim{written, idle} {
		n.wantAnswer(t, c, "NodeUnstageVolume", "Unavailable", []string{"has completed no request since", "has not unmounted it"}, func(ctx context.Context) error {
			return csitest.Outcome(n.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: c.id, StagingTargetPath: c.staging()}))
		})
		n.sh(t, "grep -q ' "+c.staging()+" ' /proc/mounts")
	}
	const fsync, syncfs = "74", "306"
	if calls := n.systemCalls(t); slices.Contains(calls, fsync) || slices.Contains(calls, syncfs) {
		t.Errorf("want no write begun, the driver has threads in the system calls %v", calls)
	}
	if got := n.stats(t, healthy); got != codes.OK {
		t.Errorf("want statistics of a volume on another disk, got %v", got)
	}
	n.sh(t, "kill $(pidof cinder-csi-driver); sleep 2")
	if !n.killContainer(t) {
		t.Fatal("want the driver to end while the backend hangs: it began no write")
	}
	n.startInContainer(t)
	n.healthOfHung(t, written)
	must(t, "release a volume on another disk", n.release(n.ctx(t), later))
	n.use(t, later)
	must(t, "release it", n.release(n.ctx(t), later))

	all.resume(t)
	stop()
	for _, c := range []claim{written, idle, healthy} {
		n.eventually(t, "a volume whose backend is back has no fault", func() error {
			if health := n.health(t, c); len(health) > 0 {
				return fmt.Errorf("health is %v", health)
			}
			return nil
		})
		n.wantData(t, c, sums[c])
		must(t, "release", n.release(n.ctx(t), c))
		n.use(t, c)
		n.wantData(t, c, sums[c])
		must(t, "release", n.release(n.ctx(t), c))
		n.unplug(t, c.id)
	}
	n.unplug(t, later.id)
	all.stop(t)
	recordCase(t, n, bus, "backend hangs under a pod: publish, statistics, health, unstage, restart of the driver",
		"each call answers; no write begins; the driver restarts; other disks are staged; every byte is there when the backend is back")
}

// anotherDisk attaches and uses a volume while the backends of others hang.
func (n *node) anotherDisk(t *testing.T, c claim) {
	began := time.Now()
	n.plug(t, guest.Disk{Volume: c.id, Bus: "virtio"})
	named := time.Since(began)
	n.use(t, c)
	record(t, "A virtio disk is attached while another one hangs", "Linux | machine | named by the kernel after | published after",
		n.kernel, n.Machine, named, time.Since(began))
}

// newLUNWhileOneHangs attaches a second disk to a SCSI controller whose first disk hangs. The kernel waits for the queue of the first one then
// (Linux, blk_mq_update_tag_set_shared). The driver must say so in time, and serve the disks of other controllers.
func (n *node) newLUNWhileOneHangs(t *testing.T) {
	hung, other, virtio := claim{newVolume(), "ext4"}, claim{newVolume(), "ext4"}, claim{newVolume(), "ext4"}
	all := backends{n.plugBackend(t, hung, "scsi", 1)}
	n.use(t, hung)
	sum := n.write(t, hung)
	all.hang(t)
	defer all.resume(t)
	n.statsOfHung(t, hung) // a command that hangs
	must(t, "plug", n.Plug(guest.Disk{Volume: other.id, Bus: "scsi", LUN: 9, Bytes: gib}))
	outcome := "staged while the other one hangs"
	if err := n.stage(bounded(t), other); err != nil {
		refused(t, "stage a disk that the kernel has not named", err, []string{other.id, "did not appear"}, codes.DeadlineExceeded)
		outcome = "not named by the kernel before the other one answers; NodeStageVolume says so in time"
		t.Log("the threads that wait:", n.try("for s in /proc/[0-9]*/stat; do ! grep -q ' D ' $s 2>/dev/null || { cut -c1-60 $s; cat ${s%stat}stack; }; done"))
	}
	n.plug(t, guest.Disk{Volume: virtio.id, Bus: "virtio"})
	n.use(t, virtio)
	all.resume(t)
	n.eventually(t, "stage", func() error { return n.stage(bounded(t), other) })
	n.wantData(t, hung, sum)
	for _, c := range []claim{hung, other, virtio} {
		must(t, "release", n.release(n.ctx(t), c))
		n.unplug(t, c.id)
	}
	all.stop(t)
	recordCase(t, n, "scsi", "new disk on a SCSI controller of which another disk hangs", outcome+"; a virtio disk is staged meanwhile")
}

// hangsBeforeStage stops the backend of a volume that is attached and nothing more.
func (n *node) hangsBeforeStage(t *testing.T, bus string) {
	c, other := claim{newVolume(), "ext4"}, claim{newVolume(), "ext4"}
	all := backends{n.plugBackend(t, c, bus, 1)}
	n.plug(t, guest.Disk{Volume: other.id, Bus: "virtio"})
	all.hang(t)
	defer all.resume(t)
	for range 2 {
		n.wantAnswer(t, c, "NodeStageVolume", "Unavailable", []string{c.id, "has completed no request since"}, func(ctx context.Context) error { return n.stage(ctx, c) })
	}
	must(t, "release a volume that was not staged", n.release(n.ctx(t), c))
	n.use(t, other)
	n.endsAfterKill(t, bus, "backend hangs before the stage", all)
	n.eventually(t, "stage", func() error { return n.stage(bounded(t), c) })
	must(t, "publish", n.publish(n.ctx(t), c))
	n.write(t, c)
	for _, c := range []claim{c, other} {
		must(t, "release", n.release(n.ctx(t), c))
		n.unplug(t, c.id)
	}
	all.stop(t)
}

// hangsDuringMkfs stops the backend when mkfs has begun to write.
func (n *node) hangsDuringMkfs(t *testing.T, bus string) {
	c, other := claim{newVolume(), "ext4"}, claim{newVolume(), "ext4"}
	all := backends{n.plugBackend(t, c, bus, 1)}
	n.plug(t, guest.Disk{Volume: other.id, Bus: "virtio"})
	before := written(t, n.FileOf(c.id))
	staged := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() { staged <- n.stage(ctx, c) }()
	for began := time.Now(); written(t, n.FileOf(c.id)) == before && time.Since(began) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	all.hang(t)
	defer all.resume(t)
	err := <-staged
	refused(t, "stage", err, nil, codes.DeadlineExceeded, codes.Unavailable)
	refused(t, "stage again", n.stage(bounded(t), c), []string{c.id}, codes.Aborted, codes.DeadlineExceeded, codes.Unavailable)
	n.use(t, other)
	n.endsAfterKill(t, bus, "backend hangs while mkfs writes", all)
	n.eventually(t, "stage", func() error { return n.stage(bounded(t), c) })
	must(t, "publish", n.publish(n.ctx(t), c))
	n.write(t, c)
	for _, c := range []claim{c, other} {
		must(t, "release", n.release(n.ctx(t), c))
		n.unplug(t, c.id)
	}
	all.stop(t)
}

// endsAfterKill kills the driver, records whether its container ends while the backends hang, and starts it again when they are back.
func (n *node) endsAfterKill(t *testing.T, bus, what string, all backends) {
	t.Helper()
	outcome := "ends at once"
	if !n.killContainer(t) {
		outcome = "ends when the backend is back"
	}
	all.resume(t)
	n.sh(t, fmt.Sprintf("for i in $(seq 600); do [ -e /proc/%d ] || exit 0; usleep 100000; done; exit 1", n.pid))
	n.startInContainer(t)
	recordCase(t, n, bus, what, "Unavailable or DeadlineExceeded; other disks are staged; after SIGKILL the container of the driver "+outcome+"; then staged")
}

// written is how much of a file has been written to.
func written(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	must(t, "read the size of the disk's file", err)
	return info.Sys().(*syscall.Stat_t).Blocks
}

func (n *node) statsOfHung(t *testing.T, c claim) {
	n.wantAnswer(t, c, "NodeGetVolumeStats", "Unavailable", []string{" since "}, func(ctx context.Context) error {
		return csitest.Outcome(n.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: c.id, VolumePath: c.target(), StagingTargetPath: c.staging()}))
	})
}

// wantAnswer wants Unavailable in time.
func (n *node) wantAnswer(t *testing.T, c claim, call, answer string, words []string, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	clock := n.startClock(t)
	err := do(ctx)
	took, starved := clock()
	refused(t, call+", "+c.kind(), err, words, codes.Unavailable)
	if took-starved > answersIn {
		t.Errorf("%s: want an answer within %s, it took %s, in which QEMU waited %s", call, answersIn, took, starved)
	}
	recordHung(t, n, c, call, took, answer)
}

func (n *node) healthOfHung(t *testing.T, c claim) {
	t.Helper()
	clock := n.startClock(t)
	health := n.health(t, c)
	took, starved := clock()
	if !slices.Contains(health, "INACCESSIBLE NotResponding") || took-starved > answersIn {
		t.Errorf("%s: want NotResponding within %s, got %v after %s, in which QEMU waited %s; the counters: %s", c.kind(), answersIn, health, took, starved, n.try("cat /sys/block/[vs]d*/stat"))
	}
	recordHung(t, n, c, "NodeGetVolumeHealth", took, strings.Join(health, ", "))
}

func recordHung(t *testing.T, n *node, c claim, call string, took time.Duration, answer string) {
	record(t, "Calls on a disk whose backend hangs", "Linux | machine | volume | call | took | answer", n.kernel, n.Machine, c.kind(), call, took, answer)
}

// backends are those of several disks.
type backends []*guest.Backend

func (n *node) plugBackend(t *testing.T, c claim, bus string, lun int) *guest.Backend {
	t.Helper()
	b, err := n.Backend(c.id, gib)
	must(t, "start the storage of a volume", err)
	n.plug(t, guest.Disk{Volume: c.id, Bus: bus, LUN: lun, NBD: b.Socket})
	return b
}

func (all backends) hang(t *testing.T) {
	t.Helper()
	for _, b := range all {
		must(t, "stop the storage", b.Hang())
	}
}

func (all backends) resume(t *testing.T) {
	t.Helper()
	for _, b := range all {
		if err := b.Continue(); !errors.Is(err, os.ErrProcessDone) {
			must(t, "continue the storage", err)
		}
	}
}

func (all backends) stop(t *testing.T) {
	t.Helper()
	for _, b := range all {
		must(t, "end the storage", b.Stop())
	}
}

// startInContainer starts the driver as process 1 of a process namespace, as a runtime of containers does. The kernel ends all processes of the
// namespace with it, and it stays until all have ended.
func (n *node) startInContainer(t *testing.T) {
	t.Helper()
	n.sh(t, "rm -f /csi/*")
	n.startDriver(t, []string{"/busybox/unshare", "-p", "-f"}, "--with-topology=false")
}

// killContainer sends SIGKILL and reports whether the container ends within ten seconds.
func (n *node) killContainer(t *testing.T) (ended bool) {
	t.Helper()
	out := n.sh(t, fmt.Sprintf(`kill -9 $(pidof cinder-csi-driver) 2>/dev/null || true
for i in $(seq 100); do [ -e /proc/%d ] || { echo ended; exit; }; usleep 100000; done
for s in /proc/[0-9]*/task/*/stat; do ! grep -q ' D ' $s 2>/dev/null || { cut -c1-60 $s; cat ${s%%stat}stack; }; done`, n.pid))
	if out != "ended" {
		t.Log("the threads that wait:", out)
	}
	return out == "ended"
}

// systemCalls are the numbers of the system calls that threads of the driver are in.
func (n *node) systemCalls(t *testing.T) (calls []string) {
	t.Helper()
	for line := range strings.Lines(n.sh(t, "cat /proc/$(pidof cinder-csi-driver)/task/*/syscall")) {
		if call, _, _ := strings.Cut(line, " "); call != "" {
			if _, err := strconv.Atoi(call); err == nil {
				calls = append(calls, call)
			}
		}
	}
	return calls
}
