// Package provision creates, expands, modifies and deletes volumes, and reports their capacity and health.
//
// Create finds a volume by name or creates it, in the allowed zones one after the other. Every method returns once Cinder shows the result.
//
// The package keeps the volume zones of Cinder for one minute (zones.go) and the quotas of the project for ten seconds (capacity.go). After
// a restart it reads them again. It also keeps when it may send a restore (restore.go).
package provision

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Options are what a Service needs besides its cloud.
type Options struct {
	Owner    idempotent.Owner
	Locks    *inflight.Locks // shared with every service for the same cloud; nil makes new ones
	Requests *inflight.Calls // shared in the same way; the attach service drains them
	Log      *slog.Logger    // for what no RPC response can report; nil discards
	// CountDuplicate counts a "volume" that has the name of another and that the driver does not delete; nil counts nothing.
	CountDuplicate func(noun string)
	// ObserveQuotas gets the quotas of the project after each read; nil ignores them.
	ObserveQuotas func(map[string]volume.Quota)
	Recent        *observe.Recent // shared with the attach service for the same cloud; nil makes a new one
}

// Service creates, changes and deletes the volumes of one cloud.
type Service struct {
	cloud    volume.Cloud
	volumes  observe.Volumes
	owner    idempotent.Owner
	log      *slog.Logger
	locks    *inflight.Locks
	zones    *zoneCache
	quotas   *quotaCache
	recent   *observe.Recent
	restores restoreTurns
	resource *idempotent.Resource[volume.Volume]
}

// New returns the service for the volumes of a cloud. The waiter waits for their changes.
func New(cloud volume.Cloud, waiter volume.Waiter, o Options) *Service {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Locks = cmp.Or(o.Locks, &inflight.Locks{})
	o.Requests = cmp.Or(o.Requests, &inflight.Calls{})
	o.Recent = cmp.Or(o.Recent, &observe.Recent{})
	s := &Service{
		cloud: cloud, volumes: observe.Volumes{Cloud: cloud, Waiter: waiter, Log: o.Log}, owner: o.Owner, log: o.Log, locks: o.Locks,
		zones: &zoneCache{lock: make(chan struct{}, 1)}, quotas: newQuotaCache(o.ObserveQuotas), recent: o.Recent,
	}
	s.resource = &idempotent.Resource[volume.Volume]{
		Noun: "volume", List: cloud.VolumesNamed, Candidate: s.candidate, AwaitDeletable: s.awaitDeletable, Requests: o.Requests, Log: o.Log, CountDuplicate: o.CountDuplicate,
		ListCreated: func(ctx context.Context, since time.Time) ([]volume.Volume, bool, error) {
			return cloud.Select(ctx, volume.Selection{Created: since})
		},
		Read:         func(ctx context.Context, id string) (volume.Volume, error) { return cloud.Volume(ctx, volume.ID(id)) },
		Delete:       func(ctx context.Context, v volume.Volume) error { return cloud.DeleteVolume(ctx, v.ID) },
		AwaitDeleted: func(ctx context.Context, v volume.Volume) error { return s.volumes.AwaitDeleted(ctx, v.ID) },
	}
	return s
}

// candidate is what package idempotent must know about a volume. Cinder replaces the metadata of a restored volume, so its description holds the
// time of the create too.
func (s *Service) candidate(v volume.Volume) idempotent.Candidate {
	_, sent, restored := contract.ParseDescriptionOfRestored(v.Description)
	if !restored {
		sent = idempotent.ParseSent(v.Metadata)
	}
	return idempotent.Candidate{
		ID: string(v.ID), Name: v.Name, Status: string(v.Status), CreatedAt: v.CreatedAt, SentAt: sent,
		CreatedForName: s.createdForName(v), InUse: len(v.Attachments) > 0, BeingDeleted: v.Status.Meaning().Create == volume.BeingDeleted,
	}
}

// mayDelete reports whether a create may delete v, although no request names v by ID. This driver must have created v for the request of that
// name, and nothing must use v.
func (s *Service) mayDelete(v volume.Volume) bool {
	return s.createdForName(v) && len(v.Attachments) == 0
}

// createdForName reports whether this driver created v, for this cluster and for the request of that name. The metadata says so, or the
// description where a restore replaced the metadata.
func (s *Service) createdForName(v volume.Volume) bool {
	token, _, restored := contract.ParseDescriptionOfRestored(v.Description)
	return s.owner.Marked(v.Name, v.Metadata) || restored && token == s.owner.Token(v.Name)
}

func (s *Service) createMetadata(spec CreateSpec) map[string]string {
	metadata := s.owner.Metadata(spec.Name, spec.Metadata)
	if spec.Multiattach {
		metadata[contract.MetadataShared] = "true"
	}
	return metadata
}

// Get reads one volume. NotFound where the volume does not exist.
func (s *Service) Get(ctx context.Context, id volume.ID) (volume.Volume, error) {
	return s.volumes.Get(ctx, id)
}
