package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The facts that a decision names for each volume type: "volumeTypes[NAME].zones".
const (
	typeFact     = "volumeTypes["
	typeZones    = "].zones"
	typeID       = "].id"
	none         = "none"
	defaultFact  = "defaultVolumeType"
	snapshotFact = "services.block-storage.snapshotInUse"
	backupFact   = "backup"
)

// ZonesFact is the name of the fact that says in which zones a volume type exists. A decision names it only where the type is bound to zones.
func ZonesFact(volumeType string) string { return typeFact + volumeType + typeZones }

// offered is the fact that the cloud has a volume type. Another type may get the name.
func offered(t v1alpha1.VolumeType) v1alpha1.NamedFact {
	return v1alpha1.NamedFact{Name: typeFact + t.Name + typeID, Value: t.ID}
}

// FactNow is the value of a named fact in an inventory. False: the inventory does not know it, or no decision names such a fact.
func FactNow(inv v1alpha1.Inventory, name string) (string, bool) {
	switch name {
	case "zones.compute":
		return zonesNow(inv.Zones.Compute)
	case "zones.volume":
		return zonesNow(inv.Zones.Volume)
	case defaultFact:
		return cmp.Or(inv.DefaultVolumeType.Value, none), inv.DefaultVolumeType.State == v1alpha1.Known
	case snapshotFact:
		versions := inv.VersionsOf(blockStorage)
		return strconv.FormatBool(atLeast(versions.Value.MaxMicroversion, snapshotInUse)), versions.State == v1alpha1.Known
	}
	i := slices.IndexFunc(inv.VolumeTypes.Value, func(t v1alpha1.VolumeType) bool {
		return name == ZonesFact(t.Name) || name == offered(t).Name
	})
	switch {
	case i < 0 || inv.VolumeTypes.State != v1alpha1.Known:
		return "", false
	case strings.HasSuffix(name, typeID):
		return inv.VolumeTypes.Value[i].ID, true
	case inv.VolumeTypes.Value[i].Specs != "":
		return "", false
	}
	return namesText(inv.VolumeTypes.Value[i].Zones), true
}

func zonesNow(fact v1alpha1.Fact[[]v1alpha1.Zone]) (string, bool) {
	return namesText(zoneNames(fact.Value)), fact.State == v1alpha1.Known
}

// zoneNames are the names of zones, sorted.
func zoneNames(zones []v1alpha1.Zone) []string {
	return sortedSet(v1alpha1.ZoneNames(zones))
}
