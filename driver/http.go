package driver

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
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
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: mostScrapes}))
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

// mostScrapes are the answers of /metrics that are written at once. A client that reads none holds one for the time of an answer.
const mostScrapes = 32

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

// ServeHTTP serves pages until ctx ends. It closes a connection after each answer, so that a client cannot keep any number of them.
func ServeHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	// Without these limits a client could hold connections and their buffers for ever.
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: answerTime,
		MaxHeaderBytes: 16 << 10,
	}
	server.SetKeepAlivesEnabled(false)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
