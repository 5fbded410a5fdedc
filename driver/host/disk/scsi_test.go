package disk

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestASCSIDiskIsFoundByWhatItAnswers(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]string{"the ID": string(vol), "cut at 20": serial} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeFinder(t)
			l := b.plugSCSI(t, "sda", s, Number{8, 0})
			b.plugSCSI(t, "sdb", string(otherVol), Number{8, 16})
			d, err := b.Find(t.Context(), vol)
			if err != nil || d.Name != "sda" {
				t.Fatalf("want sda, got %+v, %v", d, err)
			}
			if n := l.Rescans(); n != 0 {
				t.Errorf("want no rescan of a LUN that did not change, got %d", n)
			}
		})
	}
}

// The kernel hears of none of these changes. Without INQUIRY the first search led to the file system of the other volume.
// The second found no disk (QEMU, virtio-scsi with hotplug=off, Linux 6.1).
func TestALUNThatChangedWithoutAnEvent(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"the driver has read the LUN before": true, "the driver has just started": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeFinder(t)
			a := b.plugSCSI(t, "sda", string(vol), Number{8, 0})
			if known {
				list(t, b)
			}
			a.Become(string(otherVol))
			_, err := b.Find(t.Context(), vol)
			wantKind(t, err, volume.NotFound, "sda (serial", string(otherVol))
			d, err := b.Find(t.Context(), otherVol)
			if err != nil || d.Name != "sda" || a.Rescans() != 1 {
				t.Fatalf("want sda after one rescan, got %+v, %v after %d", d, err, a.Rescans())
			}
			if a.Forgets() != 1 { // what the kernel has in memory is of the earlier volume
				t.Errorf("want the cache of the disk dropped once, got %d", a.Forgets())
			}
			wantKind(t, func() error { a.Become(string(vol)); return d.Verify(t.Context()) }(), volume.Conflict, "exchanged")
		})
	}
}

// The kernel has a copy of each page by which a disk says which LUN it is. A disk that answers another page 0x83 is
// another LUN, also if its serial is the same.
func TestBothPagesOfASCSIDiskAreCompared(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]byte{"the serial": 0x80, "the identification": 0x83} {
		b := newFakeFinder(t)
		b.plugSCSI(t, "sda", string(vol), Number{8, 0})
		copied := "\x00\x83\x00\x04abcd"
		b.Sysfs(t, "sda", map[string]string{"device/vpd_pg83": copied})
		answers := map[byte]string{0x80: hosttest.UnitSerial(string(vol)), 0x83: copied}
		b.devices[filepath.Join(b.Dev, "sda")] = nil
		open := b.options.Open
		b.options.Open = func(path string) (Device, error) {
			if filepath.Base(path) == "sda" {
				return answeringSCSI{&fakeDevice{number: Number{8, 0}}, answers}, nil
			}
			return open(path)
		}
		if _, err := b.Find(t.Context(), vol); err != nil {
			t.Fatalf("%s: want the disk found while its answers are the copies, got %v", name, err)
		}
		b.using[filepath.Join(b.Dev, "sda")] = true
		answers[page] = map[byte]string{0x80: hosttest.UnitSerial(string(otherVol)), 0x83: "\x00\x83\x00\x04abce"}[page]
		if d, err := b.Find(t.Context(), vol); err == nil {
			t.Errorf("%s: want a disk that answers otherwise not used, got %s", name, d.Name)
		}
	}
}

type answeringSCSI struct {
	*fakeDevice
	answers map[byte]string
}

func (a answeringSCSI) Inquire(page byte, _ int) ([]byte, error) { return []byte(a.answers[page]), nil }
func (answeringSCSI) ForgetCache()                               {}

func TestAVolumeWhoseLUNMovedIsFoundAtItsNewDisk(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	a := b.plugSCSI(t, "sda", string(vol), Number{8, 0})
	list(t, b)
	a.Become("") // detached
	b.plugSCSI(t, "sdb", string(vol), Number{8, 16})
	d, err := b.Find(t.Context(), vol)
	if err != nil || d.Name != "sdb" {
		t.Errorf("want sdb, got %+v, %v", d, err)
	}
}

func TestAwaitAsksAllDisksBeforeItSaysThatTwoMatch(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	a := b.plugSCSI(t, "sda", string(vol), Number{8, 0})
	list(t, b) // a moment ago
	a.Become(string(otherVol))
	b.plugSCSI(t, "sdb", string(vol), Number{8, 16})
	d, err := b.Await(t.Context(), vol)
	if err != nil || d.Name != "sdb" {
		t.Errorf("want sdb, got %+v, %v", d, err)
	}
}

func TestALUNThatIsGoneHasNoSerial(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	b.plugSCSI(t, "sda", string(vol), Number{8, 0}).Become("")
	_, err := b.Find(t.Context(), vol)
	wantKind(t, err, volume.NotFound, "sda (serial", string(vol), "does not count", "LOGICAL UNIT NOT SUPPORTED")
}

// A mount of sda would give the file system of the earlier volume, which is still mounted.
func TestALUNThatChangedUnderAMountIsNotUsed(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	l := b.plugSCSI(t, "sda", string(otherVol), Number{8, 0})
	b.using[b.Node("sda")] = true
	l.Become(string(vol))
	_, err := b.Find(t.Context(), vol)
	wantKind(t, err, volume.Unavailable, "still in use as the earlier one")
	_, err = b.Find(t.Context(), otherVol)
	wantKind(t, err, volume.Unavailable, "a disk in use was given to another volume")
	if d, err := b.FindCached(t.Context(), otherVol); err != nil || d == nil || d.Name != "sda" {
		t.Errorf("want sda, which the earlier volume uses, got %+v, %v", d, err)
	}
	if d, err := b.FindCached(t.Context(), vol); err != nil || d != nil {
		t.Errorf("want no disk for the volume that nothing uses, got %+v, %v", d, err)
	}
	if l.Rescans() != 0 || l.Forgets() != 0 {
		t.Error("want the copy and the cache of the kernel left as they are: they are of what is mounted")
	}
	b.using[b.Node("sda")] = false
	_, err = b.Find(t.Context(), vol)
	must(t, err)
}

// Its volume may be mounted.
func TestASCSIDiskWithoutAUsableAnswerIsNotMissing(t *testing.T) {
	t.Parallel()
	for name, silence := range map[string]func(*fakeFinder, *hosttest.LUN, error){
		"INQUIRY fails":     func(_ *fakeFinder, l *hosttest.LUN, err error) { l.Silence(err) },
		"it does not open":  func(b *fakeFinder, _ *hosttest.LUN, err error) { b.failOpen("sda", err) },
		"its node is stale": func(b *fakeFinder, _ *hosttest.LUN, _ error) { b.device("sda", Number{8, 16}) },
	} {
		for when, known := range map[string]bool{"the driver has read it before": true, "the driver has just started": false} {
			t.Run(name+", "+when, func(t *testing.T) {
				t.Parallel()
				b := newFakeFinder(t)
				l := b.plugSCSI(t, "sda", string(vol), Number{8, 0})
				if known {
					list(t, b)
				}
				silence(b, l, syscall.ENXIO)
				_, err := b.Find(t.Context(), vol)
				if known && name == "its node is stale" { // found in the cache, and then seen
					wantKind(t, err, volume.Conflict, "stale")
					return
				}
				wantKind(t, err, volume.Unavailable, string(vol))
				l.Silence(nil)
				b.failOpen("sda", nil)
				b.device("sda", Number{8, 0})
				d, err := b.Find(t.Context(), vol)
				if err != nil || d.Name != "sda" {
					t.Errorf("want sda once it answers, got %+v, %v", d, err)
				}
			})
		}
	}
}

func TestADriveWithoutAMediumIsNoVolume(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	b.plugSCSI(t, "sda", "of a card reader", Number{8, 0})
	b.failOpen("sda", syscall.ENOMEDIUM)
	_, err := b.Find(t.Context(), vol)
	wantKind(t, err, volume.NotFound)
}

// Another disk may take the device node of a disk that was pulled out.
func TestVerifyOpensTheDeviceNodeAgain(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	b.plug(t, "vdb", serial, Number{254, 16})
	d, err := b.Find(t.Context(), vol)
	must(t, err)
	must(t, d.Verify(t.Context()))
	b.device("vdb", Number{254, 48})
	wantKind(t, d.Verify(t.Context()), volume.Conflict, "now device 254:48")
	b.failOpen("vdb", syscall.ENXIO)
	wantKind(t, d.Verify(t.Context()), volume.Conflict, "the disk was removed")
}

func TestVerifyOfASCSIDiskWithoutAUsableAnswerIsUnavailable(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	l := b.plugSCSI(t, "sda", string(vol), Number{8, 0})
	d, err := b.Find(t.Context(), vol)
	must(t, err)
	l.Silence(syscall.EBUSY)
	wantKind(t, d.Verify(t.Context()), volume.Unavailable, "does not say which one it is", "device or resource busy")
	l.Become(string(otherVol))
	l.Silence(nil)
	wantKind(t, d.Verify(t.Context()), volume.Conflict, "exchanged")
}

func TestASearchForUsersFindsADiskWithoutAUsableAnswer(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	a := b.plugSCSI(t, "sda", string(vol), Number{8, 0})
	a.Silence(syscall.EBUSY)
	found := func(want string) {
		t.Helper()
		d, err := b.FindCached(t.Context(), vol)
		must(t, err)
		if got := d; (got == nil) != (want == "") || got != nil && got.Name != want {
			t.Errorf("want %q, got %+v", want, got)
		}
	}
	found("sda")
	b.plugSCSI(t, "sdb", string(vol), Number{8, 16})
	found("sdb") // which confirms its serial
	b.plugSCSI(t, "sdc", string(otherVol), Number{8, 32}).Become("")
	d, err := b.FindCached(t.Context(), otherVol)
	if d != nil || err != nil {
		t.Errorf("want no disk whose LUN is gone, got %+v, %v", d, err)
	}
}

func TestAwaitAsksADiskWithoutAUsableAnswerAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeFinder(t)
		l := b.plugSCSI(t, "sda", string(vol), Number{8, 0})
		list(t, b)
		l.Silence(syscall.EBUSY) // between the search and Verify
		time.AfterFunc(5*time.Second, func() { l.Silence(nil) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := b.Await(ctx, vol)
		must(t, err)
	})
}

func TestAWaitFindsALUNThatBecameTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeFinder(t)
		l := b.plugSCSI(t, "sda", string(otherVol), Number{8, 0})
		time.AfterFunc(5*time.Second, func() { l.Become(string(vol)) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := b.Await(ctx, vol)
		must(t, err)
		if took := time.Since(began); took < 5*time.Second || took > 5*time.Second+listAge+pollInterval {
			t.Errorf("want the disk found %s after the change at most, took %s", listAge, took)
		}
	})
}
