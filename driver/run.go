// Package driver connects the packages of cinder-csi-driver: configuration and dependencies become servers, probes and a drain. No other
// package does. It keeps the configuration in memory; after a restart it reads the files again.
package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/identity"
	"github.com/cinder-csi/cinder-csi/driver/operation"
	"github.com/cinder-csi/cinder-csi/driver/rpc"
	"github.com/cinder-csi/cinder-csi/driver/telemetry"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// Dependencies are what the process uses from outside. The zero value is the real environment.
type Dependencies struct {
	Version string
	// Stderr receives the log; nil means os.Stderr.
	Stderr io.Writer
	// Listener replaces the configured endpoint.
	Listener net.Listener
	// Transport sends requests to OpenStack, to the metadata service and to the Kubernetes API. Nil means one transport for each, with its own
	// TLS settings.
	Transport http.RoundTripper
	// Env reads an environment variable; nil means os.Getenv.
	Env func(string) string
	// Web replaces --http-endpoint.
	Web net.Listener
	// Watch sends after each change of files; nil means cloud.Watch.
	Watch func(ctx context.Context, files []string) (<-chan struct{}, error)
	// Rand returns numbers in [0,1) that spread the retries of requests; nil means rand.Float64. A repeatable test sets it.
	Rand func() float64
}

// longestRPC limits an RPC whose caller sets no deadline. The sidecars set three minutes.
const longestRPC = 5 * time.Minute

// process is what the parts of a running driver share.
type process struct {
	cfg        config.Config
	deps       Dependencies
	log        *slog.Logger
	registry   *prometheus.Registry
	tracing    *telemetry.Tracing
	conf       *configuration
	background *errgroup.Group // what runs beside the server, until the work context ends
}

// Run waits for an earlier process with the same socket, serves until ctx ends, and then waits for the RPCs in progress. It returns why the driver cannot start, the error of the listener, or nil
// after a clean end. The cloud may be unreachable: then RPCs return an error until it answers.
func Run(ctx context.Context, cfg config.Config, deps Dependencies) error {
	deps = deps.withDefaults()
	if err := cfg.Validate(); err != nil {
		return err
	}
	p := &process{cfg: cfg, deps: deps, log: newLog(deps.Stderr, cfg), registry: newRegistry(deps.Version)}
	var err error
	if p.tracing, err = telemetry.StartTracing(ctx, deps.Env, cfg.DriverName, deps.Version); err != nil {
		return err
	}
	defer func() { _ = p.tracing.Stop(ctx) }() // a collector that does not answer is no failure of the driver
	if p.conf, err = readConfiguration(cfg, deps, p.log, telemetry.NewReload(p.registry)); err != nil {
		return err
	}

	if deps.Listener == nil {
		release, err := rpc.Own(ctx, cfg.Endpoint, p.log)
		if err != nil {
			return ended(err)
		}
		defer release() // after everything that outlives its RPC
	}

	// The clouds outlive ctx: RPCs in progress need them while the server drains.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	p.background, work = errgroup.WithContext(work)

	var services rpc.Services
	checks := newCloudChecks(p.clouds(), func() []*cloud.Live { return p.conf.clouds }, telemetry.NewChecks(p.registry), p.log)
	ready := sharedCheck(checks.ready)
	started := newStartup(len(p.clouds()), ready)
	onStartup := started.ready
	if cfg.Controller {
		if services.Controller, err = p.newController(work, started.loggedIn); err != nil {
			return err
		}
	}
	if cfg.Node {
		server := p.newNode(work)
		services.Node = server
		if !cfg.Controller { // a node waits for kubelet, and for no cloud
			onStartup = server.Registered
		}
	}
	services.Identity = identity.New(identity.Options{
		DriverName: cfg.DriverName, Version: deps.Version, WithTopology: cfg.WithTopology, Ready: started.probe,
	})

	// The first interceptor is the outermost. So the log shows the code that the caller gets, and a panic becomes an error before that.
	var operations operation.List
	server := rpc.NewServer(services, p.tracing.ServerOption(), rpc.Track(&operations, p.log), rpc.Log(p.log),
		rpc.Measure(telemetry.NewRPCs(p.registry, &operations).Began), rpc.Codes(cfg.DriverName), rpc.Deadline(longestRPC), rpc.Recover(p.log))

	listener, web, err := listen(cfg, deps)
	if err != nil {
		return err
	}
	if web != nil {
		p.beside(work, "the pages", func() error {
			return ServeHTTP(work, web, pages(cfg, p.registry, ready, onStartup, &operations))
		})
		// Without the page of the metrics nobody would see the result.
		p.beside(work, "the checks of the clouds", func() error { checks.run(work, ready); return nil })
	}
	p.beside(work, "the reload of the configuration", func() error { p.conf.follow(work); return nil })
	p.log.Info("serving", "driver", cfg.DriverName, "version", deps.Version, "address", listener.Addr().String(),
		"controller", cfg.Controller, "node", cfg.Node, "clouds", len(p.clouds()), "topology", cfg.WithTopology, "strict", cfg.Strict)
	err = serve(ctx, work, server, listener, cfg.DrainTimeout)
	stop()
	return errors.Join(err, p.background.Wait())
}

// restartPause is how long after its panic a part of the driver begins again.
const restartPause = time.Second

// beside runs a part of the driver beside the server. After a panic it begins again, also where work has ended and run only tidies up. One defect must
// not end the operations of all volumes. An error ends the process.
func (p *process) beside(work context.Context, what string, run func() error) {
	p.background.Go(func() error {
		for {
			last := work.Err() != nil
			err := panics.Try(run)
			if !panics.Log(p.log, what, err) {
				return err
			}
			if last {
				return nil
			}
			_ = volume.Sleep(work, restartPause)
		}
	})
}

// clouds are the names of the clouds that this process uses. A node uses none.
func (p *process) clouds() []string {
	if !p.cfg.Controller {
		return nil
	}
	return p.cfg.CloudNames
}

// listen opens the endpoint of the web pages, which is nil without --http-endpoint, and then that of the RPCs. A driver whose port is taken ends, and
// must leave the socket of the driver that has the port.
func listen(cfg config.Config, deps Dependencies) (rpcs, web net.Listener, err error) {
	rpcs, web = deps.Listener, deps.Web
	if web == nil && cfg.HTTPEndpoint != "" {
		if web, err = net.Listen("tcp", cfg.HTTPEndpoint); err != nil {
			return nil, nil, fmt.Errorf("cannot listen on --http-endpoint: %w", err)
		}
	}
	if rpcs == nil {
		if rpcs, err = rpc.Listen(cfg.Endpoint); err != nil {
			if web != nil {
				_ = web.Close()
			}
			return nil, nil, err
		}
	}
	return rpcs, web, nil
}

// drainTime is how long calls without a caller may take after the last RPC. Kubernetes kills the process after 30 seconds.
const drainTime = 8 * time.Second

// drain waits for the calls of a service that outlive their callers, once the server has ended.
func drain(work context.Context, service interface{ Drain(context.Context) }) {
	<-work.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), drainTime)
	defer cancel()
	service.Drain(ctx)
}

// serve serves RPCs until ctx ends or the background work fails.
func serve(ctx, work context.Context, server *rpc.Server, listener net.Listener, grace time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(work, cancel)()
	return server.Serve(ctx, listener, grace)
}

// ended returns nil for a canceled context, which is a clean end.
func ended(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// withDefaults fills in what is not set: the streams, the environment, the file watcher and the random source of the process.
func (d Dependencies) withDefaults() Dependencies {
	if d.Stderr == nil {
		d.Stderr = os.Stderr
	}
	if d.Env == nil {
		d.Env = os.Getenv
	}
	if d.Watch == nil {
		d.Watch = cloud.Watch
	}
	if d.Rand == nil {
		d.Rand = rand.Float64
	}
	d.Version = cmp.Or(d.Version, "unknown")
	return d
}

// newRegistry returns the metrics that every process has.
func newRegistry(version string) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	telemetry.NewBuild(registry, version)
	telemetry.NewPanics(registry, panics.Seen)
	return registry
}

func newLog(w io.Writer, cfg config.Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.LogLevel()}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
