package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/telemetry"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

const (
	// cloudCheckInterval is how often the driver asks whether the clouds answer, although no RPC comes. One round sends one GET to each of
	// Keystone, Cinder and Nova, without a token. On a busy Keystone of Zed such a GET took 17 to 66 ms, and one about the credential 3.5 s.
	cloudCheckInterval = time.Minute
	// firstCloudCheck is between two loads of the configuration, which are on the full minute.
	firstCloudCheck = cloudCheckInterval / 2
	// expiryRounds is after how many rounds the driver asks Keystone when the credential expires. That needs a token, so Keystone looks into its
	// database. Zed shows it to the credential itself, also with access rules that do not name the request.
	expiryRounds = 10
)

// The services that the driver needs, as the catalog names them.
const keystone, cinder, nova = "identity", "block-storage", "compute"

// cloudChecks finds out whether the clouds answer, for /readyz and for the metrics. Callers of ready and of round must not overlap with
// themselves.
type cloudChecks struct {
	names              []string
	clouds             func() []*cloud.Live
	metrics            *telemetry.Checks
	log                *slog.Logger
	keystone, services map[string]string       // the last errors in the log
	expiring           map[string]*cloud.Cloud // the login to which the metric of the expiry belongs
}

func newCloudChecks(names []string, clouds func() []*cloud.Live, metrics *telemetry.Checks, log *slog.Logger) *cloudChecks {
	c := &cloudChecks{names: names, clouds: clouds, metrics: metrics, log: log, keystone: map[string]string{}, services: map[string]string{}, expiring: map[string]*cloud.Cloud{}}
	for _, name := range names {
		for _, service := range []string{keystone, cinder, nova} {
			metrics.Unavailable(name, service, "", cloud.Failures)
		}
	}
	return c
}

// ready returns an error if a cloud does not answer. Anybody who reaches the endpoint gets it, so it contains no address, user or cause.
// The log has those, once for each change.
func (c *cloudChecks) ready(ctx context.Context) error {
	var unready error
	for i, err := range each(c.clouds(), func(_ int, live *cloud.Live) error {
		its, err := live.Current(ctx)
		if err == nil {
			err = its.Ping(ctx)
		}
		return err
	}) {
		name := c.names[i]
		c.metrics.Unavailable(name, keystone, cloud.FailureOf(err), cloud.Failures)
		if c.changed(c.keystone, name, err) {
			c.log.Warn("not ready: the driver cannot use a cloud", "cloud", name, "error", err)
		}
		if err != nil && unready == nil {
			unready = fmt.Errorf("the driver cannot use cloud %q now; its log has the reason", name)
		}
	}
	return unready
}

// changed reports whether an error is not the last one.
func (c *cloudChecks) changed(last map[string]string, key string, err error) bool {
	text := ""
	if err != nil {
		text = err.Error()
	}
	before := last[key]
	last[key] = text
	return text != "" && text != before
}

// run checks the clouds until ctx ends. ready is the shared check.
func (c *cloudChecks) run(ctx context.Context, ready func(context.Context) error) {
	next := time.NewTimer(firstCloudCheck)
	defer next.Stop()
	for round := 0; ; round++ {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		_ = ready(ctx) // it sets the metric and writes the log
		for i, live := range c.clouds() {
			c.checkServices(ctx, c.names[i], live, round%expiryRounds == 0)
		}
		next.Reset(cloudCheckInterval)
	}
}

// checkServices asks Cinder and Nova. Before the first login their addresses are unknown, and Keystone's metric says why.
func (c *cloudChecks) checkServices(ctx context.Context, name string, live *cloud.Live, expiry bool) {
	ctx, cancel := context.WithTimeout(ctx, 3*checkTimeout)
	defer cancel()
	its, err := live.Current(ctx)
	if err != nil {
		return
	}
	for _, service := range []string{cinder, nova} {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		err := its.PingService(ctx, service)
		if errors.Is(err, cloud.ErrUnreachable) {
			if next, moved := its.Relocated(ctx); moved {
				its, err = next, next.PingService(ctx, service)
			}
		}
		cancel()
		c.metrics.Unavailable(name, service, cloud.FailureOf(err), cloud.Failures)
		if c.changed(c.services, name+" "+service, err) {
			c.log.Warn("a service of the cloud does not answer", "cloud", name, "service", service, "error", err)
		}
	}
	another := c.expiring[name] != its
	if !expiry && !another {
		return
	}
	c.expiring[name] = its // whatever Keystone answers, the next question has time
	switch at, err := its.Expiry(ctx); {
	case err == nil:
		c.metrics.Expires(name, at)
	case another: // the value is that of a credential that is not in use any more
		c.metrics.Expires(name, time.Time{})
	case errors.Is(err, cloud.ErrUnreachable): // the old answer still counts
	default:
		c.log.Debug("Keystone does not say when the credential expires", "cloud", name, "error", err)
	}
}
