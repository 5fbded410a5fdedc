package openstacksim

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// server is a Nova server with the disks that Nova attached to it.
type server struct {
	Server
	project string // id
	number  int
	updated time.Time
	locked  bool
	reason  string // of the lock
	disks   []*disk

	hostDown, cellDown bool
}

// disk is a block device mapping of Nova.
type disk struct {
	id         string
	volume     string
	device     string
	tag        any
	drop       bool        // delete on termination
	attachment *attachment // nil until Cinder reserves the volume
}

func (v *server) disk(volumeID string) *disk {
	for _, d := range v.disks {
		if d.volume == volumeID {
			return d
		}
	}
	return nil
}

// AddServer adds a server and returns its ID. It generates a missing ID, status or creation time.
func (s *Sim) AddServer(v Server) string {
	defer s.lock()()
	return s.addServer(v).ID
}

func (s *Sim) addServer(v Server) *server {
	if v.ID == "" {
		v.ID = s.newID()
	}
	v.Status = cmp.Or(v.Status, "ACTIVE")
	v.TaskState = cmp.Or(v.TaskState, vmStates[v.Status].task)
	v.CreatedAt = cmp.Or(v.CreatedAt, now())
	v.Metadata = cloneOrEmpty(v.Metadata)
	project := v.Project
	if p := s.project(v.Project); p != nil {
		project = p.ID
	}
	made := &server{Server: v, project: project, number: len(s.servers) + 1, updated: v.CreatedAt}
	s.servers[v.ID] = made
	if err := s.data.AddServer(v.ID, v.Name, func() []byte { return encode(s.metadataDocument(made)) }); err != nil {
		made.Status = "ERROR"
	}
	return made
}

// RemoveServer removes a server. Its volumes become available. With stale, Cinder keeps their attachments, as after the loss of a
// cell database or a failed evacuation.
func (s *Sim) RemoveServer(id string, stale bool) {
	s.onServer(id, func(v *server) { s.removeServer(v, stale) })
}

func (s *Sim) removeServer(v *server, stale bool) {
	if err := s.data.RemoveServer(v.ID); err != nil {
		v.Status = "ERROR"
		return
	}
	delete(s.servers, v.ID)
	if stale {
		return
	}
	for _, d := range v.disks {
		if d.attachment != nil && s.volumes[d.volume] != nil {
			s.release(d.attachment)
		}
	}
}

func (s *Sim) visibleServer(c *call, id string) *server {
	v := s.servers[id]
	if v == nil || v.project != c.token.project.ID && !c.token.admin() {
		panic(fault(http.StatusNotFound, "Instance "+id+" could not be found."))
	}
	if v.cellDown {
		panic(unexpected500("nova.exception.NovaException"))
	}
	return v
}

func (c *call) serverLinks(kind, id string) []obj {
	return []obj{link("self", c.base(compute)+"/v2.1/"+kind+"/"+id), link("bookmark", c.base(compute)+"/"+kind+"/"+id)}
}

func (v *server) host() string { return "compute-" + v.Zone }

// view is the server in the reply to GET /servers/{id}; lists omit the groups.
func (v *server) view(c *call, single bool) obj {
	image, flavor := FixedID("image", "node"), FixedID("flavor", "sim.small")
	hostID := sha256.Sum224([]byte(v.project + v.host()))
	second := "2006-01-02T15:04:05Z"
	attached := []obj{}
	for _, d := range v.disks {
		o := obj{{"id", d.volume}}
		o = o.when(c.version >= 3, pair{"delete_on_termination", d.drop})
		attached = append(attached, o)
	}
	flavorView := obj{{"id", flavor}, {"links", c.serverLinks("flavors", flavor)[1:]}}
	if c.version >= 47 {
		flavorView = obj{{"vcpus", 2}, {"ram", 4096}, {"disk", 20}, {"ephemeral", 0}, {"swap", 0}, {"original_name", "sim.small"}, {"extra_specs", obj{}}}
	}
	o := obj{
		{"id", v.ID},
		{"name", v.Name},
		{"status", v.Status},
		{"tenant_id", v.project},
		{"user_id", FixedHex("user", v.Project)},
		{"metadata", v.Metadata},
		{"hostId", hex.EncodeToString(hostID[:])},
		{"image", obj{{"id", image}, {"links", c.serverLinks("images", image)[1:]}}},
		{"flavor", flavorView},
		{"created", v.CreatedAt.UTC().Format(second)},
		{"updated", v.updated.UTC().Format(second)},
		{"addresses", obj{}},
		{"accessIPv4", ""},
		{"accessIPv6", ""},
		{"links", c.serverLinks("servers", v.ID)},
		{"OS-DCF:diskConfig", "MANUAL"},
	}
	o = o.when(slices.Contains([]string{"ACTIVE", "BUILD", "REBUILD", "RESIZE", "VERIFY_RESIZE", "MIGRATING"}, v.Status), pair{"progress", 0})
	o = append(o,
		pair{"OS-EXT-AZ:availability_zone", v.Zone}, pair{"config_drive", ""}, pair{"key_name", nil},
		pair{"OS-SRV-USG:launched_at", micros(v.CreatedAt)}, pair{"OS-SRV-USG:terminated_at", nil})
	return v.extended(c, o, attached, single)
}

// extended adds the fields of later microversions and of administrators.
func (v *server) extended(c *call, o obj, attached []obj, single bool) obj {
	admin := c.token.admin()
	if admin {
		o = append(o, pair{"OS-EXT-SRV-ATTR:host", v.host()}, pair{"OS-EXT-SRV-ATTR:instance_name", fmt.Sprintf("instance-%08x", v.number)},
			pair{"OS-EXT-SRV-ATTR:hypervisor_hostname", v.host()})
	}
	if admin && c.version >= 3 {
		o = append(o, pair{"OS-EXT-SRV-ATTR:reservation_id", "r-" + v.ID[:8]}, pair{"OS-EXT-SRV-ATTR:launch_index", 0},
			pair{"OS-EXT-SRV-ATTR:hostname", v.Name}, pair{"OS-EXT-SRV-ATTR:kernel_id", ""}, pair{"OS-EXT-SRV-ATTR:ramdisk_id", ""},
			pair{"OS-EXT-SRV-ATTR:root_device_name", "/dev/vda"}, pair{"OS-EXT-SRV-ATTR:user_data", nil})
	}
	state := vmStates[v.Status]
	o = append(o, pair{"OS-EXT-STS:task_state", orNull(v.TaskState)}, pair{"OS-EXT-STS:vm_state", state.vm},
		pair{"OS-EXT-STS:power_state", state.power}, pair{"os-extended-volumes:volumes_attached", attached})
	o = o.when(admin && c.version >= 16, pair{"host_status", "UP"})
	since := func(minor int, add pair) {
		if c.version >= minor {
			o = append(o, add)
		}
	}
	since(9, pair{"locked", v.locked})
	since(73, pair{"locked_reason", orNull(v.reason)})
	since(19, pair{"description", nil})
	since(26, pair{"tags", append([]string{}, v.Tags...)})
	since(63, pair{"trusted_image_certificates", nil})
	if !admin {
		since(90, pair{"OS-EXT-SRV-ATTR:hostname", v.Name})
	}
	if single {
		since(71, pair{"server_groups", []string{}})
	}
	return o
}

// serverQuery are the parameters that Nova knows for a list. From 2.75 on, it refuses any other.
var serverQuery = []string{
	"all_tenants", "limit", "marker", "name", "status", "sort_key", "sort_dir", "availability_zone", "changes-since", "changes-before",
	"deleted", "flavor", "host", "image", "ip", "ip6", "reservation_id", "tags", "tags-any", "not-tags", "not-tags-any", "tenant_id",
	"project_id", "uuid", "user_id", "vm_state", "task_state", "power_state", "locked", "access_ip_v4", "access_ip_v6", "auto_disk_config",
	"config_drive", "created_at", "description", "display_description", "display_name", "hostname", "instance_type_id", "kernel_id",
	"key_name", "launch_index", "launched_at", "progress", "ramdisk_id", "root_device_name", "terminated_at", "soft_deleted", "node", "cell_name", "vcpus", "memory_mb", "root_gb", "ephemeral_gb", "internal_id", "block_device_mapping", "services", "metadata", "system_metadata", "info_cache", "security_groups", "pci_devices",
}

func (s *Sim) listServers(c *call, detail bool) reply {
	limit := c.pageSize
	var marker string
	keep := []func(*server) bool{}
	everywhere := false
	for _, p := range c.params {
		switch p.key {
		case "limit":
			n, err := strconv.Atoi(p.value)
			if err != nil || n < 0 {
				return fault(http.StatusBadRequest, "Invalid input for query parameters limit. Value: "+p.value+". '"+p.value+"' does not match '^[0-9]*$'")
			}
			limit = min(n, c.pageSize)
		case "marker":
			marker = p.value
		case "all_tenants":
			everywhere = p.value == "" || isTrue(p.value)
		case "name":
			pattern, err := regexp.Compile("(?i)" + p.value) // Nova passes it to the database as a regular expression
			if err != nil {
				return fault(http.StatusBadRequest, badRequestMessage)
			}
			keep = append(keep, func(v *server) bool { return pattern.MatchString(v.Name) })
		case "status":
			if _, known := vmStates[strings.ToUpper(p.value)]; !known && c.version >= 38 {
				return fault(http.StatusBadRequest, "Invalid status value")
			}
			keep = append(keep, func(v *server) bool { return sameText(v.Status, p.value) })
		case "uuid":
			keep = append(keep, func(v *server) bool { return v.ID == p.value })
		default:
			if !slices.Contains(serverQuery, p.key) && !strings.HasPrefix(p.key, "_") && c.version >= 75 {
				return fault(http.StatusBadRequest, "'"+p.key+"' does not match any of the regexes: '^_'")
			}
		}
	}
	if everywhere && !c.token.admin() {
		view := "index"
		if detail {
			view = "detail"
		}
		return forbidden("os_compute_api:servers:" + view + ":get_all_tenants")
	}
	all := where(maps.Values(s.servers), func(v *server) bool { return everywhere || v.project == c.token.project.ID })
	slices.SortFunc(all, func(a, b *server) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	if marker != "" {
		i := slices.IndexFunc(all, func(v *server) bool { return v.ID == marker })
		if i < 0 {
			return fault(http.StatusBadRequest, "marker ["+marker+"] not found")
		}
		all = all[i+1:]
	}
	all = slices.DeleteFunc(all, func(v *server) bool {
		return slices.ContainsFunc(keep, func(f func(*server) bool) bool { return !f(v) })
	})
	all = all[:min(limit, len(all))]
	body := pageBody("servers", all, func(v *server) obj {
		if detail {
			return v.view(c, false)
		}
		return obj{{"id", v.ID}, {"name", v.Name}, {"links", c.serverLinks("servers", v.ID)}}
	})
	if limit > 0 && len(all) == limit {
		url := c.base(compute) + "/v2.1/servers"
		if detail {
			url += "/detail"
		}
		body = append(body, pair{"servers_links", c.nextLink(url, all[len(all)-1].ID)})
	}
	return reply{status: http.StatusOK, body: body}
}

func (s *Sim) deleteServer(c *call) reply {
	v := s.visibleServer(c, c.vars["id"])
	s.removeServer(v, false)
	return reply{status: http.StatusNoContent}
}

func (s *Sim) serverLimits(c *call) reply {
	count := len(where(maps.Values(s.servers), func(v *server) bool { return v.project == c.token.project.ID }))
	absolute := obj{{"maxTotalInstances", 60}, {"maxTotalCores", 300}, {"maxTotalRAMSize", 1228800}}
	absolute = absolute.when(c.version < 57, pair{"maxPersonality", 5}, pair{"maxPersonalitySize", 10240})
	absolute = absolute.when(c.version < 36, pair{"maxSecurityGroups", -1}, pair{"maxSecurityGroupRules", -1}, pair{"maxTotalFloatingIps", -1})
	absolute = append(absolute, pair{"maxServerMeta", 128}, pair{"maxImageMeta", 128}, pair{"maxTotalKeypairs", 100}, pair{"maxServerGroups", 10}, pair{"maxServerGroupMembers", 10},
		pair{"totalRAMUsed", 4096 * count}, pair{"totalCoresUsed", 2 * count}, pair{"totalInstancesUsed", count}, pair{"totalServerGroupsUsed", 0})
	absolute = absolute.when(c.version < 36, pair{"totalFloatingIpsUsed", 0}, pair{"totalSecurityGroupsUsed", 0})
	if c.version >= 39 {
		absolute = slices.DeleteFunc(absolute, func(p pair) bool { return p.key == "maxImageMeta" })
	}
	return reply{status: http.StatusOK, body: obj{{"limits", obj{{"rate", []string{}}, {"absolute", absolute}}}}}
}
