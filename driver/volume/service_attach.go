package volume

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// AttachOptions are what the service shares with others.
type AttachOptions struct {
	Locks  *Locks       // shared with every service for the same cloud; nil makes new ones
	Log    *slog.Logger // for what no RPC answer can say; nil discards
	Recent *Recent      // shared with the service that creates volumes; nil makes a new one
}

// AttachService attaches and detaches the volumes of one cloud.
type AttachService struct {
	cloud   Cloud
	volumes Observer
	log     *slog.Logger
	locks   *Locks
	queues  serverQueues

	calls        Calls
	lostAttaches unconfirmed
	lostDetaches unconfirmed

	recent *Recent

	hidden atomic.Bool // the log says already that Cinder hides its attachments
}

// NewAttachService returns the service for the attachments of cloud c; w waits for changes of its volumes.
func NewAttachService(c Cloud, w Waiter, o AttachOptions) *AttachService {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Locks == nil {
		o.Locks = &Locks{}
	}
	if o.Recent == nil {
		o.Recent = &Recent{}
	}
	return &AttachService{
		cloud: c, volumes: Observer{Cloud: c, Waiter: w, Log: o.Log}, log: o.Log, locks: o.Locks,
		queues: serverQueues{width: queueWidth}, recent: o.Recent,
	}
}

// Drain waits until ctx ends for requests whose callers have left; no call may come any more.
func (s *AttachService) Drain(ctx context.Context) {
	if !s.calls.Drain(ctx) {
		s.log.WarnContext(ctx, "the driver ends while Nova has not answered a request; what comes of it shows in Cinder only")
	}
}
