package node

import (
	"context"
	"log/slog"
	"maps"

	"github.com/cinder-csi/cinder-csi/driver/host"
)

// DefaultAttachLimit is how many volumes a node takes when neither cloud.conf nor sysfs says: what a server of QEMU's machine type pc
// with virtio disks has left, 25, less the reserve; measured. Never 0, which CSI reads as no limit.
const DefaultAttachLimit = 24

// DefaultAttachReserve is how many places for disks are kept free when nobody says: a network card may be plugged later, and others
// than the driver may attach a disk.
const DefaultAttachReserve = 1

// limits works out how many volumes this node takes. The channel holds what was said last, and is the lock.
type limits struct {
	options Options
	said    chan map[string]int64
}

func newLimits(o Options) *limits {
	l := &limits{options: o, said: make(chan map[string]int64, 1)}
	l.said <- nil
	return l
}

// now counts anew, and says every term when one has changed.
func (l *limits) now(ctx context.Context, m machine) int64 {
	terms, source := l.terms(ctx, m)
	said := <-l.said
	defer func() { l.said <- terms }()
	if !maps.Equal(terms, said) {
		l.options.Metrics.VolumeLimit(terms)
		l.options.Log.LogAttrs(ctx, slog.LevelInfo, "how many volumes this node takes",
			slog.Int64("limit", terms["limit"]), slog.String("source", source),
			slog.Int64("attached", terms["attached"]), slog.Int64("arriving", terms["arriving"]), slog.Int64("free", terms["free"]),
			slog.Int64("reserve", terms["reserve"]), slog.Int64("foreign", terms["foreign"]))
	}
	return terms["limit"]
}

// terms gives the limit and what it is made of. A limit that was set is the whole answer.
func (l *limits) terms(ctx context.Context, m machine) (terms map[string]int64, source string) {
	if l.options.AttachLimit > 0 {
		return map[string]int64{"limit": l.options.AttachLimit}, "cloud.conf"
	}
	reserve := int64(DefaultAttachReserve)
	if l.options.AttachReserve != nil {
		reserve = *l.options.AttachReserve
	}
	room := m.Room(ctx, l.options.ForeignVolumes)
	terms = map[string]int64{
		"attached": int64(room.Attached), "arriving": int64(room.Arriving), "free": int64(room.Free), "foreign": int64(room.Foreign), "reserve": reserve,
	}
	terms["limit"], source = limitOf(room, reserve)
	return terms, source
}

func limitOf(room host.Room, reserve int64) (limit int64, source string) {
	if room.Unknown != "" {
		return DefaultAttachLimit, "default: " + room.Unknown
	}
	return max(int64(room.Volumes())-reserve, 1), "the " + room.Bus + " disks of this server"
}
