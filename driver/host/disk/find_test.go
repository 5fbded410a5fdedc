package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var page80 = hosttest.UnitSerial

func TestFindByTheSerialOnEveryBus(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"virtio, cut at 20":          {"serial": serial},
		"virtio, with a newline":     {"serial": serial + "\n"},
		"NVMe, padded with blanks":   {"device/serial": serial + "                    \n"},
		"VMware's naa of the digits": {"device/wwid": "naa.0a9f1b2c3d4e4f508a6b7c8d9e0f1a2b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeFinder(t)
			b.Sysfs(t, "vda", map[string]string{"dev": "254:0\n"}) // the root disk has no serial
			b.Sysfs(t, "vdb", files)
			b.Sysfs(t, "vdb", map[string]string{"dev": "254:16\n"})
			b.device("vdb", Number{254, 16})
			d, err := b.Find(t.Context(), vol)
			if err != nil {
				t.Fatal(err)
			}
			if d.Name != "vdb" || d.Number != (Number{254, 16}) || d.Path != filepath.Join(b.Dev, "vdb") {
				t.Errorf("want vdb, got %+v", d)
			}
		})
	}
}

func TestFindIgnoresDisksOfOtherVolumes(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"no serial":            {"serial": ""},
		"shorter than 20":      {"serial": serial[:19]},
		"more than 20, not 36": {"serial": serial + "a"},
		"another volume":       {"serial": "1a9f1b2c-3d4e-4f50-8"},
		"page 0x83":            {"device/vpd_pg80": "\x00\x83\x00\x24" + string(vol)},
		"half a page":          {"device/vpd_pg80": "\x00\x80\x00"},
		"page with short body": {"device/vpd_pg80": "\x00\x80\x00\x05" + string(vol)},
		"wwid of another kind": {"device/wwid": "t10.0a9f1b2c3d4e4f508a6b7c8d9e0f1a2b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeFinder(t)
			b.Sysfs(t, "vdb", files)
			b.Sysfs(t, "vdb", map[string]string{"dev": "254:16"})
			b.device("vdb", Number{254, 16})
			_, err := b.Find(t.Context(), vol)
			wantKind(t, err, volume.NotFound, string(vol), "vdb (serial")
		})
	}
}

func TestAnIDThatIsNotAUUIDHasNoDisk(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	b.plug(t, "vdb", "", Number{254, 16})
	b.plugSCSI(t, "sda", "short", Number{8, 0}) // a serial that such an ID would match
	b.plug(t, "vdc", "../../../../../../..", Number{254, 32})
	for _, id := range []volume.ID{"", "short", volume.ID(serial), vol + "x", "0a9f1b2c-3d4e-4f50-8a6b-7c8d9e0f1a2g", "0a9f1b2c-3d4e-4f50-8a6b+7c8d9e0f1a2b", "../../../../../../../../etc/passwd-x"} {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, search := range []func(context.Context, volume.ID) (*Disk, error){b.Find, b.Await} { // at once: nothing that they wait for could come
			_, err := search(ended, id)
			wantKind(t, err, volume.NotFound, "UUID")
		}
	}
}

func TestThePathsToANVMeDiskAreNotListed(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	for name, hidden := range map[string]string{"nvme0c0n1": "1\n", "nvme0c1n1": "1\n", "nvme0n1": "0\n"} {
		b.Sysfs(t, name, map[string]string{"device/serial": serial + "\n", "device/nvme0/transport": "pcie\n", "device/nvme1/transport": "pcie\n", "hidden": hidden})
	}
	b.Sysfs(t, "nvme0n1", map[string]string{"dev": "259:1\n"})
	b.device("nvme0n1", Number{259, 1})
	disk, err := b.Find(t.Context(), vol)
	if err != nil || disk.Name != "nvme0n1" {
		t.Fatalf("want the disk that the paths make, got %+v, %v", disk, err)
	}
	must(t, disk.Close())
	if disks, err := b.List(t.Context()); err != nil || len(disks) != 1 {
		t.Errorf("want one disk listed, got %+v, %v", disks, err)
	}
}

func TestTwoDisksOfOneSerialAreRefused(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	b.plug(t, "vdb", serial, Number{254, 16})
	b.plug(t, "vdc", serial, Number{254, 32})
	_, err := b.Await(t.Context(), vol)
	wantKind(t, err, volume.Conflict, "vdb (254:16", "vdc (254:32", serial)
}

func TestADeviceNodeOfAnotherDiskIsRefused(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	b.plug(t, "vdb", serial, Number{254, 16})
	b.device("vdb", Number{254, 48})
	_, err := b.Await(t.Context(), vol)
	wantKind(t, err, volume.Conflict, "254:48", "254:16", serial)
}

func TestADiskExchangedWhileItIsOpenedIsRefused(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	d := b.plug(t, "vdb", serial, Number{254, 16})
	d.opened = func() { b.Sysfs(t, "vdb", map[string]string{"serial": "b7e2d8c4-19f3-4a6e-9"}) }
	_, err := b.Await(t.Context(), vol)
	wantKind(t, err, volume.Conflict, "b7e2d8c4-19f3-4a6e-9", "exchanged")
}

func TestAwaitReturnsADiskThatAppearsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeFinder(t)
		b.Sysfs(t, "vdb", map[string]string{"serial": serial}) // its number and node are still to come
		go func() {
			time.Sleep(7 * time.Second)
			b.Sysfs(t, "vdb", map[string]string{"dev": "254:16"})
			time.Sleep(2 * time.Second)
			b.device("vdb", Number{254, 16})
		}()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := b.Await(ctx, vol); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 9*time.Second || took > 9*time.Second+pollInterval {
			t.Errorf("want the disk found by the next poll, took %s", took)
		}
	})
}

func TestAwaitListsTheDisksBeforeItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeFinder(t)
		b.plug(t, "vdc", "b7e2d8c4-19f3-4a6e-9", Number{254, 32})
		b.plug(t, "vdd", "WD-WX11D1234567", Number{254, 48}) // of the hardware: tenants read events
		scan := filepath.Join(b.Sys, "class", "scsi_host", "host0", "scan")
		testfile.Write(t, scan, "", 0o600)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := b.Await(ctx, vol)
		wantKind(t, err, volume.DeadlineExceeded, string(vol), `vdc (serial "b7e2d8c4-19f3-4a6e-9"), vdd (serial "not of a volume")`)
		if took := time.Since(began); took != 58*time.Second {
			t.Errorf("want the answer two seconds before the deadline, got it after %s", took)
		}
		if text, _ := os.ReadFile(scan); string(text) != "- - -" {
			t.Errorf("want the SCSI hosts rescanned, got %q", text)
		}
	})
}

func TestNoSecondScanStartsWhileOneIsStuck(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	scan := filepath.Join(b.Sys, "class", "scsi_host", "host0", "scan")
	must(t, os.MkdirAll(filepath.Dir(scan), 0o755))
	must(t, unix.Mkfifo(scan, 0o600)) // a write to it waits until it is read
	for range 3 {
		b.startRescan()
	}
	asked, err := os.ReadFile(scan)
	if err != nil || string(asked) != "- - -" {
		t.Errorf("want one scan, got %q, %v", asked, err)
	}
	for b.scanning.Load() {
		runtime.Gosched()
	}
	b.startRescan()
	if asked, err = os.ReadFile(scan); err != nil || string(asked) != "- - -" {
		t.Errorf("want a scan again when the first has ended, got %q, %v", asked, err)
	}
}

func TestAwaitEndsAtOnceWhenItsContextIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeFinder(t)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3500*time.Millisecond, cancel)
		began := time.Now()
		_, err := b.Await(ctx, vol)
		wantKind(t, err, volume.Canceled, "this server has no disks")
		if took := time.Since(began); took != 3500*time.Millisecond {
			t.Errorf("want the answer at the cancellation, got it after %s", took)
		}
	})
}

func TestOfAnNVMeDiskTheWholeSerialCounts(t *testing.T) {
	t.Parallel()
	twin := volume.ID(serial + "a6b-ffffffffffff") // the first 20 characters are vol's
	nvme := func(nqn string) map[string]string {
		return map[string]string{"device/serial": serial + "    \n", "device/subsysnqn": nqn + "\n", "device/transport": "pcie\n"}
	}
	b := newFakeFinder(t)
	b.Sysfs(t, "nvme0n1", nvme("nqn.2019-08.org.qemu:"+string(vol)))
	b.Sysfs(t, "nvme0n1", map[string]string{"dev": "259:0"})
	b.Sysfs(t, "nvme1n1", nvme("nqn.2019-08.org.qemu:"+string(twin)))
	b.Sysfs(t, "nvme1n1", map[string]string{"dev": "259:1"})
	b.device("nvme0n1", Number{259, 0})
	b.device("nvme1n1", Number{259, 1})
	for id, want := range map[volume.ID]string{vol: "nvme0n1", twin: "nvme1n1"} {
		d, err := b.Find(t.Context(), id)
		if err != nil || d.Name != want {
			t.Errorf("%s: want %s, got %+v, %v", id, want, d, err)
		}
	}
	b.Sysfs(t, "nvme1n1", nvme("nqn.2014-08.org.nvmexpress:uuid:"+string(twin))) // a name of somebody else's says nothing
	_, err := b.Find(t.Context(), vol)
	wantKind(t, err, volume.Conflict, "nvme0n1", "nvme1n1")
}

func FuzzUnitSerial(f *testing.F) {
	f.Add([]byte(page80(string(vol))))
	f.Add([]byte{0, 0x80, 0xff, 0xff})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, page []byte) {
		if s := unitSerial(page); len(s) > len(page) {
			t.Errorf("%d bytes of serial from %d bytes of page", len(s), len(page))
		}
		worldWideSerial(page)
	})
}

func FuzzSysfsTree(f *testing.F) {
	f.Add("vdb", []byte(serial), []byte(nil), []byte(nil), []byte("254:16\n"))
	f.Add("sda", []byte(nil), []byte(page80(string(vol))), []byte("naa.0a9f1b2c3d4e4f508a6b7c8d9e0f1a2b"), []byte("8:0"))
	f.Add("nvme0n1", []byte(nil), []byte(nil), []byte("nqn.2019-08.org.qemu:"+string(vol)), []byte("259:-1"))
	dir := f.TempDir()
	h := NewFinder(Options{SysRoot: dir, DevRoot: filepath.Join(dir, "dev")})
	f.Fuzz(func(t *testing.T, name string, plain, page, text, number []byte) {
		if filepath.Base(name) != name || name == "." || name == ".." || name == "/" || strings.ContainsRune(name, 0) || len(name) > 200 {
			return
		}
		place := filepath.Join(dir, "devices", "pci0000:00", "block")
		must(t, errors.Join(os.RemoveAll(filepath.Join(dir, "block")), os.RemoveAll(place), os.MkdirAll(filepath.Join(dir, "block"), 0o755)))
		must(t, os.Symlink(filepath.Join("..", "devices", "pci0000:00", "block", name), filepath.Join(dir, "block", name)))
		for file, content := range map[string][]byte{
			"serial": plain, "device/vpd_pg80": page, "device/serial": plain, "device/wwid": text, "device/subsysnqn": text, "dev": number,
		} {
			path := filepath.Join(place, name, file)
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.WriteFile(path, content, 0o600))
		}
		disks, err := h.List(t.Context())
		must(t, err)
		if len(disks) != 1 {
			t.Fatalf("want one disk, got %+v", disks)
		}
		if s, ok := disks[0].Serial.Match(vol); ok && !isSerialOf(s, vol) {
			t.Errorf("disk with serial %q taken for volume %s", s, vol)
		}
		if _, err := h.Find(t.Context(), vol); err == nil {
			t.Error("a disk without a device node was found")
		}
	})
}

func TestTheBusIsScannedInTimeForItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for left, want := range map[time.Duration]time.Duration{4 * time.Second: 2 * time.Second, time.Hour: rescanAfter} {
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			if got := rescanDelay(ctx); got != want {
				t.Errorf("with %s left: want %s, got %s", left, want, got)
			}
		}
		if got := rescanDelay(t.Context()); got != rescanAfter {
			t.Errorf("a caller without a deadline: want %s, got %s", rescanAfter, got)
		}
	})
}

// A tenant writes the partition table and the headers of LVM, too, and udev tells the kernel about a btrfs in each.
func TestWhatTheMachineMadeOfAVolumeAreNodesOfIt(t *testing.T) {
	b := newFakeFinder(t)
	b.Sysfs(t, "vdb", map[string]string{
		"dev": "252:16\n", "serial": serial + "\n", "vdb1/partition": "1\n", "vdb1/dev": "252:17\n",
		"holders/dm-0/dev": "", "vdb1/holders/md0/dev": "",
	})
	b.Sysfs(t, "dm-0", map[string]string{"dev": "253:0\n", "holders/dm-1/dev": ""})
	b.Sysfs(t, "dm-1", map[string]string{"dev": "253:1\n"})
	b.Sysfs(t, "dm-2", map[string]string{"dev": "253:2\n"}) // of the machine's own disk
	b.Sysfs(t, "md0", map[string]string{"dev": "9:0\n", "md0p1/partition": "1\n"})
	b.Sysfs(t, "loop0", map[string]string{"dev": "7:0\n", "loop/backing_file": "/dev/vdb\n", "loop0p1/partition": "1\n"})
	b.Sysfs(t, "loop1", map[string]string{"dev": "7:1\n"}) // free
	b.List(t.Context())
	var want []string
	for _, name := range []string{"dm-0", "dm-1", "loop0", "loop0p1", "md0", "md0p1", "vdb", "vdb1"} {
		want = append(want, b.Node(name))
	}
	if diff := cmp.Diff(want, b.VolumeNodes()); diff != "" {
		t.Error(diff)
	}
}
