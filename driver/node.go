package driver

import (
	"context"
	"os"
	"path/filepath"

	"github.com/cinder-csi/cinder-csi/driver/host"
	"github.com/cinder-csi/cinder-csi/driver/host/metadata"
	"github.com/cinder-csi/cinder-csi/driver/node"
	"github.com/cinder-csi/cinder-csi/driver/rpc"
	"github.com/cinder-csi/cinder-csi/driver/telemetry"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// newNode returns the node service of this machine. It has no credentials and requests nothing but the metadata of its
// own server.
func (p *process) newNode(work context.Context) *node.Server {
	cfg, settings := p.cfg, p.conf.started
	machine := host.New(host.Options{
		SysRoot: cfg.SysRoot, DevRoot: cfg.DevRoot, ProcRoot: cfg.ProcRoot,
		Metadata: metadata.Options{
			ConfigDriveDir: cfg.ConfigDriveDir, URL: cfg.MetadataURL, SearchOrder: settings.SearchOrder, Transport: p.deps.Transport,
		},
		DriverName: cfg.DriverName, Log: p.log,
	})
	options := node.Options{
		DriverName: cfg.DriverName, TopologyKey: cfg.TopologyKey(), WithTopology: cfg.WithTopology, AdditionalTopology: cfg.AdditionalTopology,
		AttachLimit: settings.AttachLimit, AttachReserve: settings.AttachReserve, DefaultFSType: cfg.DefaultFSType,
		Metrics: telemetry.NewNode(p.registry), Log: p.log,
	}
	for _, id := range settings.ForeignVolumes {
		options.ForeignVolumes = append(options.ForeignVolumes, volume.ID(id))
	}
	if p.deps.Listener == nil {
		options.ZoneFile = besideSocket(cfg.Endpoint)
		options.RegisteredFile = filepath.Join(os.TempDir(), cfg.DriverName+".registered") // /tmp of a bundle's pod is an emptyDir
	}
	server := node.New(machine, options)
	p.beside(work, "the drain", func() error { drain(work, server); return nil })
	return server
}

// besideSocket is the path of the file with the zone of the node. It is in the directory of the socket, which belongs to this
// plugin alone. It is empty for other endpoints.
func besideSocket(endpoint string) string {
	network, address, err := rpc.ParseEndpoint(endpoint)
	if err != nil || network != "unix" || filepath.Dir(address) == "/" {
		return ""
	}
	return filepath.Join(filepath.Dir(address), "node-zone.json")
}
