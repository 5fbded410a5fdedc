// Package attach attaches volumes to servers and detaches them.
//
// It observes what Cinder and Nova say, looks up the next action in one table (action.go), and acts, until both show what was asked for.
// A retry after any failure continues from what they show.
//
// What the package keeps in memory, and what is lost with it when the process restarts or another replica takes over:
//   - attaches and detaches whose answers were lost (unconfirmed.go). A detach then does not wait for what Nova may still attach, and an
//     attach is sent although Nova may still carry out a detach from the same server;
//   - requests to Nova whose callers have left (call.go). A call does not wait for their end. Drain awaits them before a clean exit;
//   - queues by server (queue.go). Several requests may then be at work on one server, which Nova carries out one after the other.
package attach

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// AttachOptions are what the service shares with others.
type Options struct {
	Locks  *inflight.Locks // shared with every service for the same cloud; nil makes new ones
	Log    *slog.Logger    // for what no RPC answer can say; nil discards
	Recent *observe.Recent // shared with the service that creates volumes; nil makes a new one
}

// AttachService attaches and detaches the volumes of one cloud.
type Service struct {
	cloud   volume.Cloud
	volumes observe.Volumes
	log     *slog.Logger
	locks   *inflight.Locks
	queues  serverQueues

	calls        inflight.Calls
	lostAttaches unconfirmed
	lostDetaches unconfirmed

	recent *observe.Recent

	hidden atomic.Bool // the log says already that Cinder hides its attachments
}

// NewAttachService returns the service for the attachments of cloud c; w waits for changes of its volumes.
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
	return &Service{
		cloud: c, volumes: observe.Volumes{Cloud: c, Waiter: w, Log: o.Log}, log: o.Log, locks: o.Locks,
		queues: serverQueues{width: queueWidth}, recent: o.Recent,
	}
}

// Drain waits until ctx ends for requests whose callers have left; no call may come any more.
func (s *Service) Drain(ctx context.Context) {
	if !s.calls.Drain(ctx) {
		s.log.WarnContext(ctx, "the driver ends while Nova has not answered a request; what comes of it shows in Cinder only")
	}
}
