package node

import (
	"fmt"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// contextEphemeral marks an inline ephemeral volume, which upstream no longer supports.
const contextEphemeral = "csi.storage.k8s.io/ephemeral"

// volumeID is the volume that a request names. Anybody who writes a PersistentVolume chooses the text, which reaches messages before anybody looks
// for the volume. So a text that is no ID is quoted and cut. No disk has such an ID.
func volumeID(handle string) volume.ID {
	id := volume.ParseID(handle)
	if !id.Exists() {
		id = volume.ID(fmt.Sprintf("%.64q", id))
	}
	return id
}

// required returns InvalidArgument if a field is empty; pairs are a value and its name in the CSI specification.
func required(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == "" {
			return volume.Errorf(volume.InvalidArgument, "the request has no %s", pairs[i+1])
		}
	}
	return nil
}

type capability struct {
	accessMode
	block      bool
	fsType     string
	mountFlags []string
}

// accessMode is what an access mode means on a node.
type accessMode struct {
	readOnly     bool // no node may write
	singleTarget bool // one target on a node
}

// accessModes are the supported access modes (CSI specification, "VolumeCapability.AccessMode", and "NodePublishVolume", second
// table). SINGLE_NODE_WRITER allows several targets, unlike in that table. kubelet before 1.22, and other callers that do not know
// the newer modes, send it for ReadWriteOnce. That lets several pods of a node use the volume, and upstream's plugin allows it too.
var accessModes = map[csi.VolumeCapability_AccessMode_Mode]accessMode{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        {},
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: {singleTarget: true},
	csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  {},
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   {readOnly: true, singleTarget: true},
	csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:    {readOnly: true},
	csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:  {},
	csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:   {},
}

func parseCapability(c *csi.VolumeCapability) (capability, error) {
	if c == nil {
		return capability{}, volume.Errorf(volume.InvalidArgument, "the request has no volume_capability")
	}
	mode, known := accessModes[c.GetAccessMode().GetMode()]
	switch {
	case !known:
		return capability{}, volume.Errorf(volume.InvalidArgument, "access mode %s is not supported", c.GetAccessMode().GetMode())
	case c.GetBlock() != nil:
		return capability{accessMode: mode, block: true}, nil
	case c.GetMount() != nil:
		return capability{accessMode: mode, fsType: c.GetMount().GetFsType(), mountFlags: c.GetMount().GetMountFlags()}, nil
	}
	return capability{}, volume.Errorf(volume.InvalidArgument, "the volume_capability is neither block nor mount")
}

func (s *Server) parseStage(r *csi.NodeStageVolumeRequest) (host.StageSpec, capability, error) {
	if err := required(r.GetVolumeId(), "volume_id", r.GetStagingTargetPath(), "staging_target_path"); err != nil {
		return host.StageSpec{}, capability{}, err
	}
	c, err := parseCapability(r.GetVolumeCapability())
	if err != nil {
		return host.StageSpec{}, capability{}, err
	}
	format, err := parseFormat(r.GetVolumeContext(), c.fsType)
	if err != nil {
		return host.StageSpec{}, capability{}, volume.Errorf(volume.InvalidArgument, "volume %s: parse the volume_context: %w",
			volumeID(r.GetVolumeId()), err)
	}
	return host.StageSpec{
		Volume: volumeID(r.GetVolumeId()), Path: r.GetStagingTargetPath(),
		FSType: c.fsType, DefaultFSType: s.options.DefaultFSType, Format: format, MountFlags: c.mountFlags, ReadOnly: c.readOnly,
		FromSource: strings.EqualFold(r.GetVolumeContext()[contract.ContextResizeRequired], "true"),
	}, c, nil
}

// parseFormat parses how a file system is made. If the request names no file system, the options need only fit one of
// them. The default may have changed since the volume was formatted. The driver does not compare the options with an
// existing file system.
func parseFormat(context map[string]string, fsType string) (contract.Format, error) {
	format, err := contract.FormatOfContext(context)
	if err != nil {
		return format, err
	}
	return format, format.Check(fsType)
}

func parsePublish(r *csi.NodePublishVolumeRequest) (host.PublishSpec, capability, error) {
	if err := required(r.GetVolumeId(), "volume_id", r.GetTargetPath(), "target_path"); err != nil {
		return host.PublishSpec{}, capability{}, err
	}
	c, err := parseCapability(r.GetVolumeCapability())
	switch {
	case err != nil:
		return host.PublishSpec{}, capability{}, err
	case strings.EqualFold(r.GetVolumeContext()[contextEphemeral], "true"):
		return host.PublishSpec{}, capability{}, volume.Errorf(volume.Unimplemented,
			"volume %s: inline ephemeral volumes are not supported; use a generic ephemeral volume", volumeID(r.GetVolumeId()))
	case r.GetStagingTargetPath() == "":
		return host.PublishSpec{}, capability{}, volume.Errorf(volume.Conflict,
			"volume %s: the request has no staging_target_path, but a volume must be staged before it is published", volumeID(r.GetVolumeId())).Cause(cause.MountNotStaged)
	}
	return host.PublishSpec{
		Volume: volumeID(r.GetVolumeId()), Staging: r.GetStagingTargetPath(), Target: r.GetTargetPath(),
		ReadOnly:       c.readOnly || r.GetReadonly(),
		ReadOnlyByMode: c.readOnly && !r.GetReadonly(),
		SingleTarget:   c.singleTarget,
	}, c, nil
}

func parseExpand(r *csi.NodeExpandVolumeRequest) (host.ExpandSpec, error) {
	if err := required(r.GetVolumeId(), "volume_id", r.GetVolumePath(), "volume_path"); err != nil {
		return host.ExpandSpec{}, err
	}
	minimum, limit := r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes()
	if minimum < 0 || limit < 0 || limit > 0 && minimum > limit {
		return host.ExpandSpec{}, volume.Errorf(volume.InvalidArgument, "volume %s: the capacity_range of %d to %d bytes is empty",
			volumeID(r.GetVolumeId()), minimum, limit)
	}
	e := host.ExpandSpec{
		Volume: volumeID(r.GetVolumeId()), Path: r.GetVolumePath(), Size: volume.Size(minimum),
		Block: r.GetVolumeCapability().GetBlock() != nil,
	}
	if r.GetStagingTargetPath() != "" && r.GetVolumeCapability().GetMount() != nil {
		e.Path = r.GetStagingTargetPath() // writable even if the mount of the pod is read-only
	}
	return e, nil
}
