//go:build openstack

package openstack

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// front is a proxy between a driver and the Cinder and Nova of the bed. It counts the calls, and may change them.
type front struct {
	args []string // flags that make a driver use the proxy

	mu    sync.Mutex
	calls []call
}

// call is one request of the driver.
type call struct {
	what       string // method and path, without IDs
	path       string
	begun, end time.Time
}

// newFront starts a front. If meddle is not nil, it gets the handler that forwards a request, and returns the handler to use instead. A program finds
// the front in the catalog of a Keystone, as each driver of Cinder does.
func (x *tenant) newFront(t *testing.T, meddle func(pass http.Handler) http.Handler) *front {
	t.Helper()
	f, hosts := &front{}, map[string]string{}
	for _, endpoint := range []string{x.cinder.Endpoint, x.nova.Endpoint} {
		to := testenv.Value(url.Parse(endpoint))(t)
		pass := http.Handler(&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
				r.Out.Host = to.Host
			},
			Transport: &http.Transport{MaxIdleConnsPerHost: 100},
			// If the cloud does not answer, the proxy does not answer either.
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		})
		if meddle != nil {
			pass = meddle(pass)
		}
		server := httptest.NewServer(f.count(pass))
		t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
		hosts[to.Host] = server.Listener.Addr().String()
	}
	keystone := newCatalogProxy(t, x.authURL, func(services []any) []any {
		moveEndpoints(services, func(u *url.URL) { u.Host = cmp.Or(hosts[u.Host], u.Host) })
		return services
	})
	conf := filepath.Join(t.TempDir(), "front.conf")
	testfile.Write(t, conf, fmt.Appendf(nil, "[Global]\nauth-url = %s\n", keystone), 0o600)
	f.args = []string{"--cloud-config=" + conf}
	return f
}

var idInPath = regexp.MustCompile(`[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}`)

func (f *front) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := call{path: r.URL.Path, begun: time.Now()}
		path := strings.TrimPrefix(strings.TrimPrefix(idInPath.ReplaceAllString(r.URL.Path, "ID"), "/v3/ID"), "/v2.1")
		c.what = r.Method + " " + path
		for _, key := range []string{"name", "status", "updated_at", "volume_id"} { // the parameters that distinguish lists
			if r.URL.Query().Has(key) {
				c.what += "?" + key
			}
		}
		defer func() {
			c.end = time.Now()
			f.mu.Lock()
			defer f.mu.Unlock()
			f.calls = append(f.calls, c)
		}()
		next.ServeHTTP(w, r)
	})
}

// taken returns the calls so far and clears them.
func (f *front) taken() []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	slices.SortFunc(calls, func(a, b call) int { return a.begun.Compare(b.begun) })
	return calls
}

// kinds lists the number and the median duration of each kind of call, most frequent first.
func kinds(calls []call) string {
	times := map[string][]time.Duration{}
	for _, c := range calls {
		times[c.what] = append(times[c.what], c.end.Sub(c.begun))
	}
	var rows []string
	for what := range times {
		rows = append(rows, what)
	}
	slices.SortFunc(rows, func(a, b string) int { return cmp.Or(cmp.Compare(len(times[b]), len(times[a])), cmp.Compare(a, b)) })
	var text strings.Builder
	for _, what := range rows {
		fmt.Fprintf(&text, "  %5d  %6s  %s\n", len(times[what]), centile(times[what], 50).Round(time.Millisecond), what)
	}
	return text.String()
}

// centile is the p-th percentile of some durations.
func centile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return d[min(len(d)-1, len(d)*p/100)]
}
