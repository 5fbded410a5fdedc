package attach

import (
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// action is the next step of an attach or a detach after an observation. attachCall.send and detachCall.send carry out send and done,
// call.carryOut the others. The zero action only waits, so what no rule matches is safe: an attachment status that a later Cinder adds.
type action int

const (
	waitForChange     action = iota // a request is in progress: wait until the volume changes
	observeFirst                    // the volume alone does not decide: read its attachments and Nova
	done                            // Cinder and Nova show what the call asked for
	send                            // send the request to Nova
	waitForNova                     // Cinder shows no attachment, and Nova lists one: read again, and fail if it stays so
	deleteStale                     // no server uses the attachment: delete it if a second observation agrees
	conflict                        // Cinder and Nova disagree: fail if a second observation agrees
	statusForbids                   // the volume status forbids it until an administrator resets the status
	attachedElsewhere               // the volume is attached to another server, or an attach to one is in progress
	volumeDeleting                  // Cinder is deleting the volume
	serverNotFound                  // Nova has no such server
	serverOffloaded                 // the server is shelved and has no host: it gets the volume once somebody unshelves it
	novaStateUnknown                // the driver cannot read what Nova has

	actionCount int = iota // no action; new actions go above
)

var actionNames = [actionCount]string{
	waitForChange:     "wait for change",
	observeFirst:      "observe",
	done:              "done",
	send:              "send",
	waitForNova:       "wait for Nova",
	deleteStale:       "delete stale",
	conflict:          "conflict",
	statusForbids:     "status forbids",
	attachedElsewhere: "attached elsewhere",
	volumeDeleting:    "volume deleting",
	serverNotFound:    "server not found",
	serverOffloaded:   "server offloaded",
	novaStateUnknown:  "Nova state unknown",
}

func (a action) String() string { return actionNames[a] }

// novaState is what Nova shows of a volume and a server. readNovaState chooses it. The driver reads the status and task of the server only
// where Nova lacks an attachment that Cinder shows, or lists a reservation. So no other state depends on them.
type novaState int

const (
	novaNotRead         novaState = iota // the driver has read the volume only
	novaListed                           // Nova lists the volume for the server, whatever the status of the server
	novaListedOffloaded                  // Nova lists it, and the server is shelved and has no host: Cinder keeps a reservation, and no attach is in progress
	novaNotListed                        // Nova does not list it. Where Cinder shows an attachment, the server is idle too: see idleStatuses
	novaServerChanging                   // Nova does not list it, but builds, moves or deletes the server: the list may change
	novaServerGone                       // Nova answers 404 for the server
	novaUnknown                          // Nova denies access, does not answer, or does not know the state of the server

	novaStateCount int = iota // no state; new states go above
)

var novaStateNames = [novaStateCount]string{
	novaNotRead:         "not read",
	novaListed:          "listed",
	novaListedOffloaded: "listed, server offloaded",
	novaNotListed:       "not listed",
	novaServerChanging:  "server changing",
	novaServerGone:      "server gone",
	novaUnknown:         "unknown",
}

func (n novaState) String() string { return novaStateNames[n] }

// volumeState is what the status of a volume says about attaches and detaches.
type volumeState int

const (
	stateChanging     volumeState = iota // another operation is in progress, or a later Cinder has added the status
	stateAvailable                       // attached nowhere
	stateInUse                           // attached, and its type allows one server
	stateShared                          // attached, and its type allows several servers
	stateInTransition                    // an attach or a detach is in progress
	stateDeleting                        // Cinder is deleting it
	stateStuck                           // it stays so until an administrator resets the status
)

func stateOf(v volume.Volume) volumeState {
	switch v.Status {
	case volume.Reserved, volume.Attaching, volume.Detaching:
		return stateInTransition
	}
	switch v.Status.Meaning().Attach {
	case volume.Proceed:
		return stateAvailable
	case volume.CheckAttachments:
		if v.Multiattach {
			return stateShared
		}
		return stateInUse
	case volume.BeingDeleted:
		return stateDeleting
	case volume.Refuse:
		return stateStuck
	}
	return stateChanging
}

// rule is the action in the situations that it matches. An empty list matches everything.
type rule struct {
	volume     []volumeState
	attachment []volume.AttachStatus
	nova       []novaState
	next       action
}

func (r rule) matches(seen observation) bool {
	return among(r.volume, stateOf(seen.volume)) && among(r.attachment, seen.attachment.Status) && among(r.nova, seen.nova)
}

func among[T comparable](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}

// rules are the whole decision: the first that matches counts. testdata/actions.txt shows the action in every situation.
type rules []rule

func (all rules) next(seen observation) action {
	for _, r := range all {
		if r.matches(seen) {
			return r.next
		}
	}
	return waitForChange
}

type (
	volumeIs     = []volumeState
	attachmentIs = []volume.AttachStatus
	novaIs       = []novaState
)

// Groups of attachment statuses that mean the same for most rules.
var (
	// notAttached is also the status where Cinder hides attachments: the volume itself lists every attachment that is attached.
	notAttached = attachmentIs{volume.AttachmentNone, volume.AttachmentHidden}
	// reservation is what Cinder shows of a volume whose server is shelved and has no host. Nova has replaced the attachment
	// (_terminate_volume_connections in compute/manager.py, Zed to 2026.1).
	reservation = attachmentIs{volume.AttachmentReserved, volume.AttachmentHidden}
	// incomplete attachments have never become attached. Nova creates its own record before Cinder's, and deletes them in the reverse order
	// (compute/api.py and compute/manager.py of Nova 26). So such an attachment is stale if Nova does not list the volume and the server is
	// idle. A failed attach left it, and no server uses the volume.
	incomplete = attachmentIs{volume.AttachmentReserved, volume.AttachmentAttaching, volume.AttachmentErrorAttaching}
	// complete attachments have been attached. That Nova does not list the volume proves nothing: the guest may still have the disk. The driver
	// deletes such an attachment only once the server is gone.
	complete = attachmentIs{volume.AttachmentAttached, volume.AttachmentDetaching, volume.AttachmentErrorDetaching}
)

var attachRules = rules{
	{volume: volumeIs{stateDeleting}, next: volumeDeleting},
	{volume: volumeIs{stateStuck}, next: statusForbids},
	{volume: volumeIs{stateChanging}, next: waitForChange},

	// The volume alone: an available one is attached nowhere, and one that is in use without this server is not attached here.
	{volume: volumeIs{stateAvailable}, nova: novaIs{novaNotRead}, next: send},
	{volume: volumeIs{stateInUse}, attachment: notAttached, nova: novaIs{novaNotRead}, next: attachedElsewhere},
	{volume: volumeIs{stateShared}, attachment: notAttached, nova: novaIs{novaNotRead}, next: send},
	{nova: novaIs{novaNotRead}, next: observeFirst},

	{nova: novaIs{novaServerGone}, next: serverNotFound},
	{volume: volumeIs{stateInUse, stateShared, stateInTransition}, attachment: reservation, nova: novaIs{novaListedOffloaded}, next: serverOffloaded},
	{volume: volumeIs{stateInTransition}, attachment: notAttached, nova: novaIs{novaListed}, next: waitForChange},
	{attachment: notAttached, nova: novaIs{novaListed, novaListedOffloaded}, next: waitForNova},
	{volume: volumeIs{stateInUse, stateShared}, attachment: attachmentIs{volume.AttachmentAttached}, nova: novaIs{novaListed, novaUnknown}, next: done},
	{volume: volumeIs{stateAvailable}, attachment: attachmentIs{volume.AttachmentAttached}, nova: novaIs{novaUnknown}, next: send},
	{volume: volumeIs{stateInTransition}, attachment: attachmentIs{volume.AttachmentAttached}, nova: novaIs{novaUnknown}, next: waitForChange},
	{nova: novaIs{novaUnknown}, next: novaStateUnknown},
	{volume: volumeIs{stateAvailable}, next: send}, // Nova can reserve an available volume although a failed attachment exists
	{volume: volumeIs{stateInUse}, attachment: notAttached, next: attachedElsewhere},
	{volume: volumeIs{stateShared}, attachment: notAttached, next: send},
	{attachment: incomplete, nova: novaIs{novaNotListed}, next: deleteStale},
	{attachment: complete, nova: novaIs{novaNotListed}, next: conflict},
}

// detachRules send a detach and delete an attachment only where the status of the volume allows it. Nova can detach only a volume that is in
// use, unless the server has no host: then Nova deletes the reservation in every status. When Cinder deletes an attachment, it computes the volume status from those that are left. That would hide an error, or interfere with
// another operation.
var detachRules = rules{
	// The volume alone: where Cinder shows a completed attachment, the answer of Nova to the request says whether Nova has it too.
	{volume: volumeIs{stateInUse, stateShared}, attachment: attachmentIs{volume.AttachmentAttached}, nova: novaIs{novaNotRead}, next: send},
	{nova: novaIs{novaNotRead}, next: observeFirst},

	{nova: novaIs{novaUnknown}, next: novaStateUnknown},
	{volume: volumeIs{stateInUse, stateShared, stateInTransition}, attachment: reservation, nova: novaIs{novaListedOffloaded}, next: send},
	{volume: volumeIs{stateInTransition}, attachment: notAttached, nova: novaIs{novaListed}, next: waitForChange},
	{attachment: notAttached, nova: novaIs{novaListed, novaListedOffloaded}, next: waitForNova},
	// Cinder hides what reserves the volume. It may be a reservation of this server that nobody else would end, or an attach to another server.
	{volume: volumeIs{stateInTransition}, attachment: attachmentIs{volume.AttachmentHidden}, nova: novaIs{novaServerChanging}, next: waitForChange},
	{volume: volumeIs{stateInTransition}, attachment: attachmentIs{volume.AttachmentHidden}, next: conflict},
	{attachment: notAttached, next: done},
	{attachment: complete, nova: novaIs{novaNotListed}, next: conflict},
	{nova: novaIs{novaServerChanging}, next: waitForChange},
	{attachment: incomplete, nova: novaIs{novaListed}, next: waitForChange},
	{attachment: attachmentIs{volume.AttachmentDetaching}, nova: novaIs{novaListed}, next: waitForChange},

	{volume: volumeIs{stateStuck}, next: statusForbids},
	{volume: volumeIs{stateAvailable}, nova: novaIs{novaListed, novaListedOffloaded}, next: statusForbids},
	{volume: volumeIs{stateInUse, stateShared}, attachment: attachmentIs{volume.AttachmentAttached, volume.AttachmentErrorDetaching}, nova: novaIs{novaListed}, next: send},
	{volume: volumeIs{stateInUse, stateShared, stateAvailable, stateInTransition}, attachment: complete, nova: novaIs{novaServerGone}, next: deleteStale},
	{volume: volumeIs{stateInUse, stateShared, stateAvailable, stateInTransition}, attachment: incomplete, nova: novaIs{novaServerGone, novaNotListed}, next: deleteStale},
}
