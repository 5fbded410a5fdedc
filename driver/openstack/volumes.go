package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// wireVolume is a volume in Cinder's JSON (Cinder API reference, "Show a volume's details").
type wireVolume struct {
	wireID
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
		SourceID: volume.ID(w.SourceID), BackupID: w.Metadata[sourceBackup], RestoreFrom: contract.RestoreFrom(w.Metadata), Description: w.Description, Metadata: w.Metadata,
	}
	v.Attachments = slices.Grow(v.Attachments, len(w.Attachments))
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
		if id != "" && !contract.IsUUID(id) {
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
	wanted := body{
		Name: o.Name, Size: o.Size.RoundUp(), Type: o.Type, Zone: o.Zone, SnapshotID: o.SnapshotID, SourceID: string(o.SourceID),
		BackupID: o.BackupID, Description: o.Description, Metadata: o.Metadata,
	}
	r := request{call: createVolume, verb: verb, object: "volume " + strconv.Quote(o.Name), ok: http.StatusAccepted}
	if o.BackupID != "" {
		wanted.Metadata = map[string]string{}
		maps.Copy(wanted.Metadata, o.Metadata)
		wanted.Metadata[sourceBackup] = o.BackupID
		r.call = createVolumeFromBackup
	}
	r.body = withHints(map[string]any{"volume": wanted}, o.Hints)
	return object(ctx, c, r, "volume", "", wireVolume.volume)
}

// Volume implements volume.Cloud.
func (c *Cloud) Volume(ctx context.Context, id volume.ID) (volume.Volume, error) {
	return read(ctx, c, getVolume, "volume", string(id), wireVolume.volume)
}

// VolumesNamed implements volume.Cloud.
func (c *Cloud) VolumesNamed(ctx context.Context, name string) ([]volume.Volume, error) {
	return c.volumes().named(ctx, name)
}

// Select implements volume.Cloud. Cinder compares times from 3.60 on.
func (c *Cloud) Select(ctx context.Context, s volume.Selection) ([]volume.Volume, bool, error) {
	query, err := pageQuery(string(s.Marker), s.Limit, "list volumes")
	if err != nil {
		return nil, false, err
	}
	filter := ""
	if len(s.Metadata) > 0 {
		text, err := json.Marshal(s.Metadata) // Cinder reads a dictionary of Python, which a JSON object of texts is too
		if err != nil {
			return nil, false, volume.Errorf(volume.InvalidArgument, "metadata filter: %w", err).Op("list volumes")
		}
		filter = "metadata"
		query.Set(filter, string(text))
	}
	if !s.Since.IsZero() {
		filter = "updated_at"
		query.Set(filter, "gte:"+s.Since.UTC().Format(cinderTime))
	}
	if !s.Created.IsZero() {
		filter = "created_at"
		query.Set(filter, "gte:"+s.Created.UTC().Format(cinderTime))
	}
	return c.volumes().filtered(ctx, query, filter, nil)
}

func (c *Cloud) volumes() list[volume.Volume] {
	return list[volume.Volume]{
		cloud: c, call: listVolumes, noun: "volume",
		id:    func(v volume.Volume) string { return string(v.ID) },
		name:  func(v volume.Volume) string { return v.Name },
		brief: briefVolume,
		send: func(ctx context.Context, r request) ([]volume.Volume, bool, error) {
			if r.query.Has("updated_at") || r.query.Has("created_at") {
				r.call = listChangedVolumes
			}
			var answer struct {
				Volumes cloud.Items[wireVolume] `json:"volumes"`
				Links   links                   `json:"volumes_links"`
			}
			r.into = &answer
			err := c.do(ctx, r)
			return converted(answer.Volumes, wireVolume.volume), len(answer.Links) > 0, err
		},
	}
}

// mostShown is how many attachments a search by name shows. Package ownership asks about as many servers; the rest of the driver asks whether
// there is any.
const mostShown = 64

// briefVolume leaves out what nobody asks of a volume that was found by name. An RPC may keep sixteen of them while it waits.
func briefVolume(v volume.Volume) volume.Volume {
	id := func(text string) string { return strings.Clone(text[:min(len(text), 36)]) } // and not the memory of the rest
	var shown []volume.Attachment
	for _, a := range v.Attachments[:min(len(v.Attachments), mostShown)] {
		shown = append(shown, volume.Attachment{ID: id(a.ID), Volume: v.ID, Server: volume.ServerID(id(string(a.Server))), Status: a.Status})
	}
	v.Metadata, v.Attachments = contract.WrittenMetadata(v.Metadata), shown
	return v
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

// RemoveMetadata implements volume.Cloud.
func (c *Cloud) RemoveMetadata(ctx context.Context, id volume.ID, key string) error {
	return c.do(ctx, request{
		call: removeMetadata, verb: "remove metadata", object: fmt.Sprintf("key %q of volume %s", key, id), ids: []string{string(id)}, key: key,
		ok: http.StatusOK,
	})
}
