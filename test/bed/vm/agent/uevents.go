package agent

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Uevent is a kernel event about a block device.
type Uevent struct {
	At     time.Time // by the clock of the guest
	Fields map[string]string
}

// events are the events so far.
type events struct {
	mu   sync.Mutex
	list []Uevent
}

func (e *events) from(first int) []Uevent {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Uevent{}, e.list[min(first, len(e.list)):]...)
}

// listen receives the events of the kernel (group 1), not those of udev. Its thread has the highest priority, so that it records the time of
// the event even on a busy machine. With a later time the driver would seem faster than it is.
func listen() (*events, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, err
	}
	const buffer = 32 << 20 // needs root; no event is lost when a test floods the driver with events
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer); err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}); err != nil {
		return nil, err
	}
	e, started := &events{}, make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
		e.receive(fd)
	}()
	return e, <-started
}

func (e *events) receive(fd int) {
	message := make([]byte, 16<<10)
	for {
		n, _, err := unix.Recvfrom(fd, message, 0)
		if err != nil {
			continue
		}
		at := time.Now()
		if fields := parse(message[:n]); fields["SUBSYSTEM"] == "block" && fields["SYNTH_UUID"] == "" {
			e.mu.Lock()
			e.list = append(e.list, Uevent{At: at, Fields: fields})
			e.mu.Unlock()
		}
	}
}

// parse reads a message: action@path, and then KEY=VALUE pairs. A zero byte ends each.
func parse(message []byte) map[string]string {
	fields := map[string]string{}
	for field := range bytes.SplitSeq(message, []byte{0}) {
		if key, value, ok := strings.Cut(string(field), "="); ok {
			fields[key] = value
		}
	}
	return fields
}
