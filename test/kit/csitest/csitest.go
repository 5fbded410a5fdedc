// Package csitest has the requests that the sidecars make of a driver.
package csitest

import (
	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// Outcome is the error of a call whose answer a test does not need.
func Outcome[T any](_ T, err error) error { return err }

// Mounted is a file system for pods of one node. Without a type the driver chooses.
func Mounted(fsType string) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// Single is a volume for pods of one node: a file system, or a raw block device without a type.
func Single(fsType string) *csi.VolumeCapability {
	c := Mounted(fsType)
	if fsType == "" {
		c.AccessType = Shared().GetAccessType()
	}
	return c
}

// Shared is a raw block volume for many nodes.
func Shared() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
	}
}

// Claim asks for a volume of one GiB with a file system, unless a change says otherwise.
func Claim(name string, change ...func(*csi.CreateVolumeRequest)) *csi.CreateVolumeRequest {
	req := &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{Mounted("")}, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30}}
	for _, c := range change {
		c(req)
	}
	return req
}

// As asks for a volume of that use.
func As(use *csi.VolumeCapability) func(*csi.CreateVolumeRequest) {
	return func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = []*csi.VolumeCapability{use} }
}

// Wanted is a requirement as external-provisioner makes it: the nodes' labels, best first. Without labels there is none.
func Wanted(labels ...string) func(*csi.CreateVolumeRequest) {
	return func(r *csi.CreateVolumeRequest) {
		for _, label := range labels {
			if r.AccessibilityRequirements == nil {
				r.AccessibilityRequirements = &csi.TopologyRequirement{}
			}
			topology := &csi.Topology{Segments: map[string]string{contract.TopologyKey: label}}
			r.AccessibilityRequirements.Preferred = append(r.AccessibilityRequirements.Preferred, topology)
			r.AccessibilityRequirements.Requisite = append(r.AccessibilityRequirements.Requisite, topology)
		}
	}
}

// Multiattach asks for a raw block volume of a type for many nodes.
func Multiattach(r *csi.CreateVolumeRequest) {
	r.VolumeCapabilities, r.Parameters = []*csi.VolumeCapability{Shared()}, map[string]string{"type": "multiattach"}
}

// FromVolume makes the source a volume.
func FromVolume(id string) func(*csi.CreateVolumeRequest) {
	return func(r *csi.CreateVolumeRequest) {
		r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id}}}
	}
}

// FromSnapshot makes the source a snapshot or a backup.
func FromSnapshot(id string) func(*csi.CreateVolumeRequest) {
	return func(r *csi.CreateVolumeRequest) {
		r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}}
	}
}
