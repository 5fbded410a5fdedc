package disk

import (
	"strings"
	"time"
)

// progressInterval is how often the driver reads the counters of a disk with requests in flight.
const progressInterval = 200 * time.Millisecond

// Columns of /sys/block/NAME/stat (Documentation/block/stat.rst of Linux). Requests without sectors do not count: a virtio-blk disk reports its
// serial by such a read, and QEMU answers that without the backend.
const (
	sectorsRead, sectorsWritten, requestsInFlight, sectorsDiscarded, flushesDone = 2, 6, 8, 13, 15
)

// AwaitProgress returns when a disk has completed a request since it was called, or has none in flight. It blocks for as long as the disk does
// not answer. It reports whether the disk completed one; if not, only a request of one's own tells whether it answers.
//
// It sends the disk nothing. With a full queue, a thread that sends a request waits in the kernel until the disk answers. SIGKILL does
// not end it (Linux 6.18).
func (f *Finder) AwaitProgress(name string) bool {
	before := f.counters(name)
	if before.inFlight == "0" || before.inFlight == "" {
		return false
	}
	poll := time.NewTicker(progressInterval)
	defer poll.Stop()
	for range poll.C {
		switch now := f.counters(name); {
		case now.inFlight == "": // the disk is gone
			return false
		case now.done != before.done:
			return true
		case now.inFlight == "0":
			return false
		}
	}
	return false
}

type counters struct {
	inFlight string
	done     [4]string // what was completed, of each kind
}

func (f *Finder) counters(name string) (c counters) {
	columns := strings.Fields(f.Attribute(name, "stat"))
	for i, column := range []int{sectorsRead, sectorsWritten, sectorsDiscarded, flushesDone} {
		if column < len(columns) {
			c.done[i] = columns[column]
		}
	}
	if requestsInFlight < len(columns) {
		c.inFlight = columns[requestsInFlight]
	}
	return c
}
