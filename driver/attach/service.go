// Package attach attaches volumes to servers and detaches them.
//
// It observes Cinder and Nova, looks up the next action in one table (action.go), and acts, until both show what the caller asked for.
// A retry after any failure continues from what they show.
//
// The package keeps three things in memory. A restart, or a change to another replica, loses them:
//   - attaches and detaches whose outcome is unknown (unconfirmed.go). After the loss a detach does not wait for an attach that Nova may
//     still complete. An attach does not wait for a detach from the same server that Nova may still complete;
//   - requests to Nova whose callers have left (request.go). After the loss a new call does not wait for their end. Drain waits for them
//     before a clean exit;
//   - one queue for each server (queue.go). After the loss several requests for a server may reach Nova, which serialises them itself.
package attach

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Options are what the service shares with others. The zero value is a service of its own.
type Options struct {
	Locks          *inflight.Locks       // shared with every service of the same cloud; nil creates new locks
	Requests       *inflight.Calls       // shared in the same way
	ServerMetadata volume.ServerMetadata // a server that lacks it gets no volume; its own node may name any server
	Log            *slog.Logger          // nil discards
	Recent         *observe.Recent       // shared with the service that creates volumes; nil creates a new cache
}

// Service attaches and detaches the volumes of one cloud.
type Service struct {
	cloud   volume.Cloud
	volumes observe.Volumes
	recent  *observe.Recent
	log     *slog.Logger

	locks               *inflight.Locks
	queues              serverQueues
	requests            *inflight.Calls
	marked              markedServers
	unconfirmedAttaches unconfirmedRequests
	unconfirmedDetaches unconfirmedRequests

	warnedHidden atomic.Bool // the log already says that Cinder hides its attachments
}

// New returns the service for the volumes of cloud c. It waits for changes of volumes through w.
func New(c volume.Cloud, w volume.Waiter, o Options) *Service {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Locks = cmp.Or(o.Locks, &inflight.Locks{})
	o.Requests = cmp.Or(o.Requests, &inflight.Calls{})
	o.Recent = cmp.Or(o.Recent, &observe.Recent{})
	return &Service{cloud: c, volumes: observe.Volumes{Cloud: c, Waiter: w, Log: o.Log}, recent: o.Recent, log: o.Log, locks: o.Locks, requests: o.Requests, marked: markedServers{required: o.ServerMetadata}}
}

// Drain waits for requests whose callers have left, until ctx ends: its own, and those of every service that shares Options.Requests. The
// caller must have stopped all calls of these services.
func (s *Service) Drain(ctx context.Context) {
	if !s.requests.Drain(ctx) {
		s.log.WarnContext(ctx, "the driver exits before the cloud has answered a request; only the cloud will show the outcome")
	}
}
