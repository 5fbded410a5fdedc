// Package node is the CSI node service: it checks what kubelet asks, lets package host do it, and answers in CSI's words.
//
// One call at a time works on a volume. A call whose context ends gets its answer at once; what it began goes on to a safe point,
// and until then the volume is busy for others.
package node

import (
	"context"
	"log/slog"
	"maps"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Options says how the node presents itself.
type Options struct {
	DriverName   string // contract.DriverName when empty
	TopologyKey  string // made of DriverName when empty
	WithTopology bool   // whether NodeGetInfo tells the zone
	// AdditionalTopology are segments told beside the zone, and over it when they have its key, as upstream's flag.
	AdditionalTopology map[string]string
	AttachLimit        int64       // volumes a node takes; worked out when not positive
	AttachReserve      *int64      // places for disks to keep free when it is worked out; DefaultAttachReserve when nil
	ForeignVolumes     []volume.ID // volumes that others attach to nodes
	ZoneFile           string      // keeps the zone that this node was registered in; no file when empty
	DefaultFSType      string      // made on an empty disk when nobody says; ext4 when empty
	Metrics            Metrics     // counted nowhere when nil
	Log                *slog.Logger
}

// Metrics are the numbers that monitoring reads; package telemetry has them.
type Metrics interface {
	// VolumeLimit takes the terms of the attach limit, "limit" among them, in volumes.
	VolumeLimit(terms map[string]int64)
	// ZoneChanged says whether the server is in another zone than the node was registered in.
	ZoneChanged(changed bool)
}

type noMetrics struct{}

func (noMetrics) VolumeLimit(map[string]int64) {}
func (noMetrics) ZoneChanged(bool)             {}

// machine is what the service asks of this machine; *host.Host is the one there is.
type machine interface {
	Identity(ctx context.Context) (host.Identity, error)
	Room(ctx context.Context, foreign []volume.ID) host.Room
	Await(ctx context.Context, id volume.ID) (*host.Disk, error)
	Stage(ctx context.Context, s host.Staging) error
	Publish(ctx context.Context, p host.Publication) error
	PublishBlock(ctx context.Context, p host.Publication) error
	Unmount(path string) error
	Unstage(ctx context.Context, id volume.ID, path string) error
	Health(ctx context.Context, id volume.ID, paths ...string) ([]volume.HealthIssue, error)
	Stats(ctx context.Context, path string) (host.Stats, error)
	Grow(ctx context.Context, g host.Growth) (volume.Size, error)
}

// Server implements csi.NodeServer. Its errors are *volume.Error.
type Server struct {
	csi.UnimplementedNodeServer

	machine machine
	options Options
	lanes   *lanes
	limits  *limits
	zone    zoneRecord
	log     *slog.Logger
}

// New makes the node service of the machine h.
func New(h *host.Host, o Options) *Server { return newServer(h, o) }

func newServer(m machine, o Options) *Server {
	if o.DriverName == "" {
		o.DriverName = contract.DriverName
	}
	if o.TopologyKey == "" {
		o.TopologyKey = contract.TopologyKeyOf(o.DriverName)
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Server{
		machine: m, options: o, lanes: newLanes(o.Log), limits: newLimits(o), zone: zoneRecord{path: o.ZoneFile, log: o.Log, metrics: o.Metrics}, log: o.Log,
	}
}

// Drain waits until ctx ends for work that nobody waits for any more: a half-made file system is neither empty nor usable. It is
// called when the server has stopped.
func (s *Server) Drain(ctx context.Context) { s.lanes.drain(ctx) }

// NodeGetCapabilities lists what this service does (CSI specification, "NodeGetCapabilities"). VOLUME_MOUNT_GROUP is not among it and
// never will be: the file systems here take no group as a mount option, so kubelet sets ownership.
func (s *Server) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, c := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
		csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH,
	} {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: c}},
		})
	}
	return response, nil
}

// NodeGetInfo tells which server this is, how many volumes it takes and where it is. kubelet asks when the driver registers, and
// again from time to time for the number of volumes (CSIDriver, nodeAllocatableUpdatePeriodSeconds).
func (s *Server) NodeGetInfo(ctx context.Context, _ *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	server, err := s.machine.Identity(ctx)
	if err != nil {
		return nil, err
	}
	response := &csi.NodeGetInfoResponse{NodeId: string(server.Server), MaxVolumesPerNode: s.limits.now(ctx, s.machine)}
	if !s.options.WithTopology {
		return response, nil
	}
	segments := map[string]string{}
	if zone := s.zone.registered(ctx, server.Server, s.options.TopologyKey, contract.ZoneLabel(server.Zone)); zone != "" {
		segments[s.options.TopologyKey] = zone
	}
	maps.Copy(segments, s.options.AdditionalTopology)
	if segments[s.options.TopologyKey] == "" {
		return nil, volume.Errorf(volume.Failed, "%s names no zone of server %s that can be a label (availability_zone %q); "+
			"run with --with-topology=false or give %s by --additional-topology%s",
			server.Place, server.Server, server.Zone, s.options.TopologyKey, silence(server.Silent))
	}
	response.AccessibleTopology = &csi.Topology{Segments: segments}
	return response, nil
}

func silence(reasons string) string {
	if reasons == "" {
		return ""
	}
	return "; other places said nothing: " + reasons
}
