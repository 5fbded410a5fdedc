package openstacksim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// defaultLimits are the default quotas of Cinder; those of a type are unlimited.
var defaultLimits = map[string]int{
	"volumes": 10, "per_volume_gigabytes": -1, "snapshots": 10, "gigabytes": 1000, "backups": 10, "backup_gigabytes": 1000, "groups": 10,
}

// SetQuota sets the limit of a project for a resource ("volumes", "gigabytes_fast"); -1 is unlimited.
func (s *Sim) SetQuota(project, resource string, limit int) {
	defer s.lock()()
	if p := s.project(project); p != nil {
		s.setQuota(p.ID, resource, limit)
	}
}

func (s *Sim) setQuota(project, resource string, limit int) {
	if s.quota[project] == nil {
		s.quota[project] = map[string]int{}
	}
	s.quota[project][resource] = limit
}

func (s *Sim) limit(project, resource string) int {
	if n, ok := s.quota[project][resource]; ok {
		return n
	}
	if n, ok := defaultLimits[resource]; ok {
		return n
	}
	return -1
}

func (s *Sim) used(project string) map[string]int {
	used := map[string]int{}
	for _, v := range s.volumes {
		if v.project == project {
			for _, suffix := range []string{"", "_" + v.kind.Name} {
				used["volumes"+suffix]++
				used["gigabytes"+suffix] += v.size
			}
		}
	}
	for _, p := range s.snapshots {
		if p.project == project {
			for _, suffix := range []string{"", "_" + p.volume.kind.Name} {
				used["snapshots"+suffix]++
				used["gigabytes"+suffix] += p.size
			}
		}
	}
	for _, b := range s.backups {
		if b.project == project {
			used["backups"]++
			used["backup_gigabytes"] += b.size
		}
	}
	return used
}

// resources are the names of all quotas, in Cinder's order.
func (s *Sim) resources() []string {
	names := []string{"volumes", "per_volume_gigabytes", "snapshots", "gigabytes", "backups", "backup_gigabytes"}
	for _, t := range s.types {
		names = append(names, "volumes_"+t.Name, "gigabytes_"+t.Name, "snapshots_"+t.Name)
	}
	return append(names, "groups")
}

func (s *Sim) exceeds(project, resource string, more int, used map[string]int) bool {
	limit := s.limit(project, resource)
	return limit >= 0 && used[resource]+more > limit
}

func overGigabytes(resource string, asked, limit, used int) reply {
	return fault(http.StatusRequestEntityTooLarge, fmt.Sprintf("VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed %s quota. "+
		"Requested %dG, quota is %dG and %dG has been consumed.", resource, asked, limit, used))
}

func overVolumes(resource string, limit int) reply {
	return fault(http.StatusRequestEntityTooLarge, fmt.Sprintf("VolumeLimitExceeded: Maximum number of volumes allowed (%d) exceeded for quota '%s'.", limit, resource))
}

func (s *Sim) checkLength(project string, size int) {
	if limit := s.limit(project, "per_volume_gigabytes"); limit >= 0 && size > limit {
		panic(fault(http.StatusRequestEntityTooLarge, fmt.Sprintf("VolumeSizeExceedsLimit: Requested volume size %dG is larger than maximum allowed limit %dG.", size, limit)))
	}
}

// reserveGigabytes checks whether a project may have so many more, of all types and of one.
func (s *Sim) reserveGigabytes(project string, kind *VolumeType, size int, used map[string]int) {
	for _, r := range []string{"gigabytes", "gigabytes_" + kind.Name} {
		if s.exceeds(project, r, size, used) {
			panic(overGigabytes(r, size, s.limit(project, r), used[r]))
		}
	}
}

func (s *Sim) reserve(project string, kind *VolumeType, size int) {
	used := s.used(project)
	s.checkLength(project, size)
	s.reserveGigabytes(project, kind, size, used)
	for _, r := range []string{"volumes", "volumes_" + kind.Name} {
		if s.exceeds(project, r, 1, used) {
			panic(overVolumes(r, s.limit(project, r)))
		}
	}
}

// reserveGrowth checks an extension. The message of Cinder names the total even if the quota of the type is exceeded.
func (s *Sim) reserveGrowth(v *volume, more int) {
	used := s.used(v.project)
	s.checkLength(v.project, v.size+more)
	for _, r := range []string{"gigabytes", "gigabytes_" + v.kind.Name} {
		if s.exceeds(v.project, r, more, used) {
			panic(overGigabytes("gigabytes", more, s.limit(v.project, "gigabytes"), used["gigabytes"]))
		}
	}
}

func (s *Sim) reserveBackup(v *volume) {
	used := s.used(v.project)
	if r := "backup_gigabytes"; s.exceeds(v.project, r, v.size, used) {
		panic(fault(http.StatusRequestEntityTooLarge, fmt.Sprintf("VolumeBackupSizeExceedsAvailableQuota: Requested backup exceeds allowed Backup gigabytes quota. "+
			"Requested %dG, quota is %dG and %dG has been consumed.", v.size, s.limit(v.project, r), used[r])))
	}
	if r := "backups"; s.exceeds(v.project, r, 1, used) {
		panic(fault(http.StatusRequestEntityTooLarge, fmt.Sprintf("BackupLimitExceeded: Maximum number of backups allowed (%d) exceeded", s.limit(v.project, r))))
	}
}

func (s *Sim) reserveSnapshot(v *volume) {
	used := s.used(v.project)
	s.reserveGigabytes(v.project, v.kind, v.size, used)
	for _, r := range []string{"snapshots", "snapshots_" + v.kind.Name} {
		if s.exceeds(v.project, r, 1, used) {
			panic(fault(http.StatusRequestEntityTooLarge, fmt.Sprintf("SnapshotLimitExceeded: Maximum number of snapshots allowed (%d) exceeded", s.limit(v.project, r))))
		}
	}
}

func (s *Sim) volumeLimits(c *call) reply {
	p := c.token.project.ID
	used := s.used(p)
	return reply{status: http.StatusOK, body: obj{{"limits", obj{{"rate", []string{}}, {"absolute", obj{
		{"maxTotalVolumes", s.limit(p, "volumes")},
		{"maxTotalSnapshots", s.limit(p, "snapshots")},
		{"maxTotalVolumeGigabytes", s.limit(p, "gigabytes")},
		{"maxTotalBackups", s.limit(p, "backups")},
		{"maxTotalBackupGigabytes", s.limit(p, "backup_gigabytes")},
		{"totalVolumesUsed", used["volumes"]},
		{"totalGigabytesUsed", used["gigabytes"]},
		{"totalSnapshotsUsed", used["snapshots"]},
		{"totalBackupsUsed", used["backups"]},
		{"totalBackupGigabytesUsed", used["backup_gigabytes"]},
	}}}}}}
}

func (s *Sim) quotaSet(id string, value func(resource string) any) reply {
	o := obj(each(s.resources(), func(r string) pair { return pair{r, value(r)} }))
	o = o.when(id != "", pair{"id", id})
	return reply{status: http.StatusOK, body: obj{{"quota_set", o}}}
}

func (s *Sim) showQuota(c *call) reply {
	p := c.vars["project"]
	if p != c.token.project.ID && !c.token.admin() {
		return forbidden("volume_extension:quotas:show")
	}
	usage, given := c.param("usage")
	if given && !isBool(usage) {
		return fault(http.StatusBadRequest, "Value '"+usage+"' for 'usage' is not a boolean.")
	}
	if !isTrue(usage) {
		return s.quotaSet(p, func(r string) any { return s.limit(p, r) })
	}
	used := s.used(p)
	return s.quotaSet(p, func(r string) any {
		o := obj{{"limit", s.limit(p, r)}, {"in_use", used[r]}, {"reserved", 0}}
		return o.when(c.beforeZed, pair{"allocated", 0})
	})
}

func (s *Sim) defaultQuota(c *call) reply {
	p := c.vars["project"]
	if p != c.token.project.ID && !c.token.admin() {
		return forbidden("volume_extension:quotas:show")
	}
	return s.quotaSet(p, func(r string) any { return s.limit("", r) })
}

func (s *Sim) updateQuota(c *call) reply {
	c.adminOnly("volume_extension:quotas:update")
	body := c.decode()
	set, _ := body["quota_set"].(map[string]any)
	known := s.resources()
	for _, r := range sortedKeys(set) {
		if !slices.Contains(known, r) {
			return inputError("Bad key(s) in quota set: %s", r)
		}
	}
	for r, v := range set {
		n, ok := v.(json.Number)
		limit, err := n.Int64()
		if !ok || err != nil {
			return fault(http.StatusBadRequest, r+" must be an integer")
		}
		s.setQuota(c.vars["project"], r, int(limit))
	}
	return s.quotaSet("", func(r string) any { return s.limit(c.vars["project"], r) })
}

func (s *Sim) listGroupTypes(c *call) reply {
	q := c.listQuery([]string{"is_public", "group_specs"}, []string{"id", "name", "created_at", "updated_at"})
	types := make([]*GroupType, len(s.config.GroupTypes))
	for i := range types {
		types[i] = &s.config.GroupTypes[i]
	}
	if !slices.ContainsFunc(types, func(g *GroupType) bool { return g.ID == q.marker }) {
		q.marker = "" // as for volume types
	}
	types, _, more, _ := page(q, types, groupTypeFields, func(*GroupType, param) bool { return true })
	body := pageBody("group_types", types, func(g *GroupType) obj {
		o := obj{{"id", g.ID}, {"name", g.Name}, {"description", orNull(g.Description)}, {"is_public", true}}
		return o.when(c.token.admin(), pair{"group_specs", cloneOrEmpty(g.Specs)})
	})
	if more {
		body = append(body, pair{"group_type_links", c.nextLink(c.collection("group_types", false), types[len(types)-1].ID)})
	}
	return reply{status: http.StatusOK, body: body}
}

var groupTypeFields = fields[*GroupType]{
	"id":   func(g *GroupType) string { return g.ID },
	"name": func(g *GroupType) string { return g.Name },
}

func (s *Sim) listPools(c *call) reply {
	c.adminOnly("scheduler_extension:scheduler_stats:get_pools")
	detail, _ := c.param("detail")
	pools := []obj{}
	for _, z := range s.volumeZones {
		for _, pool := range []string{"standard", "fast"} {
			o := obj{{"name", "sim@backend-" + z.name + "#" + pool}}
			if isTrue(detail) {
				o = append(o, pair{"capabilities", obj{
					{"pool_name", pool},
					{"volume_backend_name", pool},
					{"total_capacity_gb", 10000},
					{"free_capacity_gb", 10000.0},
					{"allocated_capacity_gb", 0},
					{"provisioned_capacity_gb", 0.0},
					{"reserved_percentage", 0},
					{"thin_provisioning_support", true},
					{"thick_provisioning_support", false},
					{"max_over_subscription_ratio", 20.0},
					{"multiattach", true},
					{"online_extend_support", true},
					{"storage_protocol", "local"},
					{"vendor_name", "sim"},
					{"timestamp", strings.TrimSuffix(micros(now()), "Z")},
				}})
			}
			pools = append(pools, o)
		}
	}
	return reply{status: http.StatusOK, body: obj{{"pools", pools}}}
}

func (s *Sim) listVolumeServices(c *call) reply {
	c.adminOnly("volume_extension:services:index")
	entry := func(binary, host, zone string) obj {
		status := "enabled"
		if binary == "cinder-backup" && s.backupsDisabled {
			status = "disabled"
		}
		o := obj{{"binary", binary}, {"host", host}, {"zone", zone}, {"status", status}, {"state", "up"}, {"updated_at", micros(now())}}
		o = o.when(c.version >= 7, pair{"cluster", nil})
		o = append(o, pair{"disabled_reason", nil})
		if binary == "cinder-volume" {
			o = append(o, pair{"replication_status", "disabled"}, pair{"active_backend_id", nil}, pair{"frozen", false})
			o = o.when(c.version >= 49, pair{"backend_state", "up"})
		}
		return o
	}
	list := []obj{}
	for i, z := range s.volumeZones {
		if i == 0 && !s.config.NoBackupService {
			list = append(list, entry("cinder-backup", "sim", z.name))
		}
		if i == 0 {
			list = append(list, entry("cinder-scheduler", "sim", z.name))
		}
		list = append(list, entry("cinder-volume", "sim@backend-"+z.name, z.name))
	}
	if binary, given := c.param("binary"); given {
		list = slices.DeleteFunc(list, func(o obj) bool { return o[0].value != binary })
	}
	return reply{status: http.StatusOK, body: obj{{"services", list}}}
}

// listFilters is the allowed filters, from resource_filters.json of Debian and upstream.
func (s *Sim) listFilters(*call) reply {
	entry := func(resource string, filters ...string) obj { return obj{{"resource", resource}, {"filters", filters}} }
	return reply{status: http.StatusOK, body: obj{{"resource_filters", []obj{
		entry("volume", volumeFilters...),
		entry("backup", "name", "status", "volume_id"),
		entry("snapshot", "name", "status", "volume_id", "metadata", "availability_zone", "consumes_quota"),
		entry("group", "name"),
		entry("group_snapshot", "name", "status", "group_id"),
		entry("attachment", "volume_id", "status", "instance_id", "attach_status"),
		entry("message", "resource_uuid", "resource_type", "event_id", "request_id", "message_level"),
		entry("pool", "name", "volume_type"),
		entry("volume_type", "is_public", "extra_specs"),
	}}}}
}
