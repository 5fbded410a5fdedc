package histories

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// onItsWay is how long after the end of its RPC a request may still reach the cloud. The driver sends none after its caller has left.
const onItsWay = time.Second

// ledger is what the cloud must hold, and which request created each object.
type ledger struct {
	volumes   map[string]*owned     // by ID, between the OK of CreateVolume and the OK of DeleteVolume
	snapshots map[string]*owned     // likewise
	origin    map[string]*origin    // of every volume, snapshot and backup that was created, by ID
	served    map[string][]*process // which processes got a call for a name or an ID
	// undeletable are the volumes that Cinder failed to delete at least once.
	undeletable map[string]bool
	attaches    []*origin // attaches and detaches whose replies were lost
}

// owned is an object whose ID a sidecar knows.
type owned struct {
	name         string
	servers      []string // that the volume is published to
	inTransition []string // the servers with an attach or detach in progress
}

// origin is the request that caused an object, an attach or a detach.
type origin struct {
	process    *process
	what, name string // of an attach or detach: the volume
	server     string
	acted      time.Time
	lost       bool // no process got the reply
}

// createdTwice reports whether another process created something of the same name, and whether Cinder dates both to one second.
func (l *ledger) createdTwice(o *origin) (twice, oneSecond bool) {
	for _, other := range l.origin {
		if other.name == o.name && other.what == o.what && other.process != o.process {
			twice, oneSecond = true, oneSecond || other.acted.Unix() == o.acted.Unix()
		}
	}
	return twice, oneSecond
}

func (l *ledger) make() {
	l.volumes, l.snapshots, l.origin = map[string]*owned{}, map[string]*owned{}, map[string]*origin{}
	l.served, l.undeletable = map[string][]*process{}, map[string]bool{}
}

// acted notes that the cloud accepted a request that changes something.
func (w *world) acted(p *process, q request, id string, lost bool) {
	if q.class == "restore backup" && w.returned(q.restoredInto()) {
		w.violate("no restore overwrites a volume that a call has returned", "process %d: %s", p.number, q.object())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o := &origin{process: p, what: q.class, name: q.named(), acted: time.Now(), lost: lost}
	switch q.class {
	case "create volume", "create snapshot", "create backup":
		w.ledger.origin[id] = o
		w.names[id] = strings.TrimPrefix(q.class, "create ") + "(" + o.name + "#" + string(rune('a'+len(w.names)%26)) + ")"
	case "attach":
		o.server = q.path[1]
		w.ledger.attaches = append(w.ledger.attaches, o)
	case "detach":
		o.server, o.name = q.path[1], q.path[3]
		w.ledger.attaches = append(w.ledger.attaches, o)
	}
}

// returned reports whether a sidecar knows the ID of a volume.
func (w *world) returned(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ledger.volumes[id] != nil
}

// lost notes that the process did not get the reply to a request that the cloud has accepted.
func (w *world) lost(q request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := q.named()
	for _, o := range w.ledger.origin {
		if o.what == q.class && o.name == name && time.Since(o.acted) < 10*time.Minute {
			o.lost = true
		}
	}
	for _, o := range w.ledger.attaches {
		if o.what == q.class && (o.name == name || len(q.path) > 3 && o.name == q.path[3]) {
			o.lost = true
		}
	}
}

// guard checks each request that changes something. It may touch only an object that an RPC of this process names, or one with the name of
// a create in progress. The driver sent it at a time of its own: an RPC may end while the request is on its way to the cloud.
func (w *world) guard(p *process, q request, sent time.Time) {
	calls := w.callsOf(p)
	doing := func(op operation, fits func(c call) bool) bool {
		return slices.ContainsFunc(calls, func(c call) bool {
			return c.do == op && (c.ended.IsZero() || !c.ended.Before(sent) || !c.answered && time.Since(c.ended) <= onItsWay) && fits(c)
		})
	}
	allowed := false
	switch q.class {
	case "create volume":
		allowed = doing(createVolume, func(c call) bool { return c.name == q.named() })
	case "create snapshot", "create backup":
		allowed = doing(createSnapshot, func(c call) bool { return c.name == q.named() || strings.Contains(q.named(), c.name) })
	case "delete volume":
		allowed = doing(deleteVolume, func(c call) bool { return c.volume == q.path[1] }) || w.guardDuplicate(q.path[1], func(name string) bool {
			return doing(createVolume, func(c call) bool { return c.name == name })
		})
	case "restore backup":
		state, _ := w.sim.VolumeState(q.restoredInto())
		allowed = doing(createVolume, func(c call) bool { return c.name == state.Name })
	case "delete snapshot", "delete backup":
		// The driver creates a backup of a volume in use from a snapshot of the same name, and deletes both.
		allowed = doing(deleteSnapshot, func(c call) bool { return c.snapshot == q.path[1] || w.sameName(c.snapshot, q.path[1]) }) || w.guardDuplicate(q.path[1], func(name string) bool {
			return doing(createSnapshot, func(c call) bool { return strings.Contains(name, c.name) })
		})
	case "set volume metadata":
		state, _ := w.sim.VolumeState(q.path[1])
		allowed = doing(createVolume, func(c call) bool { return c.name == state.Name }) || doing(modify, func(c call) bool { return c.volume == q.path[1] })
	case "volume action os-extend":
		allowed = doing(expand, func(c call) bool { return c.volume == q.path[1] })
	case "volume action os-retype":
		allowed = doing(modify, func(c call) bool { return c.volume == q.path[1] })
	case "attach":
		allowed = doing(publish, func(c call) bool { return c.volume == q.named() && c.server == q.path[1] })
	case "detach":
		allowed = doing(unpublish, func(c call) bool { return c.volume == q.path[3] && c.server == q.path[1] })
	case "delete attachment":
		volume, server, ok := w.sim.AttachmentVolume(q.path[1])
		theirs := func(c call) bool { return c.volume == volume && c.server == server }
		allowed = !ok || doing(publish, theirs) || doing(unpublish, theirs)
	}
	if !allowed {
		w.violate("a request touches only what an RPC names", "process %d sends %s %s without an RPC for it", p.number, q.class, q.object())
	}
}

// guardDuplicate reports whether a volume, snapshot or backup may be deleted by a create of its name: no sidecar knows its ID.
func (w *world) guardDuplicate(id string, creating func(name string) bool) bool {
	w.mu.Lock()
	_, volume := w.ledger.volumes[id]
	_, snapshot := w.ledger.snapshots[id]
	o := w.ledger.origin[id]
	w.mu.Unlock()
	return !volume && !snapshot && o != nil && creating(o.name)
}

// sameName reports whether two objects were created under one name, and no sidecar knows the ID of the second.
func (w *world) sameName(id, other string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, b := w.ledger.origin[id], w.ledger.origin[other]
	return a != nil && b != nil && a.name == b.name && w.ledger.snapshots[other] == nil
}

// final reports whether a code ends a create for the sidecar (isFinalError in external-provisioner and external-snapshotter).
func final(code codes.Code) bool {
	switch code {
	case codes.OK, codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted:
		return false
	}
	return true
}

// checkNothingExists checks that no object of a name exists when a create of it ends with a final code.
func (w *world) checkNothingExists(c *call, code codes.Code) {
	for _, v := range w.sim.VolumeStates() {
		if v.Name == c.name && !w.exempt(v.ID) {
			w.violate("no final code while something exists", "%s answers %s while volume %s exists in status %s", c, code, v.ID, v.Status)
		}
	}
	for _, s := range w.sim.SnapshotStates() {
		if c.do == createSnapshot && strings.Contains(s.Name, c.name) && s.Status != "error" && !w.exempt(s.ID) {
			w.violate("no final code while something exists", "%s answers %s while %s exists in status %s", c, code, s.ID, s.Status)
		}
	}
}

// exempt reports whether an object is a duplicate that may stay. No process got the reply to its create, and either the process has ended,
// or another process got a call for the name. Two processes may also create one name at the same time. Then the younger one may stay if
// Cinder failed to delete it, or if one second or a wrong clock hides which one is younger.
func (w *world) exempt(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.ledger.origin[id]
	if o == nil {
		return false
	}
	if twice, oneSecond := w.ledger.createdTwice(o); oneSecond || twice && (w.history.Skew != 0 || w.ledger.undeletable[id]) {
		return true
	}
	if !o.lost && !o.process.dead() {
		return false
	}
	return o.process.dead() || slices.ContainsFunc(w.ledger.served[o.name], func(p *process) bool { return p != o.process })
}

// unknown reports whether an attach or detach that the current process does not know may have caused the state of a volume at a server. No
// process got its reply, and either the process that sent it has ended, or another process got a call for the volume.
func (w *world) unknown(volume, server string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.ledger.attaches, func(o *origin) bool {
		if o.name != volume || server != "" && o.server != server || !o.lost && !o.process.dead() {
			return false
		}
		return o.process.dead() || slices.ContainsFunc(w.ledger.served[volume], func(p *process) bool { return p != o.process })
	})
}

func attachedTo(v openstacksim.VolumeState, server string) bool {
	return slices.ContainsFunc(v.Attachments, func(a openstacksim.AttachmentState) bool { return a.Server == server && a.Status == "attached" })
}

// audit compares the cloud with the ledger at the end of a history.
func (w *world) audit() {
	found := map[string]bool{}
	for _, v := range w.sim.VolumeStates() {
		found[v.ID] = true
		w.mu.Lock()
		owner := w.ledger.volumes[v.ID]
		w.mu.Unlock()
		if owner == nil {
			w.unowned("volume", v.ID, v.Status)
			continue
		}
		w.auditAttachments(v, owner)
	}
	for _, s := range w.sim.SnapshotStates() {
		found[s.ID] = true
		w.mu.Lock()
		owner := w.ledger.snapshots[s.ID]
		w.mu.Unlock()
		if owner == nil {
			w.unowned("snapshot or backup", s.ID, s.Status)
		}
	}
	for _, id := range append(sorted(w.ledger.volumes), sorted(w.ledger.snapshots)...) {
		if !found[id] {
			w.violate("nothing is deleted that was not asked for", "%s is gone", id)
		}
	}
}

func (w *world) unowned(what, id, status string) {
	if !w.exempt(id) {
		w.violate("nothing is leaked", "%s %s in status %s has no owner", what, id, status)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Duplicates++
}

func (w *world) auditAttachments(v openstacksim.VolumeState, owner *owned) {
	for _, server := range w.servers {
		want, got := slices.Contains(owner.servers, server), attachedTo(v, server)
		if want == got && got == slices.Contains(v.Disks, server) {
			continue
		}
		if w.unknown(v.ID, server) {
			w.mu.Lock()
			w.counts.Late++
			w.mu.Unlock()
			continue
		}
		w.violate("exactly the wanted attachments exist", "volume %s at %s: wanted %t, Cinder %+v, Nova %v", v.ID, server, want, v.Attachments, v.Disks)
	}
}
