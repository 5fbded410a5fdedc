package volume

// move is what an attach or a detach does next, with what it has seen.
type move int

const (
	pause      move = iota // something is under way: look again once the volume has changed
	finish                 // it is as wanted
	ask                    // Nova takes the request
	catchUp                // Cinder is done and Nova is not: look again soon
	heal                   // nothing stands behind Cinder's record: delete it, if a second look agrees
	stuck                  // Cinder and Nova disagree for good, if a second look agrees: an administrator must act
	forbidden              // the volume's status forbids it until an administrator acts
	elsewhere              // the volume is at another server, or on its way there
	noVolume               // the volume is on its way out
	noSuchHost             // there is no such server
	unsure                 // Nova does not say
)

var moveNames = [...]string{"pause", "finish", "ask", "catch up", "heal", "stuck", "forbidden", "elsewhere", "no volume", "no server", "unsure"}

func (m move) String() string { return moveNames[m] }

// opinion is what Nova says of a volume and a server.
type opinion int

const (
	listed   opinion = iota // Nova's list for the server has the volume
	unlisted                // it has not, and the server is at rest
	busy                    // it has not, but the server is being built, moved or deleted: its list may be about to change
	gone                    // Nova answers 404 for the server
	unknown                 // Nova refuses to say, cannot be reached, or does not know itself
)

var opinionNames = [...]string{"listed", "unlisted", "busy", "gone", "unknown"}

func (o opinion) String() string { return opinionNames[o] }

// moves are what an attach and a detach do.
type moves struct{ attach, detach move }

// What Cinder's record of a volume at a server and Nova's list for that server mean together, for a volume whose status lets the
// attachments decide.
//
// Nova makes its own record first and Cinder's after it, and ends them in the other order (compute/api.py and compute/manager.py of
// Nova 26). So a record that is reserved or attaching while Nova's list does not have the volume, and the server is at rest, is what
// an attach has left that failed when Cinder could not be told: no server uses it. One that is attached is another matter: a guest
// may still have the disk. It is deleted only with its server gone.
var rowMoves = map[AttachStatus]map[opinion]moves{
	AttachmentNone: {
		listed: {catchUp, catchUp}, unlisted: {elsewhere, finish}, busy: {elsewhere, finish}, gone: {noSuchHost, finish}, unknown: {unsure, unsure},
	},
	AttachmentReserved: {
		listed: {pause, pause}, unlisted: {heal, heal}, busy: {pause, pause}, gone: {noSuchHost, heal}, unknown: {unsure, unsure},
	},
	AttachmentAttaching: {
		listed: {pause, pause}, unlisted: {heal, heal}, busy: {pause, pause}, gone: {noSuchHost, heal}, unknown: {unsure, unsure},
	},
	AttachmentAttached: {
		listed: {finish, ask}, unlisted: {stuck, stuck}, busy: {pause, pause}, gone: {noSuchHost, heal}, unknown: {finish, unsure},
	},
	AttachmentDetaching: {
		listed: {pause, pause}, unlisted: {stuck, stuck}, busy: {pause, pause}, gone: {noSuchHost, heal}, unknown: {unsure, unsure},
	},
	AttachmentErrorAttaching: {
		listed: {pause, pause}, unlisted: {heal, heal}, busy: {pause, pause}, gone: {noSuchHost, heal}, unknown: {unsure, unsure},
	},
	AttachmentErrorDetaching: {
		listed: {pause, ask}, unlisted: {stuck, stuck}, busy: {pause, pause}, gone: {noSuchHost, heal}, unknown: {unsure, unsure},
	},
	AttachmentHidden: { // the volume does not show the server, or the row would be attached
		listed: {catchUp, catchUp}, unlisted: {elsewhere, finish}, busy: {elsewhere, finish}, gone: {noSuchHost, finish}, unknown: {unsure, unsure},
	},
}

// attachMove is what an attach does about a volume in a status, whose record for the server and whose place in Nova's list are these.
func attachMove(status Status, row AttachStatus, nova opinion) move {
	next := rowMoves[row][nova].attach
	switch meaning := statuses[status].attach; {
	case meaning == leaving:
		return noVolume
	case meaning == refuse:
		return forbidden
	case meaning == proceed && next == catchUp, meaning == proceed && (next == noSuchHost || next == unsure):
		return next
	case meaning == proceed: // a record of an error keeps no volume from being reserved
		return ask
	case meaning == wait && !atServers(status), next == finish && status != InUse:
		return pause
	}
	return next
}

// detachMove is what a detach does. Cinder lets Nova detach what is in use, and nothing else; and when a record goes, it makes the
// volume's status anew from those that are left, which would hide an error or end somebody else's work.
func detachMove(status Status, row AttachStatus, nova opinion) move {
	next := rowMoves[row][nova].detach
	switch {
	case next != ask && next != heal, status == InUse, next == heal && (atServers(status) || status == Available):
		return next
	case statuses[status].attach == wait, statuses[status].attach == leaving:
		return pause
	}
	return forbidden
}

// atServers reports whether a status says that a volume is on its way to a server or from one.
func atServers(status Status) bool {
	return status == Reserved || status == Attaching || status == Detaching
}
