package driver

import (
	"log/slog"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/host"
	"github.com/cinder-csi/cinder-csi/driver/node"
)

// newNode gives the node service of this machine. It has no credentials and asks nobody but the server's own metadata.
func newNode(cfg config.Config, settings config.Settings, deps Dependencies, log *slog.Logger) *node.Server {
	machine := host.New(host.Options{
		SysRoot: cfg.SysRoot, DevRoot: cfg.DevRoot, ProcRoot: cfg.ProcRoot,
		ConfigDriveDir: cfg.ConfigDriveDir, MetadataURL: cfg.MetadataURL, SearchOrder: settings.SearchOrder,
		Events: host.EventsOf(cfg.SysRoot, cfg.DevRoot), Transport: deps.Transport, Log: log,
	})
	return node.New(machine, node.Options{
		DriverName: cfg.DriverName, TopologyKey: cfg.TopologyKey(), WithTopology: cfg.WithTopology, AdditionalTopology: cfg.AdditionalTopology,
		AttachLimit: settings.AttachLimit, DefaultFSType: cfg.DefaultFSType, Log: log,
	})
}
