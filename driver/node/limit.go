package node

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/host/limit"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// defaultAttachLimit is the attach limit of a node if neither cloud.conf nor sysfs has one. A server of QEMU's machine
// type pc with virtio disks has 25 free slots (measured), less the reserve. It is never 0, which CSI reads as no limit.
const defaultAttachLimit = 24

// defaultAttachReserve is how many slots stay free by default: for a network card that is plugged later, and for disks
// that others attach.
const defaultAttachReserve = 1

type attachLimit struct {
	options Options
	// last is a lock that holds what was logged last.
	last chan explainedLimit
}

// explainedLimit is the limit with the terms that it is computed from, and where they come from.
type explainedLimit struct {
	terms  map[string]int64
	source string
}

func newAttachLimit(o Options) *attachLimit {
	l := &attachLimit{options: o, last: make(chan explainedLimit, 1)}
	l.last <- explainedLimit{}
	return l
}

// current counts, and logs all terms if one or their source has changed.
func (l *attachLimit) current(ctx context.Context, m machine) int64 {
	terms, source := l.terms(ctx, m)
	last := <-l.last
	defer func() { l.last <- explainedLimit{terms, source} }()
	if source != last.source || !maps.Equal(terms, last.terms) {
		l.options.Metrics.VolumeLimit(terms)
		l.options.Log.LogAttrs(ctx, slog.LevelInfo, "attach limit of this node",
			slog.Int64("limit", terms["limit"]), slog.String("source", source),
			slog.Int64("attached", terms["attached"]), slog.Int64("arriving", terms["arriving"]), slog.Int64("free", terms["free"]),
			slog.Int64("reserve", terms["reserve"]), slog.Int64("foreign", terms["foreign"]))
	}
	return terms["limit"]
}

// countTimeout limits how long a scrape of the metrics waits for disks. Prometheus waits for ten seconds by default.
const countTimeout = 5 * time.Second

// countVolumes is how many volumes take a slot of this node now.
func countVolumes(m machine, foreign []volume.ID) int {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	c := m.AttachCapacity(ctx, foreign)
	return c.Attached + c.Arriving
}

// terms returns the limit and the terms that it is computed from. A configured limit has no other terms.
func (l *attachLimit) terms(ctx context.Context, m machine) (terms map[string]int64, source string) {
	if l.options.AttachLimit > 0 {
		return map[string]int64{"limit": l.options.AttachLimit}, "cloud.conf"
	}
	reserve := int64(defaultAttachReserve)
	if l.options.AttachReserve != nil {
		reserve = *l.options.AttachReserve
	}
	c := m.AttachCapacity(ctx, l.options.ForeignVolumes)
	terms = map[string]int64{
		"attached": int64(c.Attached), "arriving": int64(c.Arriving), "free": int64(c.Free), "foreign": int64(c.Foreign), "reserve": reserve,
	}
	terms["limit"], source = limitOf(c, reserve)
	return terms, source
}

func limitOf(c limit.Capacity, reserve int64) (n int64, source string) {
	if c.Unknown != "" {
		return defaultAttachLimit, "default: " + c.Unknown
	}
	source = "the " + c.Bus + " disks of this server"
	if c.Stale != "" {
		source += ", as they were before this error: " + c.Stale
	}
	return max(int64(c.Volumes())-reserve, 1), source
}
