package tenant

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/host"
	"github.com/cinder-csi/cinder-csi/driver/host/metadata"
	"github.com/cinder-csi/cinder-csi/driver/node"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/endless"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const (
	thisServer  = "5f0c6d1e-8b7a-4c3d-9e21-0a1b2c3d4e5f"
	otherServer = "c4d3e2f1-0a9b-4c8d-8e7f-6a5b4c3d2e1f"
)

// registered returns the answer of NodeGetInfo on a server with that hardware and that metadata service.
func registered(t *testing.T, hardware map[string]string, service http.Handler) (*csi.NodeGetInfoResponse, error) {
	t.Helper()
	m := testenv.NewMachine(t)
	dir := filepath.Join(m.Sys, "class", "dmi", "id")
	must(t, os.MkdirAll(dir, 0o755))
	for file, content := range hardware {
		must(t, os.WriteFile(filepath.Join(dir, file), []byte(content+"\n"), 0o600))
	}
	server := httptest.NewServer(service)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	log := slog.New(slog.DiscardHandler)
	h := host.New(host.Options{SysRoot: m.Sys, DevRoot: m.Dev, Metadata: metadata.Options{URL: server.URL, SearchOrder: []string{metadata.MetadataService}}, Log: log})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return node.New(h, node.Options{WithTopology: true, Log: log}).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
}

func says(id string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"uuid": %q, "availability_zone": "nova"}`, id)
	})
}

// A false metadata service gives the node the ID of another server. On Nova's hardware, the driver accepts only the UUID of the hardware.
func TestM6AMetadataServiceCannotGiveANodeAnotherServersID(t *testing.T) {
	t.Parallel()
	nova := func(uuid, serial string) map[string]string {
		return map[string]string{"product_name": "OpenStack Nova", "product_uuid": uuid, "product_serial": serial}
	}
	for name, c := range map[string]struct {
		hardware map[string]string
		said     string
		refused  bool
	}{
		"the same":                    {nova(thisServer, ""), thisServer, false},
		"in capitals":                 {nova(strings.ToUpper(thisServer), ""), thisServer, false},
		"in the other byte order":     {nova("1e6d0c5f-7a8b-3d4c-9e21-0a1b2c3d4e5f", ""), thisServer, false},
		"by its serial number alone":  {nova(otherServer, strings.ToUpper(thisServer)), thisServer, false},
		"another's":                   {nova(thisServer, thisServer), otherServer, true},
		"another's, no serial number": {nova(thisServer, ""), otherServer, true},
		"another's, of Red Hat's Nova": {
			map[string]string{"product_name": "OpenStack Compute", "product_uuid": thisServer}, otherServer, true,
		},
		"not Nova's hardware":   {map[string]string{"product_name": "KVM", "product_uuid": thisServer}, otherServer, false},
		"a UUID that is none":   {nova("Not Settable", "x"), otherServer, false},
		"a UUID not to be read": {map[string]string{"product_name": "OpenStack Nova"}, otherServer, false},
		"no hardware to read":   {nil, otherServer, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := registered(t, c.hardware, says(c.said))
			switch {
			case !c.refused && (err != nil || got.GetNodeId() != c.said):
				t.Errorf("want the node registered as %s, got %v, %v", c.said, got, err)
			case c.refused && (!volume.Is(err, volume.Conflict) || !strings.Contains(err.Error(), thisServer) || !strings.Contains(err.Error(), otherServer)):
				t.Errorf("want a refusal that names both servers, got %v, %v", got, err)
			}
		})
	}
}

func TestAHostileMetadataServiceTakesNeitherMemoryNorAnotherAddress(t *testing.T) { // measures memory: not beside other tests
	zipped := endless.Bomb("", ' ', 64)
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere.Add(1)
		says(otherServer).ServeHTTP(w, r)
	}))
	defer other.Close()
	for name, service := range map[string]http.HandlerFunc{
		"a body without end": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, endless.Byte(' ')) },
		"a body that unpacks": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zipped)
		},
		"a head without end": func(w http.ResponseWriter, _ *http.Request) {
			for n := range 100 {
				w.Header().Set(fmt.Sprintf("x-%d", n), strings.Repeat("x", 4<<10))
			}
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/openstack/latest/meta_data.json", http.StatusFound)
		},
		"a nest of brackets": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("[", 1<<20)) },
		"no server's id":     func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"uuid": "../../../etc"}`) },
		"a zone of escapes": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"uuid": "`+thisServer+`", "availability_zone": "`+strings.Repeat(`\u001b`, 1000)+`"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := registered(t, nil, service)
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
				t.Errorf("want at most 32 MiB allocated in all, got %d MiB", used>>20)
			}
			for _, value := range got.GetAccessibleTopology().GetSegments() {
				if err == nil && got.GetNodeId() == thisServer && regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,61}[A-Za-z0-9]$`).MatchString(value) {
					return // the zone is a valid label
				}
			}
			if err == nil || strings.ContainsAny(err.Error(), "\x1b\n") || len(err.Error()) > 4096 {
				t.Errorf("want a short error without control characters, got %v, %.500v", got, err)
			}
		})
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("want no redirect followed, got %d", n)
	}
}
