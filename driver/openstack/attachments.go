package openstack

import (
	"context"
	"net/http"
	"net/url"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// wireAttachment is an attachment of Cinder's attachments API (Cinder API reference, "Attachments"). The instance may be null.
type wireAttachment struct {
	wireID
	Volume   string `json:"volume_id"`
	Instance string `json:"instance"`
	Status   string `json:"status"`
}

func (w wireAttachment) attachment() volume.Attachment {
	r := volume.Attachment{ID: w.ID, Volume: volume.ID(w.Volume), Server: volume.ServerID(w.Instance), Status: volume.AttachStatus(w.Status)}
	if w.Status == "detached" || w.Status == "deleted" {
		r.Status = volume.AttachmentNone
	}
	return r
}

// VolumeAttachments implements volume.AttachmentCloud. A volume has only a few, so that they fit in one page.
func (c *Cloud) VolumeAttachments(ctx context.Context, id volume.ID) ([]volume.Attachment, error) {
	const verb = "list attachments"
	if !contract.IsUUID(string(id)) {
		return nil, volume.Errorf(volume.NotFound, "volume %q does not exist: its id is not a UUID", id).Op(verb)
	}
	answer := keyed[cloud.Items[wireAttachment]]{key: "attachments"}
	err := c.do(ctx, request{
		call: listAttachments, verb: verb, object: "volume " + string(id), query: limited(url.Values{"volume_id": {string(id)}}), ok: http.StatusOK, into: &answer,
	})
	if err != nil {
		return nil, err
	}
	rows := make([]volume.Attachment, 0, len(answer.Value))
	for _, w := range answer.Value {
		if w.Volume == string(id) { // a cloud that ignores the filter lists the whole project
			rows = append(rows, w.attachment())
		}
	}
	return rows, nil
}

// ShowAttachment implements volume.AttachmentCloud.
func (c *Cloud) ShowAttachment(ctx context.Context, id string) (volume.Attachment, error) {
	return read(ctx, c, getAttachment, "attachment", id, wireAttachment.attachment)
}

// DeleteAttachment implements volume.AttachmentCloud.
func (c *Cloud) DeleteAttachment(ctx context.Context, id string) error {
	return c.do(ctx, request{call: deleteAttachment, verb: "delete attachment", object: "attachment " + id, ids: []string{id}, ok: http.StatusOK})
}
