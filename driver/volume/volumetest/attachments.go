package volumetest

import (
	"context"
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// attachments are the attachments of a Cloud beside those that its volumes list, and how its servers behave.
type attachments struct {
	AttachmentRecords []volume.Attachment // those that are not attached
	ServerStatus      string              // of every server; empty means ACTIVE
	Task              string              // of every server
	Stuck             bool                // a detach never ends
	ListsForever      bool                // Nova never removes a volume from its list
}

// AttachmentID is the ID of the attachment of any volume to a server.
func AttachmentID(server volume.ServerID) string { return "attachment-" + string(server) }

// Recorded returns the attachments of a volume in every status.
func (c *Cloud) Recorded(id volume.ID) []volume.Attachment {
	v, err := c.Read(id)
	if err != nil {
		return nil
	}
	all := v.Attachments
	c.Mu.Lock()
	defer c.Mu.Unlock()
	for _, a := range c.AttachmentRecords {
		if a.Volume == id {
			all = append(all, a)
		}
	}
	return all
}

func (c *Cloud) VolumeAttachments(_ context.Context, id volume.ID) ([]volume.Attachment, error) {
	if err := c.Called("VolumeAttachments", id); err != nil {
		return nil, err
	}
	return c.Recorded(id), nil
}

func (c *Cloud) ShowAttachment(_ context.Context, id string) (volume.Attachment, error) {
	if err := c.Called("ShowAttachment", id); err != nil {
		return volume.Attachment{}, err
	}
	return c.findAttachment(id)
}

func (c *Cloud) findAttachment(id string) (volume.Attachment, error) {
	c.Mu.Lock()
	volumes := make([]volume.ID, 0, len(c.VolumesByID))
	for v := range c.VolumesByID {
		volumes = append(volumes, v)
	}
	c.Mu.Unlock()
	for _, v := range volumes {
		for _, a := range c.Recorded(v) {
			if a.ID == id {
				return a, nil
			}
		}
	}
	return volume.Attachment{}, volume.Errorf(volume.NotFound, "no attachment %s", id)
}

// DeleteAttachment deletes an attachment; the status of the volume follows at once, as in Cinder.
func (c *Cloud) DeleteAttachment(_ context.Context, id string) error {
	if err := c.Called("DeleteAttachment", id); err != nil {
		return err
	}
	found, err := c.findAttachment(id)
	if err != nil {
		return err
	}
	c.Mu.Lock()
	c.AttachmentRecords = slices.DeleteFunc(c.AttachmentRecords, func(a volume.Attachment) bool { return a.ID == id })
	c.Mu.Unlock()
	c.Change(found.Volume, func(v *volume.Volume) {
		v.Attachments = slices.DeleteFunc(v.Attachments, func(a volume.Attachment) bool { return AttachmentID(a.Server) == id })
		if v.Status = volume.Available; len(v.Attachments) > 0 {
			v.Status = volume.InUse
		}
	})
	return nil
}
