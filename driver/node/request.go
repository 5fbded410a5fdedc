package node

import (
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host"
	"github.com/cinder-csi/cinder-csi/driver/host/fs"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// contextEphemeral marks an inline ephemeral volume, which upstream no longer supports.
const contextEphemeral = "csi.storage.k8s.io/ephemeral"

// required returns InvalidArgument if a field is empty; pairs are a value and its name in the CSI specification.
func required(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == "" {
			return volume.Errorf(volume.InvalidArgument, "the request has no %s", pairs[i+1])
		}
	}
	return nil
}

// capability is the volume_capability of a request.
type capability struct {
	block        bool
	fsType       string
	mountFlags   []string
	readOnly     bool // no node may write
	singleTarget bool // one target on a node
}

// readOnlyModes says for each supported access mode whether nobody may write (CSI specification,
// "VolumeCapability.AccessMode").
var readOnlyModes = map[csi.VolumeCapability_AccessMode_Mode]bool{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   true,
	csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:    true,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        false,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: false,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  false,
	csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:  false,
	csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:   false,
}

// singleTargetModes are the access modes in which a volume has one target on a node (CSI specification,
// "NodePublishVolume", second table). SINGLE_NODE_WRITER is not among them, unlike in that table. kubelet before 1.22,
// and other callers that do not know the newer modes, send it for ReadWriteOnce. That lets several pods of a node use
// the volume, and upstream's plugin allows it too.
var singleTargetModes = map[csi.VolumeCapability_AccessMode_Mode]bool{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: true,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   true,
}

func parseCapability(c *csi.VolumeCapability) (capability, error) {
	if c == nil {
		return capability{}, volume.Errorf(volume.InvalidArgument, "the request has no volume_capability")
	}
	readOnly, known := readOnlyModes[c.GetAccessMode().GetMode()]
	if !known {
		return capability{}, volume.Errorf(volume.InvalidArgument, "access mode %s is not supported", c.GetAccessMode().GetMode())
	}
	single := singleTargetModes[c.GetAccessMode().GetMode()]
	switch {
	case c.GetBlock() != nil:
		return capability{block: true, readOnly: readOnly, singleTarget: single}, nil
	case c.GetMount() != nil:
		return capability{fsType: c.GetMount().GetFsType(), mountFlags: c.GetMount().GetMountFlags(), readOnly: readOnly, singleTarget: single}, nil
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
		return host.StageSpec{}, capability{}, volume.Errorf(volume.InvalidArgument, "volume %s: parse the volume_context: %w", r.GetVolumeId(), err)
	}
	return host.StageSpec{
		Volume: volume.ID(r.GetVolumeId()), Path: r.GetStagingTargetPath(),
		FSType: c.fsType, DefaultFSType: s.options.DefaultFSType, Format: fs.FormatOptions(format), MountFlags: c.mountFlags, ReadOnly: c.readOnly,
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
	p := host.PublishSpec{Volume: volume.ID(r.GetVolumeId()), Staging: r.GetStagingTargetPath(), Target: r.GetTargetPath()}
	if err := required(r.GetVolumeId(), "volume_id", r.GetTargetPath(), "target_path"); err != nil {
		return p, capability{}, err
	}
	c, err := parseCapability(r.GetVolumeCapability())
	if err != nil {
		return p, c, err
	}
	if strings.EqualFold(r.GetVolumeContext()[contextEphemeral], "true") {
		return p, c, volume.Errorf(volume.Unimplemented, "volume %s: inline ephemeral volumes are not supported; use a generic ephemeral volume", p.Volume)
	}
	if p.Staging == "" {
		return p, c, volume.Errorf(volume.Conflict, "volume %s: the request has no staging_target_path, but a volume must be staged before it is published", p.Volume)
	}
	p.ReadOnly, p.ReadOnlyByMode, p.SingleTarget = c.readOnly || r.GetReadonly(), c.readOnly && !r.GetReadonly(), c.singleTarget
	return p, c, nil
}

func parseExpand(r *csi.NodeExpandVolumeRequest) (host.ExpandSpec, error) {
	if err := required(r.GetVolumeId(), "volume_id", r.GetVolumePath(), "volume_path"); err != nil {
		return host.ExpandSpec{}, err
	}
	minimum, limit := r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes()
	if minimum < 0 || limit < 0 || limit > 0 && minimum > limit {
		return host.ExpandSpec{}, volume.Errorf(volume.InvalidArgument, "volume %s: the capacity_range of %d to %d bytes is empty", r.GetVolumeId(), minimum, limit)
	}
	e := host.ExpandSpec{
		Volume: volume.ID(r.GetVolumeId()), Path: r.GetVolumePath(), Size: volume.Size(minimum),
		Block: r.GetVolumeCapability().GetBlock() != nil,
	}
	if r.GetStagingTargetPath() != "" && r.GetVolumeCapability().GetMount() != nil {
		e.Path = r.GetStagingTargetPath() // writable even if the mount of the pod is read-only
	}
	return e, nil
}
