package disk

import (
	"slices"
	"sync"
	"time"
)

// key tells a disk from another one that later has the same name.
type key struct {
	name, number string
	sequence     string // diskseq; empty before Linux 5.15, and then the other two may be used again
}

func (f *Finder) key(name string) key {
	return key{name, f.Attribute(name, "dev"), f.Attribute(name, "diskseq")}
}

// serialCache keeps the last serial that each disk reported.
type serialCache struct {
	mu      sync.Mutex // never held while a disk is read
	serials map[key]cachedSerial
}

type cachedSerial struct {
	Serial
	final bool      // valid for as long as the key is that of the disk
	asked time.Time // when the disk itself answered; zero if the serial costs no request, so that it is read each time
}

// valid reports whether a search may use the serial without asking the disk again.
func (c cachedSerial) valid(maxAge time.Duration) bool {
	return c.final || !c.asked.IsZero() && time.Since(c.asked) < maxAge
}

// put stores a serial. An empty answer does not replace a final serial: virtio-blk also returns an empty one when the
// request failed.
func (c *serialCache) put(disk key, s cachedSerial) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serials == nil {
		c.serials = map[key]cachedSerial{}
	}
	if len(s.Values) > 0 || !c.serials[disk].final {
		c.serials[disk] = s
	}
}

func (c *serialCache) get(disk key) cachedSerial {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.serials[disk]
}

// retain drops all other disks.
func (c *serialCache) retain(disks []key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for disk := range c.serials {
		if !slices.Contains(disks, disk) {
			delete(c.serials, disk)
		}
	}
}
