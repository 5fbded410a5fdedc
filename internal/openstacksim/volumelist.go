package openstacksim

import (
	"net/http"
	"slices"
	"strconv"
)

func (v *volume) ident() string { return v.id }

func (v *volume) owner() string { return v.project }

func (v *volume) field(key string) (string, bool) {
	switch key {
	case "id":
		return v.id, true
	case "name", "display_name":
		return deref(v.name), true
	case "status":
		return v.status, true
	case "size":
		return sortNumber(v.size), true
	case "availability_zone":
		return v.zone, true
	case "created_at":
		return v.created.UTC().Format("20060102150405"), true
	case "updated_at":
		return v.updated.UTC().Format("20060102150405"), true
	case "bootable":
		return strconv.FormatBool(v.bootable), true
	case "volume_type_id":
		return v.kind.ID, true
	case "project_id", "tenant_id":
		return v.project, true
	case "user_id":
		return v.user, true
	case "host":
		return v.host, true
	case "snapshot_id":
		return v.snapshotID, true
	case "source_volid":
		return v.sourceID, true
	}
	return "", false
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

// matches applies one filter. Unknown fields match nothing, as in the database layer of Cinder.
func (v *volume) matches(f param) bool {
	switch f.key {
	case "name":
		return v.name != nil && sameText(*v.name, f.value)
	case "metadata":
		want, ok := parseDict(f.value)
		if !ok {
			return false
		}
		for k, x := range want {
			if got, has := v.metadata[k]; !has || !sameText(got, x) {
				return false
			}
		}
		return true
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
	got, ok := v.field(f.key)
	return ok && sameText(got, f.value)
}

func (s *Sim) listVolumes(c *call, detail bool) reply {
	q := c.listQuery(volumeFilters, volumeSortable)
	timeFilter(q)
	for _, f := range q.filters {
		if f.key == "bootable" && !isBool(f.value) && c.version >= 2 {
			return inputError("'bootable = %s'", f.value)
		}
	}
	return listOf(c, q, "Volume", detail, s.volumes, func(v *volume) obj {
		if detail {
			return v.view(s, c, shown)
		}
		return v.summary(c)
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
	if c.version >= 36 {
		summary = append(summary, pair{"metadata", values})
	}
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
