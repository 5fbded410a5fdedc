package hosttest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// SerialReads counts the reads of disk serials. It blocks those of disks that do not answer, as the kernel's serial_show of virtio-blk does
// when the backend is down.
type SerialReads struct {
	mu      sync.Mutex
	count   map[string]int
	blocked map[string]chan struct{}
}

// NewSerialReads returns one that blocks nothing.
func NewSerialReads() *SerialReads {
	return &SerialReads{count: map[string]int{}, blocked: map[string]chan struct{}{}}
}

// ReadFile reads a file of sysfs. It counts it, and may block, if the file is the serial of a disk.
func (r *SerialReads) ReadFile(path string) ([]byte, error) {
	name, isSerial := strings.CutSuffix(path, "/serial")
	if name = filepath.Base(name); isSerial && name != "device" {
		r.mu.Lock()
		r.count[name]++
		blocked := r.blocked[name]
		r.mu.Unlock()
		if blocked != nil {
			<-blocked
		}
	}
	return os.ReadFile(path)
}

// Block makes disks unresponsive until the returned function is called.
func (r *SerialReads) Block(names ...string) (unblock func()) {
	until := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		r.blocked[name] = until
	}
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, name := range names {
			delete(r.blocked, name)
		}
		close(until)
	})
}

// Count returns how often the serial of a disk was read.
func (r *SerialReads) Count(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count[name]
}
