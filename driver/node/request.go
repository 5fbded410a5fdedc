package node

import (
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// contextEphemeral marks a volume written into a pod, which upstream stopped to offer.
const contextEphemeral = "csi.storage.k8s.io/ephemeral"

// required refuses a request that lacks a field; pairs are a value and its name in the CSI specification.
func required(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == "" {
			return volume.Errorf(volume.InvalidArgument, "the request has no %s", pairs[i+1])
		}
	}
	return nil
}

// use is how a volume is to be used.
type use struct {
	block    bool
	fsType   string
	flags    []string
	readOnly bool // no node may write
	alone    bool // one target on a node
}

// readerOnly are the modes in which nobody writes (CSI specification, "VolumeCapability.AccessMode").
var readerOnly = map[csi.VolumeCapability_AccessMode_Mode]bool{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   true,
	csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:    true,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        false,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: false,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  false,
	csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:  false,
	csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:   false,
}

// alone are the modes in which a volume has one target on a node (CSI specification, "NodePublishVolume", second table). Not
// SINGLE_NODE_WRITER, against that table: it is what kubelet before 1.22 and others that do not know the newer modes send for
// ReadWriteOnce, which lets several pods of a node use the volume, and upstream's plugin does.
var alone = map[csi.VolumeCapability_AccessMode_Mode]bool{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: true,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   true,
}

func parseUse(c *csi.VolumeCapability) (use, error) {
	if c == nil {
		return use{}, volume.Errorf(volume.InvalidArgument, "the request has no volume_capability")
	}
	readOnly, known := readerOnly[c.GetAccessMode().GetMode()]
	if !known {
		return use{}, volume.Errorf(volume.InvalidArgument, "access mode %s is not supported", c.GetAccessMode().GetMode())
	}
	single := alone[c.GetAccessMode().GetMode()]
	switch {
	case c.GetBlock() != nil:
		return use{block: true, readOnly: readOnly, alone: single}, nil
	case c.GetMount() != nil:
		return use{fsType: c.GetMount().GetFsType(), flags: c.GetMount().GetMountFlags(), readOnly: readOnly, alone: single}, nil
	}
	return use{}, volume.Errorf(volume.InvalidArgument, "the volume_capability is neither block nor mount")
}

func (s *Server) parseStage(r *csi.NodeStageVolumeRequest) (host.Staging, use, error) {
	if err := required(r.GetVolumeId(), "volume_id", r.GetStagingTargetPath(), "staging_target_path"); err != nil {
		return host.Staging{}, use{}, err
	}
	u, err := parseUse(r.GetVolumeCapability())
	if err != nil {
		return host.Staging{}, use{}, err
	}
	format, err := formatOf(r.GetVolumeContext(), u.fsType)
	if err != nil {
		return host.Staging{}, use{}, volume.Errorf(volume.InvalidArgument, "volume %s: the volume_context: %w", r.GetVolumeId(), err)
	}
	return host.Staging{
		Volume: volume.ID(r.GetVolumeId()), Path: r.GetStagingTargetPath(),
		FSType: u.fsType, Default: s.options.DefaultFSType, Format: host.Format(format), Flags: u.flags, ReadOnly: u.readOnly,
		FromSource: strings.EqualFold(r.GetVolumeContext()[contract.ContextResizeRequired], "true"),
	}, u, nil
}

// formatOf is how a file system is to be made. Where the request names no kind, it need only fit one: the default may be another
// since the volume's was made, and what is there is not compared.
func formatOf(context map[string]string, fsType string) (contract.Format, error) {
	format, err := contract.FormatOfContext(context)
	if err != nil {
		return format, err
	}
	return format, format.Check(fsType)
}

func parsePublish(r *csi.NodePublishVolumeRequest) (host.Publication, use, error) {
	p := host.Publication{Volume: volume.ID(r.GetVolumeId()), Staging: r.GetStagingTargetPath(), Target: r.GetTargetPath()}
	if err := required(r.GetVolumeId(), "volume_id", r.GetTargetPath(), "target_path"); err != nil {
		return p, use{}, err
	}
	u, err := parseUse(r.GetVolumeCapability())
	if err != nil {
		return p, u, err
	}
	if strings.EqualFold(r.GetVolumeContext()[contextEphemeral], "true") {
		return p, u, volume.Errorf(volume.Unimplemented, "volume %s: inline ephemeral volumes are not supported; use a generic ephemeral volume", p.Volume)
	}
	if p.Staging == "" {
		return p, u, volume.Errorf(volume.Conflict, "volume %s: the request has no staging_target_path, and a volume is staged before it is published", p.Volume)
	}
	p.ReadOnly, p.ByMode, p.Alone = u.readOnly || r.GetReadonly(), u.readOnly && !r.GetReadonly(), u.alone
	return p, u, nil
}

func parseExpand(r *csi.NodeExpandVolumeRequest) (host.Growth, error) {
	if err := required(r.GetVolumeId(), "volume_id", r.GetVolumePath(), "volume_path"); err != nil {
		return host.Growth{}, err
	}
	wanted, most := r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes()
	if wanted < 0 || most < 0 || most > 0 && wanted > most {
		return host.Growth{}, volume.Errorf(volume.InvalidArgument, "volume %s: the capacity_range %d to %d bytes is empty", r.GetVolumeId(), wanted, most)
	}
	g := host.Growth{
		Volume: volume.ID(r.GetVolumeId()), Path: r.GetVolumePath(), Size: volume.Size(wanted),
		Block: r.GetVolumeCapability().GetBlock() != nil,
	}
	if r.GetStagingTargetPath() != "" && r.GetVolumeCapability().GetMount() != nil {
		g.Path = r.GetStagingTargetPath() // writable also where the pod's own mount is read-only
	}
	return g, nil
}
