// Command openstack-sim runs a simulated OpenStack cloud as a process. It writes clouds.yaml, cloud.conf and url into a
// directory, and prints the URL. It serves until SIGTERM or SIGINT.
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
	latency      time.Duration
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
	flags.DurationVar(&o.latency, "latency", -1, "time of every operation; default: a few tens of milliseconds each")
	flags.Uint64Var(&o.seed, "seed", 0, "seed of the random IDs")
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
	if _, ok := serials[o.diskSerial]; !ok {
		fmt.Fprintf(stderr, "openstack-sim: --disk-serial is %q; it can be right, wrong or none\n", o.diskSerial)
		return exitUsage
	}
	if err := serve(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "openstack-sim:", err)
		return exitFailure
	}
	return exitOK
}

// drain is how long requests in progress may take after the signal.
const drain = 2 * time.Second

func serve(ctx context.Context, o options, stdout, stderr io.Writer) (failed error) {
	config := openstacksim.Default()
	config.Seed, config.ZoneFallback, config.SameZoneAttach, config.UnversionedEndpoints = o.seed, o.zoneFallback, o.sameZone, o.unversioned
	cloud := openstacksim.New(config)
	if o.latency >= 0 {
		cloud.SetAllLatency(o.latency)
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
