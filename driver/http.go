package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/operation"
)

// pages are what the driver serves on --http-endpoint. Everybody who reaches it may read /metrics, /healthz (the process answers) and
// /readyz (every cloud answers too). So it is with /startupz: every cloud has answered since the start, or kubelet can register the
// node. /debug/operations, and with --pprof /debug/pprof/, are for clients of the same host or pod only.
func pages(cfg config.Config, registry prometheus.Gatherer, ready, started func(ctx context.Context) error, operations *operation.List) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", sharedPage(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/readyz", readinessPage(ready))
	mux.Handle("/startupz", readinessPage(started))
	mux.Handle("/debug/operations", localOnly(pendingOperations(cfg, operations)))
	if cfg.Pprof {
		mux.Handle("/debug/pprof/", localOnly(http.HandlerFunc(pprof.Index)))
		mux.Handle("/debug/pprof/profile", localOnly(http.HandlerFunc(pprof.Profile)))
		mux.Handle("/debug/pprof/trace", localOnly(http.HandlerFunc(pprof.Trace)))
	}
	return mux
}

// sharedPage makes one answer for all requests of a second. So they cost the time and the memory of one, however many come. All get the same form,
// whatever they accept. A client that does not read its answer delays nobody.
func sharedPage(page http.Handler) http.Handler {
	latest := newShared(time.Second, func(ctx context.Context) *inMemory {
		answer := &inMemory{header: http.Header{}, status: http.StatusOK}
		page.ServeHTTP(answer, (&http.Request{Method: http.MethodGet, URL: &url.URL{}}).WithContext(ctx))
		return answer
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := latest.get(r.Context())
		if err != nil {
			return // the client has gone
		}
		maps.Copy(w.Header(), answer.header)
		w.WriteHeader(answer.status)
		_, _ = w.Write(answer.text.Bytes()) // the client has gone, or gets it all
	})
}

// inMemory keeps an answer.
type inMemory struct {
	header http.Header
	status int
	text   bytes.Buffer
}

func (a *inMemory) Header() http.Header            { return a.header }
func (a *inMemory) WriteHeader(status int)         { a.status = status }
func (a *inMemory) Write(text []byte) (int, error) { return a.text.Write(text) }

// answerTime is how long an answer may take. net/http/pprof adds the time that it measures.
const answerTime = 10 * time.Second

// readinessPage answers 200, or 503 with the error of a check.
func readinessPage(check func(context.Context) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		if err := check(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
}

// Operations is the answer of /debug/operations.
type Operations struct {
	Now        time.Time             `json:"now"` // of the driver's clock, to compare the other times with
	DriverName string                `json:"driverName"`
	Controller bool                  `json:"controller"`
	Node       bool                  `json:"node"`
	Operations []operation.Operation `json:"operations"` // the oldest first
}

func pendingOperations(cfg config.Config, operations *operation.List) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(Operations{ // the client has gone, or gets it all
			Now: time.Now(), DriverName: cfg.DriverName, Controller: cfg.Controller, Node: cfg.Node, Operations: operations.Pending(),
		})
	})
}

// localOnly serves clients on a loopback address only. `kubectl port-forward` is one: it connects inside the network namespace of the pod,
// and needs the right to forward ports there. Others on the network, who may read metrics, learn no names of servers and operations.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if from, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !from.Addr().Unmap().IsLoopback() {
			http.Error(w, "this page is served to loopback addresses only; use kubectl port-forward", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// mostConnections is the bound of the connections to the pages. kubelet and Prometheus need one for each request.
const mostConnections = 256

// connections are those to the pages. If there are too many, the oldest ends, so that a new client such as kubelet is always served.
type connections struct {
	mu   sync.Mutex
	open []connection // the oldest first
}

type connection struct {
	net.Conn
	end context.CancelFunc // of its requests
}

// began is the ConnContext of a server.
func (c *connections) began(ctx context.Context, conn net.Conn) context.Context {
	ctx, end := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == mostConnections {
		oldest := c.open[0]
		c.open = slices.Delete(c.open, 0, 1)
		oldest.end()
		if tcp, ok := oldest.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // else the kernel keeps what the client has not read
		}
		_ = oldest.Close()
	}
	c.open = append(c.open, connection{conn, end})
	return ctx
}

// changed is the ConnState of a server.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open = slices.DeleteFunc(c.open, func(o connection) bool { return o.Conn == conn })
	}
}

// ServeHTTP serves pages until ctx ends. It closes a connection after each answer, so that a client cannot keep any number of them.
func ServeHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	// Without these limits a client could hold connections and their buffers for ever.
	var open connections
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: answerTime,
		MaxHeaderBytes: 16 << 10, ConnContext: open.began, ConnState: open.changed,
	}
	server.SetKeepAlivesEnabled(false)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
