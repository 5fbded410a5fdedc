package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// life starts the driver on a socket and takes one volume from its creation to its deletion.
func life(ctx context.Context, bin, dir string, cloud *simulated) error {
	socket := filepath.Join(dir, "csi.sock")
	p, err := start(ctx, filepath.Join(dir, "driver.log"), filepath.Join(bin, "cinder-csi-driver"),
		"--endpoint=unix://"+socket, "--cloud-config="+filepath.Join(cloud.files, "cloud.conf"), "--cluster=demo",
		"--metadata-url="+cloud.url+"/metadata/node-az1", "--v=2")
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
	if err := walk(ctx, conn); err != nil {
		return fmt.Errorf("%w (the driver's log is %s)", err, p.log)
	}
	if err := p.terminate(); err != nil {
		return err
	}
	fmt.Println("the driver drained and exited with 0")
	return nil
}

// step makes one call, prints what came of it and how long it took.
func step[Request, Response any](ctx context.Context, name string, call func(context.Context, Request, ...grpc.CallOption) (Response, error), request Request, say func(Response) string) (Response, error) {
	begin := time.Now()
	response, err := call(ctx, request)
	if err != nil {
		return response, fmt.Errorf("%s: %w", name, err)
	}
	fmt.Printf("%-26s %6.0f ms  %s\n", name, time.Since(begin).Seconds()*1000, say(response))
	return response, nil
}

func walk(ctx context.Context, conn *grpc.ClientConn) error {
	identity, controller, node := csi.NewIdentityClient(conn), csi.NewControllerClient(conn), csi.NewNodeClient(conn)
	if _, err := step(ctx, "GetPluginInfo", identity.GetPluginInfo, &csi.GetPluginInfoRequest{}, func(r *csi.GetPluginInfoResponse) string {
		return r.GetName() + " " + r.GetVendorVersion()
	}); err != nil {
		return err
	}
	here, err := step(ctx, "NodeGetInfo", node.NodeGetInfo, &csi.NodeGetInfoRequest{}, func(r *csi.NodeGetInfoResponse) string {
		return fmt.Sprintf("server %s, %v, at most %d volumes", r.GetNodeId(), r.GetAccessibleTopology().GetSegments(), r.GetMaxVolumesPerNode())
	})
	if err != nil {
		return err
	}
	capability := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
	made, err := step(ctx, "CreateVolume", controller.CreateVolume, &csi.CreateVolumeRequest{
		Name:                      "pvc-demo",
		CapacityRange:             &csi.CapacityRange{RequiredBytes: 1 << 30},
		VolumeCapabilities:        []*csi.VolumeCapability{capability},
		Parameters:                map[string]string{"type": "fast"},
		AccessibilityRequirements: &csi.TopologyRequirement{Preferred: []*csi.Topology{here.GetAccessibleTopology()}},
	}, func(r *csi.CreateVolumeResponse) string {
		return fmt.Sprintf("volume %s, %d GiB, %v", r.GetVolume().GetVolumeId(), r.GetVolume().GetCapacityBytes()>>30, r.GetVolume().GetAccessibleTopology())
	})
	if err != nil {
		return err
	}
	id := made.GetVolume().GetVolumeId()
	if _, err := step(ctx, "ControllerPublishVolume", controller.ControllerPublishVolume, &csi.ControllerPublishVolumeRequest{
		VolumeId: id, NodeId: here.GetNodeId(), VolumeCapability: capability, VolumeContext: made.GetVolume().GetVolumeContext(),
	}, func(*csi.ControllerPublishVolumeResponse) string { return "attached to node-az1" }); err != nil {
		return err
	}
	if _, err := step(ctx, "ControllerGetVolume", controller.ControllerGetVolume, &csi.ControllerGetVolumeRequest{VolumeId: id}, func(r *csi.ControllerGetVolumeResponse) string {
		return fmt.Sprintf("published on %v", r.GetStatus().GetPublishedNodeIds())
	}); err != nil {
		return err
	}
	if _, err := step(ctx, "ControllerUnpublishVolume", controller.ControllerUnpublishVolume, &csi.ControllerUnpublishVolumeRequest{
		VolumeId: id, NodeId: here.GetNodeId(),
	}, func(*csi.ControllerUnpublishVolumeResponse) string { return "detached" }); err != nil {
		return err
	}
	if _, err := step(ctx, "DeleteVolume", controller.DeleteVolume, &csi.DeleteVolumeRequest{VolumeId: id}, func(*csi.DeleteVolumeResponse) string {
		return "gone"
	}); err != nil {
		return err
	}
	_, err = step(ctx, "ListVolumes", controller.ListVolumes, &csi.ListVolumesRequest{}, func(r *csi.ListVolumesResponse) string {
		return fmt.Sprintf("%d volumes left", len(r.GetEntries()))
	})
	return err
}
