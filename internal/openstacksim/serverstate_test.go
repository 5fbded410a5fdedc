package openstacksim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// Nova decides by vm_state and task_state; a status such as MIGRATING stands for both (check_instance_state in nova/compute/api.py).
func TestTheStateOfAServerDecidesWhetherItsVolumesMayChange(t *testing.T) {
	node := serverID("node-az1")
	for status, refusal := range map[string]string{
		"PAUSED": "", "SHUTOFF": "", "VERIFY_RESIZE": "", "SOFT_DELETED": "", "SHELVED": "",
		"SUSPENDED": "vm_state suspended", "RESCUE": "vm_state rescued", "ERROR": "vm_state error", "BUILD": "vm_state building",
		"MIGRATING": "task_state migrating", "RESIZE": "task_state resize_migrating", "REVERT_RESIZE": "task_state resize_reverting",
		"REBOOT": "task_state rebooting", "HARD_REBOOT": "task_state rebooting_hard", "REBUILD": "task_state rebuilding", "PASSWORD": "task_state updating_password",
		"UNKNOWN": "vm_state unknown",
	} {
		t.Run(status, func(t *testing.T) {
			sim := instant()
			c := login(t, sim, "demo", "demo")
			before, after := c.create(`"size":1`), c.create(`"size":1`)
			c.want(http.StatusOK, c.attach(node, before))
			sim.SetServerStatus(node, status, "")
			attach, detach := c.attach(node, after), c.detach(node, before)
			if refusal == "" {
				c.want(http.StatusOK, attach)
				c.want(http.StatusAccepted, detach)
				return
			}
			for action, a := range map[string]answer{"attach_volume": attach, "detach_volume": detach} {
				if want := "Cannot '" + action + "' instance " + node + " while it is in " + refusal; a.status != http.StatusConflict || a.message() != want {
					t.Errorf("want 409 %q, got %d %q", want, a.status, a.message())
				}
			}
		})
	}
}

func TestAServerWhoseHostIsDownKeepsItsVolumes(t *testing.T) {
	node := serverID("node-az1")
	bubble(t, nil, func(t *testing.T, sim *openstacksim.Sim, c *caller) {
		before, after := c.create(`"size":1`), c.create(`"size":1`)
		c.want(http.StatusOK, c.attach(node, before))
		sim.SetHostDown(node, true)
		if a := c.detach(node, before); a.status != http.StatusConflict || a.message() != "Service is unavailable at this time." {
			t.Errorf("the detach: %d %q", a.status, a.message())
		}
		begin := time.Now()
		if a := c.attach(node, after); a.status != http.StatusInternalServerError || !strings.Contains(a.message(), "MessagingTimeout") || time.Since(begin) != time.Minute {
			t.Errorf("the attach: %d %q after %v", a.status, a.message(), time.Since(begin))
		}
		if has := c.novaHas(node); len(has) != 1 || c.state(before) != "in-use" || c.state(after) != "available" {
			t.Errorf("Nova has %v; the volumes are %s and %s", has, c.state(before), c.state(after))
		}
		sim.SetHostDown(node, false)
		c.want(http.StatusAccepted, c.detach(node, before))
	})
}

// A lost cell database is no proof that the server is gone: Nova answers 500, never 404.
func TestAServerInACellThatIsDownCannotBeRead(t *testing.T) {
	node := serverID("node-az1")
	sim := instant()
	c := login(t, sim, "demo", "demo")
	volume := c.create(`"size":1`)
	sim.SetCellDown(node, true)
	for _, a := range []answer{
		c.do("GET", "/compute/servers/"+node, "", ""), c.do("GET", "/compute/servers/"+node+"/os-volume_attachments", "", ""),
		c.attach(node, volume), c.detach(node, volume),
	} {
		if a.status != http.StatusInternalServerError || !strings.Contains(a.message(), "NovaException") {
			t.Errorf("want 500, got %d %q", a.status, a.message())
		}
	}
	sim.SetCellDown(node, false)
	c.want(http.StatusOK, c.attach(node, volume))
}

func TestAnOffloadedServerHasReservations(t *testing.T) {
	node := serverID("node-az1")
	sim := instant()
	c := login(t, sim, "demo", "demo")
	volume := c.create(`"size":1`)
	shown := func(status, attachment string) {
		t.Helper()
		list := c.do("GET", "/volume/attachments/detail?volume_id="+volume, "3.27", "")
		if got := c.state(volume); got != status || len(list.at("attachments").([]any)) != 1 || list.at("attachments", 0, "status") != attachment || len(c.novaHas(node)) != 1 {
			t.Errorf("want %s with an attachment %s, got %s, %v, and Nova has %v", status, attachment, got, list.body, c.novaHas(node))
		}
	}
	c.want(http.StatusOK, c.attach(node, volume))
	shown("in-use", "attached")
	sim.SetServerStatus(node, "SHELVED_OFFLOADED", "")
	shown("reserved", "reserved")
	sim.SetServerStatus(node, "ACTIVE", "")
	shown("in-use", "attached")
	sim.SetServerStatus(node, "SHELVED_OFFLOADED", "")
	c.want(http.StatusAccepted, c.detach(node, volume))
	if got, has := c.state(volume), c.novaHas(node); got != "available" || len(has) != 0 {
		t.Errorf("after the detach the volume is %s and Nova has %v", got, has)
	}
	a := c.want(http.StatusOK, c.attach(node, volume))
	if device := a.at("volumeAttachment", "device"); device != nil {
		t.Errorf("a server without a host has the device %v", device)
	}
	shown("in-use", "attached")
	c.want(http.StatusAccepted, c.detach(node, volume))
	c.want(http.StatusBadRequest, c.attach(node, c.create(`"size":1,"volume_type":"multiattach"`)))
}
