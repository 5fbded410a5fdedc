package volume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// Options are who the driver is in a cloud.
type Options struct {
	Driver  string       // the driver's name
	Cluster string       // the cluster's id, which marks ownership in Cinder's metadata
	Log     *slog.Logger // for what no answer can tell; nil discards
	// CountDuplicate counts something that has the name of another and that the driver does not remove: a "volume", "snapshot" or
	// "backup"; nil counts nothing.
	CountDuplicate func(noun string)
	// SawQuotas is told the project's quotas whenever they are read; nil tells nobody.
	SawQuotas func(map[string]Quota)
}

// Volumes does to the volumes of one cloud what the RPCs ask for, and returns once the cloud shows that it is done.
type Volumes struct {
	cloud Cloud
	wait  Waiter
	o     Options
	locks locks
	zones *zones
	quotas  *quotaCache
	lanes lanes // at the servers

	errands      errands
	lostAttaches unconfirmed
	lostDetaches unconfirmed

	glimpses glimpses
	holdOffs holdOffs

	hidden atomic.Bool // it was logged that Cinder hides its records of attachments
}

// NewVolumes gives the volumes of the cloud c, whose changes w awaits.
func NewVolumes(c Cloud, w Waiter, o Options) *Volumes {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Volumes{cloud: c, wait: w, o: o, zones: newZones(), quotas: newQuotaCache(o.SawQuotas), lanes: lanes{width: laneWidth}}
}

// Get reads one volume. NotFound where there is none.
func (s *Volumes) Get(ctx context.Context, id ID) (Volume, error) {
	if !id.Exists() {
		return Volume{}, notFound(id)
	}
	return s.cloud.Volume(ctx, id)
}

// await waits for done. The error of a wait that did not end says what was waited for; the waiter adds what it saw last.
func (s *Volumes) await(ctx context.Context, id ID, what string, done func(v Volume, ok bool) (bool, error)) (Volume, error) {
	v, err := s.wait.Await(WithPurpose(ctx, what), id, done)
	if kind := KindOf(err); kind == DeadlineExceeded || kind == Canceled {
		return v, Errorf(kind, "waited for it to %s: %w", what, err)
	}
	return v, err
}

// awaitDeleted waits until Cinder answers 404 for a volume. Failed when its deletion ends in an error.
func (s *Volumes) awaitDeleted(ctx context.Context, id ID) error {
	v, err := s.await(ctx, id, "go", func(v Volume, ok bool) (bool, error) {
		return !ok || v.Status == "error_deleting", nil
	})
	if err != nil || v.Status != "error_deleting" {
		return err
	}
	return Errorf(Failed, "Cinder could not delete volume %s%s; it stays in status error_deleting until an administrator resets it",
		id, s.failureReason(ctx, id)).Op("delete")
}

// failureReason is why the cloud gave up on a volume, as the end of a clause; empty when it does not say.
func (s *Volumes) failureReason(ctx context.Context, id ID) string {
	reason, err := s.cloud.Failure(ctx, id)
	if err != nil {
		s.o.Log.WarnContext(ctx, "cannot read Cinder's messages about a volume", "volume", id, "error", err)
		return ""
	}
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// token is that of a request for a volume: the same for every retry, also from another replica.
func (s *Volumes) token(name string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{s.o.Driver, s.o.Cluster, name}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// ours reports whether v was made by this driver, for this cluster, for the request it is named for, and nobody uses it. The metadata
// says so, or the description where a restore replaced the metadata.
func (s *Volumes) ours(v Volume) bool { return s.createdForName(v) && len(v.Attachments) == 0 }

// createdForName reports whether this driver created v, for this cluster and for the request that v is named for.
func (s *Volumes) createdForName(v Volume) bool {
	token, _, restored := contract.ParseDescriptionOfRestored(v.Description)
	return s.hasOwnMetadata(v) || restored && token == s.token(v.Name)
}

// hasOwnMetadata reports whether the metadata of v says that it is ours.
func (s *Volumes) hasOwnMetadata(v Volume) bool {
	return v.Metadata[contract.MetadataRequest] == s.token(v.Name) && v.Metadata[contract.MetadataCluster] == s.o.Cluster
}

// metadata is what a new volume of that name carries.
func (s *Volumes) metadata(name string, more map[string]string) map[string]string {
	all := maps.Clone(more)
	if all == nil {
		all = map[string]string{}
	}
	all[contract.MetadataCluster] = s.o.Cluster
	all[contract.MetadataRequest] = s.token(name)
	return all
}

// createMetadata is the metadata of the volume of a wish.
func (s *Volumes) createMetadata(w CreateSpec) map[string]string {
	all := s.metadata(w.Name, w.Metadata)
	if w.Shared {
		all[contract.MetadataShared] = "true"
	}
	return all
}

func notFound(id ID) *Error { return Errorf(NotFound, "there is no volume %q", id) }

// holders lists what v is attached to, for a sentence.
func holders(v Volume) string {
	names := make([]string, len(v.Attachments))
	for i, a := range v.Attachments {
		names[i] = a.holder()
	}
	return strings.Join(names, ", ")
}
