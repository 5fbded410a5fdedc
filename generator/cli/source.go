package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/doctor"
	"github.com/cinder-csi/cinder-csi/generator/inspect"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// source says where an inventory comes from.
type source struct {
	cloudName, region, caCert string
	inventory                 string
	simulated                 bool
	offline                   bool // the command has --inventory
	*common

	traffic    *doctor.Traffic // watches the requests, if there is one
	weaknesses []string        // of the settings of the login, once connected
	caFile     string          // that the login trusts in place of the CAs of the system
}

func (s *source) flags(c *cobra.Command) {
	s.cloudFlags(c)
	s.offline = true
	c.Flags().StringVar(&s.inventory, "inventory", "", "work offline from an inventory saved by inspect (- is stdin)")
}

// cloudFlags are for commands that ask the cloud itself.
func (s *source) cloudFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.cloudName, "os-cloud", "", "the cloud's entry in clouds.yaml; default OS_CLOUD, or the OS_* variables")
	f.StringVar(&s.region, "os-region-name", "", "region; default OS_REGION_NAME, or what clouds.yaml says")
	f.StringVar(&s.caCert, "os-cacert", "", "PEM file of the cloud's CA; default OS_CACERT, or what clouds.yaml says")
	f.BoolVar(&s.simulated, "simulated", false, "use a simulated cloud; what is made from it says so")
}

// check finds flags that do not go together.
func (s *source) check() error {
	asksCloud := s.cloudName != "" || s.region != "" || s.caCert != ""
	switch {
	case s.inventory != "" && s.simulated:
		return usage("--inventory and --simulated are two sources; choose one")
	case s.inventory != "" && asksCloud:
		return usage("--inventory asks no cloud: --os-cloud, --os-region-name and --os-cacert do not go with it")
	case s.simulated && asksCloud:
		return usage("--simulated asks no real cloud: --os-cloud, --os-region-name and --os-cacert do not go with it")
	}
	return nil
}

// read gives the inventory of the chosen source.
func (s *source) read(ctx context.Context, w *World) (v1alpha1.Inventory, error) {
	if err := s.check(); err != nil {
		return v1alpha1.Inventory{}, err
	}
	if s.inventory != "" {
		content, err := readFile(w, s.inventory)
		if errors.Is(err, os.ErrNotExist) {
			return v1alpha1.Inventory{}, usage("--inventory: %w; cinder-csi-generator inspect --os-cloud NAME --save %s makes it", err, shell.Word(s.inventory))
		}
		if err != nil {
			return v1alpha1.Inventory{}, fmt.Errorf("--inventory: %w", err)
		}
		inventory, err := v1alpha1.DecodeInventory(s.inventory, content)
		if why := notAnInventory(s.inventory, content); err != nil && why != "" {
			return v1alpha1.Inventory{}, usage("%s", why)
		}
		return inventory, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("no complete answer within %s (--timeout)", s.timeout))
	defer cancel()
	c, err := s.connect(ctx, w)
	if err != nil {
		return v1alpha1.Inventory{}, err
	}
	defer c.Close()
	if err := c.CheckPlace("block-storage", "compute"); err != nil {
		w.warn("the driver cannot work with this login: " + err.Error())
	}
	inv, err := inspect.Inspect(ctx, c, w.progress())
	w.endProgress()
	inv.Simulated = s.simulated
	return inv, err
}

func (s *source) connect(ctx context.Context, w *World) (*cloud.Cloud, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.simulated {
		return w.Simulate(ctx)
	}
	if s.cloudName == "" && w.Env("OS_CLOUD") == "" && w.Env("OS_AUTH_URL") == "" {
		saved := ""
		if s.offline {
			saved = " a saved inventory with --inventory,"
		}
		return nil, usage("no source: name a cloud with --os-cloud,%s or try --simulated", saved)
	}
	settings, err := cloud.FromSource(cloud.Source{CloudName: s.cloudName, Region: s.region, CACert: s.caCert, Env: w.Env})
	if err != nil {
		return nil, err
	}
	s.weaknesses, s.caFile = settings.Weaknesses(), settings.CACertFile
	for _, key := range settings.Unread {
		w.warn(key)
	}
	for _, weakness := range s.weaknesses {
		w.warn(weakness)
	}
	options := cloud.Options{UserAgent: []string{"cinder-csi-generator/" + w.Version}, Wrap: s.wrap(w)}
	c, err := w.Connect(ctx, settings, options)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return c, err
}

// wrap is what lies around the transport of a cloud: limits, and what watches the requests.
func (s *source) wrap(w *World) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		next = cloud.Bound(next)
		if s.traffic != nil {
			next = s.traffic.Watch(next)
		}
		if s.verbose {
			next = &requestLog{next: next, out: w.Stderr}
		}
		if s.traffic != nil {
			return next // doctor reports what it sees, a hiccup too
		}
		return w.retry(next)
	}
}

// requestLog shows each request's method, URL and outcome; never a header or body, where the secrets are.
type requestLog struct {
	next http.RoundTripper
	lock sync.Mutex
	out  io.Writer
}

func (l *requestLog) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := l.next.RoundTrip(r)
	outcome := "failed"
	if err == nil {
		outcome = fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	address := *r.URL
	address.User = nil
	l.lock.Lock()
	defer l.lock.Unlock()
	fmt.Fprintf(l.out, "%s %s: %s in %s\n", r.Method, cloud.Public(address.String()), outcome, time.Since(began).Round(time.Millisecond))
	return resp, err
}

// progress shows what has been read on one line that is overwritten; nothing where nobody watches.
func (w *World) progress() inspect.Progress {
	if !w.Terminal {
		return nil
	}
	n := 0
	return func(done string) {
		n++
		fmt.Fprintf(w.progressTo, "\r\x1b[Kinspecting: %d of %d: %s", n, inspect.Steps, done)
	}
}

func (w *World) endProgress() {
	if w.Terminal {
		fmt.Fprint(w.progressTo, "\r\x1b[K")
	}
}
