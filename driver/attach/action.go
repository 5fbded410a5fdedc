package attach

import "github.com/cinder-csi/cinder-csi/driver/volume"

// action is what an attach or a detach does next, with what it has seen.
type action int

const (
	waitForChange     action = iota // something is under way: look again once the volume has changed
	done                            // it is as wanted
	send                            // Nova takes the request
	waitForNova                     // Cinder is done and Nova is not: look again soon
	deleteStale                     // nothing stands behind Cinder's record: delete it, if a second look agrees
	conflict                        // Cinder and Nova disagree for good, if a second look agrees: an administrator must act
	statusForbids                   // the volume's status forbids it until an administrator acts
	attachedElsewhere               // the volume is at another server, or on its way there
	volumeDeleting                  // the volume is on its way out
	serverNotFound                  // there is no such server
	novaSilent                      // Nova does not say
)

var actionNames = [...]string{"pause", "finish", "ask", "catch up", "heal", "stuck", "forbidden", "elsewhere", "no volume", "no server", "unsure"}

func (m action) String() string { return actionNames[m] }

// novaState is what Nova says of a volume and a server.
type novaState int

const (
	novaLists          novaState = iota // Nova's list for the server has the volume
	novaOmits                           // it has not, and the server is at rest
	novaServerChanging                  // it has not, but the server is being built, moved or deleted: its list may be about to change
	novaServerGone                      // Nova answers 404 for the server
	novaUnknown                         // Nova refuses to say, cannot be reached, or does not know itself
)

var novaStateNames = [...]string{"listed", "unlisted", "busy", "gone", "unknown"}

func (o novaState) String() string { return novaStateNames[o] }

// actions are what an attach and a detach do.
type actions struct{ attach, detach action }

// What Cinder's record of a volume at a server and Nova's list for that server mean together, for a volume whose status lets the
// attachments decide.
//
// Nova makes its own record first and Cinder's after it, and ends them in the other order (compute/api.py and compute/manager.py of
// Nova 26). So a record that is reserved or attaching while Nova's list does not have the volume, and the server is at rest, is what
// an attach has left that failed when Cinder could not be told: no server uses it. One that is attached is another matter: a guest
// may still have the disk. It is deleted only with its server gone.
var attachmentActions = map[volume.AttachStatus]map[novaState]actions{
	volume.AttachmentNone: {
		novaLists: {waitForNova, waitForNova}, novaOmits: {attachedElsewhere, done}, novaServerChanging: {attachedElsewhere, done}, novaServerGone: {serverNotFound, done}, novaUnknown: {novaSilent, novaSilent},
	},
	volume.AttachmentReserved: {
		novaLists: {waitForChange, waitForChange}, novaOmits: {deleteStale, deleteStale}, novaServerChanging: {waitForChange, waitForChange}, novaServerGone: {serverNotFound, deleteStale}, novaUnknown: {novaSilent, novaSilent},
	},
	volume.AttachmentAttaching: {
		novaLists: {waitForChange, waitForChange}, novaOmits: {deleteStale, deleteStale}, novaServerChanging: {waitForChange, waitForChange}, novaServerGone: {serverNotFound, deleteStale}, novaUnknown: {novaSilent, novaSilent},
	},
	volume.AttachmentAttached: {
		novaLists: {done, send}, novaOmits: {conflict, conflict}, novaServerChanging: {waitForChange, waitForChange}, novaServerGone: {serverNotFound, deleteStale}, novaUnknown: {done, novaSilent},
	},
	volume.AttachmentDetaching: {
		novaLists: {waitForChange, waitForChange}, novaOmits: {conflict, conflict}, novaServerChanging: {waitForChange, waitForChange}, novaServerGone: {serverNotFound, deleteStale}, novaUnknown: {novaSilent, novaSilent},
	},
	volume.AttachmentErrorAttaching: {
		novaLists: {waitForChange, waitForChange}, novaOmits: {deleteStale, deleteStale}, novaServerChanging: {waitForChange, waitForChange}, novaServerGone: {serverNotFound, deleteStale}, novaUnknown: {novaSilent, novaSilent},
	},
	volume.AttachmentErrorDetaching: {
		novaLists: {waitForChange, send}, novaOmits: {conflict, conflict}, novaServerChanging: {waitForChange, waitForChange}, novaServerGone: {serverNotFound, deleteStale}, novaUnknown: {novaSilent, novaSilent},
	},
	volume.AttachmentHidden: { // the volume does not show the server, or the attachment would be attached
		novaLists: {waitForNova, waitForNova}, novaOmits: {attachedElsewhere, done}, novaServerChanging: {attachedElsewhere, done}, novaServerGone: {serverNotFound, done}, novaUnknown: {novaSilent, novaSilent},
	},
}

// attachAction is what an attach does about a volume in a status, whose record for the server and whose place in Nova's list are these.
func attachAction(status volume.Status, attachment volume.AttachStatus, nova novaState) action {
	next := attachmentActions[attachment][nova].attach
	switch meaning := status.Meaning().Attach; {
	case meaning == volume.BeingDeleted:
		return volumeDeleting
	case meaning == volume.Refuse:
		return statusForbids
	case meaning == volume.Proceed && next == waitForNova, meaning == volume.Proceed && (next == serverNotFound || next == novaSilent):
		return next
	case meaning == volume.Proceed: // a record of an error keeps no volume from being reserved
		return send
	case meaning == volume.Wait && !inTransition(status), next == done && status != volume.InUse:
		return waitForChange
	}
	return next
}

// detachAction is what a detach does. Cinder lets Nova detach what is in use, and nothing else; and when a record goes, it makes the
// volume's status anew from those that are left, which would hide an error or end somebody else's work.
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

// inTransition reports whether a status says that a volume is on its way to a server or from one.
func inTransition(status volume.Status) bool {
	return status == volume.Reserved || status == volume.Attaching || status == volume.Detaching
}
