package node

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// zoneRecord stores the zone in which the node was registered. kubelet refuses to register a driver that reports
// another value of a label than the Node has. Then nothing can be mounted or unmounted here. So a server that was moved
// keeps reporting its first zone, and a metric and the log tell the administrator. The node has no access to the
// Kubernetes API, so the record is a file beside the socket. It lives as long as the directory of kubelet, and counts
// only for the server that wrote it.
type zoneRecord struct {
	path    string
	log     *slog.Logger
	metrics Metrics
}

type record struct {
	Server volume.ServerID `json:"server"`
	Key    string          `json:"key"`
	Zone   string          `json:"zone"`
}

// registered returns the zone to report, given the zone in which the server is now. If that is unknown, it is the
// recorded one.
func (z zoneRecord) registered(ctx context.Context, server volume.ServerID, key, zone string) string {
	if z.path == "" {
		return zone
	}
	first, err := z.read()
	if err == nil && first.Server == server && first.Key == key && first.Zone != "" {
		if zone == "" {
			return first.Zone // and whether the server was moved stays unknown
		}
		changed := first.Zone != zone
		z.metrics.ZoneChanged(changed)
		if changed {
			z.log.LogAttrs(ctx, slog.LevelError, "the server was moved to another zone; the driver still reports the zone in which the node was registered. "+
				"Drain the node, delete its Node object and the file, and restart kubelet",
				slog.String("server", string(server)), slog.String("zone", zone), slog.String("registered", first.Zone), slog.String("file", z.path))
		}
		return first.Zone
	}
	if zone == "" {
		return ""
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		z.log.LogAttrs(ctx, slog.LevelWarn, "the file with the zone of this node cannot be read; the driver writes it again", slog.String("file", z.path), slog.Any("error", err))
	}
	z.metrics.ZoneChanged(false)
	if err := z.write(record{Server: server, Key: key, Zone: zone}); err != nil {
		z.log.LogAttrs(ctx, slog.LevelWarn, "the zone of this node cannot be stored; if the server is moved to another zone, kubelet will refuse the driver",
			slog.String("file", z.path), slog.Any("error", err))
	}
	return zone
}

func (z zoneRecord) read() (record, error) {
	content, err := os.ReadFile(z.path)
	if err != nil {
		return record{}, err
	}
	var r record
	return r, json.Unmarshal(content, &r)
}

// write replaces the file in one step.
func (z zoneRecord) write(r record) error {
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	next := z.path + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, z.path)
}
