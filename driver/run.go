// Package driver connects the packages of cinder-csi-driver: configuration and dependencies become servers, probes and a drain. No other
// package does. It keeps the configuration in memory; after a restart it reads the files again.
package driver

import (
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

	"github.com/cinder-csi/cinder-csi/driver/attach"
	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/controller"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/identity"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/driver/openstack/transport"
	"github.com/cinder-csi/cinder-csi/driver/operation"
	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/rpc"
	"github.com/cinder-csi/cinder-csi/driver/snapshot"
	"github.com/cinder-csi/cinder-csi/driver/telemetry"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
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

// Run serves until ctx ends, and then waits for the RPCs in progress. It returns why the driver cannot start, the error of the listener, or nil
// after a clean end. The cloud may be unreachable: then RPCs return an error until it answers.
func Run(ctx context.Context, cfg config.Config, deps Dependencies) error {
	deps = deps.withDefaults()
	if err := cfg.Validate(); err != nil {
		return err
	}
	log := newLog(deps.Stderr, cfg)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	telemetry.NewBuild(registry, deps.Version)
	tracing, err := telemetry.StartTracing(ctx, deps.Env, cfg.DriverName, deps.Version)
	if err != nil {
		return err
	}
	defer func() { _ = tracing.Stop(ctx) }() // a collector that does not answer is no failure of the driver
	conf, err := readConfiguration(cfg, deps, log, telemetry.NewReload(registry))
	if err != nil {
		return err
	}

	// The clouds outlive ctx: RPCs in progress need them while the server drains.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	background, work := errgroup.WithContext(work)

	var services rpc.Services
	waitFor := 0
	if cfg.Controller {
		waitFor = len(cfg.CloudNames)
	}
	started := newStartup(waitFor, conf.ready)
	if cfg.Controller {
		clouds := map[string]controller.Cloud{}
		counter, quota := telemetry.NewOpenStack(registry), telemetry.NewQuota(registry)
		hubs, budgets, duplicates := telemetry.NewHubs(registry), telemetry.NewBudgets(registry), telemetry.NewDuplicates(registry)
		limits := cloud.NewLimits()
		for _, name := range cfg.CloudNames {
			live, err := conf.cloud(name, cloudOptions(cfg, deps, tracing, counter.Of(name), transport.NewBudget(cfg.Reads, cfg.Writes, budgets.Of(name)), limits))
			if err != nil {
				return err
			}
			log := log
			if name != "" {
				log = log.With("cloud", name)
			}
			adapter := openstack.NewCurrent(live.Current, log)
			at := startHubs(work, background, adapter, name, hubs)
			owner, locks, recent := idempotent.Owner{Driver: cfg.DriverName, Cluster: cfg.Cluster}, &inflight.Locks{}, &observe.Recent{}
			attachments := attach.New(at.cloud, at.volumes, attach.Options{Locks: locks, Recent: recent, Log: log})
			clouds[name] = controller.Cloud{
				Volumes: provision.New(at.cloud, at.volumes, provision.Options{
					Owner: owner, Locks: locks, Recent: recent, Log: log, CountDuplicate: duplicates.Of(name), ObserveQuotas: quota.Saw,
				}),
				Attachments: attachments,
				Snapshots: snapshot.New(at.cloud, at.volumes, at.snapshots, at.backups, snapshot.Options{
					Owner: owner, Locks: locks, Log: log, CountDuplicate: duplicates.Of(name),
				}),
			}
			background.Go(func() error { drain(work, attachments); return nil })
			background.Go(func() error { logLogin(work, live.Current, started.loggedIn, log); return nil })
		}
		claims, err := claimsOf(cfg, deps)
		if err != nil {
			return err
		}
		taints, err := startupTaints(cfg, deps, log)
		if err != nil {
			return err
		}
		if taints != nil {
			background.Go(func() error { taints.Run(work); return nil })
		}
		services.Controller = controller.New(controller.Options{
			Clouds: clouds, TopologyKey: cfg.TopologyKey(), WithTopology: cfg.WithTopology, IgnoreZone: conf.ignoreZone, ZoneMap: conf.zoneMap,
			DefaultFSType: cfg.DefaultFSType, Claims: claims, WithCapacity: cfg.WithCapacity, Strict: cfg.Strict, Lenient: telemetry.NewLenience(registry).Count, Log: log,
		})
	}
	if cfg.Node {
		node := newNode(cfg, conf.started, deps, registry, log)
		services.Node = node
		background.Go(func() error { drain(work, node); return nil })
	}

	services.Identity = identity.New(identity.Options{
		DriverName: cfg.DriverName, Version: deps.Version, WithTopology: cfg.WithTopology, Ready: started.probe,
	})

	// The first interceptor is the outermost. So the log shows the code that the caller gets, and a panic becomes an error before that.
	var operations operation.List
	server := rpc.NewServer(services, tracing.ServerOption(), rpc.Track(&operations, log), rpc.Log(log), rpc.Measure(telemetry.NewRPCs(registry, &operations)), rpc.Codes(), rpc.Deadline(longestRPC), rpc.Recover(log))

	listener := deps.Listener
	if listener == nil {
		if listener, err = rpc.Listen(cfg.Endpoint); err != nil {
			return err
		}
	}
	web := deps.Web
	if web == nil && cfg.HTTPEndpoint != "" {
		if web, err = net.Listen("tcp", cfg.HTTPEndpoint); err != nil {
			_ = listener.Close()
			return fmt.Errorf("cannot listen on --http-endpoint: %w", err)
		}
	}
	if web != nil {
		background.Go(func() error {
			return serveHTTP(work, web, pages(cfg, registry, conf.ready, started.ready, &operations))
		})
	}
	background.Go(func() error { conf.follow(work); return nil })
	log.Info("serving", "driver", cfg.DriverName, "version", deps.Version, "address", listener.Addr().String(),
		"controller", cfg.Controller, "node", cfg.Node, "clouds", len(conf.clouds), "topology", cfg.WithTopology, "strict", cfg.Strict)
	err = serve(ctx, work, server, listener, cfg.DrainTimeout)
	stop()
	return errors.Join(err, background.Wait())
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
	if d.Version == "" {
		d.Version = "unknown"
	}
	return d
}

func newLog(w io.Writer, cfg config.Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.LogLevel()}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// cloudOptions are the options of the connection to a cloud.
func cloudOptions(cfg config.Config, deps Dependencies, tracing *telemetry.Tracing, counter *telemetry.CloudRequests, budget *transport.Budget, limits *cloud.Limits) cloud.Options {
	return cloud.Options{
		Transport: deps.Transport,
		UserAgent: append(append([]string{}, cfg.UserAgent...), "cinder-csi-driver/"+deps.Version),
		Wrap: func(next http.RoundTripper) http.RoundTripper {
			return transport.Retry(budget.Limit(transport.Count(tracing.Transport(limits.Bound(next)), counter)), deps.Rand)
		},
	}
}

// logLogin logs in once, so that the log reports wrong credentials before the first claim.
func logLogin(ctx context.Context, current cloud.Current, loggedIn func(), log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := current(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
	case err != nil:
		log.Error("cannot log in to the cloud; the driver tries again for every RPC", "error", err)
	default:
		loggedIn()
		log.Info("logged in", "url", c.AuthURL(), "region", c.Region(), "project", c.ProjectID())
		for _, address := range c.Unencrypted() {
			log.Warn("the catalog of the cloud has a URL without encryption; an attacker on the network can read the token", "url", address)
		}
	}
}
