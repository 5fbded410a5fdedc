// Package provision creates, expands, changes and deletes volumes, and says what capacity and health they have.
//
// A create finds the volume by name or creates it, in the zones that are allowed one after the other. Every method returns once Cinder
// shows the result.
//
// The package keeps Cinder's zones for one minute (zones.go) and the project's quotas for ten seconds (capacity.go). A restart loses
// nothing: they are read again.
package provision

import (
	"context"
	"log/slog"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Options say who the driver is in a cloud, and what the service shares with others.
type Options struct {
	Owner idempotent.Owner
	Locks *inflight.Locks // shared with every service for the same cloud; nil makes new ones
	Log   *slog.Logger    // for what no RPC answer can say; nil discards
	// CountDuplicate counts a "volume" that has the name of another and that the driver does not delete; nil counts nothing.
	CountDuplicate func(noun string)
	// ObserveQuotas gets the project's quotas whenever they are read; nil ignores them.
	ObserveQuotas func(map[string]volume.Quota)
	Recent        *observe.Recent
}

// Volumes creates, changes and deletes the volumes of one cloud.
type Service struct {
	cloud   volume.Cloud
	volumes observe.Volumes
	owner   idempotent.Owner
	log     *slog.Logger
	locks   *inflight.Locks
	zones   *zones
	quotas  *quotaCache

	recent   *observe.Recent
	resource *idempotent.Resource[volume.Volume]
}

// NewVolumes returns the service for the volumes of cloud c; w waits for their changes.
func New(c volume.Cloud, w volume.Waiter, o Options) *Service {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Locks == nil {
		o.Locks = &inflight.Locks{}
	}
	if o.Recent == nil {
		o.Recent = &observe.Recent{}
	}
	s := &Service{
		cloud: c, volumes: observe.Volumes{Cloud: c, Waiter: w, Log: o.Log}, owner: o.Owner, log: o.Log, locks: o.Locks,
		zones: newZones(), quotas: newQuotaCache(o.ObserveQuotas), recent: o.Recent,
	}
	s.resource = &idempotent.Resource[volume.Volume]{
		Noun: "volume", List: c.VolumesNamed, Facts: s.facts, AwaitDeletable: s.removable, Log: o.Log, CountDuplicate: o.CountDuplicate,
		Delete:       func(ctx context.Context, v volume.Volume) error { return c.DeleteVolume(ctx, v.ID) },
		AwaitDeleted: func(ctx context.Context, v volume.Volume) error { return s.volumes.AwaitDeleted(ctx, v.ID) },
	}
	return s
}

// facts are what the rule for creates must know about a volume. Cinder replaces the metadata of a restored volume, so its description has
// the time of the create too.
func (s *Service) facts(v volume.Volume) idempotent.Facts {
	_, sent, restored := contract.ParseDescriptionOfRestored(v.Description)
	if !restored {
		sent = idempotent.ParseSent(v.Metadata)
	}
	return idempotent.Facts{
		ID: string(v.ID), Name: v.Name, Status: string(v.Status), CreatedAt: v.CreatedAt, SentAt: sent,
		CreatedForName: s.createdForName(v), InUse: len(v.Attachments) > 0, BeingDeleted: v.Status.Meaning().Create == volume.BeingDeleted,
	}
}

// Get reads one volume. NotFound where there is none.
func (s *Service) Get(ctx context.Context, id volume.ID) (volume.Volume, error) {
	return s.volumes.Get(ctx, id)
}

// ours reports whether this driver created v, for this cluster and for the request that v is named for, and nothing uses v.
func (s *Service) ours(v volume.Volume) bool { return s.createdForName(v) && len(v.Attachments) == 0 }

// createdForName reports whether this driver created v, for this cluster and for the request that v is named for. The metadata says so,
// or the description where a restore replaced the metadata.
func (s *Service) createdForName(v volume.Volume) bool {
	token, _, restored := contract.ParseDescriptionOfRestored(v.Description)
	return s.owner.Marked(v.Name, v.Metadata) || restored && token == s.owner.Token(v.Name)
}

// createMetadata is the metadata of a new volume.
func (s *Service) createMetadata(spec CreateSpec) map[string]string {
	all := s.owner.Metadata(spec.Name, spec.Metadata)
	if spec.Shared {
		all[contract.MetadataShared] = "true"
	}
	return all
}
