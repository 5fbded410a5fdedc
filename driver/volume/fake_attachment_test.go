package volume

import (
	"context"
	"slices"
)

// fakeRows are the attachment records of a fakeCloud beside those of attached volumes.
type fakeRows struct {
	rows         []Row
	serverStatus string // of every server; empty means ACTIVE
	task         string // that every server is at
	stuck        bool   // a detach never ends
	listsForever bool   // Nova forgets no volume
}

// rowID is the id of the record of any volume at a server.
func rowID(server ServerID) string { return "row-" + string(server) }

// recorded is every record of a volume.
func (c *fakeCloud) recorded(id ID) []Row {
	v, err := c.read(id)
	if err != nil {
		return nil
	}
	var all []Row
	for _, a := range v.Attachments {
		all = append(all, Row{ID: rowID(a.Server), Volume: id, Server: a.Server, Status: AttachmentAttached})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.rows {
		if r.Volume == id {
			all = append(all, r)
		}
	}
	return all
}

func (c *fakeCloud) VolumeAttachments(_ context.Context, id ID) ([]Row, error) {
	if err := c.called("Rows", id); err != nil {
		return nil, err
	}
	return c.recorded(id), nil
}

func (c *fakeCloud) ShowAttachment(_ context.Context, row string) (Row, error) {
	if err := c.called("Row", row); err != nil {
		return Row{}, err
	}
	return c.find(row)
}

func (c *fakeCloud) find(row string) (Row, error) {
	c.mu.Lock()
	ids := make([]ID, 0, len(c.volumes))
	for id := range c.volumes {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	for _, id := range ids {
		for _, r := range c.recorded(id) {
			if r.ID == row {
				return r, nil
			}
		}
	}
	return Row{}, Errorf(NotFound, "no attachment %s", row)
}

// DeleteAttachment deletes a record; the volume follows at once, as in Cinder.
func (c *fakeCloud) DeleteAttachment(_ context.Context, row string) error {
	if err := c.called("DeleteRow", row); err != nil {
		return err
	}
	found, err := c.find(row)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.rows = slices.DeleteFunc(c.rows, func(r Row) bool { return r.ID == row })
	c.mu.Unlock()
	c.change(found.Volume, func(v *Volume) {
		v.Attachments = slices.DeleteFunc(v.Attachments, func(a Attachment) bool { return rowID(a.Server) == row })
		if v.Status = Available; len(v.Attachments) > 0 {
			v.Status = InUse
		}
	})
	return nil
}
