package driver

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/attach"
	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/controller"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/driver/openstack/transport"
	"github.com/cinder-csi/cinder-csi/driver/ownership"
	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/snapshot"
	"github.com/cinder-csi/cinder-csi/driver/telemetry"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// newController returns the controller service of all clouds. It calls loggedIn after the first login to each cloud.
func (p *process) newController(work context.Context, loggedIn func()) (*controller.Server, error) {
	clouds := map[string]controller.Cloud{}
	shared := &sharedByClouds{
		requests: telemetry.NewOpenStack(p.registry), budgets: telemetry.NewBudgets(p.registry),
		hubs: telemetry.NewHubs(p.registry), quota: telemetry.NewQuota(p.registry), duplicates: telemetry.NewDuplicates(p.registry),
	}
	for _, name := range p.clouds() {
		services, err := p.newCloud(work, name, shared, loggedIn)
		if err != nil {
			return nil, err
		}
		clouds[name] = services
	}
	claims, err := claimsOf(p.cfg, p.deps)
	if err != nil {
		return nil, err
	}
	taints, err := startupTaints(p.cfg, p.deps, p.log)
	if err != nil {
		return nil, err
	}
	if taints != nil {
		p.beside(work, "the start-up taints", func() error { taints.Run(work); return nil })
	}
	return controller.New(controller.Options{
		Clouds: clouds, TopologyKey: p.cfg.TopologyKey(), WithTopology: p.cfg.WithTopology, IgnoreZone: p.conf.ignoreZone, ZoneMap: p.conf.zoneMap,
		DefaultFSType: p.cfg.DefaultFSType, Claims: claims, WithCapacity: p.cfg.WithCapacity, Strict: p.cfg.Strict,
		Lenient: telemetry.NewLenience(p.registry), Log: p.log,
	}), nil
}

// sharedByClouds is what the clouds of one process share.
type sharedByClouds struct {
	requests   *telemetry.OpenStack
	budgets    *telemetry.Budgets
	hubs       *telemetry.Hubs
	quota      *telemetry.Quota
	duplicates *telemetry.Duplicates
}

// newCloud returns the domain services of one cloud. It logs in in the background.
func (p *process) newCloud(work context.Context, name string, shared *sharedByClouds, loggedIn func()) (controller.Cloud, error) {
	log := p.log
	if name != "" {
		log = log.With("cloud", name)
	}
	budget := transport.NewBudget(p.cfg.Reads, p.cfg.Writes, shared.budgets.Of(name))
	live, err := p.conf.cloud(name, p.cloudOptions(shared.requests.Of(name), budget))
	if err != nil {
		return controller.Cloud{}, err
	}
	at := p.startHubs(work, openstack.NewCurrent(live.Current, log), name, shared.hubs)
	owner, locks, recent := idempotent.Owner{Driver: p.cfg.DriverName, Cluster: p.cfg.Cluster, Common: p.cfg.VolumeMetadata}, &inflight.Locks{}, &observe.Recent{}
	protects := p.cfg.ProtectOthers != config.Off
	if protects {
		at = ownership.Guard(at, ownership.Rule{Owner: owner, Strict: p.cfg.ProtectOthers == config.Strict, Servers: p.cfg.ServerMetadata})
	}
	requests := &inflight.Calls{} // of all three services; attachments drains them
	attachments := attach.New(at.Cloud, at.Volumes, attach.Options{
		Locks: locks, Requests: requests, Recent: recent, ServerMetadata: p.cfg.ServerMetadata, Log: log,
	})
	p.beside(work, "the drain", func() error { drain(work, attachments); return nil })
	p.beside(work, "the first login", func() error { logLogin(work, live.Current, loggedIn, log); return nil })
	return controller.Cloud{
		Volumes: provision.New(at.Cloud, at.Volumes, provision.Options{
			Owner: owner, Locks: locks, Requests: requests, Recent: recent, Log: log, CountDuplicate: shared.duplicates.Of(name), ObserveQuotas: shared.quota.Saw,
		}),
		Attachments: attachments,
		Snapshots: snapshot.New(at.Cloud, at.Volumes, at.Snapshots, at.Backups, snapshot.Options{
			Owner: owner, Locks: locks, Requests: requests, KeepHidden: protects, Log: log, CountDuplicate: shared.duplicates.Of(name),
		}),
	}, nil
}

// cloudOptions are the options of the connection to a cloud. What observes is inside of what wraps, and the wrapper that is written last is the
// innermost.
func (p *process) cloudOptions(requests *telemetry.CloudRequests, budget *transport.Budget) cloud.Options {
	return cloud.Options{
		Transport: p.deps.Transport,
		UserAgent: append(append([]string{}, p.cfg.UserAgent...), "cinder-csi-driver/"+p.deps.Version),
		Observe: func(next http.RoundTripper) http.RoundTripper {
			return transport.Count(p.tracing.Transport(next), requests)
		},
		Wrap: func(next http.RoundTripper) http.RoundTripper {
			return transport.Retry(budget.Limit(next), p.deps.Rand)
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
	}
}
