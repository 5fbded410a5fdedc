package host

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// reads counts readings of serials, and holds those of disks that hang, as virtio-blk's serial_show does when the disk's backend is gone.
type reads struct {
	mu    sync.Mutex
	count map[string]int
	hung  map[string]chan struct{}
}

func (b *bench) watchReads() *reads {
	r := &reads{count: map[string]int{}, hung: map[string]chan struct{}{}}
	b.readFile = func(path string) ([]byte, error) {
		name, isSerial := strings.CutSuffix(path, "/serial")
		if name = filepath.Base(name); isSerial && name != "device" {
			r.mu.Lock()
			r.count[name]++
			hung := r.hung[name]
			r.mu.Unlock()
			if hung != nil {
				<-hung
			}
		}
		return os.ReadFile(path)
	}
	return r
}

// hang makes disks hang until free is called.
func (r *reads) hang(names ...string) (free func()) {
	until := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		r.hung[name] = until
	}
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, name := range names {
			delete(r.hung, name)
		}
		close(until)
	})
}

func (r *reads) of(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count[name]
}

const (
	otherVol    volume.ID = "b7e2d8c4-19f3-4a6e-9b21-5d1c0e7f3a44"
	otherSerial string    = "b7e2d8c4-19f3-4a6e-9"
)

// number gives a disk the kernel's number, as from Linux 5.15 on.
func (b *bench) number(name, sequence string) {
	b.Sysfs(b.t, name, map[string]string{"diskseq": sequence + "\n"})
}

func TestADiskThatHangsHoldsUpNoOtherVolume(t *testing.T) {
	for name, sequences := range map[string]bool{"Linux 5.15": true, "before": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{})
				b.plug(t, "vdb", serial, Number{254, 16})
				b.plug(t, "vdc", otherSerial, Number{254, 32})
				if sequences {
					b.number("vdb", "7")
					b.number("vdc", "8")
				}
				b.tools.answers["blkid"] = Result{Stdout: "TYPE=ext4\nUSAGE=filesystem\n"}
				b.stat = func(string) (Stats, error) { return Stats{}, nil }
				r := b.watchReads()
				defer r.hang("vdc")()
				staging, pod := b.place("staging"), b.place("pod")
				for i, do := range []func(context.Context) error{
					func(ctx context.Context) error { return b.Stage(ctx, Staging{Volume: vol, Path: staging}) },
					func(ctx context.Context) error {
						return b.Publish(ctx, Publication{Volume: vol, Staging: staging, Target: pod})
					},
					func(ctx context.Context) error {
						_, err := b.Grow(ctx, Growth{Volume: vol, Path: pod})
						return err
					},
					func(ctx context.Context) error { b.Room(ctx, nil); return nil },
					func(ctx context.Context) error {
						found, err := b.Health(ctx, vol, pod)
						if len(found) > 0 {
							t.Errorf("want nothing wrong with the other volume, got %v", found)
						}
						return err
					},
					func(context.Context) error { return b.Unmount(pod) },
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
						want = hearing // and nobody waits for it a second time
					}
					if took := time.Since(began); took != want {
						t.Errorf("step %d: want it to take %s, got %s", i, want, took)
					}
				}
				if n := r.of("vdc"); n != 1 {
					t.Errorf("want the disk that hangs asked once, got %d times", n)
				}
			})
		})
	}
}

func TestDisksThatHangTogetherAreWaitedForTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.plug(t, "vdb", serial, Number{254, 16})
		r := b.watchReads()
		var dead []string
		for _, name := range []string{"vdc", "vdd", "vde", "vdf"} {
			b.plug(t, name, "", Number{254, uint32(name[2]) * 16})
			dead = append(dead, name)
		}
		defer r.hang(dead...)()
		began := time.Now()
		_, err := b.Find(t.Context(), vol)
		must(t, err)
		if took := time.Since(began); took != hearing {
			t.Errorf("want %s for all of them, got %s", hearing, took)
		}
	})
}

func TestADiskThatHangsLeavesTimeForOneThatAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.plug(t, "vda", "", Number{254, 0})
		b.plug(t, "vdb", serial, Number{254, 16})
		defer b.watchReads().hang("vda")()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.Find(ctx, vol)
		must(t, err)
	})
}

func TestWhoseADiskIsThatHangsIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.plug(t, "vdb", serial, Number{254, 16})
		r := b.watchReads()
		free := r.hang("vdb")
		defer free()
		_, err := b.Find(t.Context(), vol)
		wantKind(t, err, volume.Unavailable, "vdb (no answer since")
		found, err := b.Health(t.Context(), vol, b.place("staging"))
		if err != nil || len(found) != 1 || found[0].Reason != "NotResponding" || !strings.Contains(found[0].Message, "vdb (no answer since") {
			t.Errorf("want it reported, got %+v, %v", found, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err = b.Await(ctx, vol)
		wantKind(t, err, volume.DeadlineExceeded, "vdb (no answer since")

		time.AfterFunc(5*time.Second+time.Millisecond, free)
		began := time.Now()
		_, err = b.Await(t.Context(), vol)
		must(t, err)
		if took := time.Since(began); took < 5*time.Second || took > 5*time.Second+time.Millisecond+pollInterval {
			t.Errorf("want the disk found by the next poll after its answer, got it after %s", took)
		}
		if n := r.of("vdb"); n > 3 { // the one that hung, the next look, and before the use
			t.Errorf("want it asked thrice at most, got %d times", n)
		}
	})
}

// Before Linux 5.15 the name and the number may be another disk's by now.
func TestWhatADiskThatHangsSaidBeforeIsNotBelievedWhereDisksHaveNoNumberOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.plug(t, "vdb", serial, Number{254, 16})
		r := b.watchReads()
		_, err := b.Find(t.Context(), vol)
		must(t, err)
		defer r.hang("vdb")()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = b.Find(ctx, vol)
		wantKind(t, err, volume.Unavailable, "vdb (serial", serial, "before, no answer since")
	})
}

func TestAVolumeIsNotUsedWhileItsDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.plug(t, "vdb", serial, Number{254, 16})
		b.number("vdb", "7")
		r := b.watchReads()
		_, err := b.Find(t.Context(), vol)
		must(t, err)
		free := r.hang("vdb")
		defer free()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		wantKind(t, b.Stage(ctx, Staging{Volume: vol, Path: b.place("staging")}), volume.DeadlineExceeded, "does not answer", serial)
		if took := time.Since(began); took != 58*time.Second {
			t.Errorf("want the answer two seconds before the deadline, got it after %s", took)
		}
		if len(b.tools.ran) > 0 || len(b.mounter.table) > 0 {
			t.Errorf("want nothing done, got %q, %v", b.tools.ran, b.mounter.table)
		}
		began = time.Now()
		found, err := b.Health(t.Context(), vol, b.place("staging"))
		if err != nil || len(found) != 1 || found[0].Reason != "NotResponding" || time.Since(began) > statLimit {
			t.Errorf("want it reported within %s, got %+v, %v after %s", statLimit, found, err, time.Since(began))
		}
		free()
		synctest.Wait()
		must(t, b.Stage(t.Context(), Staging{Volume: vol, Path: b.place("staging")}))
	})
}

func TestHealthOfADiskThatCannotEvenBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		d := b.plug(t, "vdb", serial, Number{254, 16})
		var opened atomic.Int32
		free := make(chan struct{})
		d.opened = func() { opened.Add(1); <-free }
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			began := time.Now()
			found, err := b.Health(ctx, vol, b.place("staging"))
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

func TestTheRoomDoesNotChangeWhenDisksHang(t *testing.T) {
	for _, sequences := range []bool{true, false} {
		for _, restarted := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{})
				p := pc(t, b)
				p.plug("0000:00:07.0", "vdb", serial, 16)
				p.plug("0000:00:08.0", "vdc", otherSerial, 32)
				if sequences {
					for i, name := range []string{"vda", "vdb", "vdc"} {
						b.number(name, string(rune('1'+i)))
					}
				}
				r := b.watchReads()
				want := Room{Bus: "virtio", Attached: 1, Free: 23, Foreign: 1}
				foreign := []volume.ID{otherVol}
				if restarted {
					want.Attached, want.Foreign, foreign = 2, 0, nil // whose a disk is that never answered nobody knows
				} else if diff := cmp.Diff(want, b.Room(t.Context(), foreign)); diff != "" {
					t.Errorf("before (-want +got):\n%s", diff)
				}
				defer r.hang("vda", "vdb", "vdc")()
				for range 3 {
					if diff := cmp.Diff(want, b.Room(t.Context(), foreign)); diff != "" {
						t.Errorf("while they hang, diskseq %t, restarted %t (-want +got):\n%s", sequences, restarted, diff)
					}
				}
			})
		}
	}
}

func TestADiskIsAskedAgainWhenItMayBeAnother(t *testing.T) {
	t.Parallel()
	scsi := func(serial string) map[string]string { return map[string]string{"device/vpd_pg80": page80(serial)} }
	for name, c := range map[string]struct {
		before, after map[string]string
		asked         int
	}{
		"the kernel says that it is":              {map[string]string{"serial": serial, "diskseq": "7"}, map[string]string{"serial": otherSerial, "diskseq": "8"}, 4},
		"another number":                          {map[string]string{"serial": serial, "diskseq": "7"}, map[string]string{"serial": otherSerial, "dev": "254:48\n"}, 4},
		"a kernel that does not number disks":     {map[string]string{"serial": serial}, map[string]string{"serial": otherSerial}, 5},
		"a LUN that was given to another volume":  {scsi(string(vol)), scsi(string(otherVol)), 5},
		"a numbered LUN that was given to others": {map[string]string{"device/vpd_pg80": page80(string(vol)), "diskseq": "7"}, scsi(string(otherVol)), 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, Options{})
			b.Sysfs(t, "vdb", map[string]string{"dev": "254:16\n"})
			b.Sysfs(t, "vdb", c.before)
			b.device("vdb", Number{254, 16})
			r := b.watchReads()
			_, err := b.Find(t.Context(), vol)
			must(t, err)
			b.Sysfs(t, "vdb", c.after)
			number, _ := parseNumber(b.attribute("vdb", "dev"))
			b.device("vdb", number)
			_, err = b.Find(t.Context(), vol)
			wantKind(t, err, volume.NotFound)
			_, err = b.Find(t.Context(), otherVol)
			must(t, err)
			if n := r.of("vdb"); n != c.asked {
				t.Errorf("want it asked %d times, got %d", c.asked, n)
			}
		})
	}
}

func TestADiskThatSaidItsSerialIsNotAskedByWhoLooksForOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.plug(t, "vdb", serial, Number{254, 16})
	b.number("vdb", "7")
	r := b.watchReads()
	for range 5 {
		_, err := b.Find(t.Context(), otherVol)
		wantKind(t, err, volume.NotFound, serial)
		b.Room(t.Context(), nil)
	}
	if n := r.of("vdb"); n != 1 {
		t.Errorf("want it asked once, got %d times", n)
	}
	must(t, os.RemoveAll(filepath.Join(b.Sys, "block", "vdb")))
	b.Room(t.Context(), nil)
	if len(b.labels.said) > 0 {
		t.Errorf("want disks that went away forgotten, got %v", b.labels.said)
	}
}

func TestADiskThatAnswersWithNothingForOnceIsStillAVolume(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.plug(t, "vdb", serial, Number{254, 16})
	b.number("vdb", "7")
	_, err := b.Find(t.Context(), vol)
	must(t, err)
	b.Sysfs(t, "vdb", map[string]string{"serial": ""}) // as virtio-blk says when the request failed
	_, err = b.Find(t.Context(), vol)
	wantKind(t, err, volume.Conflict, serial)
	if r := b.Room(t.Context(), nil); r.Attached != 1 {
		t.Errorf("want it counted, got %+v", r)
	}
	b.Sysfs(t, "vdb", map[string]string{"serial": serial})
	_, err = b.Find(t.Context(), vol)
	must(t, err)
}

func TestADiskThatHangsIsNotTakenForAConfigDrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.plug(t, "vdb", "", Number{254, 16})
		b.plug(t, "vdc", "", Number{254, 32})
		defer b.watchReads().hang("vdc")()
		paths, err := b.configDrives(t.Context())
		if want := []string{filepath.Join(b.Dev, "vdb")}; err != nil || !slices.Equal(paths, want) {
			t.Errorf("want %v, got %v, %v", want, paths, err)
		}
	})
}

func TestADiskThatIsBeingAskedIsNotSilentYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.plug(t, "vdb", otherSerial, Number{254, 16})
		r := b.watchReads()
		b.Room(t.Context(), nil)
		free := r.hang("vdb")
		go b.Room(t.Context(), nil)
		time.Sleep(hearing / 2)
		wantKind(t, b.missing(vol), volume.NotFound, "vdb (serial", otherSerial+`")`)
		time.Sleep(hearing)
		wantKind(t, b.missing(vol), volume.Unavailable, "no answer since")
		free()
	})
}

func TestAVolumeWhoseDiskHangsIsUnstaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.plug(t, "vdb", serial, Number{254, 16})
		b.number("vdb", "7")
		r := b.watchReads()
		must(t, b.Stage(t.Context(), Staging{Volume: vol, Path: b.place("staging")}))
		b.mounter.add(Mount{Device: Number{254, 16}, Path: "/elsewhere", FSType: "ext4", Source: "/dev/vdb", Options: []string{"rw"}})
		defer r.hang("vdb")()
		began := time.Now()
		wantKind(t, b.Unstage(t.Context(), vol, b.place("staging")), volume.Busy, "/elsewhere")
		must(t, b.mounter.Unmount("/elsewhere"))
		must(t, b.Unstage(t.Context(), vol, b.place("staging")))
		if took := time.Since(began); took != 0 {
			t.Errorf("want nobody to wait for the disk, took %s", took)
		}
	})
}
