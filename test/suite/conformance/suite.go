package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	gib = 1 << 30
	// deadline is the usual deadline of the sidecars for an RPC, patience is how long the program retries.
	deadline, patience = 3 * time.Minute, 15 * time.Minute
)

// suite is a driver under test.
type suite struct {
	settings
	identity   csi.IdentityClient
	controller csi.ControllerClient
	node       csi.NodeClient
	here       *csi.NodeGetInfoResponse // nil without a node service
	has        []string                 // the advertised capabilities
	prefix     string                   // of names, so that runs use different objects
}

// check is one case.
type check struct {
	name string
	// covers are the capabilities that the case tests, as capabilities returns them. The case needs all of them.
	covers []string
	// needs returns the reason why the case cannot run with these settings, or an empty text. nil needs nothing.
	needs func(s *suite) string
	run   func(ctx context.Context, s *suite, c *cleanup) error
}

// result is the result of a check.
type result struct {
	name, skip string
	err        error
	took       time.Duration
}

func (r result) verdict() string {
	switch {
	case r.err != nil:
		return "FAIL"
	case r.skip != "":
		return "skip"
	}
	return "pass"
}

// conform runs the checks whose name has the text.
func conform(ctx context.Context, conn grpc.ClientConnInterface, set settings, text string) ([]result, error) {
	s := &suite{
		settings: set, identity: csi.NewIdentityClient(conn), controller: csi.NewControllerClient(conn), node: csi.NewNodeClient(conn),
		prefix: "conformance-" + strings.ToLower(rand.Text()[:8]) + "-",
	}
	var err error
	if s.has, err = capabilities(ctx, conn); err != nil {
		return nil, err
	}
	if s.here, err = s.node.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{}); err != nil && status.Code(err) != codes.Unimplemented {
		return nil, fmt.Errorf("NodeGetInfo: %w", err)
	}
	if len(s.nodes) == 0 && s.here != nil {
		s.nodes = []string{s.here.GetNodeId()}
	}
	var results []result
	for _, c := range checks {
		if strings.Contains(c.name, text) {
			results = append(results, s.try(ctx, c))
		}
	}
	return results, nil
}

func (s *suite) try(ctx context.Context, c check) result {
	begun := time.Now()
	r := result{name: c.name}
	for _, capability := range c.covers {
		if !slices.Contains(s.has, capability) {
			r.skip = "the driver has no " + capability
		}
	}
	if r.skip == "" && c.needs != nil {
		r.skip = c.needs(s)
	}
	if r.skip != "" {
		return r
	}
	var taken cleanup
	r.err = c.run(ctx, s, &taken)
	r.err = errors.Join(r.err, taken.all(context.WithoutCancel(ctx)))
	r.took = time.Since(begun)
	return r
}

// capabilities returns the capabilities that a driver advertises, such as "plugin CONTROLLER_SERVICE", "expansion ONLINE", "controller
// LIST_VOLUMES", "node …".
func capabilities(ctx context.Context, conn grpc.ClientConnInterface) ([]string, error) {
	var all []string
	plugin, err := csi.NewIdentityClient(conn).GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("GetPluginCapabilities: %w", err)
	}
	for _, c := range plugin.GetCapabilities() {
		if c.GetService() != nil {
			all = append(all, "plugin "+c.GetService().GetType().String())
		}
		if c.GetVolumeExpansion() != nil {
			all = append(all, "expansion "+c.GetVolumeExpansion().GetType().String())
		}
	}
	controller, err := csi.NewControllerClient(conn).ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	if err != nil && status.Code(err) != codes.Unimplemented {
		return nil, fmt.Errorf("ControllerGetCapabilities: %w", err)
	}
	for _, c := range controller.GetCapabilities() {
		all = append(all, "controller "+c.GetRpc().GetType().String())
	}
	node, err := csi.NewNodeClient(conn).NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil && status.Code(err) != codes.Unimplemented {
		return nil, fmt.Errorf("NodeGetCapabilities: %w", err)
	}
	for _, c := range node.GetCapabilities() {
		all = append(all, "node "+c.GetRpc().GetType().String())
	}
	return all, nil
}

// cleanup has the steps that undo a check. They run last first.
type cleanup struct {
	mu    sync.Mutex
	steps []func(ctx context.Context) error
}

func (c *cleanup) add(step func(ctx context.Context) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, step)
}

func (c *cleanup) all(ctx context.Context) error {
	var failed error
	for _, step := range slices.Backward(c.steps) {
		if err := insist(ctx, step); err != nil {
			failed = errors.Join(failed, fmt.Errorf("clean up: %w", err))
		}
	}
	return failed
}

// passing are the codes after which a caller retries.
var passing = []codes.Code{codes.Aborted, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled}

// insist calls as sidecars do: with their deadline for each call, and with retries after the codes in passing.
func insist(ctx context.Context, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for wait := 250 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		one, end := context.WithTimeout(ctx, deadline)
		err := call(one)
		end()
		if !slices.Contains(passing, status.Code(err)) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// want returns an error unless err has one of the codes.
func want(what string, err error, allowed ...codes.Code) error {
	if slices.Contains(allowed, status.Code(err)) {
		return nil
	}
	return fmt.Errorf("%s: want %v, got %v", what, allowed, err)
}

func capability(mode csi.VolumeCapability_AccessMode_Mode, block bool) *csi.VolumeCapability {
	c := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode}}
	if block {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	} else {
		c.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}}
	}
	return c
}

func writer() *csi.VolumeCapability {
	return capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, false)
}

// request is the request for an ordinary volume.
func (s *suite) request(name string, size int64) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: s.prefix + name, CapacityRange: &csi.CapacityRange{RequiredBytes: size * gib}, Parameters: s.parameters,
		VolumeCapabilities: []*csi.VolumeCapability{writer()},
	}
}

// create creates a volume. The cleanup deletes it.
func (s *suite) create(ctx context.Context, c *cleanup, req *csi.CreateVolumeRequest) (*csi.Volume, error) {
	var made *csi.Volume
	err := insist(ctx, func(ctx context.Context) error {
		answer, err := s.controller.CreateVolume(ctx, req)
		made = answer.GetVolume()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", req.GetName(), err)
	}
	c.add(s.deletion(made.GetVolumeId()))
	return made, nil
}

func (s *suite) deletion(id string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		return err
	}
}

// publish attaches a volume. The cleanup detaches it.
func (s *suite) publish(ctx context.Context, c *cleanup, id, node string, as *csi.VolumeCapability) (map[string]string, error) {
	c.add(func(ctx context.Context) error { return s.unpublish(ctx, id, node) })
	var published map[string]string
	err := insist(ctx, func(ctx context.Context) error {
		answer, err := s.controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: as})
		published = answer.GetPublishContext()
		return err
	})
	if err != nil {
		err = fmt.Errorf("publish %s: %w", id, err)
	}
	return published, err
}

func (s *suite) unpublish(ctx context.Context, id, node string) error {
	_, err := s.controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: node})
	return err
}

// snapshot creates a snapshot and waits until it is ready. The cleanup deletes it.
func (s *suite) snapshot(ctx context.Context, c *cleanup, name, of string, parameters map[string]string) (*csi.Snapshot, error) {
	req := &csi.CreateSnapshotRequest{Name: s.prefix + name, SourceVolumeId: of, Parameters: parameters}
	var made *csi.Snapshot
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		first := made == nil
		err := insist(ctx, func(ctx context.Context) error {
			answer, err := s.controller.CreateSnapshot(ctx, req)
			if err == nil && made != nil && answer.GetSnapshot().GetSnapshotId() != made.GetSnapshotId() {
				return fmt.Errorf("the driver first returned ID %s and now %s", made.GetSnapshotId(), answer.GetSnapshot().GetSnapshotId())
			}
			if err == nil {
				made = answer.GetSnapshot()
			}
			return err
		})
		if first && made != nil {
			c.add(func(ctx context.Context) error { return s.unsnapshot(ctx, made.GetSnapshotId()) })
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("snapshot %s: %w", req.GetName(), err)
		case made.GetReadyToUse():
			return made, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("snapshot %s is not ready: %w", req.GetName(), ctx.Err())
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (s *suite) unsnapshot(ctx context.Context, id string) error {
	_, err := s.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id})
	return err
}

// nodesOf returns the nodes of a volume in ListVolumes and ControllerGetVolume. It fails if the two differ.
func (s *suite) nodesOf(ctx context.Context, id string) ([]string, error) {
	one, err := s.controller.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: id})
	if err != nil {
		return nil, fmt.Errorf("ControllerGetVolume: %w", err)
	}
	all, err := s.controller.ListVolumes(ctx, &csi.ListVolumesRequest{})
	if err != nil {
		return nil, fmt.Errorf("ListVolumes: %w", err)
	}
	for _, e := range all.GetEntries() {
		if e.GetVolume().GetVolumeId() != id {
			continue
		}
		a, b := slices.Sorted(slices.Values(one.GetStatus().GetPublishedNodeIds())), slices.Sorted(slices.Values(e.GetStatus().GetPublishedNodeIds()))
		if !slices.Equal(a, b) {
			return nil, fmt.Errorf("volume %s is on nodes %v in ControllerGetVolume, and on %v in ListVolumes", id, a, b)
		}
		return a, nil
	}
	return nil, fmt.Errorf("ListVolumes has no volume %s", id)
}

// at wants a volume to be on exactly these nodes.
func (s *suite) at(ctx context.Context, id string, nodes ...string) error {
	got, err := s.nodesOf(ctx, id)
	if err == nil && !slices.Equal(got, slices.Sorted(slices.Values(nodes))) {
		err = fmt.Errorf("want volume %s on nodes %v, got %v", id, nodes, got)
	}
	return err
}

// together runs n calls at once and joins their errors.
func together(n int, call func(i int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { errs[i] = call(i) })
	}
	group.Wait()
	return errors.Join(errs...)
}
