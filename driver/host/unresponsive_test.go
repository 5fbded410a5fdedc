package host

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// watchReads counts the reads of serials, and can block them.
func (b *fakeHost) watchReads() *hosttest.SerialReads {
	r := hosttest.NewSerialReads()
	b.readSerial = r.ReadFile
	return r
}

const unresponsiveAfter = 2 * time.Second // package disk waits so long for a serial

// number gives a disk its diskseq, as the kernel does from Linux 5.15 on.
func (b *fakeHost) number(name, sequence string) {
	b.Sysfs(b.t, name, map[string]string{"diskseq": sequence + "\n"})
}

func TestAnUnresponsiveDiskDelaysNoOtherVolume(t *testing.T) {
	for name, sequences := range map[string]bool{"Linux 5.15": true, "before": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFakeHost(t)
				b.plug(t, "vdb", serial, num(254, 16))
				b.plug(t, "vdc", otherSerial, num(254, 32))
				if sequences {
					b.number("vdb", "7")
					b.number("vdc", "8")
				}
				b.tools.answers["blkid"] = Result{Stdout: "TYPE=ext4\nUSAGE=filesystem\n"}
				b.kernel.stat = func(string) (Stats, error) { return Stats{}, nil }
				r := b.watchReads()
				defer r.Block("vdc")()
				staging, pod := b.kubelet("staging"), b.kubelet("pod")
				for i, do := range []func(context.Context) error{
					func(ctx context.Context) error { return b.Stage(ctx, StageSpec{Volume: vol, Path: staging}) },
					func(ctx context.Context) error {
						return b.Publish(ctx, PublishSpec{Volume: vol, Staging: staging, Target: pod})
					},
					func(ctx context.Context) error {
						_, err := b.Expand(ctx, ExpandSpec{Volume: vol, Path: pod})
						return err
					},
					func(ctx context.Context) error { b.AttachCapacity(ctx, nil); return nil },
					func(ctx context.Context) error {
						found, err := b.Health(ctx, vol, pod)
						if len(found) > 0 {
							t.Errorf("want nothing wrong with the other volume, got %v", found)
						}
						return err
					},
					func(context.Context) error { return b.Unpublish(t.Context(), pod) },
					func(ctx context.Context) error { return b.Unstage(ctx, vol, staging) },
				} {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					began := time.Now()
					if err := do(ctx); err != nil {
						t.Errorf("step %d: %v", i, err)
					}
					cancel()
					want := time.Duration(0)
					if i == 0 {
						want = unresponsiveAfter // and nothing waits for it a second time
					}
					if took := time.Since(began); took != want {
						t.Errorf("step %d: want it to take %s, got %s", i, want, took)
					}
				}
				if n := r.Count("vdc"); n != 1 {
					t.Errorf("want the unresponsive disk read once, got %d times", n)
				}
			})
		})
	}
}

func TestTheVolumeOfAnUnresponsiveDiskIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeHost(t)
		b.plug(t, "vdb", serial, num(254, 16))
		r := b.watchReads()
		unblock := r.Block("vdb")
		defer unblock()
		_, err := b.disks.Find(t.Context(), vol)
		wantKind(t, err, volume.Unavailable, "vdb (no answer since")
		found, err := b.Health(t.Context(), vol, b.kubelet("staging"))
		if err != nil || len(found) != 1 || found[0].Reason != "NotResponding" || !strings.Contains(found[0].Message, "vdb (no answer since") {
			t.Errorf("want it reported, got %+v, %v", found, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err = b.disks.Await(ctx, vol)
		wantKind(t, err, volume.DeadlineExceeded, "vdb (no answer since")

		time.AfterFunc(5*time.Second+time.Millisecond, unblock)
		began := time.Now()
		_, err = b.disks.Await(t.Context(), vol)
		must(t, err)
		if took := time.Since(began); took < 5*time.Second || took > 5*time.Second+time.Millisecond+200*time.Millisecond {
			t.Errorf("want the disk found by the next poll after its answer, got it after %s", took)
		}
		if n := r.Count("vdb"); n > 3 { // the one that blocked, the next poll, and before the use
			t.Errorf("want it read three times at most, got %d times", n)
		}
	})
}

func TestAVolumeWithAnUnresponsiveDiskIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeHost(t)
		b.plug(t, "vdb", serial, num(254, 16))
		b.number("vdb", "7")
		r := b.watchReads()
		_, err := b.disks.Find(t.Context(), vol)
		must(t, err)
		unblock := r.Block("vdb")
		defer unblock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		wantKind(t, b.Stage(ctx, StageSpec{Volume: vol, Path: b.kubelet("staging")}), volume.DeadlineExceeded, "has not answered", serial)
		if took := time.Since(began); took != 58*time.Second {
			t.Errorf("want the answer two seconds before the deadline, got it after %s", took)
		}
		if len(b.tools.ran) > 0 || len(b.mounter.table) > 0 {
			t.Errorf("want nothing done, got %q, %v", b.tools.ran, b.mounter.table)
		}
		began = time.Now()
		found, err := b.Health(t.Context(), vol, b.kubelet("staging"))
		if err != nil || len(found) != 1 || found[0].Reason != "NotResponding" || time.Since(began) > statsTimeout {
			t.Errorf("want it reported within %s, got %+v, %v after %s", statsTimeout, found, err, time.Since(began))
		}
		unblock()
		synctest.Wait()
		must(t, b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("staging")}))
	})
}

func TestHealthOfADiskThatCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeHost(t)
		d := b.plug(t, "vdb", serial, num(254, 16))
		var opened atomic.Int32
		free := make(chan struct{})
		d.opened = func() { opened.Add(1); <-free }
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			began := time.Now()
			found, err := b.Health(ctx, vol, b.kubelet("staging"))
			if err != nil || len(found) != 1 || found[0].Reason != "NotResponding" || time.Since(began) >= 5*time.Second {
				t.Errorf("want it reported before the deadline, got %+v, %v", found, err)
			}
			cancel()
		}
		if n := opened.Load(); n != 1 {
			t.Errorf("want it opened by one, got %d", n)
		}
		close(free)
	})
}

func TestAVolumeWithAnUnresponsiveDiskIsUnstaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeHost(t)
		b.plug(t, "vdb", serial, num(254, 16))
		b.number("vdb", "7")
		r := b.watchReads()
		must(t, b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("staging")}))
		b.mounter.add(Entry{Device: num(254, 16), Path: "/elsewhere", FSType: "ext4", Source: "/dev/vdb", Options: []string{"rw"}})
		defer r.Block("vdb")()
		began := time.Now()
		wantKind(t, b.Unstage(t.Context(), vol, b.kubelet("staging")), volume.Busy, "/elsewhere")
		must(t, b.mounter.UnmountTop("/elsewhere"))
		must(t, b.Unstage(t.Context(), vol, b.kubelet("staging")))
		if took := time.Since(began); took != 0 {
			t.Errorf("want no wait for the disk, took %s", took)
		}
	})
}

// A fresh driver knows no serial. While one does not come, its disk may be that of the volume: it must not be detached under a mount.
func TestUnstageAfterARestartWaitsForTheSerialOfADiskInUse(t *testing.T) {
	for name, silence := range map[string]func(b *fakeHost) (answer func()){
		"no answer": func(b *fakeHost) func() { return b.watchReads().Block("vdb") },
		"an error": func(b *fakeHost) func() {
			b.readSerial = func(path string) ([]byte, error) {
				if filepath.Base(path) == "serial" {
					return nil, unix.ENOMEM
				}
				return os.ReadFile(path)
			}
			return func() { b.readSerial = os.ReadFile }
		},
		"a disk that cannot be opened": func(b *fakeHost) func() {
			open := b.open
			b.open = func(string) (disk.Device, error) { return nil, unix.EIO }
			return func() { b.open = open }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFakeHost(t)
				b.plug(t, "vdb", serial, num(254, 16))
				b.number("vdb", "7")
				b.mounter.add(Entry{Device: num(254, 16), Path: "/elsewhere", FSType: "ext4", Source: "/dev/vdb", Options: []string{"rw"}})
				answer := silence(b)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				wantKind(t, b.Unstage(ctx, vol, b.kubelet("staging")), volume.Unavailable, "vdb", "/elsewhere")
				answer()
				synctest.Wait()
				wantKind(t, b.Unstage(ctx, vol, b.kubelet("staging")), volume.Busy, "/elsewhere")
				must(t, b.mounter.UnmountTop("/elsewhere"))
				defer silence(b)()
				must(t, b.Unstage(ctx, vol, b.kubelet("staging"))) // without a mount it may go
			})
		})
	}
}
