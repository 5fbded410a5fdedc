package nodekills

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// node is a server with one disk and the driver's node role as a process of its own.
type node struct {
	csi.NodeClient
	*testenv.Machine

	disk string // the loop device
	log  testenv.Log

	socket string
	driver *exec.Cmd
	conn   *grpc.ClientConn
	killed []string // the sessions of drivers that were killed
}

// volumeID is the volume on the node's disk. virtio-blk shows the first 20 characters as the serial.
const volumeID = "3f0c1f0e-6f0d-4a50-9f0b-0c2d4e6f8a1b"

// startNode makes a server whose disk has that many bytes and starts the driver on it, for the time of the test.
func startNode(t *testing.T, bytes int64) *node {
	t.Helper()
	testenv.NeedRoot(t)
	testenv.NeedTools(t, "strace", "strace", "mkfs.ext4", "e2fsprogs", "mkfs.xfs", "xfsprogs", "mkfs.btrfs", "btrfs-progs",
		"blkid", "util-linux", "wipefs", "util-linux", "fsck.ext4", "e2fsprogs")
	n := &node{Machine: testenv.NewMachine(t), disk: testenv.Loop(t, bytes)}
	n.Plug(t, "vdb", volumeID[:20], n.disk)
	dir, err := os.MkdirTemp("", "nodekills-") // t.TempDir gives names that are too long for a socket
	must(t, "make a directory for the socket", err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	n.socket = filepath.Join(dir, "csi.sock")
	n.start(t)
	t.Cleanup(func() {
		n.kill(t, nil)
		if t.Failed() {
			t.Logf("the driver's log:\n%s", n.log.String())
		}
	})
	return n
}

// program builds the driver once for all tests.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programDir, "cinder-csi-driver")
	build := exec.Command("go", "build", "-o", path, "./cmd/cinder-csi-driver")
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the driver: %w: %s", err, out)
	}
	return path, nil
})

// start starts the driver and waits until it answers. It is a session and a process group of its own, with the tools
// that it runs. In the test's session the kernel would end a tool that stands still when the driver dies.
func (n *node) start(t *testing.T) {
	t.Helper()
	path, err := program()
	must(t, "build the driver", err)
	n.driver = exec.Command(path, "--endpoint=unix://"+n.socket, "--provide-controller-service=false", "--with-topology=false",
		"--sys-root="+n.Sys, "--dev-root="+n.Dev, "--v=4")
	n.driver.Stderr = &n.log
	n.driver.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(t, "start the driver", n.driver.Start())
	n.conn, err = grpc.NewClient("unix://"+n.socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1.2, MaxDelay: 100 * time.Millisecond}}))
	must(t, "connect to the driver", err)
	n.NodeClient = csi.NewNodeClient(n.conn)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for err = errors.New("not asked yet"); err != nil && ctx.Err() == nil; { // a first connection may meet the socket of the one before
		_, err = csi.NewIdentityClient(n.conn).Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true))
	}
	must(t, "wait for the driver", err)
}

// kill ends the driver and its tools, as the end of a container does.
func (n *node) kill(t *testing.T, tr *trace) {
	t.Helper()
	n.end(t, -n.driver.Process.Pid, tr)
}

// killAlone ends the driver and leaves its tools running, as the kernel does when memory runs out.
func (n *node) killAlone(t *testing.T, tr *trace) {
	t.Helper()
	n.end(t, n.driver.Process.Pid, tr)
}

func (n *node) end(t *testing.T, id int, tr *trace) {
	t.Helper()
	if n.driver.ProcessState != nil {
		return
	}
	n.killed = append(n.killed, strconv.Itoa(n.driver.Process.Pid))
	err := unix.Kill(id, unix.SIGKILL)
	if tr != nil {
		tr.end()
	}
	_ = n.conn.Close()
	var exit *exec.ExitError
	n.driver.WaitDelay = 100 * time.Millisecond // a tool that continues keeps the pipe of the log open
	if waitErr := n.driver.Wait(); !errors.As(waitErr, &exit) && !errors.Is(waitErr, exec.ErrWaitDelay) {
		err = errors.Join(err, waitErr)
	}
	must(t, "kill the driver", err)
}

// toolWorks is whether a process of a killed driver still lives (proc(5): state and session are the first and fourth field after the name).
func (n *node) toolWorks() bool {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	return slices.ContainsFunc(all, func(file string) bool {
		text, _ := os.ReadFile(file) // it may have ended
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		return len(fields) > 3 && fields[0] != "Z" && slices.Contains(n.killed, fields[3])
	})
}

func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
