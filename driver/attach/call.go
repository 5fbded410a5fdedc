package attach

import (
	"context"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// call is what an attach and a detach at one server have in common. They observe, look the next action up in their rules, and act.
type call struct {
	*Service
	lock   *inflight.Work
	verb   string // "attach" or "detach"
	rules  rules
	server volume.ServerID

	volume     volume.Volume // as read last
	observeAll bool          // Nova has refused a request, or the volume alone does not show the effect of one
	refusal    error         // of Nova, although the observation before it allowed the request
	before     confirmation  // an observation that has to be confirmed
	novaWait   time.Duration // how long the last wait for Nova took
}

// relock locks the volume for the next observation, and for the write that may follow it. It reads the volume again if another call has changed
// it while this one waited without the lock.
func (c *call) relock(ctx context.Context) error {
	changed, err := c.lock.Lock()
	if err == nil && changed {
		c.volume, err = c.cloud.Volume(ctx, c.volume.ID)
	}
	return err
}

// observeNext returns the next action and the observation that it rests on. It reads attachments and Nova only where the rules need them.
func (c *call) observeNext(ctx context.Context) (observation, action, error) {
	if seen := shown(c.volume, c.server); !c.observeAll {
		if next := c.rules.next(seen); next != observeFirst {
			return seen, next, nil
		}
	}
	seen, err := c.observe(ctx, c.volume, c.server)
	return seen, c.rules.next(seen), err
}

// carryOut carries out an action that sends no request to Nova: it waits, deletes a stale attachment, or ends the call with an error.
func (c *call) carryOut(ctx context.Context, seen observation, next action) (err error) {
	switch next {
	case waitForChange:
		c.refusal = nil
		c.lock.Unlock()
		c.volume, err = c.awaitChange(ctx, seen, "become "+c.verb+"able")
	case waitForNova:
		c.refusal = nil
		c.lock.Unlock()
		c.volume, err = c.awaitNova(ctx, seen)
	case deleteStale, conflict:
		if !c.before.confirmed(seen) {
			c.lock.Unlock()
			c.volume, err = c.readAfter(ctx, seen, staleConfirmInterval)
			break
		}
		c.volume, err = c.resolveStale(ctx, &c.before, seen, next)
	default:
		err = c.failure(ctx, seen, next)
	}
	return err
}

// awaitNova reads the volume again after a time that doubles. Conflict where a second observation, at least staleConfirmInterval later, is the same:
// Nova removes a volume from its list some 0.1 s after Cinder does. An attach that may still complete explains the list.
func (c *call) awaitNova(ctx context.Context, seen observation) (volume.Volume, error) {
	if c.before.confirmed(seen) && c.unconfirmedAttaches.remaining(seen.volume.ID, c.server) <= 0 {
		return volume.Volume{}, listedByNovaOnly(seen)
	}
	c.novaWait = min(max(2*c.novaWait, novaPollInterval), staleConfirmInterval)
	return c.readAfter(ctx, seen, c.novaWait)
}

// failure is the error of an action that ends a call.
func (c *call) failure(ctx context.Context, seen observation, end action) error {
	v := seen.volume
	if end == attachedElsewhere && len(v.Attachments) == 0 { // after a detach by force, or a status that somebody set
		return volume.Errorf(volume.Conflict, "volume %s is in status %s; %s. If no server and no host uses it, an administrator can run: openstack volume set --state available %s",
			v.ID, v.Status, seen, v.ID).Cause(cause.VolumeError)
	}
	switch end {
	case attachedElsewhere:
		return volume.Errorf(volume.Conflict, "volume %s is attached to %s and its volume type is not multiattach; detach it there first", v.ID, v.Holders()).Cause(cause.AttachElsewhere)
	case volumeDeleting:
		return volume.Errorf(volume.NotFound, "volume %s cannot be attached to server %s: Cinder is deleting the volume", v.ID, seen.server).Cause(cause.VolumeMissing)
	case serverNotFound:
		return volume.NoServer(seen.server)
	case serverOffloaded:
		return volume.Errorf(volume.Conflict, "volume %s is reserved for server %s, which is shelved and has no host; the server gets the volume once somebody unshelves it", v.ID, seen.server).Cause(cause.ServerShelved)
	case novaStateUnknown:
		return volume.Errorf(volume.KindOf(seen.novaErr), "volume %s is %s; %s: %w", v.ID, v.Status, seen, seen.novaErr).Op(c.verb)
	}
	at := map[string]string{"attach": "to", "detach": "from"}[c.verb]
	return volume.Errorf(volume.Conflict, "volume %s is in status %s%s; Nova cannot %s it %s server %s until an administrator resets the status",
		v.ID, v.Status, c.volumes.FailureReason(ctx, v.ID), c.verb, at, seen.server).Cause(cause.VolumeError)
}
