package attach

import "github.com/cinder-csi/cinder-csi/driver/volume"

// action is the next step of an attach or a detach after an observation. attachCall.step and detachCall.step carry it out; there, an action
// without a case of its own ends the call with the error of statusForbids (attachError). The zero action only waits, so an attachment status
// that a later Cinder adds is safe.
type action int

const (
	waitForChange     action = iota // a request is in progress: wait until the volume changes
	done                            // Cinder and Nova show what the call asked for
	send                            // send the request to Nova
	waitForNova                     // Cinder has finished and Nova has not: read again soon
	deleteStale                     // no server uses the attachment: delete it if a second observation agrees
	conflict                        // Cinder and Nova disagree: fail if a second observation agrees
	statusForbids                   // the volume status forbids it until an administrator resets the status
	attachedElsewhere               // the volume is attached to another server, or an attach to one is in progress
	volumeDeleting                  // Cinder is deleting the volume
	serverNotFound                  // Nova has no such server
	novaStateUnknown                // the driver cannot read what Nova has

	actionCount int = iota // no action; new actions go above
)

var actionNames = [actionCount]string{
	waitForChange:     "wait for change",
	done:              "done",
	send:              "send",
	waitForNova:       "wait for Nova",
	deleteStale:       "delete stale",
	conflict:          "conflict",
	statusForbids:     "status forbids",
	attachedElsewhere: "attached elsewhere",
	volumeDeleting:    "volume deleting",
	serverNotFound:    "server not found",
	novaStateUnknown:  "Nova state unknown",
}

func (a action) String() string { return actionNames[a] }

// novaState is what Nova shows of a volume and a server. readNovaState chooses it. The driver reads the status and task of the server only
// where Cinder shows an attachment that Nova does not list. So no other state depends on them.
type novaState int

const (
	novaListed         novaState = iota // Nova lists the volume for the server, whatever the status of the server
	novaNotListed                       // Nova does not list it. Where Cinder shows an attachment, the server is idle too: see idleStatuses
	novaServerChanging                  // Nova does not list it, but builds, moves or deletes the server: the list may change
	novaServerGone                      // Nova answers 404 for the server
	novaUnknown                         // Nova denies access, does not answer, or does not know the state of the server

	novaStateCount int = iota // no state; new states go above
)

var novaStateNames = [novaStateCount]string{
	novaListed:         "listed",
	novaNotListed:      "not listed",
	novaServerChanging: "server changing",
	novaServerGone:     "server gone",
	novaUnknown:        "unknown",
}

func (n novaState) String() string { return novaStateNames[n] }

// actions are the next steps of an attach and of a detach.
type actions struct{ attach, detach action }

// attachmentActions has the actions for the status of Cinder's attachment to a server and for the state of Nova. The volume status may
// override them (attachAction, detachAction).
//
// Nova creates its own record before Cinder's, and deletes them in the reverse order (compute/api.py and compute/manager.py of Nova 26).
// So a reserved or attaching attachment is stale if Nova does not list the volume and the server is idle. A failed attach left it, and no
// server uses the volume. This does not prove that an attached one is stale: the guest may still have the disk. The driver deletes that
// one only once the server is gone.
var attachmentActions = map[volume.AttachStatus]map[novaState]actions{
	volume.AttachmentNone:           notAttached,
	volume.AttachmentHidden:         notAttached, // the volume itself lists every attachment that is attached
	volume.AttachmentReserved:       attachIncomplete,
	volume.AttachmentAttaching:      attachIncomplete,
	volume.AttachmentErrorAttaching: attachIncomplete,
	volume.AttachmentAttached: {
		novaListed:         {done, send},
		novaNotListed:      {conflict, conflict},
		novaServerChanging: {waitForChange, waitForChange},
		novaServerGone:     {serverNotFound, deleteStale},
		novaUnknown:        {done, novaStateUnknown},
	},
	volume.AttachmentDetaching: {
		novaListed:         {waitForChange, waitForChange},
		novaNotListed:      {conflict, conflict},
		novaServerChanging: {waitForChange, waitForChange},
		novaServerGone:     {serverNotFound, deleteStale},
		novaUnknown:        {novaStateUnknown, novaStateUnknown},
	},
	volume.AttachmentErrorDetaching: {
		novaListed:         {waitForChange, send},
		novaNotListed:      {conflict, conflict},
		novaServerChanging: {waitForChange, waitForChange},
		novaServerGone:     {serverNotFound, deleteStale},
		novaUnknown:        {novaStateUnknown, novaStateUnknown},
	},
}

// notAttached are the actions where Cinder shows no attachment to the server.
var notAttached = map[novaState]actions{
	novaListed:         {waitForNova, waitForNova},
	novaNotListed:      {attachedElsewhere, done},
	novaServerChanging: {attachedElsewhere, done},
	novaServerGone:     {serverNotFound, done},
	novaUnknown:        {novaStateUnknown, novaStateUnknown},
}

// attachIncomplete are the actions where Cinder shows an attachment that never became attached.
var attachIncomplete = map[novaState]actions{
	novaListed:         {waitForChange, waitForChange},
	novaNotListed:      {deleteStale, deleteStale},
	novaServerChanging: {waitForChange, waitForChange},
	novaServerGone:     {serverNotFound, deleteStale},
	novaUnknown:        {novaStateUnknown, novaStateUnknown},
}

// attachAction returns the next step of an attach.
func attachAction(status volume.Status, attachment volume.AttachStatus, nova novaState) action {
	next := attachmentActions[attachment][nova].attach
	switch meaning := status.Meaning().Attach; {
	case meaning == volume.BeingDeleted:
		return volumeDeleting
	case meaning == volume.Refuse:
		return statusForbids
	case meaning == volume.Proceed && (next == waitForNova || next == serverNotFound || next == novaStateUnknown):
		return next
	case meaning == volume.Proceed: // Nova can reserve an available volume although a failed attachment exists
		return send
	case meaning == volume.Wait && !inTransition(status), next == done && status != volume.InUse:
		return waitForChange
	}
	return next
}

// detachAction returns the next step of a detach. Nova can detach only a volume that is in use. When Cinder deletes an attachment, it
// computes the volume status from those that are left. That would hide an error, or interfere with another operation. So send
// and deleteStale depend on the volume status. Any other action is returned in every status: add one that changes the cloud to the conditions
// below, and to TestNoActionIsHarmful.
func detachAction(status volume.Status, attachment volume.AttachStatus, nova novaState) action {
	next := attachmentActions[attachment][nova].detach
	switch {
	case next != send && next != deleteStale, status == volume.InUse, next == deleteStale && (inTransition(status) || status == volume.Available):
		return next
	case status.Meaning().Attach == volume.Wait, status.Meaning().Attach == volume.BeingDeleted:
		return waitForChange
	}
	return statusForbids
}

// inTransition reports whether the status says that an attach or a detach is in progress.
func inTransition(status volume.Status) bool {
	return status == volume.Reserved || status == volume.Attaching || status == volume.Detaching
}
