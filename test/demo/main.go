// Command demo shows the whole product at work on a simulated cloud, with the programs that `make build` made: the generator
// inspects the cloud, explains its decisions and writes the six bundles; the driver takes a volume through its life, with a file
// system and a file on it where the machine has loop devices for root.
//
//	go run ./test/demo -bin bin -dir bin/demo
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
	bin := flag.String("bin", "bin", "where the programs are")
	dir := flag.String("dir", filepath.Join("bin", "demo"), "where the demo writes; emptied first")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := demo(ctx, *bin, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context, bin, dir string) error {
	begin := time.Now()
	bin, dir, err := prepare(bin, dir)
	if err != nil {
		return err
	}
	heading("1", "A simulated OpenStack cloud")
	cloud, err := startCloud(ctx, bin, dir)
	if err != nil {
		return err
	}
	defer cloud.kill()
	fmt.Printf("Keystone, Cinder, Nova and the metadata service answer at %s\n", cloud.url)
	if cloud.disks == "" {
		fmt.Printf("Its volumes are books alone, nothing is mounted: %s\n", cloud.why)
	} else {
		fmt.Println("Its volumes have bytes: an attached one is a loop device on this machine")
	}

	if err := generate(ctx, bin, short(dir), cloud); err != nil {
		return err
	}
	heading("4", "The driver: one volume's life, over gRPC")
	if err := life(ctx, bin, dir, cloud); err != nil {
		return err
	}
	if err := cloud.terminate(); err != nil { // it tells of disks that are still in use
		return err
	}
	if cloud.disks != "" {
		fmt.Println("no mount and no loop device is left")
	}
	heading("5", "Done in "+time.Since(begin).Round(100*time.Millisecond).String())
	shown := short(dir)
	fmt.Printf(`Bundles    %s
           what was decided and why:  %s
           apply one:                 kubectl apply -k %s
Inventory  %s
Logs       %s
`, filepath.Join(shown, "bundles"), filepath.Join(shown, "bundles", "vanilla-kustomize", "README.md"),
		filepath.Join(shown, "bundles", "vanilla-kustomize"), filepath.Join(shown, "inventory.yaml"), filepath.Join(shown, "*.log"))
	return nil
}

// prepare empties dir; everything in it was made by an earlier demo, which the marker file proves.
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
			return "", "", fmt.Errorf("%s is not empty and was not made by this demo; name another -dir", dir)
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

func heading(number, text string) { fmt.Printf("\n== %s. %s\n\n", number, text) }

// process is a program that runs beside the demo, its output in a log file.
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

// terminate asks the process to stop and gives its verdict.
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

// await asks until ready says yes; a process that ends meanwhile is an error.
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
	disks      string // what server node-az1 sees of its disks; empty if volumes have no bytes
	why        string // they have none
}

// startCloud starts the cloud with disks, if this machine can have them.
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

// short is the path as seen from here, if it is below.
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
