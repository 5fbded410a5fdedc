package guest

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Backend is the storage behind a disk, as a process of its own that may hang: an NBD server.
type Backend struct {
	Socket string // for Disk.NBD

	server *exec.Cmd
}

// Backend starts the storage of a volume. It makes the file of the volume if there is none.
func (g *Guest) Backend(volume string, bytes int64) (*Backend, error) {
	if err := makeFile(g.FileOf(volume), bytes); err != nil {
		return nil, err
	}
	b := &Backend{Socket: filepath.Join(g.dir, name(volume)+".nbd")}
	b.server = exec.Command("qemu-nbd", "--socket="+b.Socket, "--format=raw", "--persistent", "--discard=unmap", g.FileOf(volume))
	b.server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := b.server.Start(); err != nil {
		return nil, err
	}
	conn, err := dial(b.Socket)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the NBD server does not answer: %w", err), b.Stop())
	}
	return b, conn.Close()
}

// Hang stops the storage: it completes no request and refuses none.
func (b *Backend) Hang() error { return b.server.Process.Signal(syscall.SIGSTOP) }

// Continue ends Hang. What was asked meanwhile is done.
func (b *Backend) Continue() error { return b.server.Process.Signal(syscall.SIGCONT) }

// Stop ends the storage.
func (b *Backend) Stop() error {
	err := b.server.Process.Kill()
	ended := make(chan error, 1)
	go func() { ended <- b.server.Wait() }()
	select {
	case <-ended: // with the error of the signal
		return err
	case <-time.After(patience):
		return errors.Join(err, errors.New("the NBD server does not end"))
	}
}
