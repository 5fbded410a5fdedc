package openstacksim

import (
	"net/http"
	"slices"
	"strconv"
)

func (v *volume) owner() string { return v.project }

var volumeFields = fields[*volume]{
	"id":                func(v *volume) string { return v.id },
	"name":              func(v *volume) string { return deref(v.name) },
	"display_name":      func(v *volume) string { return deref(v.name) },
	"status":            func(v *volume) string { return v.status },
	"size":              func(v *volume) string { return sortNumber(v.size) },
	"availability_zone": func(v *volume) string { return v.zone },
	"created_at":        func(v *volume) string { return sortTime(v.created) },
	"updated_at":        func(v *volume) string { return sortTime(v.updated) },
	"bootable":          func(v *volume) string { return strconv.FormatBool(v.bootable) },
	"volume_type_id":    func(v *volume) string { return v.kind.ID },
	"project_id":        func(v *volume) string { return v.project },
	"tenant_id":         func(v *volume) string { return v.project },
	"user_id":           func(v *volume) string { return v.user },
	"host":              func(v *volume) string { return v.host },
	"snapshot_id":       func(v *volume) string { return v.snapshotID },
	"source_volid":      func(v *volume) string { return v.sourceID },
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

var (
	volumeFilters  = []string{"name", "status", "metadata", "bootable", "migration_status", "availability_zone", "group_id", "size", "created_at", "updated_at", "consumes_quota"}
	volumeSortable = []string{"id", "name", "status", "size", "availability_zone", "created_at", "updated_at", "bootable", "host"}
)

// matches applies one filter.
func (v *volume) matches(f param) bool {
	switch f.key {
	case "name":
		return v.name != nil && sameText(*v.name, f.value)
	case "metadata":
		return hasPairs(v.metadata, f.value, sameText)
	case "size":
		n, err := strconv.Atoi(f.value)
		return err == nil && v.size == n
	case "created_at":
		return timeMatches(v.created, f.value)
	case "updated_at":
		return timeMatches(v.updated, f.value)
	case "bootable":
		return v.bootable == isTrue(f.value)
	case "multiattach":
		return v.multiattach == isTrue(f.value)
	case "consumes_quota":
		return isTrue(f.value)
	case "migration_status", "group_id":
		return false
	}
	return volumeFields.match(v, f)
}

func (s *Sim) listVolumes(c *call, detail bool) reply {
	q := c.listQuery(volumeFilters, volumeSortable)
	timeFilter(q)
	for _, f := range q.filters {
		if f.key == "bootable" && !isBool(f.value) && c.version >= 2 {
			return inputError("'bootable = %s'", f.value)
		}
	}
	return listOf(c, q, "Volume", detail, s.volumes, volumeFields, (*volume).matches, func(v *volume) obj {
		if detail {
			return v.view(s, c, shown)
		}
		return obj{{"id", v.id}, {"name", v.name}, {"links", c.selfLinks("volumes", v.id)}}
	})
}

// summarizeVolumes counts volumes (3.12). From 3.36 on, it adds their metadata.
func (s *Sim) summarizeVolumes(c *call) reply {
	q := c.listQuery(volumeFilters, volumeSortable)
	count, total, everywhere, values := 0, 0, c.allProjects(q), map[string][]string{}
	for _, v := range s.volumes {
		if everywhere || v.project == c.token.project.ID {
			count, total = count+1, total+v.size
			for k, x := range v.metadata {
				if !slices.Contains(values[k], x) {
					values[k] = append(values[k], x)
				}
			}
		}
	}
	summary := obj{{"total_count", count}, {"total_size", total}}
	summary = summary.when(c.version >= 36, pair{"metadata", values})
	return reply{status: http.StatusOK, body: obj{{"volume-summary", summary}}}
}

// allProjects reports whether an administrator requests the objects of every project.
func (c *call) allProjects(q *query) bool {
	value, ok := q.pop("all_tenants")
	return ok && c.token.admin() && (value == "" || isTrue(value))
}

// collection is the URL of a Cinder list.
func (c *call) collection(name string, detail bool) string {
	url := c.base(blocks) + "/v3/" + c.token.project.ID + "/" + name
	if detail {
		url += "/detail"
	}
	return url
}
