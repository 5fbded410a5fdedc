package openstacksim

import (
	"cmp"
	"net/http"
)

// A shelved server keeps its host until Nova offloads it, by default at once. An offloaded server has no host: its volumes are reserved for
// it, and Nova changes them without a compute host.

// refusesShelved refuses a request below 2.20 for the volumes of a shelved server (_check_request_version in volume_attachments.py of Nova,
// since Mitaka). Nova checks this before the lock of the server, and before it reads the volume.
func (v *server) refusesShelved(c *call, action string) {
	const since = 20
	if state := v.vmState(); c.version < since && (state == "shelved" || state == "shelved_offloaded") {
		panic(fault(http.StatusConflict, "Cannot '"+action+"' instance "+v.ID+" while it is in vm_state "+state))
	}
}

// offload replaces the attachment of each volume by a reservation (_terminate_volume_connections in nova/compute/manager.py).
func (s *Sim) offload(v *server) {
	for _, d := range v.disks {
		vol := s.volumes[d.volume]
		if vol == nil || d.attachment == nil {
			continue
		}
		if err := s.data.Detach(v.ID, d.volume); err != nil {
			v.Status = "ERROR"
			return
		}
		reserved, refusal := s.reserveVolume(vol, v.ID)
		if refusal != "" {
			v.Status = "ERROR"
			return
		}
		s.release(d.attachment)
		d.attachment = reserved
	}
}

func (s *Sim) unshelve(v *server) {
	for i, d := range v.disks {
		vol := s.volumes[d.volume]
		if vol == nil || d.attachment == nil {
			continue
		}
		d.device = cmp.Or(d.device, deviceName(i+1))
		if err := s.data.Attach(v.ID, d.volume, d.device); err != nil {
			v.Status = "ERROR"
			return
		}
		a := d.attachment
		a.status, a.mode, a.device, a.host, a.attachedAt = "attached", "rw", d.device, v.host(), now()
		vol.updateStatus()
	}
}

// attachOffloaded completes an attach without a host. The answer names no device, and the attachment no host.
func (s *Sim) attachOffloaded(c *call, v *server, vol *volume, want attachRequest) reply {
	if vol.multiattach {
		return fault(http.StatusBadRequest, "Attaching multiattach volumes is not supported for shelved-offloaded instances.")
	}
	d := &disk{id: s.newID(), volume: want.volume, drop: want.drop}
	v.disks = append(v.disks, d)
	if bad := s.reserveDisk(c, v, d, vol); bad != nil {
		return *bad
	}
	d.attachment.status = "attached"
	vol.updateStatus()
	s.effect(Attach, vol, v.ID, c.begun)
	return d.attached(c, v.ID)
}

// detachOffloaded deletes the attachment whatever the status of the volume is: Nova does not tell Cinder that a detach begins.
func (s *Sim) detachOffloaded(c *call, v *server, d *disk, vol *volume) reply {
	if d.attachment != nil {
		s.release(d.attachment)
	}
	v.drop(d)
	s.effect(Detach, vol, v.ID, c.begun)
	return reply{status: http.StatusAccepted}
}
