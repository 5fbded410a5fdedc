package histories

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
)

// arm causes a fault at once, or with the next request that fits.
func (w *world) arm(f fault) {
	if f.Class != "" {
		w.mu.Lock()
		w.faults = append(w.faults, f)
		w.mu.Unlock()
		return
	}
	w.cause(f)
}

// cause causes a fault of the cloud or of a process.
func (w *world) cause(f fault) {
	switch f.Kind {
	case countOnly:
		w.mu.Lock()
		w.counting = true
		w.mu.Unlock()
	case cloudSlow:
		w.recordFault(f)
		w.mu.Lock()
		w.slow, w.slowUntil = 6*time.Second, time.Now().Add(f.For)
		w.calm = w.slowUntil
		w.mu.Unlock()
	case quotaExhausted:
		w.recordFault(f)
		w.limit(0)
		w.background.Go(func() {
			time.Sleep(f.For)
			w.limit(-1)
			w.note("the quota is released")
			w.disturb(0)
		})
	case processKilled, processTerminated:
		w.recordFault(f)
		if p := w.at(f.Replica % w.history.Replicas); p != nil && f.Kind == processKilled {
			p.kill(f.For)
		} else if p != nil {
			p.terminate(f.For)
		}
	case leaderChanged:
		w.recordFault(f)
		w.elect(f.Replica % w.history.Replicas)
	case reloaded:
		w.recordFault(f)
		w.reload()
	default:
		w.recordFault(f)
		w.sim.SetFault(openstacksim.Fault{Operation: operations[f.Kind], Full: f.Kind == zoneFull, Times: max(f.Times, 1)})
		w.disturb(0)
	}
}

// operations are the operations of the cloud that fail.
var operations = map[kind]openstacksim.Operation{
	createFails: openstacksim.CreateVolume, zoneFull: openstacksim.CreateVolume, deleteFails: openstacksim.DeleteVolume,
	extendFails: openstacksim.ExtendVolume, snapshotFails: openstacksim.CreateSnapshot, backupFails: openstacksim.CreateBackup,
	restoreFails: openstacksim.RestoreBackup, attachDropped: openstacksim.Attach, detachDropped: openstacksim.Detach,
}

func (w *world) limit(volumes int) {
	for _, resource := range []string{"volumes", "snapshots", "backups"} {
		w.sim.SetQuota("demo", resource, volumes)
	}
}

// recordFault counts a fault and notes it.
func (w *world) recordFault(f fault) {
	w.note("FAULT: %s", f.Kind)
	w.mu.Lock()
	w.counts.Faults[f.Kind]++
	w.mu.Unlock()
	w.disturb(f.For)
}

// disturb notes that something goes wrong now, and for so long.
func (w *world) disturb(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if until := time.Now().Add(d); until.After(w.calm) {
		w.calm = until
	}
}

// faultFor returns the fault of a request, or the zero fault. It causes a fault of the cloud or of a process that is armed for this request.
func (w *world) faultFor(p *process, q request) fault {
	w.mu.Lock()
	w.counts.Requests++
	if w.counting {
		w.classes = append(w.classes, q.class)
	}
	var f fault
	for i := range w.faults {
		if !q.fits(w.faults[i].Class) {
			continue
		}
		if w.faults[i].Skip > 0 {
			w.faults[i].Skip--
			continue
		}
		f = w.faults[i]
		if w.faults[i].Times--; w.faults[i].Times <= 0 {
			w.faults = append(w.faults[:i:i], w.faults[i+1:]...)
		}
		break
	}
	w.mu.Unlock()
	if f.Kind != "" && !slices.Contains(requestFaults, f.Kind) {
		w.note("process %d is about to send: %s", p.number, q.class)
		f.Class = ""
		w.cause(f)
		return fault{}
	}
	if f.Kind != "" {
		w.note("FAULT at process %d: %s: %s", p.number, q.class, f.Kind)
		w.mu.Lock()
		w.counts.Faults[f.Kind]++
		w.mu.Unlock()
		w.disturb(f.For)
	} else if q.changes() {
		w.note("process %d: %s %s", p.number, q.class, w.plain(q.object()))
	}
	return f
}

// slowness is the delay that the cloud now adds to each request.
func (w *world) slowness() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().Before(w.slowUntil) {
		return w.slow
	}
	return 0
}

// reload writes a new credential to cloud.conf, and deletes the old one 20 seconds later.
func (w *world) reload() {
	next := w.sim.AddApplicationCredential(openstacksim.ApplicationCredential{Name: "rotated", User: "demo", Project: "demo", Roles: []string{"member"}})
	w.mu.Lock()
	old := w.credential
	w.credential = next
	w.mu.Unlock()
	w.configure()
	w.mu.Lock()
	for _, p := range w.replicas {
		if p == nil {
			continue
		}
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
	w.mu.Unlock()
	w.background.Go(func() {
		time.Sleep(20 * time.Second)
		w.sim.DeleteApplicationCredential(old.ID)
		w.note("the old credential is gone")
		w.disturb(0)
	})
}

// configure writes cloud.conf with the current credential.
func (w *world) configure() {
	first := openstacksim.Default().ApplicationCredentials[0]
	w.mu.Lock()
	now := w.credential
	w.mu.Unlock()
	text := strings.NewReplacer(first.ID, now.ID, first.Secret, now.Secret).Replace(string(w.sim.CloudConf(inprocess.URL)))
	if err := os.WriteFile(w.conf, []byte(text), 0o600); err != nil {
		panic(err)
	}
}

// repairAttachments detaches a volume from servers to which no user attached it, if the driver cannot know of the attachment. Nova refuses that
// while Cinder expands the volume.
func (w *world) repairAttachments(v openstacksim.VolumeState) {
	for _, server := range w.servers {
		w.mu.Lock()
		owner := w.ledger.volumes[v.ID]
		unwanted := owner != nil && !slices.Contains(owner.inTransition, server) && !slices.Contains(owner.servers, server)
		w.mu.Unlock()
		if unwanted && v.Status != "extending" && attachedTo(v, server) && w.unknown(v.ID, server) {
			w.note("an administrator detaches %s from %s", w.plain(v.ID), w.plain(server))
			w.sim.Unplug(v.ID, server)
			w.disturb(0)
			w.mu.Lock()
			w.counts.Late++
			w.mu.Unlock()
		}
	}
}

// repairDuplicate deletes the duplicate of a snapshot that the hold-off allows. A duplicate snapshot prevents that its volume is deleted. An
// administrator does not delete what a call is about to return: faults can keep the first OK back for longer than ten minutes.
func (w *world) repairDuplicate(s openstacksim.SnapshotState) {
	w.mu.Lock()
	o, owner := w.ledger.origin[s.ID], w.ledger.snapshots[s.ID]
	old := o != nil && time.Since(o.acted) > 10*time.Minute
	asked := false
	for _, calls := range w.calls {
		asked = asked || slices.ContainsFunc(calls, func(c *call) bool {
			return c.do == createSnapshot && c.ended.IsZero() && strings.Contains(s.Name, c.name)
		})
	}
	w.mu.Unlock()
	if owner != nil || !old || asked || !w.exempt(s.ID) {
		return
	}
	w.note("an administrator deletes the duplicate %s", w.plain(s.ID))
	w.sim.Discard(s.ID)
	w.disturb(0)
	w.mu.Lock()
	w.counts.Duplicates++
	w.mu.Unlock()
}

// repair acts as an administrator who resets error statuses every minute.
func (w *world) repair(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Minute):
		}
		for _, v := range w.sim.VolumeStates() {
			switch to := ""; v.Status {
			case "error_deleting", "error_extending":
				w.mu.Lock()
				w.ledger.undeletable[v.ID] = true
				w.mu.Unlock()
				if to = "available"; len(v.Attachments) > 0 {
					to = "in-use"
				}
				w.sim.ResetStatus(v.ID, to)
				w.disturb(0)
			}
			w.repairAttachments(v)
		}
		for _, s := range w.sim.SnapshotStates() {
			if s.Status == "error_deleting" {
				w.sim.ResetStatus(s.ID, "error")
				w.disturb(0)
			}
			w.repairDuplicate(s)
		}
	}
}
