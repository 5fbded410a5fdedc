package provision

import (
	"context"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// origin is what the driver knows about where a volume of the requested name comes from.
type origin struct {
	created    bool // this call created it
	unreturned bool // no call has returned it: it was not created yet or waits for a restore, and the driver that created it leaves a request token
	ours       bool // the driver may delete it: mayDelete
}

// originOf is the origin of v as found by name. Created is the ID of the volume that this call created, if it created one.
func (s *Service) originOf(v volume.Volume, created volume.ID) origin {
	ours := s.mayDelete(v)
	return origin{created: v.ID == created, unreturned: v.ID == created || ours && (v.Status.Meaning().Create == volume.Wait || v.RestoreFrom != ""), ours: ours}
}

// defect is why a volume of the requested name cannot be the result of the request.
type defect struct {
	discard string // the reason to delete it, for the log; empty if the driver keeps it
	err     *volume.Error
}

// defect returns the first defect of v, or nil. The driver deletes only what no call has returned: no later call would find it useful.
func (spec CreateSpec) defect(v volume.Volume, from origin) *defect {
	mismatch := spec.mismatch(v)
	switch {
	case mismatch != "" && !from.created:
		return &defect{err: volume.Errorf(volume.Incompatible, "volume %s already has the name %s, and %s; the driver does not replace it", v.ID, spec.Name, mismatch).Cause(cause.CreateNameTaken)}
	case mismatch != "":
		return &defect{"it differs from the request: " + mismatch, volume.Errorf(volume.Failed, "Cinder created volume %s, but %s; the driver deleted it", v.ID, mismatch).Cause(cause.CreateError)}
	case from.unreturned && !spec.allowsZone(v.Zone):
		// Cinder does that with its option allow_availability_zone_fallback. The nodes that need the volume may not reach that zone.
		return &defect{
			"Cinder created it in zone " + v.Zone + ", which is not allowed",
			volume.Errorf(volume.NotInZone, "Cinder created volume %s in zone %s instead of %s; the driver deleted it", v.ID, v.Zone, strings.Join(spec.Zones, " or ")).Cause(cause.CreateZone),
		}
	case !spec.Multiattach || v.Multiattach:
		return nil
	case from.ours && (from.created || v.Metadata[contract.MetadataShared] != ""): // an earlier call created it for several servers, and returned an error
		return &defect{
			"its type does not allow several servers",
			volume.Errorf(volume.InvalidArgument, "volume type %s does not allow several servers; in the StorageClass, set parameter %s to a type with the extra spec multiattach", v.Type, contract.ParameterType).Cause(cause.CreateTypeSingle),
		}
	}
	return &defect{err: volume.Errorf(volume.Incompatible, "volume %s already has the name %s, and its type %s does not allow several servers; the driver does not replace it", v.ID, v.Name, v.Type).Cause(cause.CreateNameTaken)}
}

// reject returns the error of a defect, after it has deleted the volume where the defect says so.
func (s *Service) reject(ctx context.Context, v volume.Volume, d *defect) error {
	if d.discard != "" {
		err := s.awaitDeletable(ctx, v)
		if err == nil {
			err = s.resource.Discard(ctx, v, d.discard)
		}
		if err != nil {
			return volume.AfterWrite(err)
		}
	}
	return d.err.Op("create")
}
