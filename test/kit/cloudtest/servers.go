package cloudtest

import (
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// AttachmentID is the ID of the attachment of any volume to a server.
func AttachmentID(server volume.ServerID) string {
	if server == "" {
		server = "00000000-0000-4000-8000-000000000000"
	}
	return "a77ac4ed" + strings.TrimPrefix(string(server), string(server[:8]))
}

// Record gives a volume an attachment, or changes the status of one. Nova does not know of it, and the status of the volume stays.
func (c *Cloud) Record(id volume.ID, a volume.Attachment) {
	c.t.Helper()
	state, _ := c.Sim.VolumeState(string(id))
	state.Attachments = slices.DeleteFunc(slices.Clone(state.Attachments), func(old openstacksim.AttachmentState) bool { return old.ID == a.ID })
	state.Attachments = append(state.Attachments, openstacksim.AttachmentState{ID: a.ID, Server: string(a.Server), Status: string(a.Status), Host: a.Host})
	if err := c.Sim.PutVolume(state); err != nil {
		c.t.Fatal(err)
	}
}

// Unrecord removes an attachment. The status of the volume stays.
func (c *Cloud) Unrecord(id volume.ID, attachment string) {
	c.t.Helper()
	state, _ := c.Sim.VolumeState(string(id))
	state.Attachments = slices.DeleteFunc(slices.Clone(state.Attachments), func(old openstacksim.AttachmentState) bool { return old.ID == attachment })
	if err := c.Sim.PutVolume(state); err != nil {
		c.t.Fatal(err)
	}
}

// Recorded returns the attachments of a volume in every status.
func (c *Cloud) Recorded(id volume.ID) (all []volume.Attachment) {
	state, _ := c.Sim.VolumeState(string(id))
	for _, a := range state.Attachments {
		all = append(all, volume.Attachment{ID: a.ID, Volume: id, Server: volume.ServerID(a.Server), Status: volume.AttachStatus(a.Status), Host: a.Host})
	}
	return all
}

// List makes Nova list a volume for these servers and no others. Cinder's attachments stay.
func (c *Cloud) List(id volume.ID, servers ...volume.ServerID) {
	c.t.Helper()
	state, _ := c.Sim.VolumeState(string(id))
	state.Disks = nil
	for _, server := range servers {
		state.Disks = append(state.Disks, string(server))
	}
	if err := c.Sim.PutVolume(state); err != nil {
		c.t.Fatal(err)
	}
}

// Lists returns the servers for which Nova lists a volume.
func (c *Cloud) Lists(id volume.ID) []string {
	state, _ := c.Sim.VolumeState(string(id))
	return state.Disks
}

// AsAdmin makes a cloud in which the driver logs in as an administrator, to whom Cinder shows the hosts of attachments.
func AsAdmin(config *openstacksim.Config) {
	config.ApplicationCredentials[0].User, config.ApplicationCredentials[0].Roles = "demo-admin", []string{"admin"}
}

// AddServer adds a server in that status, without volumes.
func (c *Cloud) AddServer(id volume.ServerID, status string) {
	c.Sim.AddServer(openstacksim.Server{ID: string(id), Project: "demo", Zone: "az1", Status: status})
}

// RemoveServer removes a server from Nova. Cinder keeps its attachments, as after the loss of a cell.
func (c *Cloud) RemoveServer(id volume.ServerID) { c.Sim.RemoveServer(string(id), true) }

// HostsFail makes every attach and detach fail on the compute host, of which Nova reports nothing.
func (c *Cloud) HostsFail() {
	for _, op := range []openstacksim.Operation{openstacksim.Attach, openstacksim.Detach} {
		c.Sim.SetFault(openstacksim.Fault{Operation: op})
	}
}
