// Package node is the CSI node service: it validates requests, calls package host, and translates its answers to CSI.
//
// One operation at a time works on a volume. If the context of a call ends, the caller gets its answer at once. The
// operation continues to a safe point, and until then the driver answers other calls for the volume with Aborted.
package node

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host"
	"github.com/cinder-csi/cinder-csi/driver/host/limit"
	"github.com/cinder-csi/cinder-csi/driver/host/metadata"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Options configures the node service.
type Options struct {
	DriverName   string // contract.DriverName if empty
	TopologyKey  string // derived from DriverName if empty
	WithTopology bool   // whether NodeGetInfo reports the zone
	// AdditionalTopology are segments that are reported beside the zone. They replace the zone if they have its key, as
	// with upstream's flag.
	AdditionalTopology map[string]string
	AttachLimit        int64       // volumes per node; computed if not positive
	AttachReserve      *int64      // slots that stay free if the limit is computed; defaultAttachReserve if nil
	ForeignVolumes     []volume.ID // volumes that others attach to nodes
	ZoneFile           string      // stores the zone in which this node was registered; no file if empty
	RegisteredFile     string      // exists once kubelet has called NodeGetInfo; lives as long as the pod. No file if empty
	DefaultFSType      string      // for requests that name no file system; ext4 if empty
	Metrics            Metrics     // no metrics if nil
	Log                *slog.Logger
}

// Metrics receives the metrics of the node; package telemetry implements it.
type Metrics interface {
	// VolumeLimit sets the terms of the attach limit, "limit" among them, in volumes.
	VolumeLimit(terms map[string]int64)
	// CountVolumes sets the function that counts the volumes of the node.
	CountVolumes(count func() int)
	// ZoneChanged sets whether the server is in another zone than the one in which the node was registered.
	ZoneChanged(changed bool)
	// Registered sets whether kubelet has called NodeGetInfo since the pod started.
	Registered(registered bool)
	// VolumeHealth sets what is wrong with a volume of this node; no reasons if nothing is, or if it is no longer here.
	VolumeHealth(id string, reasons []string)
}

type noMetrics struct{}

func (noMetrics) VolumeLimit(map[string]int64)  {}
func (noMetrics) CountVolumes(func() int)       {}
func (noMetrics) ZoneChanged(bool)              {}
func (noMetrics) Registered(bool)               {}
func (noMetrics) VolumeHealth(string, []string) {}

// machine is what the service needs of package host; *host.Host implements it.
type machine interface {
	Server(ctx context.Context) (metadata.Server, error)
	AttachCapacity(ctx context.Context, foreign []volume.ID) limit.Capacity
	AwaitDisk(ctx context.Context, id volume.ID) error
	Stage(ctx context.Context, s host.StageSpec) error
	Publish(ctx context.Context, p host.PublishSpec) error
	PublishBlock(ctx context.Context, p host.PublishSpec) error
	Unpublish(ctx context.Context, path string) error
	Unstage(ctx context.Context, id volume.ID, path string) error
	Health(ctx context.Context, id volume.ID, paths ...string) ([]volume.HealthIssue, error)
	Stats(ctx context.Context, path string) (host.Stats, error)
	Expand(ctx context.Context, e host.ExpandSpec) (volume.Size, error)
}

// Server implements csi.NodeServer. Its errors are *volume.Error.
type Server struct {
	csi.UnimplementedNodeServer

	machine    machine
	options    Options
	inFlight   *inFlight
	limit      *attachLimit
	zone       zoneRecord
	registered atomic.Bool // the answer of NodeGetInfo was complete once since the start
	// unregistered is the last reason in the log why kubelet cannot register the driver.
	unregistered atomic.Value
	log          *slog.Logger
}

// New returns the node service of the machine h.
func New(h *host.Host, o Options) *Server { return newServer(h, o) }

func newServer(m machine, o Options) *Server {
	o.DriverName = cmp.Or(o.DriverName, contract.DriverName)
	o.TopologyKey = cmp.Or(o.TopologyKey, contract.TopologyKeyOf(o.DriverName))
	o.Metrics = cmp.Or[Metrics](o.Metrics, noMetrics{})
	o.Log = cmp.Or(o.Log, slog.Default())
	o.Metrics.CountVolumes(func() int { return countVolumes(m, o.ForeignVolumes) })
	o.Metrics.Registered(wasRegistered(o.RegisteredFile))
	return &Server{
		machine: m, options: o, inFlight: newInFlight(o.Log), limit: newAttachLimit(o), zone: zoneRecord{path: o.ZoneFile, log: o.Log, metrics: o.Metrics}, log: o.Log,
	}
}

// Drain waits for operations whose callers are gone, until ctx ends: a file system that is half made is neither empty
// nor usable. The caller stops the gRPC server first.
func (s *Server) Drain(ctx context.Context) { s.inFlight.drain(ctx) }

// NodeGetCapabilities lists the capabilities of this service (CSI specification, "NodeGetCapabilities").
// VOLUME_MOUNT_GROUP is not among them: the supported file systems take no group as a mount option, so kubelet sets the
// ownership.
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

// NodeGetInfo returns the server ID, the attach limit and the zone (CSI specification, "NodeGetInfo"). kubelet calls it
// when the driver registers, and from time to time for the attach limit (CSIDriver,
// nodeAllocatableUpdatePeriodSeconds).
func (s *Server) NodeGetInfo(ctx context.Context, _ *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	response, err := s.info(ctx)
	if err == nil {
		s.options.Metrics.Registered(true)
		noteRegistered(s.options.RegisteredFile, s.log)
	}
	return response, err
}

// Registered returns an error if kubelet cannot register the driver: NodeGetInfo fails, and has not succeeded since the start. It asks NodeGetInfo
// itself. kubelet does not call that again when the driver's container restarts alone. Anybody who reaches the page gets the error, so the log has
// the reason, once for each change.
func (s *Server) Registered(ctx context.Context) error {
	if s.registered.Load() {
		return nil
	}
	_, err := s.info(ctx)
	if err == nil {
		return nil
	}
	if text := fmt.Sprintf("%.1000s", err); s.unregistered.Swap(text) != text { // the metadata service chooses a part of it
		s.log.WarnContext(ctx, "kubelet cannot register the driver", "error", text)
	}
	return volume.Errorf(volume.KindOf(err), "kubelet cannot register the driver; its log has the reason")
}

func (s *Server) info(ctx context.Context) (*csi.NodeGetInfoResponse, error) {
	server, err := s.machine.Server(ctx)
	if err != nil {
		return nil, err
	}
	response := &csi.NodeGetInfoResponse{NodeId: string(server.ID), MaxVolumesPerNode: s.limit.current(ctx, s.machine)}
	if !s.options.WithTopology {
		s.registered.Store(true)
		return response, nil
	}
	segments := map[string]string{}
	if zone := s.zone.registered(ctx, server.ID, s.options.TopologyKey, contract.ZoneLabel(server.Zone)); zone != "" {
		segments[s.options.TopologyKey] = zone
	}
	maps.Copy(segments, s.options.AdditionalTopology)
	if segments[s.options.TopologyKey] == "" {
		return nil, volume.Errorf(volume.Failed, "the %s of server %s has no zone that can be a label (availability_zone %q); "+
			"run with --with-topology=false, or set %s by --additional-topology%s",
			server.Source, server.ID, server.Zone, s.options.TopologyKey, skipped(server.Skipped)).Cause(cause.NodeZone)
	}
	response.AccessibleTopology = &csi.Topology{Segments: segments}
	s.registered.Store(true)
	return response, nil
}

func skipped(reasons string) string {
	if reasons == "" {
		return ""
	}
	return "; other sources failed: " + reasons
}
