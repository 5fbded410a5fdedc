package openstack

import (
	"context"
	"net/http"
	"net/url"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// Cinder's own records of attachments are there from 3.27 on (Cinder API reference, "Attachments").
var (
	listRows  = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/attachments", Microversion: "3.27"}
	getRow    = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/attachments/{id}", Microversion: "3.27"}
	deleteRow = cloud.Call{Service: "block-storage", Method: http.MethodDelete, Path: "/attachments/{id}", Microversion: "3.27"}
)

// wireRow is an attachment as Cinder's attachments API writes it; the instance is null where nobody named one.
type wireRow struct {
	ID       string `json:"id"`
	Volume   string `json:"volume_id"`
	Instance string `json:"instance"`
	Status   string `json:"status"`
}

func (w wireRow) row() volume.Row {
	r := volume.Row{ID: w.ID, Volume: volume.ID(w.Volume), Server: volume.ServerID(w.Instance), Status: volume.AttachStatus(w.Status)}
	if w.Status == "detached" || w.Status == "deleted" {
		r.Status = volume.AttachmentNone
	}
	return r
}

// VolumeAttachments implements volume.AttachmentCloud. A volume has a few: the list is never longer than a page.
func (c *Cloud) VolumeAttachments(ctx context.Context, id volume.ID) ([]volume.Row, error) {
	const verb = "list attachments"
	if !isUUID(string(id)) {
		return nil, volume.Errorf(volume.NotFound, "volume %q does not exist: its id is not a UUID", id).Op(verb)
	}
	var answer struct {
		Attachments cloud.Items[wireRow] `json:"attachments"`
	}
	err := c.do(ctx, request{
		call: listRows, verb: verb, object: "volume " + string(id), query: url.Values{"volume_id": {string(id)}}, ok: http.StatusOK, into: &answer,
	})
	if err != nil {
		return nil, err
	}
	rows := make([]volume.Row, 0, len(answer.Attachments))
	for _, w := range answer.Attachments {
		if w.Volume == string(id) { // a cloud that ignores the filter lists the project's
			rows = append(rows, w.row())
		}
	}
	return rows, nil
}

// ShowAttachment implements volume.AttachmentCloud.
func (c *Cloud) ShowAttachment(ctx context.Context, id string) (volume.Row, error) {
	var answer struct {
		Attachment wireRow `json:"attachment"`
	}
	r := request{call: getRow, verb: "read attachment", object: "attachment " + id, ids: []string{id}, ok: http.StatusOK, into: &answer}
	if err := c.about(ctx, r, &answer.Attachment.ID, id); err != nil {
		return volume.Row{}, err
	}
	return answer.Attachment.row(), nil
}

// DeleteAttachment implements volume.AttachmentCloud.
func (c *Cloud) DeleteAttachment(ctx context.Context, id string) error {
	return c.do(ctx, request{call: deleteRow, verb: "delete attachment", object: "attachment " + id, ids: []string{id}, ok: http.StatusOK})
}
