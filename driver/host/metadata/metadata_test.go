package metadata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const metaData = `{"uuid": "5f0c6d1e-8b7a-4c3d-9e21-0a1b2c3d4e5f", "name": "node-1", "availability_zone": "zone 1", "devices": []}`

var node1 = Server{ID: "5f0c6d1e-8b7a-4c3d-9e21-0a1b2c3d4e5f", Zone: "zone 1", Name: "node-1"}

// from is node1 as a source reports it.
func from(source string) Server {
	s := node1
	s.Source = source
	return s
}

// fakeService is a metadata service that returns its answers one after another, then repeats the last.
type fakeService struct {
	mu      sync.Mutex
	answers []func(*http.Request) (*http.Response, error)
	asked   []string
}

func (s *fakeService) RoundTrip(r *http.Request) (*http.Response, error) {
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
	testfile.Write(t, filepath.Join(dir, metadataPath), content, 0o600)
	return dir
}

func TestTheSearchOrderDecidesTheSource(t *testing.T) {
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
		{name: "an unknown source, and one that works", order: []string{"metadata", MetadataService}, want: "from-service"},
		{name: "only an unknown source", order: []string{"metadata"}, words: []string{`"metadata"`, ConfigDrive, MetadataService, DMI}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := Options{SearchOrder: c.order, Transport: &fakeService{answers: []func(*http.Request) (*http.Response, error){says(200, other)}}}
			o.ConfigDriveDir = t.TempDir()
			if c.drive != "" {
				o.ConfigDriveDir = writeConfigDrive(t, c.drive)
			}
			got, err := New(o).Server(t.Context())
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
	s := &fakeService{answers: []func(*http.Request) (*http.Response, error){says(404, ""), says(200, metaData), says(500, "")}}
	h := New(Options{SearchOrder: []string{MetadataService}, URL: "http://127.0.0.1:8780/node-1/", Transport: s})
	if _, err := h.Server(t.Context()); err == nil {
		t.Fatal("want an error for a 404")
	}
	for range 3 {
		got, err := h.Server(t.Context())
		if err != nil || got != from(MetadataService) {
			t.Fatalf("want %+v, got %+v, %v", node1, got, err)
		}
	}
	const url = "http://127.0.0.1:8780/node-1/openstack/latest/meta_data.json"
	if diff := cmp.Diff([]string{url, url}, s.asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestTheMetadataServiceIsRetriedWhileItMayStart(t *testing.T) {
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
		{"it is someone else", []func(*http.Request) (*http.Response, error){says(200, "<html>")}, 1, 0, "not that of OpenStack"},
		{"it does not end", []func(*http.Request) (*http.Response, error){says(200, strings.Repeat(" ", metadataLimit+1))}, 1, 0, "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeService{answers: c.answers}
				began := time.Now()
				_, err := New(Options{SearchOrder: []string{MetadataService}, Transport: s}).Server(t.Context())
				if c.words == "" && err != nil || c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words)) {
					t.Errorf("want an error with %q, got %v", c.words, err)
				}
				if took := time.Since(began); took != c.took || len(s.asked) != c.asked {
					t.Errorf("want %d requests in %s, got %d in %s", c.asked, c.took, len(s.asked), took)
				}
				if s.asked[0] != "http://169.254.169.254/openstack/latest/meta_data.json" {
					t.Errorf("want the link-local address by default, got %s", s.asked[0])
				}
			})
		})
	}
}

func TestServerEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{SearchOrder: []string{MetadataService}, Transport: &fakeService{answers: []func(*http.Request) (*http.Response, error){hangs}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		errs := make(chan error, 2)
		for range 2 { // one that asks, one that waits for it
			go func() { _, err := h.Server(ctx); errs <- err }()
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
	got, err := New(Options{SearchOrder: []string{MetadataService}, URL: server.URL + "/node-1"}).Server(t.Context())
	if err != nil || got != from(MetadataService) {
		t.Errorf("want %+v, got %+v, %v", node1, got, err)
	}
}

func TestMetadataWithoutAServerIDIsRefused(t *testing.T) {
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
	got, err = parseMetadata([]byte(`{"uuid": "5f0c6d1e-8b7a-4c3d-9e21-0a1b2c3d4e5f", "availability_zone": "` + strings.Repeat("ä", 1000) + `", "name": "` + strings.Repeat("ä", 1000) + `"}`))
	if long := strings.Repeat("ä", 255); err != nil || got.Zone != long || got.Name != long {
		t.Errorf("want 255 characters of each text, got %+v, %v", got, err)
	}
}

func TestTheHardwareUUIDCountsOnlyIfNovaSetIt(t *testing.T) {
	t.Parallel()
	const upper = "5F0C6D1E-8B7A-4C3D-9E21-0A1B2C3D4E5F\n"
	for _, c := range []struct {
		product, uuid string
		words         string // of the error; empty for success
	}{
		{"OpenStack Nova\n", upper, ""},
		{"OpenStack Compute\n", strings.ToLower(upper), ""},
		{"Standard PC (Q35 + ICH9, 2009)\n", upper, "need not be the server ID"},
		{"OpenStack Nova\n", "Not Settable\n", "is not a UUID"},
		{"OpenStack Nova\n", "", "product_uuid"},
		{"", upper, "product_name"},
	} {
		b := newFakeServer(t, Options{SearchOrder: []string{DMI}})
		dir := filepath.Join(b.Sys, "class", "dmi", "id")
		must(t, os.MkdirAll(dir, 0o755))
		for file, content := range map[string]string{"product_name": c.product, "product_uuid": c.uuid} {
			if content != "" {
				must(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600))
			}
		}
		got, err := b.Server(t.Context())
		if c.words != "" {
			wantKind(t, err, volume.Unavailable, c.words)
		} else if want := (Server{ID: node1.ID, Source: DMI}); err != nil || got != want {
			t.Errorf("%q: want %+v, got %+v, %v", c.product, want, got, err)
		}
	}
}

func TestAnAnswerWithoutAZoneIsNotKeptAndNamesTheSkippedSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeService{answers: []func(*http.Request) (*http.Response, error){says(404, ""), says(200, metaData)}}
		b := newFakeServer(t, Options{Transport: s, SearchOrder: []string{MetadataService, DMI}})
		dir := filepath.Join(b.Sys, "class", "dmi", "id")
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "product_name"), []byte("OpenStack Nova\n"), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "product_uuid"), []byte(node1.ID), 0o600))
		got, err := b.Server(t.Context())
		if err != nil || got.Source != DMI || got.Zone != "" || !strings.Contains(got.Skipped, "metadataService: the metadata service answers Not Found") {
			t.Errorf("want the hardware's answer and why the service gave none, got %+v, %v", got, err)
		}
		for range 2 {
			if got, err = b.Server(t.Context()); err != nil || got != from(MetadataService) {
				t.Errorf("want the service's answer, got %+v, %v", got, err)
			}
		}
		if len(s.asked) != 2 {
			t.Errorf("want the answer with a zone kept, got %d requests", len(s.asked))
		}
	})
}

func TestTheServiceIsTriedOverIPv6IfIPv4Fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeService{answers: []func(*http.Request) (*http.Response, error){refuses, refuses, refuses, says(200, metaData)}}
		m := newService(Options{Transport: s})
		m.urls = func() []string { return []string{serviceIPv4, "http://[fe80::a9fe:a9fe%25ens3]"} }
		got, err := m.read(t.Context())
		if err != nil || got != node1 {
			t.Errorf("want %+v, got %+v, %v", node1, got, err)
		}
		const path = "/openstack/latest/meta_data.json"
		four, six := "http://169.254.169.254"+path, "http://[fe80::a9fe:a9fe%25ens3]"+path
		if diff := cmp.Diff([]string{four, six, four, six}, s.asked); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		s.asked, s.answers = nil, []func(*http.Request) (*http.Response, error){says(404, "")}
		if _, err := m.read(t.Context()); err == nil || len(s.asked) != 1 {
			t.Errorf("want one request for a server without metadata, got %q, %v", s.asked, err)
		}
	})
}

func TestTheIPv6AddressHasAZone(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(fmt.Sprintf(serviceIPv6, "ens3"))
	if err != nil || u.Hostname() != "fe80::a9fe:a9fe%ens3" {
		t.Errorf("want an address with a zone, got %v, %v", u, err)
	}
}

func FuzzParseMetadata(f *testing.F) {
	f.Add([]byte(metaData))
	f.Add([]byte(`{"uuid":"5F0C6D1E-8b7a-4c3d-9e21-0a1b2c3d4e5f","meta":{"a":[1,{}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := parseMetadata(text); err == nil && len(got.ID) != 36 {
			t.Errorf("%q: want a UUID, got %+v", text, got)
		}
	})
}

// Firmware may show the first three fields of a UUID in the other byte order.
func TestTheHardwareMayContradictTheServerID(t *testing.T) {
	t.Parallel()
	const other = "c4d3e2f1-0a9b-4c8d-8e7f-6a5b4c3d2e1f"
	for _, c := range []struct {
		product, uuid, serial string
		refused               bool
	}{
		{"OpenStack Nova", string(node1.ID), "", false},
		{"OpenStack Nova", "1e6d0c5f-7a8b-3d4c-9e21-0a1b2c3d4e5f", "", false},
		{"OpenStack Nova", other, strings.ToUpper(string(node1.ID)), false},
		{"OpenStack Nova", other, other, true},
		{"KVM", other, other, false},
	} {
		b := newFakeServer(t, Options{ConfigDriveDir: writeConfigDrive(t, metaData)})
		dir := filepath.Join(b.Sys, "class", "dmi", "id")
		must(t, os.MkdirAll(dir, 0o755))
		for file, content := range map[string]string{"product_name": c.product, "product_uuid": c.uuid, "product_serial": c.serial} {
			must(t, os.WriteFile(filepath.Join(dir, file), []byte(content+"\n"), 0o600))
		}
		got, err := b.Server(t.Context())
		if c.refused {
			wantKind(t, err, volume.Conflict, string(node1.ID), other)
		} else if err != nil || got.ID != node1.ID {
			t.Errorf("%+v: want the server, got %+v, %v", c, got, err)
		}
	}
}
