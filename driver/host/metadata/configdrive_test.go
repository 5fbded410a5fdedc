package metadata

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestAnUnresponsiveDiskDelaysTheNextSourceForALimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeServer(t, Options{SearchOrder: []string{ConfigDrive, MetadataService}, Transport: &fakeService{answers: []func(*http.Request) (*http.Response, error){says(200, metaData)}}})
		b.plug(t, "sr0", "", num(11, 0))
		answer := make(chan struct{})
		b.open = func(string) (disk.Device, error) { <-answer; return nil, fs.ErrNotExist }
		began := time.Now()
		got, err := b.Server(t.Context())
		if took := time.Since(began); err != nil || got.Source != MetadataService || took != configDriveTimeout {
			t.Errorf("want the metadata service's answer after %s, got %+v, %v after %s", configDriveTimeout, got, err, took)
		}
		close(answer)
	})
}

func TestAnUnresponsiveDiskIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeServer(t, Options{SearchOrder: []string{ConfigDrive}})
		b.plug(t, "sr0", "", num(11, 0))
		answer := make(chan struct{})
		var asked atomic.Int32
		b.open = func(string) (disk.Device, error) { asked.Add(1); <-answer; return nil, fs.ErrNotExist }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.Server(ctx)
		wantKind(t, err, volume.DeadlineExceeded, "has not answered")
		for range 3 {
			_, err := b.Server(t.Context())
			wantKind(t, err, volume.Unavailable, "earlier search")
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("read %d times, and each read blocks a thread", n)
		}
		close(answer)
		synctest.Wait()
		_, err = b.Server(t.Context())
		if n := asked.Load(); n != 2 {
			t.Errorf("want it read again once it answers, got %d times, %v", n, err)
		}
	})
}

// image unpacks a config drive of testdata.
func image(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "configdrive", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

var images = []string{"rockridge.iso", "joliet.iso", "plain.iso", "fat12.img", "fat16.img", "fat32.img"}

// Where the driver parses an image itself, and where the kernel mounts it.
func TestTheConfigDriveIsRead(t *testing.T) {
	t.Parallel()
	for _, name := range images {
		isFAT := strings.HasPrefix(name, "fat")
		for _, c := range []struct {
			node      string // device node
			disk      string // in sysfs
			partition bool
			size      volume.Size
			found     bool
		}{
			{node: "sr0", disk: "sr0", size: fatLimit, found: true},
			{node: "vdb", disk: "vdb", size: fatLimit, found: true},
			{node: "sda2", disk: "sda", partition: true, size: fatLimit, found: !isFAT},
			{node: "vdb", disk: "vdb", size: fatLimit + 512, found: !isFAT},
		} {
			t.Run(fmt.Sprintf("%s on %s with %d bytes", name, c.node, c.size), func(t *testing.T) {
				t.Parallel()
				b := newFakeServer(t, Options{SearchOrder: []string{ConfigDrive}})
				b.plug(t, "vda", "", num(254, 0))
				file := "dev"
				if c.partition {
					file = c.node + "/partition"
				}
				b.Sysfs(t, c.disk, map[string]string{file: "2\n"})
				d := b.device(c.node, num(11, 0))
				d.contents, d.size = image(t, name), c.size
				got, err := b.Server(t.Context())
				if c.found {
					if want := from(ConfigDrive); err != nil || got != want {
						t.Errorf("want %+v, got %+v, %v", want, got, err)
					}
				} else {
					wantKind(t, err, volume.Unavailable, b.disks.Node(c.node), "it has the label config-2 and a FAT file system", "a whole disk of at most 64 MiB")
				}
				var want []string
				if isFAT && c.found {
					want = []string{b.disks.Node(c.node)}
				}
				if !slices.Equal(b.mounted, want) {
					t.Errorf("want %q mounted, got %q", want, b.mounted)
				}
			})
		}
	}
}

// The kernel of the test machine may lack vfat, so the error shows which step failed.
func TestReadFATNamesTheDevice(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "drive")
	must(t, os.WriteFile(file, make([]byte, 4096), 0o600))
	_, err := readFAT(file)
	wantKind(t, err, volume.Unavailable, "mount the config drive "+file, "5.2")
}

func TestAVolumeIsNeverAConfigDrive(t *testing.T) {
	t.Parallel()
	for _, s := range []string{serial, string(vol)} {
		b := newFakeServer(t, Options{SearchOrder: []string{ConfigDrive}})
		for _, name := range []string{"rockridge.iso", "fat16.img"} {
			b.plug(t, "vdb", s, num(254, 16)).contents = image(t, name)
			_, err := b.Server(t.Context())
			wantKind(t, err, volume.Unavailable, "no disk of this server has the label config-2")
		}
		if len(b.mounted) > 0 {
			t.Errorf("want nothing mounted, got %q", b.mounted)
		}
	}
}

// A pod chooses what an iSCSI disk holds, and could give the node any server ID.
func TestADiskThatAPodConnectedIsNoConfigDrive(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"rockridge.iso", "fat16.img"} {
		b := newFakeServer(t, Options{SearchOrder: []string{ConfigDrive}})
		b.plug(t, "sda", "", num(8, 0)).contents = image(t, name)
		b.Place(t, "sda", "platform/host2/session1/target2:0:0/2:0:0:0")
		_, err := b.Server(t.Context())
		wantKind(t, err, volume.Unavailable, "no disk of this server has the label config-2")
		if len(b.mounted) > 0 {
			t.Errorf("want nothing mounted, got %q", b.mounted)
		}
	}
}

func TestADamagedConfigDriveIsNamed(t *testing.T) {
	t.Parallel()
	b := newFakeServer(t, Options{SearchOrder: []string{ConfigDrive}})
	b.plug(t, "vdb", "", num(254, 16)).contents = image(t, "rockridge.iso")[:40<<10]
	_, err := b.Server(t.Context())
	wantKind(t, err, volume.Unavailable, b.disks.Node("vdb"))
}

func TestAnUnresponsiveDiskIsNotReadAsAConfigDrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := make(chan struct{})
		b := newFakeServer(t, Options{})
		b.readSerial = func(path string) ([]byte, error) {
			if strings.HasSuffix(path, "vdc/serial") {
				<-blocked
			}
			return os.ReadFile(path)
		}
		b.plug(t, "vdb", "", num(254, 16))
		b.plug(t, "vdc", "", num(254, 32))
		found, err := b.configDriveCandidates(t.Context())
		if err != nil || len(found) != 1 || found[0].name != "vdb" {
			t.Errorf("want only vdb, got %v, %v", found, err)
		}
		close(blocked)
	})
}

func FuzzDirectories(f *testing.F) {
	f.Add(image(f, "rockridge.iso")[24*isoSector:][:isoSector], "meta_data.json")
	f.Add([]byte{}, "")
	f.Fuzz(func(t *testing.T, directory []byte, name string) {
		for _, joliet := range []bool{true, false} {
			if record := isoLookUp(directory, name, joliet); record != nil && !strings.EqualFold(isoName(record, joliet), name) {
				t.Errorf("%q found as %q", name, record)
			}
		}
	})
}

func FuzzConfigDrives(f *testing.F) {
	for _, name := range images {
		if content := image(f, name); len(content) < 5<<20 {
			// Only what is at the head matters, and a short input is changed in more ways.
			f.Add(content[:min(len(content), 64<<10)])
		}
	}
	f.Add([]byte("\xeb\x3c\x90"))
	f.Fuzz(func(t *testing.T, image []byte) {
		r := bytes.NewReader(image)
		if l := isoLabel(r); len(l) > 32 {
			t.Errorf("label of %d bytes", len(l))
		}
		if l := fatLabel(r); len(l) > 11 {
			t.Errorf("label of %d bytes", len(l))
		}
		if content, err := (isoImage{r}).readFile(metadataPath, metadataLimit); err == nil && len(content) > min(metadataLimit, len(image)) {
			t.Errorf("%d bytes of file from %d bytes of image", len(content), len(image))
		}
	})
}
