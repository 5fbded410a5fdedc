package openstack

import (
	"context"
	"net/http"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// wireServer is a server in Nova's JSON (Nova API reference, "Show server details").
type wireServer struct {
	wireID
	Name      string            `json:"name"`
	Status    string            `json:"status"`
	TaskState string            `json:"OS-EXT-STS:task_state"`
	Zone      string            `json:"OS-EXT-AZ:availability_zone"`
	Metadata  map[string]string `json:"metadata"`
	Tags      []string          `json:"tags"`
}

func (w wireServer) server() volume.Server {
	return volume.Server{ID: volume.ServerID(w.ID), Name: w.Name, Status: w.Status, TaskState: w.TaskState, Zone: w.Zone, Metadata: w.Metadata, Tags: w.Tags}
}

// Server implements volume.Cloud.
func (c *Cloud) Server(ctx context.Context, id volume.ServerID) (volume.Server, error) {
	return read(ctx, c, getServer, "server", string(id), wireServer.server)
}

// NovaAnswers implements volume.Cloud.
func (c *Cloud) NovaAnswers(ctx context.Context) error {
	r := request{verb: "ask Nova", object: "the endpoint of Nova"}
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	login, err := c.current(limited)
	if err == nil {
		err = login.PingService(limited, getServer.Service)
	}
	if err != nil {
		return connectError(ctx, r, err)
	}
	return nil
}

// ServerAttachments implements volume.Cloud. At this microversion the "id" in Nova's answer is the id of the volume, not of the attachment.
func (c *Cloud) ServerAttachments(ctx context.Context, server volume.ServerID) ([]volume.Attachment, error) {
	answer := keyed[cloud.Items[struct {
		Volume string `json:"volumeId"`
		Server string `json:"serverId"`
		Device string `json:"device"`
	}]]{key: "volumeAttachments"}
	err := c.do(ctx, request{
		call: listServerAttachments, verb: "list attachments", object: "server " + string(server), ids: []string{string(server)},
		ok: http.StatusOK, into: &answer,
	})
	if err != nil {
		return nil, err
	}
	list := make([]volume.Attachment, len(answer.Value))
	for i, a := range answer.Value {
		list[i] = volume.Attachment{Volume: volume.ID(a.Volume), Server: volume.ServerID(a.Server), Device: a.Device}
	}
	return list, nil
}

// Attach implements volume.Cloud.
func (c *Cloud) Attach(ctx context.Context, server volume.ServerID, v volume.Volume) error {
	const verb = "attach volume"
	if !contract.IsUUID(string(v.ID)) {
		return volume.Errorf(volume.NotFound, "volume %q does not exist: its id is not a UUID", v.ID).Op(verb)
	}
	type body struct {
		Volume string `json:"volumeId"`
	}
	r := request{
		call: attachVolume, verb: verb, object: "volume " + string(v.ID) + " to server " + string(server), ids: []string{string(server)},
		ok: http.StatusOK, body: map[string]body{"volumeAttachment": {string(v.ID)}},
	}
	if v.Multiattach {
		r.call = attachMultiattach
	}
	return c.do(ctx, r)
}

// Detach implements volume.Cloud. NotFound means that the server does not have the volume, or that it does not exist.
func (c *Cloud) Detach(ctx context.Context, server volume.ServerID, id volume.ID) error {
	return c.do(ctx, request{
		call: detachVolume, verb: "detach volume", object: "volume " + string(id) + " from server " + string(server),
		ids: []string{string(server), string(id)}, ok: http.StatusAccepted,
	})
}
