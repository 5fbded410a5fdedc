package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// checkZones reports on the zones, and on the decision that the plan makes from them.
func (c *cloudCheck) checkZones() {
	zones := c.inv.Zones
	if !c.listed("cloud.zones", "compute zones", zones.Compute.State, zones.Compute.Reason) || !c.listed("cloud.zones", "volume zones", zones.Volume.State, zones.Volume.Reason) {
		return
	}
	compute, volume := v1alpha1.ZoneNames(zones.Compute.Value), v1alpha1.ZoneNames(zones.Volume.Value)
	switch unmatched := without(compute, volume); {
	case len(compute) == 0 || len(volume) == 0:
		c.report.add("cloud.zones", Error, fmt.Sprintf("the cloud shows %d compute zones and %d volume zones", len(compute), len(volume)),
			"a volume could not be placed", "ask the operator of the cloud")
	case c.Zones:
		c.report.ok("cloud.zones", "the driver uses zones: %s", list(compute))
	case len(unmatched) > 0:
		c.report.add("cloud.zones", Warning, fmt.Sprintf("the driver does not use zones: compute zones %s have no volume zone of the same name (%s)", list(unmatched), list(volume)),
			"the scheduler cannot choose nodes by the zone of a volume; if Nova refuses attachments across zones, pods do not start",
			"map them in spec.topology.zoneMap, such as {"+unmatched[0]+": "+volume[0]+"}")
	default:
		c.report.ok("cloud.zones", "the driver does not use zones: %s", c.ZonesWhy)
	}
	for _, z := range slices.Concat(zones.Compute.Value, zones.Volume.Value) {
		if !z.Available {
			c.report.add("cloud.zones", Warning, "zone "+z.Name+" is not available", "pods or volumes there wait until it is", "ask the operator of the cloud")
		}
	}
}

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// known reports a fact that the checks cannot do without.
func (c *cloudCheck) known(id, what string, state v1alpha1.State, reason string) bool {
	switch state {
	case v1alpha1.Known:
		return true
	case v1alpha1.Failed:
		c.report.add(id, Error, "the "+what+" cannot be read: "+reason, "the cloud does not answer, so nothing can be decided on it", "try again; if it stays, tell the operator of the cloud")
	case v1alpha1.Denied, v1alpha1.Unsupported:
		c.report.notChecked("the "+what, reason, "ask the operator of the cloud")
	}
	return false
}

// listed reports what every member of a project may read.
func (c *cloudCheck) listed(id, what string, state v1alpha1.State, reason string) bool {
	if state != v1alpha1.Denied && state != v1alpha1.Unsupported {
		return c.known(id, what, state, reason)
	}
	reason, do := c.refusal(reason, "give the user the role reader or member, or add the access rule ("+pages.AccessRules.String()+")")
	c.report.add(id, Error, "this credential may not read the "+what+": "+reason, "every member of a project may, and generate writes no bundle without them", do)
	return false
}

const cinderOwnType = "__DEFAULT__"

func (c *cloudCheck) checkTypes() {
	if types := c.inv.VolumeTypes; c.listed("cloud.types", "volume types", types.State, types.Reason) {
		switch n := len(types.Value); n {
		case 0:
			c.report.add("cloud.types", Error, "the project has no volume type", "Cinder creates no volume without a type", "have the operator of the cloud give the project access to one")
		default:
			c.report.ok("cloud.types", "the project can use %d volume types", n)
		}
	}
	switch fallback := c.inv.DefaultVolumeType; {
	case fallback.State == v1alpha1.Known && fallback.Value == cinderOwnType:
		c.report.add("cloud.default-type", Warning, "the default volume type is "+cinderOwnType+", which Cinder made for itself", "its volumes go to any backend",
			"name a type in spec.storageClasses.default")
	case fallback.State == v1alpha1.Known:
		c.report.ok("cloud.default-type", "the default volume type is %s", fallback.Value)
	case fallback.State == v1alpha1.Unsupported:
		c.report.add("cloud.default-type", Warning, "the cloud has no default volume type", "no class of the bundle becomes the default, and a class without a type fails",
			"name a type in spec.storageClasses.default")
	default:
		c.known("cloud.default-type", "default volume type", fallback.State, fallback.Reason)
	}
}

// fullWarning is the part of a quota in use, in percent, from which a warning is given.
const fullWarning = 90

// general are the quotas that concern every volume; the others are of one type.
var general = []string{"volumes", "gigabytes", "snapshots", "backups", "backup_gigabytes", "per_volume_gigabytes"}

func (c *cloudCheck) checkQuota() {
	if c.inv.Quota.State != v1alpha1.Known {
		c.known("cloud.quota", "quota", c.inv.Quota.State, c.inv.Quota.Reason)
		return
	}
	before := len(c.report.Findings)
	for _, name := range slices.Sorted(maps.Keys(c.inv.Quota.Value)) {
		if slices.Contains(general, name) || slices.ContainsFunc(c.inv.VolumeTypes.Value, func(t v1alpha1.VolumeType) bool { return strings.HasSuffix(name, "_"+t.Name) }) {
			c.checkOneQuota(name, c.inv.Quota.Value[name])
		}
	}
	if len(c.report.Findings) == before {
		q := c.inv.Quota.Value
		c.report.ok("cloud.quota", "%d of %s volumes and %d of %s GB are in use", q["volumes"].InUse, amount(q["volumes"].Limit), q["gigabytes"].InUse, amount(q["gigabytes"].Limit))
	}
}

func (c *cloudCheck) checkOneQuota(name string, q v1alpha1.Quota) {
	const do = "ask the operator of the cloud for more, or delete what is not needed"
	severity := Warning
	if name == "volumes" || name == "gigabytes" {
		severity = Error
	}
	switch {
	case q.Limit < 0:
	case q.InUse >= q.Limit:
		c.report.add("cloud.quota", severity, fmt.Sprintf("the quota %s is used up: %d of %d", name, q.InUse, q.Limit), "Cinder refuses to create more", do)
	case q.InUse*100 >= q.Limit*fullWarning:
		c.report.add("cloud.quota", Warning, fmt.Sprintf("the quota %s is nearly used up: %d of %d", name, q.InUse, q.Limit), "Cinder soon refuses to create more", do)
	}
}

// amount writes a limit; -1 is none.
func amount(n int) string {
	if n < 0 {
		return "unlimited"
	}
	return fmt.Sprint(n)
}
