package provision

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// CreateSpec describes a new volume (CSI specification, CreateVolume; Cinder API reference, "Create a volume").
type CreateSpec struct {
	// Name identifies the request: two specs with the same name are the same volume.
	Name string
	// Size is the allowed range in bytes; Cinder creates whole GiB.
	Size volume.Range
	// Type is the name or ID of a volume type; empty means the default type of the cloud.
	Type string
	// Zone is the only volume zone allowed; empty means that Zones decide.
	Zone string
	// Zones are the allowed volume zones, best first, by name or by label; none means the default zone of Cinder.
	Zones []string
	// AnyZone says that the volume may also be in a zone outside Zones, where Cinder falls back to its default zone.
	AnyZone bool
	// Multiattach says that several servers will use the volume at the same time.
	Multiattach bool
	// Source is the volume to clone. Snapshot is the snapshot or backup to restore. At most one of them is set.
	Source   volume.ID
	Snapshot volume.SnapshotID
	// Metadata is added to the metadata that every volume of the driver carries.
	Metadata map[string]string
	// Hints are for the scheduler of Cinder.
	Hints contract.Hints
	// ClaimHints reads the hints of the claim; nil reads none. The driver calls it only before it creates a volume.
	ClaimHints func(ctx context.Context) (contract.Hints, error)
	// ClaimNamespace is the namespace of the claim. Its users write ClaimHints, so these may name only volumes of claims in that namespace.
	ClaimNamespace string
	// DropHint is called for each other name in ClaimHints, and the volume is created without that hint. If it is nil, such a name is an error.
	DropHint func(ctx context.Context, name string)
}

// validate returns the size to create.
func (spec CreateSpec) validate() (volume.Size, error) {
	if spec.Name == "" {
		return 0, volume.Errorf(volume.InvalidArgument, "the request has no volume name").Op("create")
	}
	return spec.Size.Smallest()
}

// mismatch says how a volume of the same name differs from the spec; empty where it does not. The zone is not compared: Cinder may choose
// another one, and CreateVolume reports the real zone. Names and IDs are compared without regard to case, as the database of Cinder may.
func (spec CreateSpec) mismatch(v volume.Volume) string {
	restored := cmp.Or(v.SnapshotID, v.BackupID)
	if !spec.restoredFrom(v) {
		restored = cmp.Or(v.RestoreFrom, restored)
	}
	switch {
	case !spec.Size.Allows(v.Size):
		return fmt.Sprintf("its size is %s, which is not within %s and %s", v.Size, spec.Size.Required, spec.Size.Limit)
	case spec.Type != "" && !volume.ID(spec.Type).Exists() && !strings.EqualFold(v.Type, spec.Type):
		return fmt.Sprintf("its type is %q instead of %q", v.Type, spec.Type)
	case !strings.EqualFold(string(v.SourceID), string(spec.Source)):
		return fmt.Sprintf("its source volume is %q instead of %q", v.SourceID, spec.Source)
	case strings.EqualFold(restored, string(spec.Snapshot)) || spec.backupMayBeUnknown(v):
		return ""
	}
	return fmt.Sprintf("its snapshot or backup is %q instead of %q", restored, spec.Snapshot)
}

// backupMayBeUnknown reports whether v may be restored from the backup of the spec although it does not say so yet. The metadata names the
// backup, and during a restore Cinder replaces it with the metadata of the volume that was backed up.
func (spec CreateSpec) backupMayBeUnknown(v volume.Volume) bool {
	return v.SnapshotID == "" && spec.Snapshot != "" && v.Status.Meaning().Create == volume.Wait
}

func (spec CreateSpec) allowsZone(zone string) bool {
	return spec.Zone != "" || len(spec.Zones) == 0 || spec.AnyZone || strings.TrimSpace(zone) == "" ||
		slices.ContainsFunc(spec.Zones, func(allowed string) bool { return sameZone(allowed, zone) })
}

// zonesFromTopology reports whether the topology of the request chose the zones. Then the Kubernetes scheduler can choose others.
func (spec CreateSpec) zonesFromTopology() bool { return spec.Zone == "" && len(spec.Zones) > 0 }
