package driver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/telemetry"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
	"github.com/cinder-csi/cinder-csi/internal/panics"
)

const (
	// rereadInterval is how often the driver reads the files without an event: inotify does not work on every file system.
	rereadInterval = time.Minute
	// settleTime is how long the driver waits after an event. A program may write a file in parts, and kubelet replaces a mounted Secret
	// by several renames.
	settleTime = 250 * time.Millisecond
)

// configuration is cloud.conf and the files that it names. The driver reloads them while it runs. Its memory holds the latest valid
// configuration, and which warnings the log has. After a restart the driver reads the files again. It does not start if they are invalid.
type configuration struct {
	cfg     config.Config
	deps    Dependencies
	log     *slog.Logger
	metrics *telemetry.Reload
	started config.Settings                 // at the start; some options need a restart
	options atomic.Pointer[config.Settings] // latest valid ones
	clouds  []*cloud.Live
	failure string // the last failure of follow in the log

	mu     sync.Mutex      // of the fields below, never held during a call
	logged map[string]bool // warnings that the log has
	weak   map[string]int  // number of insecure settings, by cloud, and those of the endpoint and of each catalog
}

// endpoint is the key of weak for --endpoint, and inCatalog is the end of those for catalogs. No section of cloud.conf has such a name.
const (
	endpoint  = "\x00endpoint"
	inCatalog = "\x00catalog"
)

// readConfiguration reads cloud.conf. Unknown content is a warning, or an error if the driver is strict.
func readConfiguration(cfg config.Config, deps Dependencies, log *slog.Logger, metrics *telemetry.Reload) (*configuration, error) {
	c := &configuration{cfg: cfg, deps: deps, log: log, metrics: metrics, logged: map[string]bool{}, weak: map[string]int{}}
	_, options, complaints, err := c.read()
	if err != nil {
		return nil, err
	}
	c.started = options
	c.options.Store(&options)
	c.complain(complaints)
	if exposed := cfg.Exposed(); exposed != "" {
		c.weaknesses(endpoint, []string{exposed})
	}
	return c, nil
}

// read reads the present cloud.conf. As in upstream, a node does not need the file. With --strict, complaints are errors.
func (c *configuration) read() (file *cloudconf.File, options config.Settings, complaints []string, err error) {
	file, err = config.ReadFiles(os.ReadFile, c.cfg.CloudConfig...)
	if errors.Is(err, fs.ErrNotExist) && !c.cfg.Controller {
		return &cloudconf.File{}, config.Settings{}, []string{"the node uses the defaults: " + err.Error()}, nil
	}
	if err != nil {
		return nil, config.Settings{}, nil, err
	}
	options, complaints, err = config.ParseSettings(file)
	if err != nil {
		return nil, config.Settings{}, nil, fmt.Errorf("cloud.conf: %w", err)
	}
	if c.cfg.Strict {
		for _, complaint := range complaints {
			err = errors.Join(err, fmt.Errorf("cloud.conf: %s", complaint))
		}
	}
	return file, options, complaints, err
}

func (c *configuration) complain(complaints []string) {
	c.metrics.Complaints(len(complaints))
	for _, complaint := range complaints {
		c.warn("cloud.conf has a problem", complaint)
	}
}

// cloud returns the cloud of one [Global] section. The driver logs in with the first request.
func (c *configuration) cloud(name string, options cloud.Options) (live *cloud.Live, err error) {
	live, err = cloud.NewLive(func() (cloud.Settings, error) {
		file, _, _, err := c.read()
		if err != nil {
			return cloud.Settings{}, err
		}
		settings, err := cloud.FromConf(file, name, c.deps.Env)
		if err == nil {
			c.weaknesses(name, settings.Weaknesses())
			c.note(settings.CANote)
			for _, key := range settings.Unread {
				c.warn("a key of clouds.yaml is not read", key)
			}
		}
		return settings, err
	}, cloud.LiveOptions{Options: options, Refused: func(ctx context.Context) { c.refused(ctx, name, live) }, Services: []string{cinder, nova}, LoggedIn: func(login *cloud.Cloud) {
		var all []string
		for _, address := range login.Unencrypted() {
			all = append(all, "cloud "+login.Name()+": the catalog has "+address+", which is not encrypted; an attacker on the network can read the token")
		}
		c.weaknesses(name+inCatalog, all)
	}, Moved: func(service, address string) {
		c.log.Warn("a service of the cloud has moved; the driver uses its new address from the catalog", "cloud", name, "service", service, "address", address)
	}})
	if err == nil {
		c.clouds = append(c.clouds, live)
	}
	return live, err
}

// weaknesses logs each insecure setting once. They are no errors with --strict, which refuses unknown settings: the administrator has chosen
// these.
func (c *configuration) weaknesses(cloud string, all []string) {
	c.mu.Lock()
	c.weak[cloud] = len(all)
	insecure := 0
	for _, n := range c.weak {
		insecure += n
	}
	c.metrics.Insecure(insecure)
	c.mu.Unlock()
	for _, weakness := range all {
		c.warn("a setting is insecure", weakness)
	}
}

// mostLogged are the warnings that are remembered, some 200 bytes each.
const mostLogged = 1_000

// first reports whether the log lacks a warning, which the caller then logs.
func (c *configuration) first(warning string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.logged[warning]
	if first && len(c.logged) == mostLogged { // a cloud may choose another text each time
		clear(c.logged)
	}
	c.logged[warning] = true
	return first
}

// warn logs each problem once.
func (c *configuration) warn(message, problem string) {
	if c.first(problem) {
		c.log.Warn(message, "problem", problem)
	}
}

// note logs once which CA file the driver uses, if it is not the one that clouds.yaml names.
func (c *configuration) note(text string) {
	if text != "" && c.first(text) {
		c.log.Info("chose the CA file of a cloud", "reason", text)
	}
}

// ignoreZone is the present value of ignore-volume-az in cloud.conf.
func (c *configuration) ignoreZone() bool { return c.options.Load().IgnoreZone }

// zoneMap are the present [Zone] sections of cloud.conf.
func (c *configuration) zoneMap() contract.ZoneMap { return c.options.Load().ZoneMap }

// follow reloads whenever a file changes, until ctx ends.
func (c *configuration) follow(ctx context.Context) {
	tick := time.NewTicker(rereadInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		files := c.files()
		watching, stop := context.WithCancel(ctx)
		changed, err := c.deps.Watch(watching, files)
		if err != nil {
			c.log.Debug("cannot watch every configuration file; the driver notices some changes only after up to a minute", "reason", err)
		}
		c.followFiles(ctx, files, changed, tick.C)
		stop()
	}
}

// followFiles reloads until the list of files changes or ctx ends.
func (c *configuration) followFiles(ctx context.Context, files []string, changed <-chan struct{}, tick <-chan time.Time) {
	for ctx.Err() == nil && slices.Equal(c.files(), files) {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		case <-changed:
			select {
			case <-ctx.Done():
				return
			case <-time.After(settleTime):
			}
		}
		c.reload(ctx)
	}
}

func (c *configuration) files() []string {
	files := slices.Clone(c.cfg.CloudConfig)
	file, _, _, err := c.read()
	if err != nil || !c.cfg.Controller {
		return files
	}
	for _, name := range c.cfg.CloudNames {
		files = append(files, cloud.ConfFiles(file, name, c.deps.Env)...)
	}
	return files
}

// reload reads all files again and applies the changes. The driver keeps the old configuration if the new one is invalid, and the old login of a
// cloud that refuses the new one.
func (c *configuration) reload(ctx context.Context) {
	changed, err := c.apply(ctx)
	if len(changed) > 0 || err == nil && c.failure != "" {
		c.log.Info("reloaded the configuration", "changed", changed)
	}
	switch {
	case err != nil && ctx.Err() != nil: // the driver stops; that says nothing about the files
	case err != nil:
		c.metrics.Done(err)
		if err.Error() != c.failure {
			c.log.Error("cannot use the changed configuration; the driver keeps the old one and retries every minute", "error", err)
		}
		c.failure = err.Error()
	case len(changed) > 0 || c.failure != "":
		c.metrics.Done(nil)
		c.failure = ""
	}
}

// refused reads the settings of a cloud again that has refused its credentials. It asks no other cloud, which may not answer. follow does the rest,
// and reports a failure.
func (c *configuration) refused(ctx context.Context, name string, live *cloud.Live) {
	if changed, _ := live.Reload(ctx); changed {
		c.metrics.Done(nil)
		c.log.Info("reloaded the configuration", "changed", []string{section(name)})
	}
}

func section(cloud string) string { return strings.TrimSpace(config.Global + " " + cloud) }

// apply reads cloud.conf, logs in again where the login has changed, and lists the changes. Each cloud is for itself: the operator of one must not
// keep the credentials of another from being replaced. The options belong to all logins, and wait for them.
func (c *configuration) apply(ctx context.Context) (changed []string, err error) {
	_, options, complaints, err := c.read()
	if err != nil {
		return nil, err
	}
	replaced := make([]bool, len(c.clouds))
	err = errors.Join(each(c.clouds, func(i int, live *cloud.Live) (err error) {
		replaced[i], err = live.Reload(ctx)
		return err
	})...)
	for i, name := range c.cfg.CloudNames[:len(replaced)] {
		if replaced[i] {
			changed = append(changed, section(name))
		}
	}
	if err != nil {
		return changed, err
	}
	if old := c.options.Swap(&options); !old.Equal(options) {
		changed = append(changed, "options")
		for _, key := range options.NeedRestart(c.started) {
			c.log.Warn("an option of cloud.conf has changed; it takes effect when the driver restarts", "option", key)
		}
	}
	c.complain(complaints)
	return changed, nil
}

// each asks all clouds at the same time, so that one that does not answer takes no time from another, and returns their errors.
func each(clouds []*cloud.Live, ask func(i int, live *cloud.Live) error) []error {
	failed := make([]error, len(clouds))
	var all sync.WaitGroup
	for i, live := range clouds {
		all.Go(func() { failed[i] = panics.Try(func() error { return ask(i, live) }) })
	}
	all.Wait()
	return failed
}
