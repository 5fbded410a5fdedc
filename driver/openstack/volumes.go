package openstack

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// wireVolume is a volume in Cinder's JSON (Cinder API reference, "Show a volume's details").
type wireVolume struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Status      string            `json:"status"`
	Size        int               `json:"size"` // GiB
	Zone        string            `json:"availability_zone"`
	Type        string            `json:"volume_type"`
	Multiattach bool              `json:"multiattach"`
	Bootable    string            `json:"bootable"` // "true" or "false"
	Encrypted   bool              `json:"encrypted"`
	SnapshotID  string            `json:"snapshot_id"`
	SourceID    string            `json:"source_volid"`
	Description string            `json:"description"`
	Metadata    map[string]string `json:"metadata"`
	CreatedAt   string            `json:"created_at"`
	UpdatedAt   string            `json:"updated_at"`
	Attachments cloud.Items[struct {
		ID     string `json:"attachment_id"`
		Server string `json:"server_id"` // null for a host outside Nova
		Host   string `json:"host_name"` // null without the administrator role
		Device string `json:"device"`
	}] `json:"attachments"`
}

const cinderTime = "2006-01-02T15:04:05"

// gib is a size in Cinder's unit. A size that is negative, or too large for a number of bytes, is 0, which fits no request.
func gib(n int) volume.Size {
	if n < 0 || n > 1<<32 {
		return 0
	}
	return volume.GiB(n)
}

func (w wireVolume) volume() volume.Volume {
	v := volume.Volume{
		ID: volume.ID(w.ID), Name: w.Name, Status: volume.Status(w.Status), Size: gib(w.Size), Zone: w.Zone, Type: w.Type,
		Multiattach: w.Multiattach, Bootable: w.Bootable == "true", Encrypted: w.Encrypted, SnapshotID: w.SnapshotID,
		SourceID: volume.ID(w.SourceID), BackupID: w.Metadata[sourceBackup], Description: w.Description, Metadata: w.Metadata,
	}
	for _, a := range w.Attachments {
		v.Attachments = append(v.Attachments, volume.Attachment{ID: a.ID, Volume: v.ID, Server: volume.ServerID(a.Server), Status: volume.AttachmentAttached, Host: a.Host, Device: a.Device})
	}
	// UTC without a zone, with or without a fraction. Times only break ties, so a time that does not parse is not an error.
	v.CreatedAt, _ = time.Parse(cinderTime, w.CreatedAt)
	v.UpdatedAt, _ = time.Parse(cinderTime, w.UpdatedAt)
	return v
}

// CreateVolume implements volume.Cloud.
func (c *Cloud) CreateVolume(ctx context.Context, o volume.CreateOptions) (volume.Volume, error) {
	const verb = "create volume"
	for what, id := range map[string]string{"snapshot": o.SnapshotID, "source volume": string(o.SourceID), "backup": o.BackupID} {
		if id != "" && !isUUID(id) {
			return volume.Volume{}, volume.Errorf(volume.NotFound, "%s does not exist: %q is not a UUID", what, id).Op(verb)
		}
	}
	type body struct {
		Name        string            `json:"name"`
		Size        int               `json:"size"`
		Type        string            `json:"volume_type,omitempty"`
		Zone        string            `json:"availability_zone,omitempty"`
		SnapshotID  string            `json:"snapshot_id,omitempty"`
		SourceID    string            `json:"source_volid,omitempty"`
		BackupID    string            `json:"backup_id,omitempty"`
		Description string            `json:"description,omitempty"`
		Metadata    map[string]string `json:"metadata,omitempty"`
	}
	var answer struct {
		Volume wireVolume `json:"volume"`
	}
	wanted := body{
		Name: o.Name, Size: o.Size.RoundUp(), Type: o.Type, Zone: o.Zone, SnapshotID: o.SnapshotID, SourceID: string(o.SourceID),
		BackupID: o.BackupID, Description: o.Description, Metadata: o.Metadata,
	}
	r := request{
		call: createVolume, verb: verb, object: "volume " + strconv.Quote(o.Name), ok: http.StatusAccepted, into: &answer,
	}
	if o.BackupID != "" {
		wanted.Metadata = maps.Clone(o.Metadata)
		if wanted.Metadata == nil {
			wanted.Metadata = map[string]string{}
		}
		wanted.Metadata[sourceBackup] = o.BackupID
		r.call = createVolumeFromBackup
	}
	r.body = withHints(map[string]any{"volume": wanted}, o.Hints)
	if err := c.doObject(ctx, r, &answer.Volume.ID, ""); err != nil {
		return volume.Volume{}, err
	}
	return answer.Volume.volume(), nil
}

// Volume implements volume.Cloud.
func (c *Cloud) Volume(ctx context.Context, id volume.ID) (volume.Volume, error) {
	var answer struct {
		Volume wireVolume `json:"volume"`
	}
	err := c.doObject(ctx, request{
		call: getVolume, verb: "read volume", object: "volume " + string(id), ids: []string{string(id)}, ok: http.StatusOK, into: &answer,
	}, &answer.Volume.ID, string(id))
	if err != nil {
		return volume.Volume{}, err
	}
	return answer.Volume.volume(), nil
}

// VolumesNamed implements volume.Cloud.
func (c *Cloud) VolumesNamed(ctx context.Context, name string) ([]volume.Volume, error) {
	const verb = "find volume by name"
	if name == "" {
		return nil, volume.Errorf(volume.InvalidArgument, "the name is empty; the driver does not list all volumes").Op(verb)
	}
	return allNamed(name, func(query url.Values) ([]volume.Volume, bool, error) {
		return c.listVolumes(ctx, listVolumes, verb, "volumes named "+strconv.Quote(name), query)
	}, func(v volume.Volume) (id, name string) { return string(v.ID), v.Name })
}

// Select implements volume.Cloud. Cinder compares times from 3.60 on.
func (c *Cloud) Select(ctx context.Context, s volume.Selection) ([]volume.Volume, bool, error) {
	const verb = "list volumes"
	call, query := listVolumes, url.Values{}
	if s.Marker != "" {
		if !isUUID(string(s.Marker)) {
			return nil, false, volume.Errorf(volume.NotFound, "marker %q does not exist: it is not a UUID", s.Marker).Op(verb)
		}
		query.Set("marker", string(s.Marker))
	}
	if s.Limit > 0 {
		query.Set("limit", strconv.Itoa(s.Limit))
	}
	if s.Status != "" {
		query.Set("status", string(s.Status))
	}
	if !s.Since.IsZero() {
		call = listChangedVolumes
		query.Set("updated_at", "gte:"+s.Since.UTC().Format(cinderTime))
	}
	return c.listVolumes(ctx, call, verb, "the project's volumes", query)
}

// listVolumes reads one page, and whether there are more.
func (c *Cloud) listVolumes(ctx context.Context, call cloud.Call, verb, object string, query url.Values) ([]volume.Volume, bool, error) {
	var answer struct {
		Volumes cloud.Items[wireVolume] `json:"volumes"`
		Links   links                   `json:"volumes_links"`
	}
	err := c.do(ctx, request{call: call, verb: verb, object: object, query: query, ok: http.StatusOK, into: &answer})
	if err != nil {
		return nil, false, err
	}
	return pageOf(query, answer.Volumes, func(w wireVolume) (volume.Volume, string) { return w.volume(), w.ID }, len(answer.Links) > 0, verb)
}

// DeleteVolume implements volume.Cloud. It never sets "cascade", which would delete the snapshots too.
func (c *Cloud) DeleteVolume(ctx context.Context, id volume.ID) error {
	return c.do(ctx, request{
		call: deleteVolume, verb: "delete volume", object: "volume " + string(id), ids: []string{string(id)}, ok: http.StatusAccepted,
	})
}

// AddMetadata implements volume.Cloud.
func (c *Cloud) AddMetadata(ctx context.Context, id volume.ID, metadata map[string]string) error {
	return c.do(ctx, request{
		call: addMetadata, verb: "add metadata", object: "volume " + string(id), ids: []string{string(id)}, ok: http.StatusOK,
		body: map[string]map[string]string{"metadata": metadata},
	})
}

// userMessage is a message about a resource (Cinder API reference, "Messages").
type userMessage struct {
	Level   string `json:"message_level"`
	Text    string `json:"user_message"`
	Created string `json:"created_at"`
}

// Failure implements volume.Cloud.
func (c *Cloud) Failure(ctx context.Context, id volume.ID) (string, error) {
	return c.failure(ctx, "volume "+string(id), string(id))
}

// failure joins the errors among Cinder's user messages about an object, each once, oldest first. After a create that failed, the backend
// and then the scheduler write one, often in the same second; only the first names the cause. It is empty for a cloud without messages. If
// a policy hides them, the text says so: an administrator can change that.
func (c *Cloud) failure(ctx context.Context, object, id string) (string, error) {
	if !isUUID(id) {
		return "", nil
	}
	var answer struct {
		Messages cloud.Items[userMessage] `json:"messages"`
	}
	err := c.do(ctx, request{
		call: listMessages, verb: "read messages", object: object, query: url.Values{"resource_uuid": {id}},
		ok: http.StatusOK, into: &answer,
	})
	switch volume.KindOf(err) {
	case volume.NotFound, volume.Unimplemented:
		return "", nil
	case volume.PermissionDenied:
		return "Cinder does not show the reason: " + err.Error(), nil
	}
	// All times have one format, so the text order is the time order.
	slices.SortStableFunc(answer.Messages, func(a, b userMessage) int { return cmp.Compare(a.Created, b.Created) })
	var texts []string
	for _, m := range answer.Messages {
		if m.Level == "ERROR" && !slices.Contains(texts, m.Text) {
			texts = append(texts, m.Text)
		}
	}
	return cloud.Clean(strings.Join(texts, "; ")), err
}
