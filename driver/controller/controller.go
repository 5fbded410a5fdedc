// Package controller implements the Controller service of CSI. A handler validates the request, calls one method of the domain, and translates
// the result. The package decides nothing about volumes.
//
// It keeps in memory only which warnings it has logged. After a restart it logs them again.
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

// Cloud holds the services for one cloud.
type Cloud struct {
	Volumes     Volumes
	Attachments Attachments
	Snapshots   Snapshots
}

// Attachments attaches and detaches the volumes of one cloud; *attach.Service implements it.
type Attachments interface {
	Attach(ctx context.Context, id volume.ID, server volume.ServerID) (volume.Volume, error)
	Detach(ctx context.Context, id volume.ID, server volume.ServerID) error
}

// Volumes creates, changes, reads and deletes the volumes of one cloud; *provision.Service implements it.
type Volumes interface {
	Create(ctx context.Context, spec provision.CreateSpec) (volume.Volume, error)
	Delete(ctx context.Context, id volume.ID) error
	Get(ctx context.Context, id volume.ID) (volume.Volume, error)
	List(ctx context.Context, p volume.Position, limit int) (page []volume.Volume, more bool, err error)
	Expand(ctx context.Context, id volume.ID, size volume.Range) (volume.Volume, error)
	Modify(ctx context.Context, id volume.ID, c provision.Change) error
	Capacity(ctx context.Context, spec provision.CreateSpec) (provision.Capacity, error)
	Health(ctx context.Context, id volume.ID) (volume.Health, error)
	ListHealth(ctx context.Context, p volume.Position, missing map[volume.ServerID]bool) (page []volume.Health, more bool, err error)
}

// Claims reads PersistentVolumeClaims; *kube.API implements it. Errors are *volume.Error; a missing claim is NotFound.
type Claims interface {
	Annotations(ctx context.Context, namespace, claim string) (map[string]string, error)
}

// Options are what a Server needs.
type Options struct {
	// Clouds holds the clouds by the name of their section [Global "name"]; "" is the section [Global].
	Clouds map[string]Cloud
	// TopologyKey is the key of the topology segment whose value is a zone.
	TopologyKey string
	// WithTopology makes the server use and report zones.
	WithTopology bool
	// IgnoreZone returns the present value of ignore-volume-az in cloud.conf: the server then reports the requested zones instead of the zone
	// of the volume. Nil means no.
	IgnoreZone func() bool
	// ZoneMap returns the present [Zone] sections of cloud.conf: which volume zones serve which compute zones. Nil means that each volume zone
	// serves the compute zone of the same name.
	ZoneMap func() contract.ZoneMap
	// DefaultFSType is the file system that nodes create if the capability names none; empty means ext4.
	DefaultFSType string
	// Claims reads the annotations of claims, which hold scheduler hints; nil reads none.
	Claims Claims
	// WithCapacity makes the server implement GetCapacity. It needs a single cloud.
	WithCapacity bool
	// Strict makes the server refuse unknown class parameters, and file systems for several writers, instead of logging a warning once.
	Strict bool
	// Lenient counts what Strict would refuse, by kind; nil counts nothing.
	Lenient func(what string)
	Log     *slog.Logger
}

// Server implements csi.ControllerServer.
type Server struct {
	csi.UnimplementedControllerServer
	o        Options
	clouds   []string // sorted
	warnings warnings
}

// New returns a Server.
func New(o Options) *Server {
	return &Server{o: o, clouds: slices.Sorted(maps.Keys(o.Clouds))}
}

// cloud returns the cloud that a request's secrets name.
func (s *Server) cloud(secrets map[string]string) (Cloud, error) {
	name := secrets[contract.SecretCloud]
	if cloud, known := s.o.Clouds[name]; known {
		return cloud, nil
	}
	return Cloud{}, volume.Errorf(volume.InvalidArgument, "key %q of the secret names cloud %q, which cloud.conf does not have; it has %s",
		contract.SecretCloud, name, quoted(s.clouds))
}

type volumeRequest interface {
	GetSecrets() map[string]string
	GetVolumeId() string
}

// volumeOf returns the cloud and the ID of the volume that a request names.
func (s *Server) volumeOf(req volumeRequest) (Cloud, volume.ID, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err == nil && req.GetVolumeId() == "" {
		err = missingField("volume ID")
	}
	return cloud, volume.ParseID(req.GetVolumeId()), err
}

func quoted(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = `"` + name + `"`
	}
	return strings.Join(all, ", ")
}

// missingField is the error of a request without a required field (CSI specification, "Required" fields).
func missingField(field string) error {
	return volume.Errorf(volume.InvalidArgument, "the request has no %s", field)
}

// validateName refuses a name that Cinder would refuse or change, or that could change its logs. An administrator who writes a
// VolumeSnapshotContent chooses the UID in the name of a snapshot. A web server that refuses a long one looks like a cloud without the filter for
// names. Cinder removes the blanks around a name, so that an object with some would get the name of another one.
func validateName(name string) error {
	if name == "" {
		return missingField("name")
	}
	if err := contract.CheckText("name", name); err != nil {
		return volume.Errorf(volume.InvalidArgument, "the request: %w", err)
	}
	if strings.TrimSpace(name) != name {
		return volume.Errorf(volume.InvalidArgument, "the name %q begins or ends with a blank, which Cinder would remove", name)
	}
	return nil
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
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, capability := range capabilities {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: capability}},
		})
	}
	return response, nil
}
