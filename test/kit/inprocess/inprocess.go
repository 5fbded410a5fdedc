// Package inprocess runs the whole driver against a simulated cloud in one process. The gRPC of the callers and the HTTP of the cloud go over
// memory. In a testing/synctest bubble only virtual time passes.
package inprocess

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cinder-csi/cinder-csi/driver"
	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// URL is the address of the simulated cloud.
const URL = "http://cloud.test"

// Driver is a running driver.
type Driver struct {
	*grpc.ClientConn
	Log *Log

	// The rest is there after Start and StartOn only.
	CloudConf string           // path of its cloud.conf
	Changed   chan<- struct{}  // a value tells it that its configuration has changed
	Web       *memnet.Listener // serves its pages
	Stop      func()           // ends it, as SIGTERM does
	ended     chan error
}

// Options are the dependencies of one driver process.
type Options struct {
	// CloudConf is the path of its cloud.conf.
	CloudConf string
	Transport http.RoundTripper
	// Changed sends a value after each change of the configuration; nil never does.
	Changed <-chan struct{}
	// Rand spreads the retries of requests; nil means the driver's default.
	Rand func() float64
	// Web replaces --http-endpoint; nil serves no metrics.
	Web net.Listener
	// Args are further flags.
	Args []string
}

// Launch runs a driver on the server node-az1 until ctx ends. It sends the result of the driver to ended.
func Launch(ctx context.Context, o Options) (d *Driver, ended <-chan error, err error) {
	var cfg config.Config
	flags := pflag.NewFlagSet("driver", pflag.ContinueOnError)
	cfg.Bind(flags)
	args := append([]string{
		"--endpoint=unix:///unused", "--cloud-config=" + o.CloudConf, "--cluster=test", "--logging-format=json", "--v=4",
		"--metadata-url=" + URL + "/metadata/node-az1",
	}, o.Args...)
	if err := flags.Parse(args); err != nil {
		return nil, nil, err
	}
	d, listener, done := &Driver{Log: &Log{}}, memnet.Listen(), make(chan error, 1)
	d.ClientConn, err = grpc.NewClient("passthrough:///mem", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.Dial(ctx) }))
	if err != nil {
		return nil, nil, err
	}
	go func() {
		done <- driver.Run(ctx, cfg, driver.Dependencies{
			Version: "test", Stderr: d.Log, Listener: listener, Transport: o.Transport, Env: func(string) string { return "" }, Rand: o.Rand, Web: o.Web,
			Watch: func(context.Context, []string) (<-chan struct{}, error) { return o.Changed, nil }, // inotify knows no virtual time
		})
	}()
	return d, done, nil
}

// Start runs a driver with further flags on the server node-az1 of a simulated cloud. It ends with the test.
func Start(t testing.TB, sim *openstacksim.Sim, args ...string) *Driver {
	t.Helper()
	return StartOn(t, sim.CloudConf(URL), memnet.Transport(sim.Handler()), args...)
}

// StartOn runs a driver with a cloud.conf and further flags. transport leads to its cloud. The driver ends with the test. Unless a flag says otherwise,
// it sees no disks: each scrape would count those of the machine that runs the tests.
func StartOn(t testing.TB, conf []byte, transport http.RoundTripper, args ...string) *Driver {
	t.Helper()
	path, none := filepath.Join(t.TempDir(), "cloud.conf"), t.TempDir()
	args = append([]string{"--sys-root=" + none, "--dev-root=" + none}, args...)
	testfile.Write(t, path, conf, 0o600)
	ctx, stop := context.WithCancel(t.Context())
	changed, web := make(chan struct{}, 1), memnet.Listen()
	d, ended, err := Launch(ctx, Options{CloudConf: path, Transport: transport, Changed: changed, Web: web, Args: args})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	d.CloudConf, d.Changed, d.Web, d.Stop, d.ended = path, changed, web, stop, make(chan error, 1)
	go func() { d.ended <- <-ended }()
	t.Cleanup(func() {
		stop()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Wait(); err != nil {
			t.Errorf("the driver ended with %v", err)
		}
		if strings.Contains(d.Log.String(), "sim-appcred-secret") {
			t.Error("the log holds the credential's secret")
		}
	})
	return d
}

// Wait waits for the end of the driver and returns its error.
func (d *Driver) Wait() error {
	err := <-d.ended
	d.ended <- err
	return err
}

// Get requests a page of the driver.
func (d *Driver) Get(t testing.TB, path string) (page []byte, code int) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: d.Web.DialContext, DisableKeepAlives: true}}
	resp, err := client.Get("http://driver" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if page, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return page, resp.StatusCode
}

// Metric reads one line of /metrics. Without it the test fails.
func (d *Driver) Metric(t testing.TB, name string) float64 {
	t.Helper()
	page, _ := d.Get(t, "/metrics")
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (.*)$`).FindSubmatch(page)
	if found == nil {
		t.Fatalf("there is no %s in\n%s", name, page)
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// Log is the log of a driver. A test may read it while the driver writes it.
type Log struct{ testenv.Log }

// Completion is the log entry of an RPC that has failed.
type Completion struct {
	Message string `json:"msg"`
	Method  string
	Code    string
	Kind    string
	Written bool
	Error   string
}

// Failed returns the last failure of a method in the log.
func (l *Log) Failed(method string) (Completion, error) {
	lines := strings.Split(l.String(), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		var c Completion
		if !strings.Contains(lines[i], method) || json.Unmarshal([]byte(lines[i]), &c) != nil {
			continue
		}
		if c.Message == "rpc" && c.Method == method && c.Kind != "" {
			return c, nil
		}
	}
	return Completion{}, fmt.Errorf("the log tells of no failure of %s", method)
}

// Admin is an administrator of the project demo of the simulated cloud. It makes requests that the driver never makes.
type Admin struct {
	t              testing.TB
	client         http.Client
	token, project string
}

// NewAdmin logs in.
func NewAdmin(t testing.TB, sim *openstacksim.Sim) *Admin {
	t.Helper()
	a := &Admin{t: t, client: http.Client{Transport: memnet.Transport(sim.Handler())}}
	answer, header := a.send(http.MethodPost, "/identity/v3/auth/tokens", "", `{"auth":{"identity":{"methods":["password"],"password":{"user":`+
		`{"name":"demo-admin","domain":{"id":"default"},"password":"sim-demo-admin"}}},"scope":{"project":{"name":"demo","domain":{"id":"default"}}}}}`)
	var login struct {
		Token struct{ Project struct{ ID string } }
	}
	if err := json.Unmarshal(answer, &login); err != nil {
		t.Fatal(err)
	}
	a.token, a.project = header.Get("X-Subject-Token"), login.Token.Project.ID
	return a
}

func (a *Admin) send(method, path, version, body string) ([]byte, http.Header) {
	a.t.Helper()
	request, err := http.NewRequest(method, URL+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Auth-Token", a.token)
	if version != "" {
		request.Header.Set("OpenStack-API-Version", "volume "+version)
	}
	response, err := a.client.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		a.t.Fatalf("%s %s: %s %s %v", method, path, response.Status, answer, err)
	}
	return answer, response.Header
}

// Cinder sends a request to Cinder at the newest microversion and returns the body of the answer. path is the part of the URL after the
// project.
func (a *Admin) Cinder(method, path, body string) []byte {
	a.t.Helper()
	answer, _ := a.send(method, "/volume/v3/"+a.project+path, "3.70", body)
	return answer
}

// Reset sets the status of a volume, snapshot or backup. kind is the word in its URL, such as "volumes".
func (a *Admin) Reset(kind, id, status string) {
	a.t.Helper()
	a.Cinder(http.MethodPost, "/"+kind+"/"+id+"/action", fmt.Sprintf(`{"os-reset_status":{"status":%q}}`, status))
}

// Backup requests a backup of a volume and returns its ID. The backup is not available yet.
func (a *Admin) Backup(volume string) string {
	a.t.Helper()
	var made struct{ Backup struct{ ID string } }
	if err := json.Unmarshal(a.Cinder(http.MethodPost, "/backups", fmt.Sprintf(`{"backup":{"volume_id":%q}}`, volume)), &made); err != nil {
		a.t.Fatal(err)
	}
	return made.Backup.ID
}

// IDs lists all objects of a kind, which is the word in the URL: "volumes", "snapshots", "backups", "attachments".
func (a *Admin) IDs(kind string) []string {
	a.t.Helper()
	return slices.Sorted(maps.Keys(a.Statuses(kind)))
}

// Statuses returns the statuses of all objects of a kind, by ID.
func (a *Admin) Statuses(kind string) map[string]string {
	a.t.Helper()
	var list map[string]json.RawMessage
	if err := json.Unmarshal(a.Cinder(http.MethodGet, "/"+kind+"/detail", ""), &list); err != nil {
		a.t.Fatal(err)
	}
	var entries []struct{ ID, Status string }
	if err := json.Unmarshal(list[kind], &entries); err != nil {
		a.t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		all[e.ID] = e.Status
	}
	return all
}
