package disk

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func list(t *testing.T, b *fakeFinder) []Entry {
	t.Helper()
	disks, err := b.List(t.Context())
	must(t, err)
	return disks
}

func TestListWaitsForAllUnresponsiveDisksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeFinder(t)
		b.plug(t, "vdb", serial, Number{254, 16})
		r := b.watchReads()
		var dead []string
		for _, name := range []string{"vdc", "vdd", "vde", "vdf"} {
			b.plug(t, name, "", Number{254, uint32(name[2]) * 16})
			dead = append(dead, name)
		}
		defer r.Block(dead...)()
		var logged strings.Builder
		b.options.Log = slog.New(slog.NewTextHandler(&logged, nil))
		began := time.Now()
		_, err := b.Find(t.Context(), vol)
		must(t, err)
		if took := time.Since(began); took != serialTimeout {
			t.Errorf("want %s for all of them, got %s", serialTimeout, took)
		}
		if n := strings.Count(logged.String(), "a disk does not report its serial"); n != len(dead) {
			t.Errorf("want a warning for each of them, got %q", logged.String())
		}
	})
}

func TestAnUnresponsiveDiskLeavesTimeForOneThatAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeFinder(t)
		b.plug(t, "vda", "", Number{254, 0})
		b.plug(t, "vdb", serial, Number{254, 16})
		defer b.watchReads().Block("vda")()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.Find(ctx, vol)
		must(t, err)
	})
}

// Before Linux 5.15 the name and the number may be another disk's by now.
func TestWithoutDiskseqTheCachedSerialOfAnUnresponsiveDiskDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeFinder(t)
		b.plug(t, "vdb", serial, Number{254, 16})
		r := b.watchReads()
		_, err := b.Find(t.Context(), vol)
		must(t, err)
		defer r.Block("vdb")()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = b.Find(ctx, vol)
		wantKind(t, err, volume.Unavailable, "vdb (serial", serial, "earlier, no answer since")
	})
}

func TestASerialIsReadAgainIfTheDiskMayBeAnother(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after map[string]string
		asked         int
	}{
		"the kernel says that it is":          {map[string]string{"serial": serial, "diskseq": "7"}, map[string]string{"serial": otherSerial, "diskseq": "8"}, 4},
		"another number":                      {map[string]string{"serial": serial, "diskseq": "7"}, map[string]string{"serial": otherSerial, "dev": "254:48\n"}, 4},
		"a kernel that does not number disks": {map[string]string{"serial": serial}, map[string]string{"serial": otherSerial}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeFinder(t)
			b.Sysfs(t, "vdb", map[string]string{"dev": "254:16\n"})
			b.Sysfs(t, "vdb", c.before)
			b.device("vdb", Number{254, 16})
			r := b.watchReads()
			_, err := b.Find(t.Context(), vol)
			must(t, err)
			b.Sysfs(t, "vdb", c.after)
			number, _ := parseNumber(b.Attribute("vdb", "dev"))
			b.device("vdb", number)
			_, err = b.Find(t.Context(), vol)
			wantKind(t, err, volume.NotFound)
			_, err = b.Find(t.Context(), otherVol)
			must(t, err)
			if n := r.Count("vdb"); n != c.asked {
				t.Errorf("want it asked %d times, got %d", c.asked, n)
			}
		})
	}
}

func TestACachedSerialIsNotReadAgainForOtherVolumes(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	b.plug(t, "vdb", serial, Number{254, 16})
	b.number("vdb", "7")
	r := b.watchReads()
	for range 5 {
		_, err := b.Find(t.Context(), otherVol)
		wantKind(t, err, volume.NotFound, serial)
		list(t, b)
	}
	if n := r.Count("vdb"); n != 1 {
		t.Errorf("want it asked once, got %d times", n)
	}
	must(t, os.RemoveAll(filepath.Join(b.Sys, "block", "vdb")))
	list(t, b)
	if len(b.serials.serials) > 0 {
		t.Errorf("want disks that went away forgotten, got %v", b.serials.serials)
	}
}

// serialFailures are what a read of the serial of a virtio disk gives when the request to the disk fails. It is nothing for EIO, and any other error as it
// is (Linux, drivers/block/virtio_blk.c, serial_show).
var serialFailures = map[string]func(path string) ([]byte, error){
	"EIO": func(string) ([]byte, error) { return nil, nil },
	"ENOMEM": func(path string) ([]byte, error) {
		return nil, &os.PathError{Op: "read", Path: path, Err: syscall.ENOMEM}
	},
}

// failSerial makes reads of the serial of a disk fail.
func (b *fakeFinder) failSerial(name string, fail func(path string) ([]byte, error)) {
	b.options.ReadFile = func(path string) ([]byte, error) {
		if path == filepath.Join(b.Sys, "block", name, "serial") {
			return fail(path)
		}
		return os.ReadFile(path)
	}
}

func TestADiskThatDoesNotSayItsSerialIsNotAnotherDisk(t *testing.T) {
	t.Parallel()
	for name, fail := range serialFailures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeFinder(t)
			b.plug(t, "vdb", serial, Number{254, 16})
			b.number("vdb", "7")
			d, err := b.Find(t.Context(), vol)
			must(t, err)
			b.failSerial("vdb", fail)
			wantKind(t, d.Verify(t.Context()), volume.Unavailable, serial)
			_, err = b.Find(t.Context(), vol)
			wantKind(t, err, volume.Unavailable, serial)
			if cached, err := b.FindCached(t.Context(), vol); cached == nil || err != nil {
				t.Errorf("want it found by its earlier serial, got %v, %v", cached, err)
			}
			if disks := list(t, b); len(disks) != 1 || !disks[0].Serial.IsVolume() {
				t.Errorf("want it listed as a volume, got %+v", disks)
			}
			b.options.ReadFile = os.ReadFile
			_, err = b.Find(t.Context(), vol)
			must(t, err)
		})
	}
}

// An empty serial may be that of a disk without one, such as the root disk of a server. So only an error says that there was no answer.
func TestADiskWhoseSerialCannotBeReadMayBeThatOfAnyVolume(t *testing.T) {
	t.Parallel()
	for _, sequence := range []string{"7", ""} {
		b := newFakeFinder(t)
		b.plug(t, "vdb", serial, Number{254, 16})
		if sequence != "" {
			b.number("vdb", sequence)
		}
		b.failSerial("vdb", serialFailures["ENOMEM"])
		_, err := b.Find(t.Context(), vol)
		wantKind(t, err, volume.Unavailable, "cannot allocate memory")
		if disks, err := b.MayBe(otherVol); err != nil || len(disks) != 1 || disks[0].Number != (Number{254, 16}) {
			t.Errorf("want it among the disks that may be any volume's, got %+v, %v", disks, err)
		}
		b.options.ReadFile = os.ReadFile
		d, err := b.Find(t.Context(), vol)
		must(t, err)
		if disks, err := b.MayBe(otherVol); err != nil || len(disks) != 0 {
			t.Errorf("want it known now, got %+v, %v", disks, err)
		}
		if sequence == "" {
			b.failSerial("vdb", serialFailures["ENOMEM"])
			wantKind(t, d.Verify(t.Context()), volume.Unavailable, "cannot allocate memory")
		}
	}
}

func TestADiskThatIsBeingReadIsNotUnresponsiveYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeFinder(t)
		b.plug(t, "vdb", otherSerial, Number{254, 16})
		r := b.watchReads()
		list(t, b)
		unblock := r.Block("vdb")
		go list(t, b)
		time.Sleep(serialTimeout / 2)
		wantKind(t, b.notFound(vol), volume.NotFound, "vdb (serial", otherSerial+`")`)
		time.Sleep(serialTimeout)
		wantKind(t, b.notFound(vol), volume.Unavailable, "no answer since")
		unblock()
	})
}
