// Command demo shows the whole product on a simulated cloud, with the programs that `make build` has built. The generator inspects the cloud,
// explains its decisions and writes the six bundles. The driver creates, attaches and deletes a volume. If the demo runs as root and the
// machine has loop devices, the driver also mounts the volume with a file system and a file.
//
// It prints what fits on a screen; -verbose prints everything.
//
//	go run ./test/suite/demo -bin bin -dir bin/demo
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const limit = 2 * time.Minute

func main() {
	bin := flag.String("bin", "bin", "`directory` of the programs")
	dir := flag.String("dir", filepath.Join("bin", "demo"), "`directory` for the output; the demo empties it first")
	verbose := flag.Bool("verbose", false, "print the whole inventory, every decision and every call")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := &screen{to: os.Stdout, verbose: *verbose}
	if err := demo(ctx, out, *bin, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context, out *screen, bin, dir string) error {
	begin := time.Now()
	bin, dir, err := prepare(bin, dir)
	if err != nil {
		return err
	}
	out.heading("1", "A simulated OpenStack cloud")
	cloud, err := startCloud(ctx, bin, dir)
	if err != nil {
		return err
	}
	defer cloud.kill()
	out.printf("Keystone, Cinder, Nova and the metadata service answer at %s, without TLS\n", cloud.url)
	if cloud.disks == "" {
		out.printf("Its volumes have no data, and the demo mounts nothing: %s\n", cloud.why)
	} else {
		out.printf("Its volumes have data: an attached volume is a loop device on this machine\n")
	}

	if err := generate(ctx, out, bin, short(dir), cloud); err != nil {
		return err
	}
	out.heading("4", "The driver: a volume from creation to deletion, over gRPC")
	if err := life(ctx, out, bin, dir, cloud); err != nil {
		return err
	}
	if err := cloud.terminate(); err != nil { // it reports disks that are still in use
		return err
	}
	if cloud.disks != "" {
		out.details().printf("no mount and no loop device is left\n")
	}
	out.heading("5", "Done in "+time.Since(begin).Round(100*time.Millisecond).String()+". What to look at next")
	bundle := filepath.Join(short(dir), "bundles", "vanilla-kustomize")
	for _, next := range [][2]string{
		{"what was decided, and why", filepath.Join(bundle, "README.md")},
		{"what a colleague reviews", filepath.Join(short(dir), "plan.html")},
		{"why an object is as it is", "bin/cinder-csi-generator explain storageclass/fast parameters.type " + bundle},
		{"the same with a cloud like yours", "docs/how-to/rehearse-a-cloud.md"},
		{"a first volume on your cloud", "docs/tutorial/first-volume.md"},
		{"all output, and logs", "make demo VERBOSE=1, " + filepath.Join(short(dir), "*.log")},
	} {
		out.printf("%-33s %s\n", next[0], next[1])
	}
	return out.fits()
}

// prepare empties dir. The marker file proves that an earlier demo wrote everything in it.
func prepare(bin, dir string) (string, string, error) {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return "", "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", "", err
	}
	marker := filepath.Join(dir, ".cinder-csi-demo")
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		if _, err := os.Stat(marker); err != nil {
			return "", "", fmt.Errorf("%s is not empty, and no earlier demo wrote it; name another -dir", dir)
		}
		if err := errors.Join(unmountBelow(dir), os.RemoveAll(dir)); err != nil { // an earlier demo may have been killed
			return "", "", err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "bundles"), 0o755); err != nil {
		return "", "", err
	}
	return bin, dir, os.WriteFile(marker, nil, 0o644)
}

// process is a program that runs beside the demo and writes to a log file.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan error
}

func start(ctx context.Context, log, name string, args ...string) (*process, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a killed demo leaves no programs behind
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, log: log, done: make(chan error, 1)}
	go func() { p.done <- cmd.Wait() }()
	return p, nil
}

// terminate sends SIGTERM to the process and returns the error of its end.
func (p *process) terminate() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := <-p.done; err != nil {
		return fmt.Errorf("%s: %w (its log is %s)", filepath.Base(p.cmd.Path), err, p.log)
	}
	return nil
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

// await calls ready until it returns true. It returns an error if the process ends before that.
func (p *process) await(ctx context.Context, ready func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case err := <-p.done:
			text, _ := os.ReadFile(p.log)
			return fmt.Errorf("%s ended before it was ready (%v):\n%s", filepath.Base(p.cmd.Path), err, text)
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready in time (its log is %s)", filepath.Base(p.cmd.Path), p.log)
		case <-tick.C:
		}
	}
	return nil
}

// simulated is the running cloud.
type simulated struct {
	*process
	url, files string
	disks      string // directory with the disks of server node-az1; empty if volumes have no data
	why        string // the reason why volumes have no data
}

// startCloud starts the cloud, with disks if this machine supports them.
func startCloud(ctx context.Context, bin, dir string) (*simulated, error) {
	why := lacking()
	if why == "" {
		disks := filepath.Join(dir, "disks")
		cloud, err := startCloudWith(ctx, bin, dir, "--disks", disks)
		if err == nil {
			cloud.disks = filepath.Join(disks, "servers", "by-name", "node-az1")
			return cloud, nil
		}
		why = err.Error()
	}
	cloud, err := startCloudWith(ctx, bin, dir)
	if err == nil {
		cloud.why = why
	}
	return cloud, err
}

func startCloudWith(ctx context.Context, bin, dir string, args ...string) (*simulated, error) {
	files := filepath.Join(dir, "cloud")
	p, err := start(ctx, filepath.Join(dir, "cloud.log"), filepath.Join(bin, "openstack-sim"), append(args, "--listen", "127.0.0.1:0", "--dir", files)...)
	if err != nil {
		return nil, err
	}
	cloud := &simulated{process: p, files: files}
	return cloud, p.await(ctx, func() bool {
		text, err := os.ReadFile(filepath.Join(files, "url"))
		cloud.url = strings.TrimSpace(string(text))
		return err == nil && cloud.url != ""
	})
}

// short returns the path relative to the working directory, if it is below it.
func short(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if relative, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(relative) {
		return relative
	}
	return path
}
