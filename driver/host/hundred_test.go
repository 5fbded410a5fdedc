package host

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// BenchmarkStageAmongHundredDisks stages a volume whose disk has just appeared, on a server where 99 other volumes are in use.
// sysfs and the mount table are files. Programs and disks answer at once, so only the work of the driver counts. It reports medians.
func BenchmarkStageAmongHundredDisks(b *testing.B) {
	for bus, prefix := range map[string]string{"virtio-blk": "vd", "virtio-scsi": "sd"} {
		b.Run(bus, func(b *testing.B) {
			m := testenv.NewMachine(b)
			table := &tableFile{file: m.Path("proc", "self", "mountinfo")}
			must(b, os.MkdirAll(filepath.Dir(table.file), 0o755))
			for n := 1; n < 100; n++ {
				plugForBenchmark(b, m, prefix, n, fmt.Sprintf("%08d-3d4e-4f50-8a6b-7c8d9e0f1a2b", n), n)
				for _, path := range []string{"plugins/kubernetes.io/csi/cinder.csi.openstack.org/%d/globalmount", "pods/%d/volumes/kubernetes.io~csi/pv/mount"} {
					table.others += fmt.Sprintf("%d 1 254:%d / /var/lib/kubelet/"+path+" rw shared:1 - ext4 /dev/x rw\n", 100+n, n, n)
				}
			}
			table.set("")
			tools := &fakeTools{answers: map[string]Result{"blkid": {Stdout: "TYPE=ext4\nUSAGE=filesystem\n"}}}
			o := Options{SysRoot: m.Sys, DevRoot: m.Dev, ProcRoot: m.Path("proc"), Commands: tools, Mounter: table, Log: slog.New(slog.DiscardHandler)}
			h := newHost(o, disk.Options{Open: openForBenchmark}, mount.Options{KernelRelease: func() string { return "6.1" }})
			h.kernel.lock = func(string) (func(), error) { return func() {}, nil }
			spec := StageSpec{Volume: vol, Path: m.Path("staging"), FSType: "ext4"}
			var processor, took []int64
			for b.Loop() {
				table.set("")
				tools.ran = nil
				plugForBenchmark(b, m, prefix, 0, string(vol), 1000+len(took)) // a disk that the driver has not seen
				used, began := processorTime(), time.Now()
				must(b, h.Stage(b.Context(), spec))
				took, processor = append(took, int64(time.Since(began))), append(processor, processorTime()-used)
			}
			slices.Sort(took)
			slices.Sort(processor)
			b.ReportMetric(float64(took[len(took)/2])/1e6, "ms/stage")
			b.ReportMetric(float64(processor[len(processor)/2])/1e6, "cpu-ms/stage")
			b.ReportMetric(0, "ns/op") // of the preparation too
		})
	}
}

// processorTime is what this process has used so far.
func processorTime() int64 {
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used)
	return used.Utime.Nano() + used.Stime.Nano()
}

func plugForBenchmark(b *testing.B, m *testenv.Machine, prefix string, n int, id string, sequence int) {
	files := map[string]string{"dev": fmt.Sprintf("254:%d\n", n), "diskseq": fmt.Sprintf("%d\n", sequence), "serial": id[:20]}
	if prefix == "sd" {
		delete(files, "serial")
		files["device/vpd_pg80"], files["device/rescan"] = "\x00\x80\x00\x24"+id, ""
	}
	m.Sysfs(b, fmt.Sprintf("%s%d", prefix, n), files)
}

// deviceForBenchmark is a disk of zeros that answers INQUIRY as it was plugged.
type deviceForBenchmark struct {
	fakeDevice
	id string
}

func openForBenchmark(path string) (disk.Device, error) {
	var n uint32
	name := strings.TrimLeft(filepath.Base(path), "sdv")
	if _, err := fmt.Sscan(name, &n); err != nil {
		return nil, err
	}
	id := string(vol)
	if n > 0 {
		id = fmt.Sprintf("%08d-3d4e-4f50-8a6b-7c8d9e0f1a2b", n)
	}
	return &deviceForBenchmark{fakeDevice: fakeDevice{number: num(254, n), size: 16 << 20}, id: id}, nil
}

func (d *deviceForBenchmark) Inquire(byte, int) ([]byte, error) {
	return []byte("\x00\x80\x00\x24" + d.id), nil
}

func (d *deviceForBenchmark) ForgetCache() {}

// tableFile is a mount table with the mounts of other volumes, and at most one of the volume.
type tableFile struct {
	file, others string
}

func (f *tableFile) set(own string) {
	if err := os.WriteFile(f.file, []byte(f.others+own), 0o600); err != nil {
		panic(err)
	}
}

func (f *tableFile) Mount(_ context.Context, source, target, fsType string, _ []string) error {
	f.set(fmt.Sprintf("20 1 254:0 / %s rw shared:1 - %s %s rw\n", target, fsType, source))
	return nil
}

func (f *tableFile) Bind(string, string, bool) error {
	return volume.Errorf(volume.Failed, "not in this benchmark")
}

func (f *tableFile) FinishReadOnly(string) (bool, error) { return false, nil }

func (f *tableFile) UnmountTop(string) error { f.set(""); return nil }
