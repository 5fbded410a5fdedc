package histories

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

// player plays one actor.
type player struct {
	*world
	actor
	number    int
	volumes   [2]*claim
	snapshots [2]*volumeSnapshot
	made      int // names used so far
}

// claim is a PersistentVolumeClaim, with its PersistentVolume once it exists.
type claim struct {
	name, handle string
	size         int64
	typ          string
	servers      []string
}

// volumeSnapshot is a VolumeSnapshot with its VolumeSnapshotContent.
type volumeSnapshot struct {
	name, handle string
	of           *claim
}

// play does the steps of an actor.
func (p *player) play() {
	p.wait(p.Begin)
	for i, s := range p.Steps {
		p.wait(s.Think)
		if p.broken() {
			return
		}
		for _, f := range p.history.Faults {
			if f.Actor == p.number && f.Step == i+1 {
				p.arm(f)
			}
		}
		done := p.step(s)
		p.mu.Lock()
		p.counting = false
		p.mu.Unlock()
		if done {
			p.mu.Lock()
			p.counts.Operations++
			p.mu.Unlock()
		}
	}
}

func (p *player) wait(d time.Duration) { time.Sleep(d) }

// step does one step. It returns false if the object of the step does not exist.
func (p *player) step(s step) bool {
	c, vs := p.volumes[s.Volume], p.snapshots[s.Snapshot]
	switch s.Do {
	case createVolume:
		return p.create(s)
	case deleteVolume:
		if c == nil || len(c.servers) > 0 || p.hasSnapshot(c) {
			return false
		}
		p.delete(c)
		p.volumes[s.Volume] = nil
	case publish:
		if c == nil || slices.Contains(c.servers, p.servers[s.Server]) || !p.Shared && len(c.servers) > 0 {
			return false
		}
		p.publish(c, p.servers[s.Server], s.Abandon)
	case unpublish:
		if c == nil || !slices.Contains(c.servers, p.servers[s.Server]) {
			return false
		}
		p.unpublish(c, p.servers[s.Server])
	case expand:
		if c == nil || s.Size <= c.size || p.Shared && len(c.servers) > 0 {
			return false
		}
		p.expand(c, s.Size)
	case modify:
		if c == nil {
			return false
		}
		p.modify(c, s)
	case createSnapshot:
		if c == nil || vs != nil {
			return false
		}
		p.snapshot(c, s)
	case deleteSnapshot:
		if vs == nil {
			return false
		}
		p.deleteSnapshot(vs)
		p.snapshots[s.Snapshot] = nil
	default:
		return p.ask(s, c)
	}
	return true
}

func (p *player) hasSnapshot(c *claim) bool {
	return slices.ContainsFunc(p.snapshots[:], func(s *volumeSnapshot) bool { return s != nil && s.of == c })
}

func (p *player) name(kind string) string {
	p.made++
	return fmt.Sprintf("%s-%d-%d", kind, p.number, p.made)
}

func (p *player) capability() *csi.VolumeCapability {
	if p.Shared {
		return csitest.Shared()
	}
	return csitest.Mounted("")
}

// abandonment returns a function that reports whether the user has deleted an object during its create.
func abandonment(after time.Duration) func() bool {
	begun := time.Now()
	return func() bool { return after > 0 && time.Since(begun) >= after }
}

// create is external-provisioner with a claim. After a final code it forgets a deleted claim. After any other code it retries, and deletes the
// volume that it then gets. After ResourceExhausted the scheduler chooses again. An existing PersistentVolume is kept (saveVolume:
// AlreadyExists is success). Sources: sig-storage-lib-external-provisioner, controller.go, provisionClaimOperation, and syncClaim with
// claimsInProgress; external-provisioner, controller.go, checkError.
func (p *player) create(s step) bool {
	req, ok := p.createRequest(s)
	if !ok {
		return false
	}
	c := &claim{name: req.Name, size: req.CapacityRange.RequiredBytes / gib, typ: req.Parameters["type"]}
	deleted, inBackground := abandonment(s.Abandon), false
	callUntilDone(p.world, work[*csi.CreateVolumeResponse]{
		by: provisioner, rpc: rpc{do: createVolume, name: c.name},
		do: func(ctx context.Context, to csi.ControllerClient) (*csi.CreateVolumeResponse, error) {
			return to.CreateVolume(ctx, req)
		},
		judge: func(a answer[*csi.CreateVolumeResponse], current bool) bool {
			if a.err == nil {
				p.volumeReturned(c, a)
				return true
			}
			if !current {
				return false
			}
			code := status.Code(a.err)
			if inBackground = !final(code); inBackground {
				return false
			}
			p.checkFinal(a.of, code)
			if code == codes.ResourceExhausted && req.AccessibilityRequirements != nil {
				slices.Reverse(req.AccessibilityRequirements.Preferred)
			}
			return deleted()
		},
		forgets: func() bool { return deleted() && !inBackground },
		stays:   deleted,
	})
	switch {
	case c.handle != "" && deleted():
		p.delete(c)
	case c.handle != "":
		p.volumes[s.Volume] = c
	}
	return true
}

func (p *player) createRequest(s step) (*csi.CreateVolumeRequest, bool) {
	if p.volumes[s.Volume] != nil {
		return nil, false
	}
	req := csitest.Claim(p.name("pvc"), csitest.Wanted(p.Zones...))
	if p.Shared {
		csitest.Multiattach(req)
	}
	switch other := p.volumes[1-s.Volume]; {
	case s.From == fromVolume && other != nil:
		req.CapacityRange.RequiredBytes = other.size * gib
		csitest.FromVolume(other.handle)(req)
	case s.From == fromSnapshot && p.snapshots[s.Snapshot] != nil:
		req.CapacityRange.RequiredBytes = p.snapshots[s.Snapshot].of.size * gib
		csitest.FromSnapshot(p.snapshots[s.Snapshot].handle)(req)
	case s.From != blank:
		return nil, false
	}
	return req, true
}

// volumeReturned records and checks the volume that CreateVolume returned for a claim.
func (p *player) volumeReturned(c *claim, a answer[*csi.CreateVolumeResponse]) {
	v := a.got.GetVolume()
	if c.handle != "" && c.handle != v.GetVolumeId() && p.exempt(v.GetVolumeId()) {
		return // saveVolume keeps the existing PersistentVolume
	}
	if c.handle != "" && c.handle != v.GetVolumeId() {
		p.violate("one claim has one volume", "%s got %s, then %s", c.name, c.handle, v.GetVolumeId())
		return
	}
	c.handle = v.GetVolumeId()
	p.mu.Lock()
	p.ledger.volumes[c.handle] = &owned{name: c.name}
	p.mu.Unlock()
	state, ok := p.sim.VolumeState(c.handle)
	if !ok || state.Status != "available" || state.Name != c.name || int64(state.Size) < c.size ||
		len(p.Zones) > 0 && !slices.Contains(p.Zones, state.Zone) || p.Shared && !state.Multiattach {
		p.violate("every OK is true", "%s: the volume is %+v", a.of, state)
	}
	from := v.GetContentSource().GetSnapshot().GetSnapshotId()
	if p.history.Ceph && from != "" && (contract.RestoreFrom(state.Metadata) != "" || state.Metadata[contract.MetadataSourceBackup] != from) {
		p.violate("every OK is true", "%s: the volume does not have the data of its backup: %+v", a.of, state)
	}
	p.reported(c, a.of)
}

// reported checks that the driver reports every other volume of a claim that the reads of the cloud showed when the create began.
func (p *player) reported(c *claim, of *call) {
	for _, other := range p.sim.VolumeStates() {
		p.mu.Lock()
		o := p.ledger.origin[other.ID]
		p.mu.Unlock()
		if other.Name == c.name && other.ID != c.handle && o != nil && o.acted.Add(p.history.Lag).Before(of.begun) && !strings.Contains(of.process.Log.String(), other.ID) {
			p.violate("a duplicate is reported", "%s: %s is not in the log", of, other.ID)
		}
	}
}

// checkFinal checks a final code, unless another call for the same object is in progress, which may have created an object.
func (p *player) checkFinal(c *call, code codes.Code) {
	p.mu.Lock()
	others := false
	for _, calls := range p.calls {
		others = others || slices.ContainsFunc(calls, func(other *call) bool {
			return other != c && other.name == c.name && other.ended.IsZero()
		})
	}
	p.mu.Unlock()
	if !others {
		p.checkNothingExists(c, code)
	}
}

// succeeds judges an operation whose sidecar calls until OK, and checks that answer.
func succeeds[A any](check func(a answer[A])) func(answer[A], bool) bool {
	return func(a answer[A], _ bool) bool {
		if a.err == nil {
			check(a)
		}
		return a.err == nil
	}
}

// delete is external-provisioner with a PersistentVolume that was released: it calls until the volume is gone, whatever the code.
func (p *player) delete(c *claim) {
	callUntilDone(p.world, work[*csi.DeleteVolumeResponse]{
		by: provisioner, rpc: rpc{do: deleteVolume, volume: c.handle},
		do: func(ctx context.Context, to csi.ControllerClient) (*csi.DeleteVolumeResponse, error) {
			return to.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: c.handle})
		},
		judge: succeeds(func(a answer[*csi.DeleteVolumeResponse]) {
			if state, ok := p.sim.VolumeState(c.handle); ok {
				p.violate("every OK is true", "%s: the volume is %+v", a.of, state)
			}
		}),
	})
	p.mu.Lock()
	delete(p.ledger.volumes, c.handle)
	p.mu.Unlock()
}

// publish is external-attacher with a VolumeAttachment. It detaches one that is deleted while the attach fails (csi_handler.go, syncDetach:
// the finalizer was set before the first call).
func (p *player) publish(c *claim, server string, abandon time.Duration) {
	deleted := abandonment(abandon)
	attached := false
	defer p.inTransition(c, server)()
	callUntilDone(p.world, work[*csi.ControllerPublishVolumeResponse]{
		by: attacher, rpc: rpc{do: publish, volume: c.handle, server: server},
		do: func(ctx context.Context, to csi.ControllerClient) (*csi.ControllerPublishVolumeResponse, error) {
			return to.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: c.handle, NodeId: server, VolumeCapability: p.capability()})
		},
		judge: func(a answer[*csi.ControllerPublishVolumeResponse], _ bool) bool {
			if a.err != nil {
				return deleted()
			}
			attached = true
			if state, _ := p.sim.VolumeState(c.handle); !attachedTo(state, server) || !slices.Contains(state.Disks, server) {
				p.violate("every OK is true", "%s: the volume is %+v", a.of, state)
			}
			return true
		},
		forgets: deleted,
	})
	if !attached || deleted() {
		p.detach(c, server)
		return
	}
	c.servers = append(c.servers, server)
	p.publishedTo(c)
}

func (p *player) publishedTo(c *claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ledger.volumes[c.handle].servers = slices.Clone(c.servers)
}

// unpublish follows when no pod of a node uses a volume any longer. Until then kubelet uses it.
func (p *player) unpublish(c *claim, server string) {
	if state, _ := p.sim.VolumeState(c.handle); !attachedTo(state, server) && !p.unknown(c.handle, server) {
		p.violate("nothing is detached that was not asked for", "volume %s is in use at %s and is %+v", c.handle, server, state)
		return
	}
	defer p.inTransition(c, server)()
	c.servers = slices.DeleteFunc(c.servers, func(s string) bool { return s == server })
	p.detach(c, server)
	p.publishedTo(c)
}

// inTransition keeps the administrator from a volume at a server, until done.
func (p *player) inTransition(c *claim, server string) (done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	owner := p.ledger.volumes[c.handle]
	owner.inTransition = append(owner.inTransition, server)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		owner.inTransition = slices.DeleteFunc(owner.inTransition, func(s string) bool { return s == server })
	}
}

// detach is external-attacher with a VolumeAttachment that is deleted: it calls until OK.
func (p *player) detach(c *claim, server string) {
	callUntilDone(p.world, work[*csi.ControllerUnpublishVolumeResponse]{
		by: attacher, rpc: rpc{do: unpublish, volume: c.handle, server: server},
		do: func(ctx context.Context, to csi.ControllerClient) (*csi.ControllerUnpublishVolumeResponse, error) {
			return to.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: c.handle, NodeId: server})
		},
		judge: succeeds(func(a answer[*csi.ControllerUnpublishVolumeResponse]) {
			if state, _ := p.sim.VolumeState(c.handle); (attachedTo(state, server) || slices.Contains(state.Disks, server)) && !p.unknown(c.handle, server) {
				p.violate("every OK is true", "%s: the volume is %+v", a.of, state)
			}
		}),
	})
}

// expand is external-resizer: it calls until OK.
func (p *player) expand(c *claim, size int64) {
	callUntilDone(p.world, work[*csi.ControllerExpandVolumeResponse]{
		by: resizer, rpc: rpc{do: expand, volume: c.handle},
		do: func(ctx context.Context, to csi.ControllerClient) (*csi.ControllerExpandVolumeResponse, error) {
			return to.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
				VolumeId: c.handle, CapacityRange: &csi.CapacityRange{RequiredBytes: size * gib}, VolumeCapability: p.capability(),
			})
		},
		judge: succeeds(func(a answer[*csi.ControllerExpandVolumeResponse]) {
			if state, _ := p.sim.VolumeState(c.handle); int64(state.Size) < size || a.got.GetCapacityBytes() < size*gib {
				p.violate("every OK is true", "%s to %d GiB: the volume is %+v", a.of, size, state)
			}
		}),
	})
	c.size = size
}

// modify is external-resizer with a VolumeAttributesClass: it calls until OK.
func (p *player) modify(c *claim, s step) {
	parameters := map[string]string{"metadata.step": fmt.Sprint(s.Think.Nanoseconds())}
	callUntilDone(p.world, work[*csi.ControllerModifyVolumeResponse]{
		by: resizer, rpc: rpc{do: modify, volume: c.handle},
		do: func(ctx context.Context, to csi.ControllerClient) (*csi.ControllerModifyVolumeResponse, error) {
			return to.ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{VolumeId: c.handle, MutableParameters: parameters})
		},
		judge: succeeds(func(a answer[*csi.ControllerModifyVolumeResponse]) {
			if state, _ := p.sim.VolumeState(c.handle); state.Metadata["step"] != parameters["metadata.step"] {
				p.violate("every OK is true", "%s: the metadata is %v", a.of, state.Metadata)
			}
		}),
	})
}

// snapshot is external-snapshotter with a VolumeSnapshot. It calls until the snapshot is ready, and never changes the first ID
// (updateSnapshotContentStatus). After a final code without an ID it forgets a deleted VolumeSnapshot (snapshot_controller.go,
// createSnapshotWrapper and isCSIFinalError). The user deletes a snapshot that Cinder failed to create.
func (p *player) snapshot(c *claim, s step) {
	vs := &volumeSnapshot{name: p.name("snapshot"), of: c}
	req := &csi.CreateSnapshotRequest{Name: vs.name, SourceVolumeId: c.handle}
	if s.Backup {
		req.Parameters = map[string]string{"type": "backup"}
	}
	deleted, inBackground, failed := abandonment(s.Abandon), false, false
	callUntilDone(p.world, work[*csi.CreateSnapshotResponse]{
		by: snapshotter, rpc: rpc{do: createSnapshot, name: vs.name},
		do: func(ctx context.Context, to csi.ControllerClient) (*csi.CreateSnapshotResponse, error) {
			return to.CreateSnapshot(ctx, req)
		},
		judge: func(a answer[*csi.CreateSnapshotResponse], current bool) bool {
			if a.err == nil {
				return p.snapshotReturned(vs, a)
			}
			if !current {
				return false
			}
			code := status.Code(a.err)
			if inBackground = !final(code); inBackground {
				return false
			}
			if vs.handle == "" {
				p.checkFinal(a.of, code)
			} else if state, _ := p.sim.SnapshotState(vs.handle); state.Status == "error" {
				failed = true
				return true
			}
			return deleted()
		},
		forgets: func() bool { return deleted() && (!inBackground || vs.handle != "") },
		stays:   deleted,
	})
	switch {
	case vs.handle != "" && (deleted() || failed):
		p.deleteSnapshot(vs)
	case vs.handle != "":
		p.snapshots[s.Snapshot] = vs
	}
}

// snapshotReturned records and checks the snapshot that CreateSnapshot returned. It returns true once the snapshot is ready.
func (p *player) snapshotReturned(vs *volumeSnapshot, a answer[*csi.CreateSnapshotResponse]) bool {
	got := a.got.GetSnapshot()
	if vs.handle != "" && vs.handle != got.GetSnapshotId() && p.exempt(got.GetSnapshotId()) {
		return got.GetReadyToUse() // the first ID is kept
	}
	if vs.handle != "" && vs.handle != got.GetSnapshotId() {
		p.violate("one VolumeSnapshot has one handle", "%s got %s, then %s", vs.name, vs.handle, got.GetSnapshotId())
		return true
	}
	vs.handle = got.GetSnapshotId()
	p.mu.Lock()
	p.ledger.snapshots[vs.handle] = &owned{name: vs.name}
	p.mu.Unlock()
	state, ok := p.sim.SnapshotState(vs.handle)
	if !ok || got.GetReadyToUse() && state.Status != "available" {
		p.violate("every OK is true", "%s, ready %t: it is %+v", a.of, got.GetReadyToUse(), state)
	}
	return got.GetReadyToUse()
}

// deleteSnapshot is external-snapshotter with a VolumeSnapshotContent that is deleted: it calls until OK.
func (p *player) deleteSnapshot(vs *volumeSnapshot) {
	callUntilDone(p.world, work[*csi.DeleteSnapshotResponse]{
		by: snapshotter, rpc: rpc{do: deleteSnapshot, snapshot: vs.handle},
		do: func(ctx context.Context, to csi.ControllerClient) (*csi.DeleteSnapshotResponse, error) {
			return to.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: vs.handle})
		},
		judge: succeeds(func(a answer[*csi.DeleteSnapshotResponse]) {
			if state, ok := p.sim.SnapshotState(vs.handle); ok {
				p.violate("every OK is true", "%s: it is %+v", a.of, state)
			}
		}),
	})
	p.mu.Lock()
	delete(p.ledger.snapshots, vs.handle)
	p.mu.Unlock()
}

// ask is an RPC that changes nothing.
func (p *player) ask(s step, c *claim) bool {
	asks := map[operation]func(context.Context, csi.ControllerClient) (any, error){
		listVolumes: func(ctx context.Context, to csi.ControllerClient) (any, error) {
			return to.ListVolumes(ctx, &csi.ListVolumesRequest{})
		},
		listSnapshots: func(ctx context.Context, to csi.ControllerClient) (any, error) {
			return to.ListSnapshots(ctx, &csi.ListSnapshotsRequest{})
		},
		getCapacity: func(ctx context.Context, to csi.ControllerClient) (any, error) {
			return to.GetCapacity(ctx, &csi.GetCapacityRequest{})
		},
		getVolume: func(ctx context.Context, to csi.ControllerClient) (any, error) {
			return to.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: c.handle})
		},
	}
	if s.Do == getVolume && c == nil {
		return false
	}
	callUntilDone(p.world, work[any]{by: provisioner, rpc: rpc{do: s.Do}, do: asks[s.Do], judge: func(a answer[any], _ bool) bool { return a.err == nil }})
	return true
}
