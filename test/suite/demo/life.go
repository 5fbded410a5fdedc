package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// life starts the driver on a socket and takes one volume from its creation to its deletion.
func life(ctx context.Context, out *screen, bin, dir string, cloud *simulated) (failed error) {
	socket := filepath.Join(dir, "csi.sock")
	args := []string{
		"--endpoint=unix://" + socket, "--cloud-config=" + filepath.Join(cloud.files, "cloud.conf"), "--cluster=demo",
		"--metadata-url=" + cloud.url + "/metadata/node-az1", "--v=2",
	}
	if cloud.disks != "" {
		args = append(args, "--sys-root="+filepath.Join(cloud.disks, "sys"), "--dev-root="+filepath.Join(cloud.disks, "dev"))
	}
	p, err := start(ctx, filepath.Join(dir, "driver.log"), filepath.Join(bin, "cinder-csi-driver"), args...)
	if err != nil {
		return err
	}
	defer p.kill()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	identity := csi.NewIdentityClient(conn)
	err = p.await(ctx, func() bool {
		answer, err := identity.Probe(ctx, &csi.ProbeRequest{})
		return err == nil && answer.GetReady().GetValue()
	})
	if err != nil {
		return err
	}
	mounts := ""
	if cloud.disks != "" {
		mounts = filepath.Join(dir, "mounts")
		defer func() { failed = errors.Join(failed, unmountBelow(mounts)) }()
	}
	if err := walk(ctx, out, conn, mounts); err != nil {
		return fmt.Errorf("%w (the driver's log is %s)", err, p.log)
	}
	if err := p.terminate(); err != nil {
		return err
	}
	out.printf("the driver drained and exited with 0\n")
	return nil
}

// step makes one call, and prints its result and its duration.
func step[Request, Response any](ctx context.Context, out *screen, name string, call func(context.Context, Request, ...grpc.CallOption) (Response, error), request Request, say func(Response) string) (Response, error) {
	begin := time.Now()
	response, err := call(ctx, request)
	if err != nil {
		return response, fmt.Errorf("%s: %w", name, err)
	}
	out.printf("%-26s %6.0f ms  %s\n", name, time.Since(begin).Seconds()*1000, say(response))
	return response, nil
}

// walker is a client that creates, uses and deletes volumes on the server of the driver.
type walker struct {
	out        *screen
	controller csi.ControllerClient
	node       csi.NodeClient
	here       *csi.NodeGetInfoResponse
	dir        string // for mounts; empty if volumes have no data
}

var capability = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

// words is the text that the pod of the demo writes.
const words = "written by the first pod\n"

func walk(ctx context.Context, out *screen, conn *grpc.ClientConn, dir string) error {
	w := walker{out: out, controller: csi.NewControllerClient(conn), node: csi.NewNodeClient(conn), dir: dir}
	if _, err := step(ctx, out.details(), "GetPluginInfo", csi.NewIdentityClient(conn).GetPluginInfo, &csi.GetPluginInfoRequest{}, func(r *csi.GetPluginInfoResponse) string {
		return r.GetName() + " " + r.GetVendorVersion()
	}); err != nil {
		return err
	}
	var err error
	if w.here, err = step(ctx, w.out, "NodeGetInfo", w.node.NodeGetInfo, &csi.NodeGetInfoRequest{}, func(r *csi.NodeGetInfoResponse) string {
		return fmt.Sprintf("server %s, %v, at most %d volumes", r.GetNodeId(), r.GetAccessibleTopology().GetSegments(), r.GetMaxVolumesPerNode())
	}); err != nil {
		return err
	}
	if err := w.volume(ctx, "pvc-demo", nil, func(v *csi.Volume) error {
		if w.dir == "" {
			return nil
		}
		return w.snapshot(ctx, v)
	}); err != nil {
		return err
	}
	_, err = step(ctx, w.out, "ListVolumes", w.controller.ListVolumes, &csi.ListVolumesRequest{}, func(r *csi.ListVolumesResponse) string {
		return fmt.Sprintf("%d volumes left", len(r.GetEntries()))
	})
	return err
}

// volume creates and attaches a volume, mounts it if it has data, and calls do. Then it undoes all steps.
func (w walker) volume(ctx context.Context, name string, from *csi.VolumeContentSource, do func(*csi.Volume) error) error {
	made, err := step(ctx, w.out, "CreateVolume", w.controller.CreateVolume, &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30}, VolumeCapabilities: []*csi.VolumeCapability{capability},
		Parameters: map[string]string{"type": "fast"}, VolumeContentSource: from,
		AccessibilityRequirements: &csi.TopologyRequirement{Preferred: []*csi.Topology{w.here.GetAccessibleTopology()}},
	}, func(r *csi.CreateVolumeResponse) string {
		return fmt.Sprintf("volume %s, %d GiB, %v", r.GetVolume().GetVolumeId(), r.GetVolume().GetCapacityBytes()>>30, r.GetVolume().GetAccessibleTopology())
	})
	if err != nil {
		return err
	}
	v := made.GetVolume()
	if _, err := step(ctx, w.out, "ControllerPublishVolume", w.controller.ControllerPublishVolume, &csi.ControllerPublishVolumeRequest{
		VolumeId: v.GetVolumeId(), NodeId: w.here.GetNodeId(), VolumeCapability: capability, VolumeContext: v.GetVolumeContext(),
	}, func(*csi.ControllerPublishVolumeResponse) string { return "attached to node-az1" }); err != nil {
		return err
	}
	if _, err := step(ctx, w.out.details(), "ControllerGetVolume", w.controller.ControllerGetVolume, &csi.ControllerGetVolumeRequest{VolumeId: v.GetVolumeId()}, func(r *csi.ControllerGetVolumeResponse) string {
		return fmt.Sprintf("published on %v", r.GetStatus().GetPublishedNodeIds())
	}); err != nil {
		return err
	}
	if err := w.mounted(ctx, v, do); err != nil {
		return err
	}
	if _, err := step(ctx, w.out, "ControllerUnpublishVolume", w.controller.ControllerUnpublishVolume, &csi.ControllerUnpublishVolumeRequest{
		VolumeId: v.GetVolumeId(), NodeId: w.here.GetNodeId(),
	}, func(*csi.ControllerUnpublishVolumeResponse) string { return "detached" }); err != nil {
		return err
	}
	_, err = step(ctx, w.out, "DeleteVolume", w.controller.DeleteVolume, &csi.DeleteVolumeRequest{VolumeId: v.GetVolumeId()}, says[*csi.DeleteVolumeResponse]("deleted"))
	return err
}

func says[Response any](text string) func(Response) string {
	return func(Response) string { return text }
}

// mounted calls do with an attached volume, which it mounts first if the volume has data.
func (w walker) mounted(ctx context.Context, v *csi.Volume, do func(*csi.Volume) error) error {
	if w.dir == "" {
		return do(v)
	}
	id, staging, target := v.GetVolumeId(), w.path(v, "staging"), w.path(v, "target")
	if err := os.MkdirAll(staging, 0o750); err != nil {
		return err
	}
	if _, err := step(ctx, w.out, "NodeStageVolume", w.node.NodeStageVolume, &csi.NodeStageVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, VolumeCapability: capability, VolumeContext: v.GetVolumeContext(),
	}, says[*csi.NodeStageVolumeResponse]("found the disk by its serial, mounted its ext4 file system")); err != nil {
		return err
	}
	if _, err := step(ctx, w.out, "NodePublishVolume", w.node.NodePublishVolume, &csi.NodePublishVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: capability, VolumeContext: v.GetVolumeContext(),
	}, says[*csi.NodePublishVolumeResponse]("mounted in the pod's directory")); err != nil {
		return err
	}
	if err := do(v); err != nil {
		return err
	}
	if _, err := step(ctx, w.out, "NodeUnpublishVolume", w.node.NodeUnpublishVolume, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target},
		says[*csi.NodeUnpublishVolumeResponse]("unmounted from the pod's directory")); err != nil {
		return err
	}
	_, err := step(ctx, w.out, "NodeUnstageVolume", w.node.NodeUnstageVolume, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging},
		says[*csi.NodeUnstageVolumeResponse]("unmounted from the staging directory"))
	return err
}

func (w walker) path(v *csi.Volume, elements ...string) string {
	return filepath.Join(append([]string{w.dir, v.GetVolumeId()}, elements...)...)
}

// snapshot writes to a volume, creates a snapshot, and overwrites the file. A volume from the snapshot must have the first text.
func (w walker) snapshot(ctx context.Context, v *csi.Volume) error {
	if err := write(w.path(v, "target", "words"), words); err != nil {
		return err
	}
	w.out.printf("%-26s %6s     %q\n", "  a pod writes", "", words)
	request := &csi.CreateSnapshotRequest{Name: "snapshot-demo", SourceVolumeId: v.GetVolumeId()}
	made, err := step(ctx, w.out, "CreateSnapshot", w.controller.CreateSnapshot, request, func(r *csi.CreateSnapshotResponse) string {
		return "snapshot " + r.GetSnapshot().GetSnapshotId()
	})
	if err != nil {
		return err
	}
	if err := write(w.path(v, "target", "words"), "written over\n"); err != nil {
		return err
	}
	id := made.GetSnapshot().GetSnapshotId()
	from := &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}}
	second := w
	second.out = w.out.details()
	if err := second.volume(ctx, "pvc-restored", from, func(restored *csi.Volume) error {
		text, err := os.ReadFile(w.path(restored, "target", "words"))
		if err != nil || string(text) != words {
			return fmt.Errorf("the restored volume should hold %q, and holds %q (%w)", words, text, err)
		}
		w.out.printf("%-26s %6s     %q\n", "  a pod with its copy reads", "", text)
		return nil
	}); err != nil {
		return err
	}
	_, err = step(ctx, w.out, "DeleteSnapshot", w.controller.DeleteSnapshot, &csi.DeleteSnapshotRequest{SnapshotId: id}, says[*csi.DeleteSnapshotResponse]("deleted"))
	return err
}

// write writes a file and waits until it is on the disk.
func write(path, text string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}
