// Package guest runs a server like those of Nova: a QEMU machine. It plugs, grows and unplugs disks as libvirt does, with volume IDs as
// serials. QEMU emulates the processor, so the guest needs no KVM and is slow: times measured in it are upper bounds.
package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/image"
)

const (
	monitorSocket = "qmp.sock"
	agentSocket   = "agent.sock"
)

// Guest is a running server.
type Guest struct {
	*Agent
	Machine Machine
	Address string // of the driver's socket, for this machine: host:port

	dir     string
	qemu    *exec.Cmd
	ended   chan error
	monitor *monitor
	ports   map[string]bool // q35: root ports for disks, and whether a disk uses them
	disks   map[string]string
}

// Start boots a guest in dir, an empty directory with a short name (its sockets are there), and waits until it is up.
func Start(ctx context.Context, i Image, m Machine, dir string) (*Guest, error) {
	g := &Guest{Machine: m.withDefaults(), dir: dir, ended: make(chan error, 1), ports: map[string]bool{}, disks: map[string]string{}}
	for n := range m.Ports {
		g.ports[freePort(n)] = false
	}
	if err := errors.Join(i.writeInitial(g.Machine.Kernel, dir), makeSystemDisk(ctx, dir)); err != nil {
		return nil, err
	}
	// Without no_timer_check the kernel panics if QEMU gets no processor for a moment while the kernel tests its timer.
	kernel := "console=ttyS0 quiet panic=-1 no_timer_check"
	if m.Udev {
		kernel += " guest.udev"
	}
	if m.Boot != "" {
		kernel += " " + m.Boot
	}
	g.qemu = exec.Command("nice", append([]string{
		"qemu-system-x86_64",
		"-kernel", filepath.Join(i.Dir, g.Machine.Kernel, image.Kernel), "-initrd", filepath.Join(dir, initialFile), "-append", kernel,
	}, g.Machine.commandLine(dir)...)...)
	var said bytes.Buffer
	g.qemu.Stdout, g.qemu.Stderr = &said, &said
	g.qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // the guest ends when the test is killed
	if err := g.qemu.Start(); err != nil {
		return nil, err
	}
	go func() { g.ended <- g.qemu.Wait() }()
	if err := g.connect(); err != nil {
		g.Stop()
		return nil, fmt.Errorf("start a guest: %w; QEMU said: %s; its console: %s", err, strings.TrimSpace(said.String()), g.Console())
	}
	return g, nil
}

// connect waits until the agent answers. QEMU holds calls that arrive before the guest is up.
func (g *Guest) connect() error {
	connected := make(chan error, 1)
	go func() { connected <- g.open() }()
	select {
	case err := <-connected:
		return err
	case err := <-g.ended:
		g.ended <- err
		return fmt.Errorf("QEMU has ended: %w", err)
	case <-time.After(patience):
		return fmt.Errorf("the guest was not up within %s", patience)
	}
}

func (g *Guest) open() (err error) {
	if g.monitor, err = openMonitor(filepath.Join(g.dir, monitorSocket)); err != nil {
		return err
	}
	var network string
	if err := g.monitor.do("human-monitor-command", map[string]any{"command-line": "info usernet"}, &network); err != nil {
		return err
	}
	forwarded := regexp.MustCompile(`HOST_FORWARD\]\s+\S+\s+127\.0\.0\.1\s+(\d+)`).FindStringSubmatch(network)
	if forwarded == nil {
		return fmt.Errorf("QEMU names no forwarded port: %s", network)
	}
	g.Address = "127.0.0.1:" + forwarded[1]
	g.Agent, err = Connect(filepath.Join(g.dir, agentSocket), patience, g.Console)
	return err
}

// Stop ends the guest, as if its power failed.
func (g *Guest) Stop() {
	_ = g.qemu.Process.Kill() // the process nice has become QEMU
	<-g.ended
}

// Starved is the total time that the QEMU threads have waited for a processor since the start of the guest. The guest does not run in that time
// (Linux, Documentation/scheduler/sched-stats.rst).
func (g *Guest) Starved() (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", g.qemu.Process.Pid))
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		var ran, waited int64
		if _, err := fmt.Sscan(string(text), &ran, &waited); err != nil {
			return 0, fmt.Errorf("%s has %q: %w", file, text, err)
		}
		sum += time.Duration(waited)
	}
	return sum, err
}

// Console is the end of the output of the kernel and process 1 of the guest.
func (g *Guest) Console() string {
	const most = 4000
	text, err := os.ReadFile(filepath.Join(g.dir, "console.log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// makeFile makes a sparse file if the file does not exist.
func makeFile(name string, bytes int64) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(bytes), f.Close())
}
