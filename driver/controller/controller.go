// Package controller translates the Controller service of CSI into the domain's words and back: validate, one call into package
// volume, answer. It decides nothing about volumes.
package controller

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Cloud is what the server calls for one cloud.
type Cloud struct {
	Volumes     Volumes
	Attachments Attachments
	Snapshots   Snapshots
}

// Attachments attaches and detaches the volumes of one cloud; *volume.AttachService does.
type Attachments interface {
	Attach(ctx context.Context, id volume.ID, server volume.ServerID) (volume.Volume, error)
	Detach(ctx context.Context, id volume.ID, server volume.ServerID) error
}

// Volumes creates, changes, reads and deletes the volumes of one cloud; *volume.Volumes does.
type Volumes interface {
	Create(ctx context.Context, w provision.CreateSpec) (volume.Volume, error)
	Delete(ctx context.Context, id volume.ID) error
	Get(ctx context.Context, id volume.ID) (volume.Volume, error)
	List(ctx context.Context, p volume.Position, limit int) ([]volume.Volume, error)
	Expand(ctx context.Context, id volume.ID, size volume.Range) (volume.Volume, error)
	Modify(ctx context.Context, id volume.ID, c provision.Change) error
	Capacity(ctx context.Context, r provision.CapacityRequest) (provision.Capacity, error)
	Health(ctx context.Context, id volume.ID) (volume.Health, error)
	ListHealth(ctx context.Context, p volume.Position, limit int) ([]volume.Health, error)
}

// Claims are the claims that volumes are made for; *kube.API knows them. Errors are *volume.Error; a missing claim is NotFound.
type Claims interface {
	Annotations(ctx context.Context, namespace, claim string) (map[string]string, error)
}

// Options are what the server needs.
type Options struct {
	// Clouds are by the name of their [Global "name"] section; "" is plain [Global].
	Clouds map[string]Cloud
	// TopologyKey is the segment whose value is a zone.
	TopologyKey string
	// WithTopology honours and reports zones.
	WithTopology bool
	// IgnoreZone says whether the zones that were asked for are reported instead of the volume's own: cloud.conf's ignore-volume-az
	// as it is now. Nil means no.
	IgnoreZone func() bool
	// ZoneMap says which volume zones serve which compute zones: cloud.conf's [Zone] sections as they are now. Nil means that every
	// volume zone serves the compute zone of its name.
	ZoneMap func() contract.ZoneMap
	// DefaultFSType is what nodes make where no capability names a file system; ext4 when empty.
	DefaultFSType string
	// Claims reads scheduler hints from claims' annotations; nil reads none.
	Claims Claims
	// WithCapacity answers GetCapacity, for the one cloud that there then is.
	WithCapacity bool
	// Strict refuses class parameters that nobody knows, and attachments for several writers of a file system, instead of warning
	// once.
	Strict bool
	// Lenient counts what Strict would have refused, by kind; nil counts nothing.
	Lenient func(what string)
	Log     *slog.Logger
}

// Server implements csi.ControllerServer.
type Server struct {
	csi.UnimplementedControllerServer
	o      Options
	clouds []string // sorted
	warned warned
}

// New gives a Server.
func New(o Options) *Server {
	return &Server{o: o, clouds: slices.Sorted(maps.Keys(o.Clouds))}
}

// cloud returns the cloud that a request's secrets name.
func (s *Server) cloud(secrets map[string]string) (Cloud, error) {
	name := secrets[contract.SecretCloud]
	if cloud, known := s.o.Clouds[name]; known {
		return cloud, nil
	}
	return Cloud{}, volume.Errorf(volume.InvalidArgument, "the secret's key %q names cloud %q, which the driver was not given; it has %s",
		contract.SecretCloud, name, quoted(s.clouds))
}

func quoted(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = `"` + name + `"`
	}
	return strings.Join(all, ", ")
}

// missing is the error of a request that lacks a field it must have.
func missing(field string) error {
	return volume.Errorf(volume.InvalidArgument, "the request has no %s", field)
}

// ControllerGetCapabilities implements csi.ControllerServer.
func (s *Server) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	capabilities := []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES,
		csi.ControllerServiceCapability_RPC_GET_VOLUME,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		csi.ControllerServiceCapability_RPC_GET_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_MODIFY_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
		csi.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH,
		csi.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	}
	if s.o.WithCapacity {
		capabilities = append(capabilities, csi.ControllerServiceCapability_RPC_GET_CAPACITY)
	}
	answer := &csi.ControllerGetCapabilitiesResponse{}
	for _, capability := range capabilities {
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: capability}},
		})
	}
	return answer, nil
}
