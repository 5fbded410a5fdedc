package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

const metaData = `{"uuid": "5f0c6d1e-8b7a-4c3d-9e21-0a1b2c3d4e5f", "name": "node-1", "availability_zone": "zone 1", "devices": []}`

var node1 = Identity{Server: "5f0c6d1e-8b7a-4c3d-9e21-0a1b2c3d4e5f", Zone: "zone 1", Name: "node-1"}

// service is a metadata service that gives its answers in turn, the last one for ever.
type service struct {
	mu      sync.Mutex
	answers []func(*http.Request) (*http.Response, error)
	asked   []string
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	answer := s.answers[min(len(s.asked), len(s.answers)-1)]
	s.asked = append(s.asked, r.URL.String())
	s.mu.Unlock()
	return answer(r)
}

func says(code int, body string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func refuses(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

func hangs(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func writeConfigDrive(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "openstack", "latest"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, metadataPath), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTheSearchOrderDecidesWhoIsAsked(t *testing.T) {
	t.Parallel()
	other := strings.Replace(metaData, "node-1", "from-service", 1)
	for _, c := range []struct {
		name  string
		order []string
		drive string
		want  string
		words []string
	}{
		{name: "the drive first", drive: metaData, want: "node-1"},
		{name: "the service first", order: []string{MetadataService, ConfigDrive}, drive: metaData, want: "from-service"},
		{name: "no drive", want: "from-service"},
		{name: "a broken drive", drive: "{", want: "from-service"},
		{name: "only the drive", order: []string{ConfigDrive}, words: []string{"configDrive", "no such file"}},
		{name: "a place nobody knows, and one that works", order: []string{"metadata", MetadataService}, want: "from-service"},
		{name: "only a place nobody knows", order: []string{"metadata"}, words: []string{`"metadata"`, ConfigDrive, MetadataService}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := Options{SearchOrder: c.order, Transport: &service{answers: []func(*http.Request) (*http.Response, error){says(200, other)}}}
			o.ConfigDriveDir = t.TempDir()
			if c.drive != "" {
				o.ConfigDriveDir = writeConfigDrive(t, c.drive)
			}
			got, err := New(o).Identity(t.Context())
			if c.want == "" {
				wantKind(t, err, volume.Unavailable, c.words...)
				return
			}
			if err != nil || got.Name != c.want {
				t.Errorf("want %s, got %+v, %v", c.want, got, err)
			}
		})
	}
}

func TestTheFirstAnswerIsKeptAndAFailureIsNot(t *testing.T) {
	t.Parallel()
	s := &service{answers: []func(*http.Request) (*http.Response, error){says(404, ""), says(200, metaData), says(500, "")}}
	h := New(Options{SearchOrder: []string{MetadataService}, MetadataURL: "http://127.0.0.1:8780/node-1/", Transport: s})
	if _, err := h.Identity(t.Context()); err == nil {
		t.Fatal("want an error for a 404")
	}
	for range 3 {
		got, err := h.Identity(t.Context())
		if err != nil || got != node1 {
			t.Fatalf("want %+v, got %+v, %v", node1, got, err)
		}
	}
	const url = "http://127.0.0.1:8780/node-1/openstack/latest/meta_data.json"
	if diff := cmp.Diff([]string{url, url}, s.asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestTheMetadataServiceIsAskedAgainWhileItMayStillCome(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []func(*http.Request) (*http.Response, error)
		asked   int
		took    time.Duration
		words   string // of the error; empty for success
	}{
		{"it starts", []func(*http.Request) (*http.Response, error){refuses, says(503, ""), says(200, metaData)}, 3, 1500 * time.Millisecond, ""},
		{"it never comes", []func(*http.Request) (*http.Response, error){refuses}, 4, 3500 * time.Millisecond, "connection refused"},
		{"it hangs", []func(*http.Request) (*http.Response, error){hangs}, 4, 23500 * time.Millisecond, "deadline exceeded"},
		{"it has none", []func(*http.Request) (*http.Response, error){says(404, "")}, 1, 0, "Not Found"},
		{"it is someone else", []func(*http.Request) (*http.Response, error){says(200, "<html>")}, 1, 0, "not OpenStack's"},
		{"it does not end", []func(*http.Request) (*http.Response, error){says(200, strings.Repeat(" ", metadataLimit+1))}, 1, 0, "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{answers: c.answers}
				began := time.Now()
				_, err := New(Options{SearchOrder: []string{MetadataService}, Transport: s}).Identity(t.Context())
				if c.words == "" && err != nil || c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words)) {
					t.Errorf("want an error with %q, got %v", c.words, err)
				}
				if took := time.Since(began); took != c.took || len(s.asked) != c.asked {
					t.Errorf("want %d questions in %s, got %d in %s", c.asked, c.took, len(s.asked), took)
				}
				if s.asked[0] != "http://169.254.169.254/openstack/latest/meta_data.json" {
					t.Errorf("want the link-local address by default, got %s", s.asked[0])
				}
			})
		})
	}
}

func TestIdentityEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{SearchOrder: []string{MetadataService}, Transport: &service{answers: []func(*http.Request) (*http.Response, error){hangs}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		errs := make(chan error, 2)
		for range 2 { // one that asks, one that waits for it
			go func() { _, err := h.Identity(ctx); errs <- err }()
		}
		began := time.Now()
		for range 2 {
			wantKind(t, <-errs, volume.DeadlineExceeded)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("want the answers at the deadline, took %s", took)
		}
	})
}

func TestTheMetadataServiceIsReachedOverTCP(t *testing.T) {
	t.Setenv("http_proxy", "http://127.0.0.1:1") // which must not be asked
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/node-1/openstack/latest/meta_data.json" {
			_, _ = io.WriteString(w, metaData)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	got, err := New(Options{SearchOrder: []string{MetadataService}, MetadataURL: server.URL + "/node-1"}).Identity(t.Context())
	if err != nil || got != node1 {
		t.Errorf("want %+v, got %+v, %v", node1, got, err)
	}
}

func TestMetadataThatNamesNoServerIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "null", "[]", "{}", `{"uuid": ""}`, `{"uuid": "node-1"}`, `{"uuid": 7}`, metaData + metaData, metaData + "x", `{"uuid": "5f0c6d1e-8b7a-4c3d-9e21-0a1b2c3d4e5f", "availability_zone": 3}`,
	} {
		if got, err := parseMetadata([]byte(text)); err == nil {
			t.Errorf("%s: want an error, got %+v", text, got)
		}
	}
	got, err := parseMetadata([]byte(`{"uuid": "5f0c6d1e-8b7a-4c3d-9e21-0a1b2c3d4e5f", "availability_zone": null}`))
	if err != nil || got.Zone != "" {
		t.Errorf("want a server without a zone, got %+v, %v", got, err)
	}
}

// iso is the part of an ISO 9660 image that holds its label.
func iso(label string) []byte {
	image := make([]byte, 40<<10)
	copy(image[16*2048:], "\x01CD001\x01")
	copy(image[16*2048+40:], label+strings.Repeat(" ", 32-len(label)))
	return image
}

func TestTheConfigDriveIsFoundByItsLabelAndReadInAPrivatePlace(t *testing.T) {
	fat := make([]byte, 1<<20)
	copy(fat[43:], "CONFIG-2   FAT16   ")
	fat[510], fat[511] = 0x55, 0xAA
	for _, c := range []struct {
		name, disk, file, fsType string
		image                    []byte
	}{
		{"on a CD", "sr0", "dev", "iso9660", iso("config-2")},
		{"on a disk", "vdb", "dev", "vfat", fat},
		{"on a partition", "sda", "sda2/partition", "iso9660", iso("config-2")},
	} {
		t.Run(c.name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			b := newBench(t, Options{SearchOrder: []string{ConfigDrive}})
			b.plug(t, "vda", "", Number{254, 0}).contents = iso("other")
			b.Sysfs(t, c.disk, map[string]string{c.file: "2\n"})
			name := c.disk
			if strings.HasSuffix(c.file, "/partition") {
				name = filepath.Dir(c.file)
			}
			b.device(name, Number{11, 0}).contents = c.image
			drive := &drivingMounter{t: t, fake: b.mounter, temp: temp}
			b.Host.mounter = drive
			got, err := b.Identity(t.Context())
			if err != nil || got != node1 {
				t.Fatalf("want %+v, got %+v, %v", node1, got, err)
			}
			if drive.mounted.FSType != c.fsType || drive.mounted.Source != filepath.Join(b.Dev, name) || !drive.mounted.ReadOnly() {
				t.Errorf("want %s mounted read-only as %s, got %+v", name, c.fsType, drive.mounted)
			}
			if left, _ := os.ReadDir(temp); len(left) > 0 || len(b.mounter.table) > 0 {
				t.Errorf("want nothing left, got %v, mounts %v", left, b.mounter.table)
			}
		})
	}
}

// drivingMounter puts the metadata under the mounted config drive, and takes it away at the unmount.
type drivingMounter struct {
	t       *testing.T
	fake    *fakeMounter
	temp    string
	mounted Mount
}

func (d *drivingMounter) Mount(ctx context.Context, source, target, fsType string, options []string) error {
	if filepath.Dir(target) != d.temp {
		d.t.Errorf("want a directory of its own below %s, got %s", d.temp, target)
	}
	if err := os.CopyFS(target, os.DirFS(writeConfigDrive(d.t, metaData))); err != nil {
		return err
	}
	err := d.fake.Mount(ctx, source, target, fsType, options)
	d.mounted, _ = d.fake.table.At(target)
	return err
}

func (d *drivingMounter) Bind(string, string, bool) error { return errors.New("no bind wanted") }

func (d *drivingMounter) Unmount(target string) error {
	return errors.Join(os.RemoveAll(filepath.Join(target, "openstack")), d.fake.Unmount(target))
}

func FuzzParseMetadata(f *testing.F) {
	f.Add([]byte(metaData))
	f.Add([]byte(`{"uuid":"5F0C6D1E-8b7a-4c3d-9e21-0a1b2c3d4e5f","meta":{"a":[1,{}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := parseMetadata(text); err == nil && len(got.Server) != 36 {
			t.Errorf("%q: want a UUID, got %+v", text, got)
		}
	})
}

func FuzzConfigDriveLabels(f *testing.F) {
	f.Add(iso("config-2"))
	f.Add([]byte("\xeb\x3c\x90"))
	f.Fuzz(func(t *testing.T, image []byte) {
		if l := isoLabel(bytes.NewReader(image)); len(l) > 32 {
			t.Errorf("label of %d bytes", len(l))
		}
		if l := fatLabel(bytes.NewReader(image)); len(l) > 11 {
			t.Errorf("label of %d bytes", len(l))
		}
	})
}
