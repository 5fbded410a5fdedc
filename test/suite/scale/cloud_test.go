//go:build scale

package scale

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// The medians of a busy cloud, as in test/suite/bench: 30 ms for an answer and 0.45 ms a row were measured on Cinder 21. The durations are
// log-normal, with a 99th percentile of four times the median.
var medians = map[openstacksim.Operation]time.Duration{
	openstacksim.Answer: 30 * time.Millisecond, openstacksim.Reserve: 20 * time.Millisecond,
	openstacksim.CreateVolume: 1500 * time.Millisecond, openstacksim.DeleteVolume: time.Second,
	openstacksim.Attach: 1200 * time.Millisecond, openstacksim.Detach: 1200 * time.Millisecond,
}

var zones = []string{"az1", "az2"}

func serverID(n int) string { return fmt.Sprintf("5e4f0000-0000-4000-8000-%012x", n) }

func zoneOf(n int) string { return zones[n%len(zones)] }

// cloud is the simulated cloud behind a counter.
type cloud struct {
	sim  *openstacksim.Sim
	url  string
	conf string // the file

	mu       sync.Mutex
	requests map[string]int // by service, method and path without IDs
	away     string         // the zone that does not work
}

func startCloud(t *testing.T, dir string, nodes int) *cloud {
	t.Helper()
	config := openstacksim.Default()
	config.Latency = medians
	config.Servers = nil
	for n := range nodes {
		config.Servers = append(config.Servers, openstacksim.Server{ID: serverID(n), Name: nodeName(n), Project: "demo", Zone: zoneOf(n)})
	}
	for i := range config.Projects {
		config.Projects[i].Quota = map[string]int{"volumes": -1, "gigabytes": -1, "volumes_fast": 0}
	}
	c := &cloud{sim: openstacksim.New(config), conf: filepath.Join(dir, "cloud.conf"), requests: map[string]int{}}
	c.sim.SetTiming(openstacksim.Timing{Seed: 1, Spread: 0.6, Jitter: 0.3, Row: 450 * time.Microsecond, Serial: true, Forget: 20 * time.Millisecond})
	listener := testenv.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	c.url = "http://" + listener.Addr().String()
	server := &http.Server{Handler: http.HandlerFunc(c.serve), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	c.writeConf(t, c.sim.CloudConf(c.url))
	return c
}

// writeConf replaces the file at once, as kubelet does.
func (c *cloud) writeConf(t *testing.T, text []byte) {
	t.Helper()
	testfile.Write(t, c.conf+".new", text, 0o600)
	testenv.Must(t, os.Rename(c.conf+".new", c.conf))
}

var (
	project  = regexp.MustCompile(`^/v(3|2\.1)/[0-9a-f]{32}`)
	idOfPath = regexp.MustCompile(`/([0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32})`)
	server   = regexp.MustCompile(`/servers/([0-9a-f-]{36})/`)
)

// serve counts a request. Requests for the zone that is away fail after five seconds.
func (c *cloud) serve(w http.ResponseWriter, r *http.Request) {
	service, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	path := idOfPath.ReplaceAllString(project.ReplaceAllString("/"+rest, ""), "/ID")
	switch {
	case r.URL.Query().Has("name"):
		path += "?name"
	case r.URL.Query().Has("updated_at"):
		path += "?changes"
	}
	c.mu.Lock()
	c.requests[service+" "+r.Method+" "+path]++
	away := c.away
	c.mu.Unlock()
	if away != "" && c.concerns(r, away) {
		time.Sleep(5 * time.Second)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"computeFault": {"code": 500, "message": "Unexpected API Error. The zone is away."}}`)
		return
	}
	c.sim.Handler().ServeHTTP(w, r)
}

// concerns reports whether a request changes something in a zone. It keeps the body readable.
func (c *cloud) concerns(r *http.Request, zone string) bool {
	if r.Method != http.MethodPost && r.Method != http.MethodDelete {
		return false
	}
	if id := server.FindStringSubmatch(r.URL.Path); id != nil {
		var n int
		_, err := fmt.Sscanf(id[1], "5e4f0000-0000-4000-8000-%x", &n)
		return err == nil && zoneOf(n) == zone
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return strings.HasSuffix(r.URL.Path, "/volumes") && bytes.Contains(body, []byte(`"availability_zone":"`+zone+`"`))
}

func (c *cloud) setAway(zone string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = zone
}

// counts are the requests so far.
func (c *cloud) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.requests)
}
