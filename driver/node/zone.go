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

// zoneRecord keeps the zone that the node was registered in. kubelet refuses to register a driver that tells another value of a
// label than the Node has, and then nothing can be mounted or unmounted here. So a server that was moved keeps its first zone, and
// who runs the cluster is told. The node has no access to the Kubernetes API, and the file is beside the socket: it lives as long as
// kubelet's directory, and counts only for the server that wrote it.
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

// registered gives the zone to report for the one that the server is in now. An unknown zone is the one it was.
func (z zoneRecord) registered(ctx context.Context, server volume.ServerID, key, zone string) string {
	if z.path == "" {
		return zone
	}
	first, err := z.read()
	if err == nil && first.Server == server && first.Key == key && first.Zone != "" {
		if zone == "" {
			return first.Zone // and whether the server was moved is as unknown as before
		}
		changed := first.Zone != zone
		z.metrics.ZoneChanged(changed)
		if changed {
			z.log.LogAttrs(ctx, slog.LevelError, "this server is in another zone than the node was registered in, which is reported still; "+
				"drain the node, delete its Node object and the file, and restart kubelet",
				slog.String("server", string(server)), slog.String("zone", zone), slog.String("registered", first.Zone), slog.String("file", z.path))
		}
		return first.Zone
	}
	if zone == "" {
		return ""
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		z.log.LogAttrs(ctx, slog.LevelWarn, "the record of this node's zone cannot be read and is written anew", slog.String("file", z.path), slog.Any("error", err))
	}
	z.metrics.ZoneChanged(false)
	if err := z.write(record{Server: server, Key: key, Zone: zone}); err != nil {
		z.log.LogAttrs(ctx, slog.LevelWarn, "this node's zone is not recorded: should the server be moved, kubelet will refuse the driver",
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

// write leaves the old file or the new one, never a part.
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
