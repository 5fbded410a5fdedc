package diagnosis

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// ask sends one GET to a service. It reports whether the object is there, and whether the service says that it is not. Any other answer is
// a gap.
func (r *reader) ask(ctx context.Context, what, service, microversion, path string, into any) (there, missing bool) {
	err := r.send(ctx, service, microversion, path, into)
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return false, true
	}
	if err != nil {
		r.readings.Gaps = append(r.readings.Gaps, Gap{What: what, Why: err.Error(), Do: "check the rights of the credentials with: " + r.Given.command(run("cinder-csi-generator", "doctor", "--skip-cluster"))})
	}
	return err == nil, false
}

func (r *reader) send(ctx context.Context, service, microversion, path string, into any) error {
	client, err := r.Cloud.ClientContext(ctx, service, microversion)
	if err != nil {
		return err
	}
	return r.Cloud.Read(ctx, client, client.Endpoint+path, into, http.StatusOK)
}

// readCloud reads the volume from Cinder, and the servers of its attachments and nodes from Nova.
func (r *reader) readCloud(ctx context.Context) {
	if r.Cloud == nil {
		if r.NoCloud.What != "" {
			r.readings.Gaps = append(r.readings.Gaps, r.NoCloud)
		}
		return
	}
	c := &CloudReadings{Name: r.Cloud.Name(), Servers: map[string]*CloudServer{}}
	r.readings.Cloud = c
	if !r.findVolume(ctx) {
		r.readQuota(ctx)
	}
	if c.Volume != nil {
		r.readVolumeDetails(ctx)
	}
	for _, id := range r.serverIDs() {
		r.readServer(ctx, id)
	}
}

// findVolume finds the volume by the handle of the PersistentVolume, or else by the name that external-provisioner gives it.
func (r *reader) findVolume(ctx context.Context) (found bool) {
	c := r.readings.Cloud
	if id := handleOf(r.readings.Volume); id != "" {
		var answer struct {
			Volume CloudVolume `json:"volume"`
		}
		there, missing := r.ask(ctx, "the volume in Cinder", "block-storage", "", "volumes/"+url.PathEscape(id), &answer)
		c.Missing = missing
		if there {
			c.Volume = &answer.Volume
		}
		return true
	}
	if r.readings.Claim == nil {
		return true
	}
	var answer struct {
		Volumes cloud.Items[CloudVolume] `json:"volumes"`
	}
	name := volumeName(*r.readings.Claim)
	r.ask(ctx, "the volume in Cinder", "block-storage", "", "volumes/detail?name="+url.QueryEscape(name), &answer)
	for _, v := range answer.Volumes {
		if v.Name == name { // a cloud that ignores the filter lists the whole project
			c.Volume = &v
		}
	}
	return c.Volume != nil
}

func (r *reader) readVolumeDetails(ctx context.Context) {
	c := r.readings.Cloud
	var list struct {
		Attachments cloud.Items[struct {
			CloudAttachment
			Volume string `json:"volume_id"`
		}] `json:"attachments"`
	}
	id := url.QueryEscape(c.Volume.ID)
	r.ask(ctx, cloudAttachments, "block-storage", "3.27", "attachments/detail?volume_id="+id, &list)
	for _, a := range list.Attachments {
		if a.Volume == c.Volume.ID {
			c.Attachments = append(c.Attachments, a.CloudAttachment)
		}
	}
	var messages struct {
		Messages cloud.Items[struct {
			Text     string    `json:"user_message"`
			Created  cloudTime `json:"created_at"`
			Resource string    `json:"resource_uuid"`
		}] `json:"messages"`
	}
	r.ask(ctx, "the messages of Cinder about the volume", "block-storage", "3.5", "messages?resource_uuid="+id, &messages)
	var last cloudTime
	for _, m := range messages.Messages {
		if m.Resource == c.Volume.ID && !m.Created.Before(last.Time) {
			c.Message, last = cloud.Public(m.Text), m.Created
		}
	}
}

func (r *reader) readQuota(ctx context.Context) {
	var answer struct {
		Set map[string]json.RawMessage `json:"quota_set"`
	}
	if there, _ := r.ask(ctx, "the quota of the project", "block-storage", "", "os-quota-sets/"+url.PathEscape(r.Cloud.ProjectID())+"?usage=true", &answer); !there {
		return
	}
	r.readings.Cloud.Quota = map[string]Quota{}
	for name, text := range answer.Set {
		var q Quota
		if json.Unmarshal(text, &q) == nil { // the ID of the project is a string
			r.readings.Cloud.Quota[name] = q
		}
	}
}

// serverIDs are the servers that Cinder's attachments name, and those of the nodes, as the driver registered them.
func (r *reader) serverIDs() []string {
	var ids []string
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, a := range r.readings.Cloud.Attachments {
		add(a.Server)
	}
	for _, name := range sortedKeys(r.readings.Nodes) {
		add(r.readings.Nodes[name].server())
	}
	return ids
}

func (r *reader) readServer(ctx context.Context, id string) {
	const lockedSince = "2.9" // the first microversion whose servers say whether they are locked
	var answer struct {
		Server CloudServer `json:"server"`
	}
	there, missing := r.ask(ctx, "server "+id+" in Nova", "compute", lockedSince, "servers/"+url.PathEscape(id), &answer)
	if !there && !missing {
		return
	}
	server := answer.Server
	server.ID, server.Missing = id, missing
	r.readings.Cloud.Servers[id] = &server
	if missing || r.readings.Cloud.Volume == nil {
		return
	}
	var volumes struct {
		Attachments cloud.Items[struct {
			Volume string `json:"volumeId"`
		}] `json:"volumeAttachments"`
	}
	r.ask(ctx, novaVolumes(id), "compute", "", "servers/"+url.PathEscape(id)+"/os-volume_attachments", &volumes)
	for _, a := range volumes.Attachments {
		server.Has = server.Has || a.Volume == r.readings.Cloud.Volume.ID
	}
}
