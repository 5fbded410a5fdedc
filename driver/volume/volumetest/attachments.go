package volumetest

import (
	"context"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"slices"
)

// fakeRows are the attachment records of a fakeCloud beside those of attached volumes.
type attachments struct {
	AttachmentRecords []volume.Row
	ServerStatus      string // of every server; empty means ACTIVE
	Task              string // that every server is at
	Stuck             bool   // a detach never ends
	ListsForever      bool   // Nova forgets no volume
}

// rowID is the id of the record of any volume at a server.
func AttachmentID(server volume.ServerID) string { return "row-" + string(server) }

// recorded is every record of a volume.
func (c *Cloud) Recorded(id volume.ID) []volume.Row {
	v, err := c.Read(id)
	if err != nil {
		return nil
	}
	var all []volume.Row
	for _, a := range v.Attachments {
		all = append(all, volume.Row{ID: AttachmentID(a.Server), Volume: id, Server: a.Server, Status: volume.AttachmentAttached})
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	for _, r := range c.AttachmentRecords {
		if r.Volume == id {
			all = append(all, r)
		}
	}
	return all
}

func (c *Cloud) VolumeAttachments(_ context.Context, id volume.ID) ([]volume.Row, error) {
	if err := c.Called("Rows", id); err != nil {
		return nil, err
	}
	return c.Recorded(id), nil
}

func (c *Cloud) ShowAttachment(_ context.Context, row string) (volume.Row, error) {
	if err := c.Called("Row", row); err != nil {
		return volume.Row{}, err
	}
	return c.find(row)
}

func (c *Cloud) find(row string) (volume.Row, error) {
	c.Mu.Lock()
	ids := make([]volume.ID, 0, len(c.VolumesByID))
	for id := range c.VolumesByID {
		ids = append(ids, id)
	}
	c.Mu.Unlock()
	for _, id := range ids {
		for _, r := range c.Recorded(id) {
			if r.ID == row {
				return r, nil
			}
		}
	}
	return volume.Row{}, volume.Errorf(volume.NotFound, "no attachment %s", row)
}

// DeleteAttachment deletes a record; the volume follows at once, as in Cinder.
func (c *Cloud) DeleteAttachment(_ context.Context, row string) error {
	if err := c.Called("DeleteRow", row); err != nil {
		return err
	}
	found, err := c.find(row)
	if err != nil {
		return err
	}
	c.Mu.Lock()
	c.AttachmentRecords = slices.DeleteFunc(c.AttachmentRecords, func(r volume.Row) bool { return r.ID == row })
	c.Mu.Unlock()
	c.Change(found.Volume, func(v *volume.Volume) {
		v.Attachments = slices.DeleteFunc(v.Attachments, func(a volume.Attachment) bool { return AttachmentID(a.Server) == row })
		if v.Status = volume.Available; len(v.Attachments) > 0 {
			v.Status = volume.InUse
		}
	})
	return nil
}
