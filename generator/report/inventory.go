package report

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Inventory writes what a cloud offers, and at the end what it did not tell.
func Inventory(out io.Writer, inv v1alpha1.Inventory) error {
	t := newTable(out)
	where := inv.Cloud.AuthURL
	if inv.Simulated {
		where += " (simulated)"
	}
	t.row("Cloud", where)
	t.row("Region", cmp.Or(inv.Cloud.Region, "-"))
	t.row("Project", inv.Cloud.ProjectID)
	services(t, inv.Services)
	zones(t, inv.Zones)
	types(t, inv)
	quota(t, inv)
	if names := inv.GroupTypes.Value; len(names) > 0 {
		t.head("GROUP TYPES")
		t.row(strings.Join(names, ", "))
	}
	gaps(t, inv)
	return t.flush()
}

func services(t *table, fact v1alpha1.Fact[map[string]v1alpha1.Service]) {
	t.head("SERVICE", "MICROVERSIONS", "ENDPOINT")
	for _, name := range slices.Sorted(maps.Keys(fact.Value)) {
		s := fact.Value[name]
		versions := "-"
		if s.MaxMicroversion != "" {
			versions = s.MinMicroversion + " to " + s.MaxMicroversion
		}
		if !s.Present {
			s.Endpoint = "not in the catalog"
		}
		t.row(name, versions, s.Endpoint)
	}
}

func zones(t *table, z v1alpha1.Zones) {
	state := map[string][2]string{}
	note := func(side int, fact v1alpha1.Fact[[]v1alpha1.Zone]) {
		for _, zone := range fact.Value {
			s := state[zone.Name]
			s[side] = "yes"
			if !zone.Available {
				s[side] = "unavailable"
			}
			state[zone.Name] = s
		}
	}
	note(0, z.Compute)
	note(1, z.Volume)
	t.head("ZONE", "COMPUTE", "VOLUME")
	for _, name := range slices.Sorted(maps.Keys(state)) {
		t.row(name, cmp.Or(state[name][0], "-"), cmp.Or(state[name][1], "-"))
	}
}

func types(t *table, inv v1alpha1.Inventory) {
	t.head("VOLUME TYPE", "DEFAULT", "PUBLIC", "MULTIATTACH", "REPLICATION", "ENCRYPTION", "ZONES", "DESCRIPTION")
	for _, v := range inv.VolumeTypes.Value {
		encryption := cmp.Or(v.Encryption.Value.Provider, "-")
		if v.Encryption.State != v1alpha1.Known {
			encryption = string(v.Encryption.State)
		}
		where := "all"
		if len(v.Zones) > 0 {
			where = strings.Join(v.Zones, ", ")
		}
		multiattach, replication := yes(v.Multiattach), yes(v.Replication)
		if v.Specs != "" {
			multiattach, replication, where = string(v.Specs), string(v.Specs), string(v.Specs)
		}
		t.row(v.Name, yes(v.Name == inv.DefaultVolumeType.Value), yes(v.Public), multiattach, replication, encryption, where, v.Description)
	}
}

func quota(t *table, inv v1alpha1.Inventory) {
	t.head("RESOURCE", "LIMIT", "IN USE")
	if inv.Quota.State == v1alpha1.Known {
		for _, name := range slices.Sorted(maps.Keys(inv.Quota.Value)) {
			q := inv.Quota.Value[name]
			t.row(name, amount(q.Limit), amount(q.InUse))
		}
		return
	}
	if l := inv.Limits.Value; inv.Limits.State == v1alpha1.Known {
		t.row("volumes", amount(l.Volumes), "-")
		t.row("gigabytes", amount(l.Gigabytes), "-")
		t.row("snapshots", amount(l.Snapshots), "-")
		t.row("backups", amount(l.Backups), "-")
		t.row("backup_gigabytes", amount(l.BackupGigabytes), "-")
	}
}

// gaps lists the facts that are not known, and why.
func gaps(t *table, inv v1alpha1.Inventory) {
	first := true
	gap := func(name string, state v1alpha1.State, reason string) {
		if state == v1alpha1.Known {
			return
		}
		if first {
			t.head("NOT KNOWN", "WHY")
			first = false
		}
		t.row(name, unknown(state, reason))
	}
	gap("services", inv.Services.State, inv.Services.Reason)
	gap("compute zones", inv.Zones.Compute.State, inv.Zones.Compute.Reason)
	gap("volume zones", inv.Zones.Volume.State, inv.Zones.Volume.Reason)
	gap("volume types", inv.VolumeTypes.State, inv.VolumeTypes.Reason)
	gap("default volume type", inv.DefaultVolumeType.State, inv.DefaultVolumeType.Reason)
	gap("limits", inv.Limits.State, inv.Limits.Reason)
	gap("quota", inv.Quota.State, inv.Quota.Reason)
	gap("group types", inv.GroupTypes.State, inv.GroupTypes.Reason)
	for _, v := range inv.VolumeTypes.Value {
		if v.Encryption.State != v1alpha1.Known {
			gap("encryption of volume types", v.Encryption.State, v.Encryption.Reason)
			break // the same for all
		}
	}
}
