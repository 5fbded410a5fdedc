// Package driver puts the parts of cinder-csi-driver together. This is the only place where they meet.
package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/cinder-csi/cinder-csi/driver/controller"
	"github.com/cinder-csi/cinder-csi/driver/identity"
	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/driver/openstack/status"
	"github.com/cinder-csi/cinder-csi/driver/rpc"
	"github.com/cinder-csi/cinder-csi/driver/telemetry"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

// Dependencies are the world outside the process. The zero value is the real one.
type Dependencies struct {
	Version string
	// Stderr gets the log; os.Stderr when nil.
	Stderr io.Writer
	// Listener answers instead of the configured endpoint.
	Listener net.Listener
	// Transport sends requests to OpenStack and to the metadata service; one per cloud, with its TLS settings, when nil.
	Transport http.RoundTripper
	// Env is the process's environment; os.Getenv when nil.
	Env func(string) string
}

// longestRPC bounds an RPC whose caller set no deadline; the sidecars' own is three minutes.
const longestRPC = 5 * time.Minute

// Run serves until ctx ends, and then lets the RPCs under way finish. Its errors are what keeps the driver from starting, or the
// listener's; nil is a clean end. The cloud need not answer: RPCs say so until it does.
func Run(ctx context.Context, cfg config.Config, deps Dependencies) error {
	deps = deps.orReal()
	if err := cfg.Validate(); err != nil {
		return err
	}
	log := newLog(deps.Stderr, cfg)
	file, settings, err := readConf(cfg, log)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	// The clouds outlive ctx: RPCs under way still need them while the server drains.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	background, work := errgroup.WithContext(work)

	var services rpc.Services
	var clouds []cloud.Current
	_, canExpand := any((*openstack.Cloud)(nil)).(volume.Extender) // a node's process tells it too: the plugin's, not the process's
	if cfg.Controller {
		volumes, snapshots := map[string]controller.Volumes{}, map[string]controller.Snapshots{}
		counter := telemetry.NewOpenStack(registry)
		for _, name := range cfg.CloudNames {
			current, err := newCloud(file, name, cfg, deps, counter)
			if err != nil {
				return err
			}
			clouds = append(clouds, current)
			log := log
			if name != "" {
				log = log.With("cloud", name)
			}
			adapter := openstack.NewCurrent(current, log)
			hub, snapshotHub, backupHub := status.NewHub(adapter), status.NewSnapshotHub(adapter), status.NewBackupHub(adapter)
			background.Go(func() error { return ended(hub.Run(work)) })
			background.Go(func() error { return ended(snapshotHub.Run(work)) })
			background.Go(func() error { return ended(backupHub.Run(work)) })
			its := volume.NewVolumes(adapter, hub, volume.Options{Driver: cfg.DriverName, Cluster: cfg.Cluster, Log: log})
			volumes[name], snapshots[name] = its, volume.NewSnapshots(its, snapshotHub, backupHub)
			background.Go(func() error { greet(work, current, log); return nil })
		}
		services.Controller = controller.New(controller.Options{
			Clouds: volumes, Snapshots: snapshots, TopologyKey: cfg.TopologyKey(), WithTopology: cfg.WithTopology, IgnoreZone: settings.IgnoreZone,
			CanExpand: canExpand, Strict: cfg.Strict, Log: log,
		})
	}
	if cfg.Node {
		services.Node = newNode(cfg, settings, deps, log)
	}

	services.Identity = identity.New(identity.Options{
		DriverName: cfg.DriverName, Version: deps.Version, WithTopology: cfg.WithTopology, CanExpand: canExpand,
	})

	// The first is the outermost: the log shows the code that the caller gets, and a panic becomes an error before both.
	server := rpc.NewServer(services, rpc.Log(log), rpc.Codes(), rpc.Deadline(longestRPC), rpc.Recover(log))

	listener := deps.Listener
	if listener == nil {
		if listener, err = rpc.Listen(cfg.Endpoint); err != nil {
			return err
		}
	}
	if cfg.HTTPEndpoint != "" {
		web, err := net.Listen("tcp", cfg.HTTPEndpoint)
		if err != nil {
			_ = listener.Close()
			return fmt.Errorf("cannot listen on --http-endpoint: %w", err)
		}
		background.Go(func() error { return serveHTTP(work, web, registry, clouds) })
	}
	log.Info("serving", "driver", cfg.DriverName, "version", deps.Version, "address", listener.Addr().String(),
		"controller", cfg.Controller, "node", cfg.Node, "clouds", len(clouds), "topology", cfg.WithTopology, "strict", cfg.Strict)
	err = serve(ctx, work, server, listener, cfg.DrainTimeout)
	stop()
	return errors.Join(err, background.Wait())
}

// serve answers until ctx ends or the work behind the server fails.
func serve(ctx, work context.Context, server *rpc.Server, listener net.Listener, grace time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(work, cancel)()
	return server.Serve(ctx, listener, grace)
}

// ended takes the end of a context for a clean end.
func ended(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (d Dependencies) orReal() Dependencies {
	if d.Stderr == nil {
		d.Stderr = os.Stderr
	}
	if d.Env == nil {
		d.Env = os.Getenv
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

// readConf reads cloud.conf. What nobody knows in it is warned about, or refused if the driver is strict. A node does without the
// file, as upstream's does.
func readConf(cfg config.Config, log *slog.Logger) (*cloudconf.File, config.Settings, error) {
	file, err := config.ReadFiles(os.ReadFile, cfg.CloudConfig...)
	if errors.Is(err, fs.ErrNotExist) && !cfg.Controller {
		log.Warn("the node goes on with the defaults", "reason", err)
		file, err = &cloudconf.File{}, nil
	}
	if err != nil {
		return nil, config.Settings{}, err
	}
	settings, complaints, err := config.ParseSettings(file)
	if err != nil {
		return nil, config.Settings{}, fmt.Errorf("cloud.conf: %w", err)
	}
	for _, complaint := range complaints {
		if cfg.Strict {
			err = errors.Join(err, fmt.Errorf("cloud.conf: %s", complaint))
		}
		log.Warn("cloud.conf holds what nobody reads", "problem", complaint)
	}
	for _, flag := range cfg.Ineffective() {
		log.Warn("a flag does nothing", "flag", flag)
	}
	return file, settings, err
}

// newCloud gives the cloud of one [Global] section, which is logged in to when it is first asked.
func newCloud(file *cloudconf.File, name string, cfg config.Config, deps Dependencies, counter *telemetry.OpenStack) (cloud.Current, error) {
	settings, err := cloud.FromConf(file, name, deps.Env)
	if err != nil {
		return nil, err
	}
	return cloud.Lazy(settings, cloud.Options{
		Transport: deps.Transport,
		UserAgent: append(append([]string{}, cfg.UserAgent...), "cinder-csi-driver/"+deps.Version),
		Wrap: func(next http.RoundTripper) http.RoundTripper {
			return openstack.Retry{Next: counter.Count(next), Rand: rand.Float64}
		},
	}), nil
}

// greet logs in once, so that wrong credentials show in the log before the first claim.
func greet(ctx context.Context, current cloud.Current, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := current(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
	case err != nil:
		log.Error("cannot log in to the cloud yet; every RPC tries again", "error", err)
	default:
		log.Info("logged in", "url", c.AuthURL(), "region", c.Region(), "project", c.ProjectID())
	}
}
