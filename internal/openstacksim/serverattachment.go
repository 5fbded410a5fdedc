package openstacksim

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// view is a volume attachment in a reply of Nova.
func (d *disk) view(c *call, serverID string) obj {
	var o obj
	if c.version < 89 {
		o = obj{{"id", d.volume}}
	}
	o = append(o, pair{"volumeId", d.volume}, pair{"serverId", serverID})
	o = o.when(d.device != "", pair{"device", d.device})
	o = o.when(c.version >= 70, pair{"tag", d.tag})
	o = o.when(c.version >= 79, pair{"delete_on_termination", d.drop})
	if c.version >= 89 {
		var id any
		if d.attachment != nil {
			id = d.attachment.id
		}
		o = append(o, pair{"attachment_id", id}, pair{"bdm_uuid", d.id})
	}
	return o
}

func (s *Sim) listServerAttachments(c *call) reply {
	v := s.visibleServer(c, c.vars["id"])
	limit, offset := c.pageSize, 0
	for _, p := range c.params {
		n, err := strconv.Atoi(p.value)
		switch p.key {
		case "limit", "offset":
			if err != nil || n < 0 {
				return fault(http.StatusBadRequest, "Invalid input for query parameters "+p.key+". Value: "+p.value+". '"+p.value+"' does not match '^[0-9]*$'")
			}
			if p.key == "offset" {
				offset = n
			} else if n > 0 {
				limit = min(n, c.pageSize)
			}
		default:
			if c.version >= 75 {
				return fault(http.StatusBadRequest, "Additional properties are not allowed ('"+p.key+"' was unexpected)")
			}
		}
	}
	list := []obj{}
	for i, d := range v.disks {
		if position := i + 1; position >= offset && position < offset+limit { // the root disk counts, although the list omits it
			list = append(list, d.view(c, v.ID))
		}
	}
	return reply{status: http.StatusOK, body: obj{{"volumeAttachments", list}}}
}

func notAttached(serverID, volumeID string) reply {
	return fault(http.StatusNotFound, "Instance "+serverID+" is not attached to volume "+volumeID)
}

func (s *Sim) showServerAttachment(c *call) reply {
	v := s.visibleServer(c, c.vars["id"])
	d := v.disk(c.vars["volume"])
	if d == nil {
		return notAttached(v.ID, c.vars["volume"])
	}
	return reply{status: http.StatusOK, body: obj{{"volumeAttachment", d.view(c, v.ID)}}}
}

type attachRequest struct {
	volume string
	tag    any
	drop   bool
}

// devicePath is what Nova accepts as a device. The hypervisor chooses the device of the disk anyway.
var devicePath = regexp.MustCompile(`(^/dev/x{0,1}[a-z]{0,1}d{0,1})([a-z]+)[0-9]*$`)

func (c *call) attachRequest() attachRequest {
	allowed := []string{"volumeId", "device"}
	if c.version >= 49 {
		allowed = append(allowed, "tag")
	}
	if c.version >= 79 {
		allowed = append(allowed, "delete_on_termination")
	}
	body := c.object("volumeAttachment", true, allowed...)
	id, ok := body["volumeId"]
	if !ok {
		panic(invalid("volumeAttachment", c.raw("volumeAttachment"), "'volumeId' is a required property"))
	}
	volumeID, isText := id.(string)
	if !isText || !isUUID(volumeID) {
		panic(invalid("volumeId", id, python(id)+" is not a 'uuid'"))
	}
	if device, ok := body["device"].(string); ok && !devicePath.MatchString(device) {
		panic(invalid("device", device, python(device)+" does not match '"+devicePath.String()+"'"))
	}
	if tag, given := body["tag"]; given {
		if _, ok := tag.(string); !ok {
			panic(invalid("tag", tag, python(tag)+" is not of type 'string'"))
		}
	}
	drop, _ := body["delete_on_termination"].(bool)
	return attachRequest{volumeID, body["tag"], drop}
}

// mustWrite refuses a user that may only read. Nova's default policies up to Zed let a reader attach and detach.
func (s *Sim) mustWrite(c *call, policy string) {
	if s.afterZed() && !c.token.has("member") && !c.token.admin() {
		panic(forbidden(policy))
	}
}

// attach replies after the compute host returned a device and Cinder reserved the volume. The rest happens later. If the rest
// fails, no reply or message says so.
func (s *Sim) attach(c *call) reply {
	want := c.attachRequest()
	v := s.visibleServer(c, c.vars["id"])
	s.mustWrite(c, "os_compute_api:os-volumes-attachments:create")
	v.refusesShelved(c, "attach_volume")
	v.mustBe(c, "attach_volume", "active", "paused", "stopped", "resized", "soft-delete", "shelved", "shelved_offloaded")
	vol := s.visible(c, want.volume)
	s.alreadyAttached(c, v, vol)
	if v.offloaded() {
		return s.attachOffloaded(c, v, vol, want)
	}
	if v.hostDown {
		answers := make(chan reply, 1)
		s.after(rpcTimeout, func() { answers <- messagingTimeout().encoded() })
		return reply{later: answers}
	}
	d := s.newDisk(v, want)
	answers := make(chan reply, 1)
	failure := s.operationFault(Reserve)
	s.after(s.turn(v.ID, s.takes(Reserve, deref(vol.name)))+failure.Delay, func() {
		if failure.fails() {
			v.drop(d)
			answers <- messagingTimeout().encoded()
			return
		}
		if bad := s.reserveDisk(c, v, d, vol); bad != nil {
			answers <- bad.encoded()
			return
		}
		s.plug(v, d, vol, c.begun)
		answers <- d.attached(c, v.ID).encoded()
	})
	return reply{later: answers}
}

// holders are the servers that have a volume as a disk.
func (s *Sim) holders(v *volume) []string {
	return where(slices.Values(sortedKeys(s.servers)), func(id string) bool { return s.servers[id].disk(v.id) != nil })
}

// alreadyAttached looks for the volume in every server. Only a multiattach volume may have two. Nova of Victoria looks in one server; Cinder refuses
// what another server has.
func (s *Sim) alreadyAttached(c *call, v *server, vol *volume) {
	holders := s.holders(vol)
	switch {
	case len(holders) == 0:
		return
	case !vol.multiattach && !c.beforeZed:
		panic(fault(http.StatusBadRequest, "Invalid volume: volume "+vol.id+" is already attached to instances: "+strings.Join(holders, " ")))
	case slices.Contains(holders, v.ID):
		panic(fault(http.StatusBadRequest, "Invalid volume: volume "+vol.id+" already attached"))
	}
}

// virtioNames is how many disk names virtio-blk has, with the root disk.
const virtioNames = 26

// newDisk uses the first free device name.
func (s *Sim) newDisk(v *server, want attachRequest) *disk {
	most := cmp.Or(s.config.MaxDisks, virtioNames)
	if len(v.disks)+1 >= most {
		panic(fault(http.StatusForbidden, fmt.Sprintf("The maximum allowed number of disk devices (%d) to attach to a single instance has been exceeded.", most)))
	}
	for place := 1; ; place++ {
		device := deviceName(place)
		if slices.ContainsFunc(v.disks, func(d *disk) bool { return d.device == device }) {
			continue
		}
		d := &disk{id: s.newID(), volume: want.volume, device: device, tag: want.tag, drop: want.drop}
		v.disks = append(v.disks, d)
		return d
	}
}

// deviceName is the Nova name of the disk at a position; the root disk has position 0.
func deviceName(place int) string {
	const letters = 26
	if place < letters {
		return fmt.Sprintf("/dev/vd%c", 'a'+place)
	}
	return fmt.Sprintf("/dev/vd%c%c", 'a'+place/letters-1, 'a'+place%letters)
}

func (v *server) drop(d *disk) {
	v.disks = slices.DeleteFunc(slices.Clone(v.disks), func(x *disk) bool { return x == d })
}

// reserveDisk reserves the volume in Cinder, or removes the disk and returns the refusal.
func (s *Sim) reserveDisk(c *call, v *server, d *disk, vol *volume) *reply {
	refusal := ""
	switch {
	case s.volumes[vol.id] == nil:
		v.drop(d)
		return new(fault(http.StatusNotFound, "Volume "+vol.id+" could not be found."))
	case s.config.SameZoneAttach && v.Zone != vol.zone:
		refusal = fmt.Sprintf("Invalid volume: Instance %s and volume %s are not in the same availability_zone. Instance is in %s. Volume is in %s", v.ID, vol.id, v.Zone, vol.zone)
	case vol.multiattach && c.version < 60:
		refusal = "Multiattach volumes are only supported starting with compute API version 2.60."
	default:
		var why string
		if d.attachment, why = s.reserveVolume(vol, v.ID); why != "" {
			refusal = s.fromCinder(why)
		}
	}
	if refusal != "" {
		v.drop(d)
		return new(fault(http.StatusBadRequest, refusal))
	}
	return nil
}

func (d *disk) attached(c *call, serverID string) reply {
	answer := obj{{"id", d.volume}, {"serverId", serverID}, {"volumeId", d.volume}, {"device", orNull(d.device)}}
	answer = answer.when(c.version >= 70, pair{"tag", d.tag})
	answer = answer.when(c.version >= 79, pair{"delete_on_termination", d.drop})
	return reply{status: http.StatusOK, body: obj{{"volumeAttachment", answer}}}
}

// fromCinder is an error of Cinder as Nova passes it on.
func (s *Sim) fromCinder(why string) string {
	return "Invalid input received: " + why + " (HTTP 400) (Request-ID: req-" + s.newID() + ")"
}

// plug is the part of the compute host: reserved, attaching, in-use. With a fault, the volume silently becomes available again.
func (s *Sim) plug(v *server, d *disk, vol *volume, asked time.Time) {
	a := d.attachment
	failure := s.operationFault(Attach)
	takes := s.takes(Attach, deref(vol.name)) + failure.Delay
	ends := s.turn(v.ID, takes)
	current := func() bool { return slices.Contains(vol.attachments, a) && s.servers[v.ID] == v }
	s.after(ends-takes/2, func() {
		if current() && a.status == "reserved" {
			a.status, a.mode = "attaching", "rw"
			vol.turn("attaching")
		}
	})
	s.after(ends, func() {
		defer s.effect(Attach, vol, v.ID, asked)
		if !current() {
			return
		}
		if failure = failure.try(func() error { return s.data.Attach(v.ID, vol.id, d.device) }); failure.fails() {
			v.drop(d)
			s.release(a)
			return
		}
		a.status, a.mode, a.device, a.host, a.attachedAt = "attached", "rw", d.device, v.host(), now()
		vol.turn("in-use")
	})
}

func (s *Sim) detach(c *call) reply {
	v := s.visibleServer(c, c.vars["id"])
	s.mustWrite(c, "os_compute_api:os-volumes-attachments:delete")
	v.refusesShelved(c, "detach_volume")
	vol := s.visible(c, c.vars["volume"])
	d := v.disk(vol.id)
	if d == nil {
		return notAttached(v.ID, vol.id)
	}
	v.mustBe(c, "detach_volume", "active", "paused", "stopped", "resized", "soft-delete", "shelved", "shelved_offloaded")
	switch {
	case v.offloaded():
		return s.detachOffloaded(c, v, d, vol)
	case v.hostDown:
		return fault(http.StatusConflict, "Service is unavailable at this time.")
	}
	if vol.status != "in-use" || len(vol.attached()) == 0 {
		return fault(http.StatusBadRequest, "Invalid volume: "+s.fromCinder("Invalid volume: Unable to detach volume. Volume status must be 'in-use' and attach_status must be 'attached' to detach."))
	}
	if !s.backend.moving[vol.id] {
		vol.turn("detaching")
	}
	s.unplug(v, d, vol, c.begun)
	return reply{status: http.StatusAccepted}
}

// unplug is the part of the compute host. Cinder deletes its attachment before Nova forgets the disk.
func (s *Sim) unplug(v *server, d *disk, vol *volume, asked time.Time) {
	failure := s.operationFault(Detach)
	takes := s.takes(Detach, deref(vol.name)) + failure.Delay
	ends := s.turn(v.ID, takes)
	s.after(ends-s.timing.forgets(takes), func() {
		if s.servers[v.ID] != v {
			return
		}
		if failure = failure.try(func() error { return s.data.Detach(v.ID, vol.id) }); failure.fails() {
			vol.turn("in-use")
			return
		}
		if d.attachment != nil {
			s.release(d.attachment)
		}
	})
	s.after(ends, func() {
		defer s.effect(Detach, vol, v.ID, asked)
		if !failure.fails() {
			v.drop(d)
		}
	})
}
