// Command openstack-sim runs a simulated OpenStack cloud as a process. It writes clouds.yaml, cloud.conf and url into a
// directory, and prints the URL. It serves until SIGTERM or SIGINT. A file shapes the cloud.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim/cloudfile"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim/dataplane"
)

// The exit codes are those of the generator.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 64
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are the flags.
type options struct {
	listen, dir  string
	cloud        string
	latency      *time.Duration // nil: each operation keeps its own
	seed         uint64
	zoneFallback bool
	sameZone     bool
	unversioned  bool

	disks, diskSerial string
	diskDelay         time.Duration
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := pflag.NewFlagSet("openstack-sim", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "address to listen on; port 0 selects a free port")
	flags.StringVar(&o.dir, "dir", "", "directory for clouds.yaml, cloud.conf and url; the program creates it if it is missing")
	flags.StringVar(&o.cloud, "cloud", "", "YAML file that shapes the cloud: zones, volume types, quotas, rights, services, faults; see examples/clouds")
	latency := flags.Duration("latency", 0, "time of every operation, 0s for none; without this flag, each operation takes its own few tens of milliseconds")
	flags.Uint64Var(&o.seed, "seed", 0, "seed of the random IDs of objects that requests create")
	flags.BoolVar(&o.zoneFallback, "zone-fallback", false, "put volumes of unknown zones into the default zone (Cinder's allow_availability_zone_fallback)")
	flags.BoolVar(&o.sameZone, "same-zone-attach", false, "refuse to attach across zones (Nova's cross_az_attach=false)")
	flags.BoolVar(&o.unversioned, "unversioned-endpoints", false, "put endpoints without a version into the catalog")
	flags.StringVar(&o.disks, "disks", "", "directory for the bytes of volumes and for servers/by-name/NAME/{sys,dev}, where attached volumes are loop devices; Linux, root")
	flags.DurationVar(&o.diskDelay, "disk-delay", 0, "time between the reply of Nova and the disk or its new size")
	flags.StringVar(&o.diskSerial, "disk-serial", "right", "serial of the disks: right (as with virtio-blk), wrong, or none")
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "openstack-sim:", err)
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "openstack-sim: unexpected argument %q; the command takes flags only\n", flags.Arg(0))
		return exitUsage
	}
	if flags.Changed("latency") {
		o.latency = latency
	}
	if *latency < 0 {
		fmt.Fprintf(stderr, "openstack-sim: --latency is %s; want 0s or more\n", *latency)
		return exitUsage
	}
	if _, ok := serials[o.diskSerial]; !ok {
		fmt.Fprintf(stderr, "openstack-sim: --disk-serial is %q; it can be right, wrong or none\n", o.diskSerial)
		return exitUsage
	}
	shaped, err := shape(o, flags)
	if err != nil {
		fmt.Fprintln(stderr, "openstack-sim:", err)
		return exitUsage
	}
	if err := serve(ctx, o, shaped, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "openstack-sim:", err)
		return exitFailure
	}
	return exitOK
}

// shape reads the file of --cloud. A flag that is given wins over the file.
func shape(o options, flags *pflag.FlagSet) (cloudfile.Cloud, error) {
	var text []byte
	if o.cloud != "" {
		var err error
		if text, err = os.ReadFile(o.cloud); err != nil {
			return cloudfile.Cloud{}, fmt.Errorf("--cloud: %w", err)
		}
	}
	shaped, err := cloudfile.Parse(o.cloud, text)
	if err != nil {
		return cloudfile.Cloud{}, fmt.Errorf("--cloud: the file does not describe a cloud:\n%w", err)
	}
	shaped.Config.Seed = o.seed
	for flag, apply := range map[string]func(){
		"zone-fallback":         func() { shaped.Config.ZoneFallback = o.zoneFallback },
		"same-zone-attach":      func() { shaped.Config.SameZoneAttach = o.sameZone },
		"unversioned-endpoints": func() { shaped.Config.UnversionedEndpoints = o.unversioned },
	} {
		if flags.Changed(flag) {
			apply()
		}
	}
	return shaped, nil
}

// drain is how long requests in progress may take after the signal.
const drain = 2 * time.Second

func serve(ctx context.Context, o options, shaped cloudfile.Cloud, stdout, stderr io.Writer) (failed error) {
	cloud := shaped.New()
	if o.latency != nil {
		cloud.SetAllLatency(*o.latency)
	}
	if o.disks != "" {
		log := slog.New(slog.NewTextHandler(stderr, nil))
		plane, err := dataplane.New(o.disks, dataplane.Options{Delay: o.diskDelay, Serial: serials[o.diskSerial], Log: log})
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, plane.Close()) }()
		if err := cloud.UseDataPlane(plane); err != nil {
			return err
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return err
	}
	url := "http://" + listener.Addr().String()
	if o.dir != "" {
		if err := writeFiles(o.dir, url, cloud); err != nil {
			listener.Close()
			return err
		}
	}
	fmt.Fprintln(stdout, url)

	server := &http.Server{Handler: cloud.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		return server.Close()
	}
	return nil
}

// serials are the values of --disk-serial.
var serials = map[string]func(volume string) string{
	"right": nil,
	"wrong": func(volume string) string { return "wrong-" + volume[:8] },
	"none":  func(string) string { return "" },
}

// writeFiles writes url last: a program that waits for it then finds the other files.
func writeFiles(dir, url string, cloud *openstacksim.Sim) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range []struct {
		name    string
		content []byte
		mode    os.FileMode
	}{
		{"clouds.yaml", cloud.CloudsYAML(url), 0o600},
		{"cloud.conf", cloud.CloudConf(url), 0o600},
		{"url", []byte(url + "\n"), 0o644},
	} {
		if err := writeFile(filepath.Join(dir, f.name), f.content, f.mode); err != nil {
			return err
		}
	}
	return nil
}

// writeFile replaces a file atomically.
func writeFile(path string, content []byte, mode os.FileMode) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
