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
	"sync/atomic"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/telemetry"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

const (
	// lookAgain is how often files are read even if nothing was seen to change: inotify does not see every file system.
	lookAgain = time.Minute
	// settle is how long a change is left to become whole: a file is written in parts, a mounted Secret in several renames.
	settle = 250 * time.Millisecond
)

// configuration is cloud.conf and whatever it names, followed while the driver runs.
type configuration struct {
	cfg     config.Config
	deps    Dependencies
	log     *slog.Logger
	metrics *telemetry.Reload
	started config.Settings                 // what the parts that cannot change were made with
	options atomic.Pointer[config.Settings] // the latest
	clouds  []*cloud.Live
	busy    chan struct{}          // the lock of what follows
	said    map[string]bool        // complaints that were logged
	weak    map[string]int         // settings that open the connection, by cloud
	unready atomic.Pointer[string] // why a cloud was not ready when that was last asked; empty when it was
	failure string                 // the last failure that was logged
}

// readConfiguration reads cloud.conf. What nobody knows in it is warned about, or refused if the driver is strict.
func readConfiguration(cfg config.Config, deps Dependencies, log *slog.Logger, metrics *telemetry.Reload) (*configuration, error) {
	c := &configuration{cfg: cfg, deps: deps, log: log, metrics: metrics, busy: make(chan struct{}, 1), said: map[string]bool{}, weak: map[string]int{}}
	_, options, complaints, err := c.read()
	if err != nil {
		return nil, err
	}
	c.started = options
	c.options.Store(&options)
	c.complain(complaints)
	for _, flag := range cfg.Ineffective() {
		log.Warn("a flag does nothing", "flag", flag)
	}
	return c, nil
}

// read reads cloud.conf as it is now. A node does without the file, as upstream's does. A strict driver's errors are the
// complaints.
func (c *configuration) read() (file *cloudconf.File, options config.Settings, complaints []string, err error) {
	file, err = config.ReadFiles(os.ReadFile, c.cfg.CloudConfig...)
	if errors.Is(err, fs.ErrNotExist) && !c.cfg.Controller {
		return &cloudconf.File{}, config.Settings{}, []string{"the node goes on with the defaults: " + err.Error()}, nil
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

// complain tells complaints that were not told before.
func (c *configuration) complain(complaints []string) {
	c.metrics.Complaints(len(complaints))
	for _, complaint := range complaints {
		if !c.said[complaint] {
			c.said[complaint] = true
			c.log.Warn("cloud.conf is not as it should be", "problem", complaint)
		}
	}
}

// cloud gives the cloud of one [Global] section, which is logged in to when it is first asked.
func (c *configuration) cloud(name string, options cloud.Options) (*cloud.Live, error) {
	live, err := cloud.NewLive(func() (cloud.Settings, error) {
		file, _, _, err := c.read()
		if err != nil {
			return cloud.Settings{}, err
		}
		settings, err := cloud.FromConf(file, name, c.deps.Env)
		if err == nil {
			c.weaknesses(name, settings.Weaknesses())
		}
		return settings, err
	}, cloud.LiveOptions{Options: options, Refused: c.reload})
	if err == nil {
		c.clouds = append(c.clouds, live)
	}
	return live, err
}

// weaknesses warns once of each setting that opens the connection to a cloud. They are warned about with --strict too: it refuses
// what nobody knows, and these the administrator has set on purpose.
func (c *configuration) weaknesses(cloud string, all []string) {
	c.weak[cloud] = len(all)
	open := 0
	for _, n := range c.weak {
		open += n
	}
	c.metrics.Insecure(open)
	for _, weakness := range all {
		if !c.said[weakness] {
			c.said[weakness] = true
			c.log.Warn("the connection to a cloud is open", "problem", weakness)
		}
	}
}

// ignoreZone is cloud.conf's ignore-volume-az as it is now.
func (c *configuration) ignoreZone() bool { return c.options.Load().IgnoreZone }

// zoneMap is cloud.conf's [Zone] sections as they are now.
func (c *configuration) zoneMap() contract.ZoneMap { return c.options.Load().ZoneMap }

// follow reloads whenever a file changes, until ctx ends.
func (c *configuration) follow(ctx context.Context) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for ctx.Err() == nil {
		files := c.files()
		watching, stop := context.WithCancel(ctx)
		changed, err := c.deps.Watch(watching, files)
		if err != nil {
			c.log.Debug("some changes of configuration files are seen only after up to a minute", "reason", err)
		}
		c.followFiles(ctx, files, changed, tick.C)
		stop()
	}
}

// followFiles reloads until other files are to be watched or ctx ends.
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
			case <-time.After(settle):
			}
		}
		c.reload(ctx)
	}
}

// files lists what decides the configuration.
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

// reload reads everything again and takes what has changed. What is broken, or refused by the cloud, leaves the old in use.
func (c *configuration) reload(ctx context.Context) {
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	case <-ctx.Done():
		return
	}
	changed, err := c.take(ctx)
	switch {
	case ctx.Err() != nil: // an impatient caller's failure says nothing
	case err != nil:
		c.metrics.Done(err)
		if err.Error() != c.failure {
			c.log.Error("a changed configuration cannot be used; the old one stays in use, and the change is tried again every minute", "error", err)
		}
		c.failure = err.Error()
	case len(changed) > 0 || c.failure != "":
		c.metrics.Done(nil)
		c.failure = ""
		c.log.Info("the configuration is reloaded", "changed", changed)
	}
}

// take reads cloud.conf, logs in where that has changed, and says what has.
func (c *configuration) take(ctx context.Context) (changed []string, err error) {
	_, options, complaints, err := c.read()
	if err != nil {
		return nil, err
	}
	for i, live := range c.clouds {
		its, failed := live.Reload(ctx)
		err = errors.Join(err, failed)
		if its {
			changed = append(changed, strings.TrimSpace(config.Global+" "+c.cfg.CloudNames[i]))
		}
	}
	if old := c.options.Swap(&options); !old.Equal(options) {
		changed = append(changed, "options")
		for _, key := range options.NeedRestart(c.started) {
			c.log.Warn("an option of cloud.conf has changed that takes effect only when the driver starts again", "option", key)
		}
	}
	c.complain(complaints)
	return changed, err
}

// ready reports which cloud cannot be asked now. Whoever reaches the endpoint gets that error, so it holds no address, user or
// cause; the log has those, once for each change.
func (c *configuration) ready(ctx context.Context) error {
	var failed error
	var name string
	for i, live := range c.clouds {
		its, err := live.Current(ctx)
		if err == nil {
			err = its.Ping(ctx)
		}
		if err != nil {
			failed, name = err, c.cfg.CloudNames[i]
			break
		}
	}
	text := ""
	if failed != nil {
		text = failed.Error()
	}
	if before := c.unready.Swap(&text); text != "" && (before == nil || *before != text) {
		c.log.Warn("not ready: a cloud cannot be used", "cloud", name, "error", text)
	}
	if failed == nil {
		return nil
	}
	return fmt.Errorf("cloud %q cannot be used now; the driver's log says why", name)
}
