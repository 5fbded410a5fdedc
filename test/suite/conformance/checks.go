package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

func nodes(n int) func(*suite) string {
	return func(s *suite) string {
		if len(s.nodes) < n {
			return fmt.Sprintf("it needs %d nodes; name them with --nodes", n)
		}
		return ""
	}
}

// checks are the cases, in the order they run.
var checks = []check{
	{name: "a volume is created once, found and deleted twice", covers: []string{"plugin CONTROLLER_SERVICE", "controller CREATE_DELETE_VOLUME", "controller GET_VOLUME"}, run: life},
	{name: "concurrent creates of one name make one volume", covers: []string{"controller CREATE_DELETE_VOLUME"}, run: oneName},
	{name: "a canceled create is resumed", covers: []string{"controller CREATE_DELETE_VOLUME"}, run: resumed},
	{name: "pages survive deletions", covers: []string{"controller LIST_VOLUMES"}, run: pages},
	{
		name: "published nodes are reported", covers: []string{"controller PUBLISH_UNPUBLISH_VOLUME", "controller LIST_VOLUMES_PUBLISHED_NODES"},
		needs: nodes(1), run: published,
	},
	{name: "after concurrent attaches and detaches the next call holds", covers: []string{"controller PUBLISH_UNPUBLISH_VOLUME"}, needs: nodes(1), run: races},
	{name: "two nodes do not share an ordinary volume", covers: []string{"controller PUBLISH_UNPUBLISH_VOLUME"}, needs: nodes(2), run: rivals},
	{name: "two nodes share a volume of a class for several nodes", covers: []string{"controller PUBLISH_UNPUBLISH_VOLUME"}, needs: func(s *suite) string {
		if s.shared == nil {
			return "it needs a class of volumes for several nodes; name its parameters with --shared"
		}
		return nodes(2)(s)
	}, run: shared},
	{name: "one node's single and several writers", covers: []string{"controller SINGLE_NODE_MULTI_WRITER"}, run: writers},
	{name: "volumes are created in the requested zone", covers: []string{"plugin VOLUME_ACCESSIBILITY_CONSTRAINTS"}, needs: func(s *suite) string {
		if len(s.here.GetAccessibleTopology().GetSegments()) == 0 {
			return "the endpoint's node reports no topology"
		}
		return ""
	}, run: zones},
	{name: "an unattached volume is expanded", covers: []string{"controller EXPAND_VOLUME", "expansion OFFLINE"}, run: grow(false)},
	{name: "an attached volume is expanded", covers: []string{"controller EXPAND_VOLUME", "expansion ONLINE"}, needs: nodes(1), run: grow(true)},
	{name: "clones are at least as large as their source", covers: []string{"controller CLONE_VOLUME"}, run: clones},
	{name: "snapshots are created, restored and deleted", covers: []string{"controller CREATE_DELETE_SNAPSHOT", "controller GET_SNAPSHOT"}, run: snapshots},
	{name: "snapshots are found by id, by volume and page by page", covers: []string{"controller LIST_SNAPSHOTS"}, run: snapshotPages},
	{name: "a backup outlives its volume", covers: []string{"controller CREATE_DELETE_SNAPSHOT"}, needs: func(s *suite) string {
		if s.backup == nil {
			return "it needs a class of backups; name its parameters with --backup"
		}
		return ""
	}, run: backups},
	{name: "a volume is modified, twice in the same way", covers: []string{"controller MODIFY_VOLUME"}, needs: func(s *suite) string {
		if s.mutable == nil {
			return "it needs a VolumeAttributesClass; name its parameters with --mutable"
		}
		return ""
	}, run: modify},
	{name: "a healthy volume has no health status", covers: []string{"controller GET_VOLUME_HEALTH", "controller LIST_VOLUME_HEALTH"}, run: health},
	{name: "capacity is reported, and an impossible access mode is accepted or refused", covers: []string{"controller GET_CAPACITY"}, run: capacity},
	{
		name: "a volume is staged, measured, expanded and unstaged", needs: func(s *suite) string {
			if s.stage == "" {
				return "it needs devices; name a directory for mounts with --stage"
			}
			return nodes(1)(s)
		},
		covers: []string{"node STAGE_UNSTAGE_VOLUME", "node GET_VOLUME_STATS", "node EXPAND_VOLUME", "node GET_VOLUME_HEALTH", "node SINGLE_NODE_MULTI_WRITER"}, run: staged,
	},
}

func life(ctx context.Context, s *suite, c *cleanup) error {
	made, err := s.create(ctx, c, s.request("life", 1))
	if err != nil {
		return err
	}
	again, err := s.create(ctx, c, s.request("life", 1))
	if err != nil {
		return err
	}
	if again.GetVolumeId() != made.GetVolumeId() {
		return fmt.Errorf("the same request created %s and then %s", made.GetVolumeId(), again.GetVolumeId())
	}
	_, err = s.controller.CreateVolume(ctx, s.request("life", 2))
	if err := want("another size under the same name", err, codes.AlreadyExists); err != nil {
		return err
	}
	found, err := s.controller.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: made.GetVolumeId()})
	if err != nil || found.GetVolume().GetCapacityBytes() < gib {
		return fmt.Errorf("ControllerGetVolume: got %v, %w", found, err)
	}
	for range 2 {
		if err := insist(ctx, s.deletion(made.GetVolumeId())); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
	}
	_, err = s.controller.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: made.GetVolumeId()})
	return want("ControllerGetVolume of a deleted volume", err, codes.NotFound)
}

func oneName(ctx context.Context, s *suite, c *cleanup) error {
	const callers = 8
	ids := make([]string, callers)
	err := together(callers, func(i int) error {
		made, err := s.create(ctx, c, s.request("one-name", 1))
		ids[i] = made.GetVolumeId()
		return err
	})
	if slices.Sort(ids); err == nil && len(slices.Compact(ids)) != 1 {
		err = fmt.Errorf("want one volume, got %v", ids)
	}
	return err
}

func resumed(ctx context.Context, s *suite, c *cleanup) error {
	for _, patience := range []time.Duration{time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond} {
		short, leave := context.WithTimeout(ctx, patience)
		answer, err := s.controller.CreateVolume(short, s.request("resumed", 1))
		leave()
		if err := want("a create whose caller leaves", err, codes.OK, codes.DeadlineExceeded, codes.Aborted, codes.Unavailable, codes.Canceled); err != nil {
			return err
		}
		if err == nil {
			c.add(s.deletion(answer.GetVolume().GetVolumeId()))
		}
	}
	made, err := s.create(ctx, c, s.request("resumed", 1))
	if err != nil {
		return err
	}
	again, err := s.create(ctx, c, s.request("resumed", 1))
	if err == nil && again.GetVolumeId() != made.GetVolumeId() {
		err = fmt.Errorf("want %s again, got %s", made.GetVolumeId(), again.GetVolumeId())
	}
	return err
}

// pages deletes the last volume of each page before it requests the next.
func pages(ctx context.Context, s *suite, c *cleanup) error {
	const volumes = 5
	mine := map[string]int{}
	for i := range volumes {
		made, err := s.create(ctx, c, s.request(fmt.Sprintf("page-%d", i), 1))
		if err != nil {
			return err
		}
		mine[made.GetVolumeId()] = 0
	}
	token := ""
	for {
		page, err := s.controller.ListVolumes(ctx, &csi.ListVolumesRequest{MaxEntries: 2, StartingToken: token})
		if err != nil {
			return fmt.Errorf("ListVolumes: %w", err)
		}
		if len(page.GetEntries()) > 2 {
			return fmt.Errorf("asked for two entries, got %d", len(page.GetEntries()))
		}
		for i, e := range page.GetEntries() {
			id := e.GetVolume().GetVolumeId()
			if _, ours := mine[id]; !ours {
				continue
			}
			mine[id]++
			if i == len(page.GetEntries())-1 {
				if err := insist(ctx, s.deletion(id)); err != nil {
					return err
				}
			}
		}
		if token = page.GetNextToken(); token == "" {
			break
		}
	}
	for id, seen := range mine {
		if seen != 1 {
			return fmt.Errorf("volume %s was listed %d times while others were deleted", id, seen)
		}
	}
	_, err := s.controller.ListVolumes(ctx, &csi.ListVolumesRequest{StartingToken: "not a token"})
	return want("an invalid token", err, codes.Aborted)
}

func published(ctx context.Context, s *suite, c *cleanup) error {
	made, err := s.create(ctx, c, s.request("published", 1))
	if err != nil {
		return err
	}
	id, node := made.GetVolumeId(), s.nodes[0]
	if err := s.at(ctx, id); err != nil {
		return err
	}
	for range 2 {
		if _, err := s.publish(ctx, c, id, node, writer()); err != nil {
			return err
		}
	}
	if err := s.at(ctx, id, node); err != nil {
		return err
	}
	_, err = s.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	if err := want("deleting a published volume", err, codes.FailedPrecondition); err != nil {
		return err
	}
	for range 2 {
		if err := insist(ctx, func(ctx context.Context) error { return s.unpublish(ctx, id, node) }); err != nil {
			return fmt.Errorf("unpublish: %w", err)
		}
	}
	return s.at(ctx, id)
}

// races attaches and detaches one volume at once from several callers. Each of these calls may fail. After them, the effect of each
// single call must last.
func races(ctx context.Context, s *suite, c *cleanup) error {
	made, err := s.create(ctx, c, s.request("races", 1))
	if err != nil {
		return err
	}
	id, node := made.GetVolumeId(), s.nodes[0]
	c.add(func(ctx context.Context) error { return s.unpublish(ctx, id, node) })
	err = together(6, func(i int) error {
		if i%2 == 1 {
			return want("concurrent unpublish", s.unpublish(ctx, id, node), append(passing, codes.OK)...)
		}
		_, err := s.controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: writer()})
		return want("concurrent publish", err, append(passing, codes.OK)...)
	})
	if err != nil {
		return err
	}
	if _, err := s.publish(ctx, c, id, node, writer()); err != nil {
		return err
	}
	if err := s.at(ctx, id, node); err != nil {
		return err
	}
	if err := insist(ctx, func(ctx context.Context) error { return s.unpublish(ctx, id, "") }); err != nil {
		return fmt.Errorf("unpublish everywhere: %w", err)
	}
	return s.at(ctx, id)
}

func rivals(ctx context.Context, s *suite, c *cleanup) error {
	made, err := s.create(ctx, c, s.request("rivals", 1))
	if err != nil {
		return err
	}
	id := made.GetVolumeId()
	errs := make([]error, 2)
	_ = together(2, func(i int) error {
		_, errs[i] = s.publish(ctx, c, id, s.nodes[i], writer())
		return nil
	})
	winner := slices.Index(errs, nil)
	if winner < 0 {
		return fmt.Errorf("the volume was published to neither node: %w", errors.Join(errs...))
	}
	if err := want("the other node's publish", errors.Unwrap(errs[1-winner]), codes.FailedPrecondition); err != nil {
		return err
	}
	return s.at(ctx, id, s.nodes[winner])
}

func shared(ctx context.Context, s *suite, c *cleanup) error {
	several := capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, true)
	req := s.request("shared", 1)
	req.Parameters, req.VolumeCapabilities = s.shared, []*csi.VolumeCapability{several}
	made, err := s.create(ctx, c, req)
	if err != nil {
		return err
	}
	id := made.GetVolumeId()
	err = together(2, func(i int) error { _, err := s.publish(ctx, c, id, s.nodes[i], several); return err })
	if err != nil {
		return err
	}
	if err := s.at(ctx, id, s.nodes[:2]...); err != nil {
		return err
	}
	if err := insist(ctx, func(ctx context.Context) error { return s.unpublish(ctx, id, s.nodes[0]) }); err != nil {
		return err
	}
	return s.at(ctx, id, s.nodes[1])
}

func writers(ctx context.Context, s *suite, c *cleanup) error {
	req := s.request("writers", 1)
	req.VolumeCapabilities = []*csi.VolumeCapability{
		capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, false), capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER, false),
	}
	made, err := s.create(ctx, c, req)
	if err != nil {
		return err
	}
	answer, err := s.controller.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{VolumeId: made.GetVolumeId(), VolumeCapabilities: req.GetVolumeCapabilities()})
	if err == nil && answer.GetConfirmed() == nil {
		err = fmt.Errorf("both access modes are not confirmed: %s", answer.GetMessage())
	}
	return err
}

// zones creates a volume in each zone. The key of the segment is that of the endpoint's own node.
func zones(ctx context.Context, s *suite, c *cleanup) error {
	for key, own := range s.here.GetAccessibleTopology().GetSegments() {
		wanted := s.zones
		if len(wanted) == 0 {
			wanted = []string{own}
		}
		for i, zone := range wanted {
			req := s.request(fmt.Sprintf("zone-%d", i), 1)
			topology := []*csi.Topology{{Segments: map[string]string{key: zone}}}
			req.AccessibilityRequirements = &csi.TopologyRequirement{Preferred: topology, Requisite: topology}
			made, err := s.create(ctx, c, req)
			if err != nil {
				return fmt.Errorf("zone %s: %w", zone, err)
			}
			if at := made.GetAccessibleTopology(); len(at) != 1 || at[0].GetSegments()[key] != zone {
				return fmt.Errorf("want a volume in %s, got one in %v", zone, at)
			}
		}
		req := s.request("zone-none", 1)
		nowhere := []*csi.Topology{{Segments: map[string]string{key: "there-is-no-such-zone"}}}
		req.AccessibilityRequirements = &csi.TopologyRequirement{Preferred: nowhere, Requisite: nowhere}
		_, err := s.controller.CreateVolume(ctx, req)
		return want("a volume in an unknown zone", err, codes.ResourceExhausted, codes.InvalidArgument)
	}
	return nil
}

func grow(inUse bool) func(ctx context.Context, s *suite, c *cleanup) error {
	return func(ctx context.Context, s *suite, c *cleanup) error {
		made, err := s.create(ctx, c, s.request(fmt.Sprintf("grow-%v", inUse), 1))
		if err != nil {
			return err
		}
		id := made.GetVolumeId()
		if inUse {
			if _, err := s.publish(ctx, c, id, s.nodes[0], writer()); err != nil {
				return err
			}
		}
		for range 2 {
			if err := s.expand(ctx, id, 2); err != nil {
				return err
			}
		}
		_, err = s.controller.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
			VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: gib, LimitBytes: gib}, VolumeCapability: writer(),
		})
		return want("a limit below the size", err, codes.OutOfRange)
	}
}

func (s *suite) expand(ctx context.Context, id string, size int64) error {
	return insist(ctx, func(ctx context.Context) error {
		answer, err := s.controller.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
			VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: size * gib}, VolumeCapability: writer(),
		})
		if err == nil && answer.GetCapacityBytes() < size*gib {
			err = fmt.Errorf("want %d GiB, got %v", size, answer)
		}
		return err
	})
}

func clones(ctx context.Context, s *suite, c *cleanup) error {
	source, err := s.create(ctx, c, s.request("source", 2))
	if err != nil {
		return err
	}
	return s.sizes(ctx, c, "clone", &csi.VolumeContentSource{
		Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: source.GetVolumeId()}},
	})
}

// sizes creates volumes of the same and of a larger size from a source of 2 GiB. A smaller one must be refused.
func (s *suite) sizes(ctx context.Context, c *cleanup, name string, source *csi.VolumeContentSource) error {
	for size := int64(2); size <= 3; size++ {
		req := s.request(fmt.Sprintf("%s-%d", name, size), size)
		req.VolumeContentSource = source
		made, err := s.create(ctx, c, req)
		if err != nil {
			return err
		}
		if made.GetCapacityBytes() < size*gib || made.GetContentSource() == nil {
			return fmt.Errorf("want %d GiB from a source, got %v", size, made)
		}
	}
	req := s.request(name+"-1", 1)
	req.VolumeContentSource = source
	_, err := s.controller.CreateVolume(ctx, req)
	return want("a volume smaller than its source", err, codes.OutOfRange)
}

func fromSnapshot(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}}
}

func snapshots(ctx context.Context, s *suite, c *cleanup) error {
	source, err := s.create(ctx, c, s.request("snapshot-source", 2))
	if err != nil {
		return err
	}
	made, err := s.snapshot(ctx, c, "snapshot", source.GetVolumeId(), nil)
	if err != nil {
		return err
	}
	if made.GetSourceVolumeId() != source.GetVolumeId() || made.GetSizeBytes() < 2*gib {
		return fmt.Errorf("got %v of %v", made, source)
	}
	found, err := s.controller.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: made.GetSnapshotId()})
	if err != nil || found.GetSnapshot().GetSnapshotId() != made.GetSnapshotId() {
		return fmt.Errorf("GetSnapshot: want %v, got %v, %w", made, found, err)
	}
	if err := s.sizes(ctx, c, "restored", fromSnapshot(made.GetSnapshotId())); err != nil {
		return err
	}
	other, err := s.create(ctx, c, s.request("other", 1))
	if err != nil {
		return err
	}
	_, err = s.controller.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: s.prefix + "snapshot", SourceVolumeId: other.GetVolumeId()})
	return want("the name of a snapshot for another volume", err, codes.AlreadyExists)
}

func snapshotPages(ctx context.Context, s *suite, c *cleanup) error {
	source, err := s.create(ctx, c, s.request("album", 1))
	if err != nil {
		return err
	}
	mine := map[string]int{}
	for i := range 3 {
		made, err := s.snapshot(ctx, c, fmt.Sprintf("album-%d", i), source.GetVolumeId(), nil)
		if err != nil {
			return err
		}
		mine[made.GetSnapshotId()] = 0
		one, err := s.controller.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: made.GetSnapshotId()})
		if err != nil || len(one.GetEntries()) != 1 || !one.GetEntries()[0].GetSnapshot().GetReadyToUse() {
			return fmt.Errorf("by ID: want one ready snapshot, got %v, %w", one, err)
		}
	}
	token := ""
	for {
		page, err := s.controller.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SourceVolumeId: source.GetVolumeId(), MaxEntries: 1, StartingToken: token})
		if err != nil {
			return fmt.Errorf("by volume: %w", err)
		}
		for _, e := range page.GetEntries() {
			if _, ours := mine[e.GetSnapshot().GetSnapshotId()]; !ours {
				return fmt.Errorf("by volume: snapshot %v has another source", e.GetSnapshot())
			}
			mine[e.GetSnapshot().GetSnapshotId()]++
		}
		if token = page.GetNextToken(); token == "" {
			break
		}
	}
	for id, seen := range mine {
		if seen != 1 {
			return fmt.Errorf("snapshot %s was listed %d times", id, seen)
		}
	}
	return nil
}

func backups(ctx context.Context, s *suite, c *cleanup) error {
	source, err := s.create(ctx, c, s.request("backed-up", 1))
	if err != nil {
		return err
	}
	made, err := s.snapshot(ctx, c, "backup", source.GetVolumeId(), s.backup)
	if err != nil {
		return err
	}
	if err := insist(ctx, s.deletion(source.GetVolumeId())); err != nil {
		return fmt.Errorf("delete the volume of a backup: %w", err)
	}
	listed, err := s.controller.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: made.GetSnapshotId()})
	if err != nil || len(listed.GetEntries()) != 1 {
		return fmt.Errorf("want the backup listed by its id, got %v, %w", listed, err)
	}
	req := s.request("from-backup", 2)
	req.VolumeContentSource = fromSnapshot(made.GetSnapshotId())
	restored, err := s.create(ctx, c, req)
	if err == nil && restored.GetCapacityBytes() < 2*gib {
		err = fmt.Errorf("want 2 GiB from a backup, got %v", restored)
	}
	return err
}

func modify(ctx context.Context, s *suite, c *cleanup) error {
	made, err := s.create(ctx, c, s.request("modified", 1))
	if err != nil {
		return err
	}
	for range 2 {
		err := insist(ctx, func(ctx context.Context) error {
			_, err := s.controller.ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{VolumeId: made.GetVolumeId(), MutableParameters: s.mutable})
			return err
		})
		if err != nil {
			return fmt.Errorf("modify: %w", err)
		}
	}
	_, err = s.controller.ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{
		VolumeId: made.GetVolumeId(), MutableParameters: map[string]string{"there-is-no-such-parameter": "x"},
	})
	return want("an unknown parameter", err, codes.InvalidArgument)
}

func health(ctx context.Context, s *suite, c *cleanup) error {
	made, err := s.create(ctx, c, s.request("health", 1))
	if err != nil {
		return err
	}
	one, err := s.controller.ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: made.GetVolumeId()})
	if err != nil || one.GetVolumeHealth().GetVolumeId() != made.GetVolumeId() || len(one.GetVolumeHealth().GetHealthStatuses()) > 0 {
		return fmt.Errorf("want no health status of %s, got %v, %w", made.GetVolumeId(), one, err)
	}
	all, err := s.controller.ControllerListVolumeHealth(ctx, &csi.ControllerListVolumeHealthRequest{})
	if err != nil {
		return err
	}
	for _, h := range all.GetEntries() {
		if h.GetVolumeId() == made.GetVolumeId() && len(h.GetHealthStatuses()) > 0 {
			return fmt.Errorf("ControllerListVolumeHealth has a status for the healthy volume: %v", h)
		}
	}
	_, err = s.controller.ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: "none"})
	return want("the health of an unknown volume", err, codes.NotFound)
}

func capacity(ctx context.Context, s *suite, _ *cleanup) error {
	answer, err := s.controller.GetCapacity(ctx, &csi.GetCapacityRequest{Parameters: s.parameters, VolumeCapabilities: []*csi.VolumeCapability{writer()}})
	if err != nil || answer.GetAvailableCapacity() <= 0 {
		return fmt.Errorf("want capacity, got %v, %w", answer, err)
	}
	_, err = s.controller.GetCapacity(ctx, &csi.GetCapacityRequest{
		VolumeCapabilities: []*csi.VolumeCapability{capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, false)},
	})
	return want("capacity for file systems that several nodes write", err, codes.OK, codes.InvalidArgument)
}

// staged uses a volume on the endpoint's own node.
func staged(ctx context.Context, s *suite, c *cleanup) error {
	made, err := s.create(ctx, c, s.request("staged", 1))
	if err != nil {
		return err
	}
	id, as := made.GetVolumeId(), capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, false)
	as.GetMount().FsType = s.fsType
	context, err := s.publish(ctx, c, id, s.here.GetNodeId(), as)
	if err != nil {
		return err
	}
	staging, targets := filepath.Join(s.stage, id, "staging"), [2]string{filepath.Join(s.stage, id, "one"), filepath.Join(s.stage, id, "other")}
	if err := os.MkdirAll(staging, 0o750); err != nil {
		return err
	}
	c.add(s.unstage(id, staging, targets[:]))
	err = insist(ctx, s.staging(&csi.NodeStageVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, VolumeCapability: as, PublishContext: context, VolumeContext: made.GetVolumeContext(),
	}))
	if err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	mount := func(target string) error {
		_, err := s.node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: as, PublishContext: context, VolumeContext: made.GetVolumeContext(),
		})
		return err
	}
	if err := mount(targets[0]); err != nil {
		return fmt.Errorf("publish on the node: %w", err)
	}
	if err := want("a second target of a single writer", mount(targets[1]), codes.FailedPrecondition); err != nil {
		return err
	}
	before, err := s.measured(ctx, id, targets[0])
	if err != nil {
		return err
	}
	h, err := s.node.NodeGetVolumeHealth(ctx, &csi.NodeGetVolumeHealthRequest{VolumeId: id, VolumePublishPath: targets[0], StagingTargetPath: staging})
	if err != nil || len(h.GetVolumeHealth().GetHealthStatuses()) > 0 {
		return fmt.Errorf("want no health status on the node, got %v, %w", h, err)
	}
	if err := s.expand(ctx, id, 2); err != nil {
		return err
	}
	_, err = s.node.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
		VolumeId: id, VolumePath: targets[0], StagingTargetPath: staging, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}, VolumeCapability: as,
	})
	if err != nil {
		return fmt.Errorf("expand on the node: %w", err)
	}
	after, err := s.measured(ctx, id, targets[0])
	if err == nil && after <= before {
		err = fmt.Errorf("the file system had %d bytes and has %d", before, after)
	}
	return err
}

func (s *suite) staging(req *csi.NodeStageVolumeRequest) func(ctx context.Context) error {
	return func(ctx context.Context) error { _, err := s.node.NodeStageVolume(ctx, req); return err }
}

// measured is the size of the file system of a volume.
func (s *suite) measured(ctx context.Context, id, path string) (int64, error) {
	answer, err := s.node.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: path})
	if err != nil {
		return 0, fmt.Errorf("NodeGetVolumeStats: %w", err)
	}
	for _, usage := range answer.GetUsage() {
		if usage.GetUnit() == csi.VolumeUsage_BYTES && usage.GetTotal() > 0 {
			return usage.GetTotal(), nil
		}
	}
	return 0, fmt.Errorf("NodeGetVolumeStats reports no bytes: %v", answer)
}

func (s *suite) unstage(id, staging string, targets []string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		for _, target := range targets {
			if _, err := s.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target}); err != nil {
				return err
			}
		}
		_, err := s.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging})
		return err
	}
}
