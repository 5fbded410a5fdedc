package volume

import (
	"context"
	"log/slog"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// Options say who the driver is in a cloud, and what the service shares with others.
type Options struct {
	Owner Owner
	Locks *Locks       // shared with every service for the same cloud; nil makes new ones
	Log   *slog.Logger // for what no RPC answer can say; nil discards
	// CountDuplicate counts a "volume" that has the name of another and that the driver does not delete; nil counts nothing.
	CountDuplicate func(noun string)
	// ObserveQuotas gets the project's quotas whenever they are read; nil ignores them.
	ObserveQuotas func(map[string]Quota)
	Recent        *Recent
}

// Volumes creates, changes and deletes the volumes of one cloud.
type Volumes struct {
	cloud   Cloud
	volumes Observer
	owner   Owner
	log     *slog.Logger
	locks   *Locks
	zones   *zones
	quotas  *quotaCache

	recent     *Recent
	holdOffs   holdOffs
	duplicates duplicateReporter
}

// NewVolumes returns the service for the volumes of cloud c; w waits for their changes.
func NewVolumes(c Cloud, w Waiter, o Options) *Volumes {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Locks == nil {
		o.Locks = &Locks{}
	}
	if o.Recent == nil {
		o.Recent = &Recent{}
	}
	return &Volumes{
		cloud: c, volumes: Observer{Cloud: c, Waiter: w, Log: o.Log}, owner: o.Owner, log: o.Log, locks: o.Locks,
		zones: newZones(), quotas: newQuotaCache(o.ObserveQuotas), recent: o.Recent, duplicates: duplicateReporter{o.Log, o.CountDuplicate},
	}
}

// Get reads one volume. NotFound where there is none.
func (s *Volumes) Get(ctx context.Context, id ID) (Volume, error) { return s.volumes.Get(ctx, id) }

// ours reports whether this driver created v, for this cluster and for the request that v is named for, and nothing uses v.
func (s *Volumes) ours(v Volume) bool { return s.createdForName(v) && len(v.Attachments) == 0 }

// createdForName reports whether this driver created v, for this cluster and for the request that v is named for. The metadata says so,
// or the description where a restore replaced the metadata.
func (s *Volumes) createdForName(v Volume) bool {
	token, _, restored := contract.ParseDescriptionOfRestored(v.Description)
	return s.owner.Marked(v.Name, v.Metadata) || restored && token == s.owner.Token(v.Name)
}

// createMetadata is the metadata of a new volume.
func (s *Volumes) createMetadata(spec CreateSpec) map[string]string {
	all := s.owner.Metadata(spec.Name, spec.Metadata)
	if spec.Shared {
		all[contract.MetadataShared] = "true"
	}
	return all
}
