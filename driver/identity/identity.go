// Package identity reports what the driver is and what it can do (CSI specification, "Identity Service RPC").
package identity

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Options are what the server reports.
type Options struct {
	DriverName   string
	Version      string
	WithTopology bool
	// Ready is the answer to Probe; nil means ready. The sidecars of a pod wait until it is true, and the liveness probe restarts a driver for which
	// it stays false.
	Ready func() bool
}

// Server implements csi.IdentityServer.
type Server struct {
	csi.UnimplementedIdentityServer
	o Options
}

// New returns a Server.
func New(o Options) *Server { return &Server{o: o} }

// GetPluginInfo implements csi.IdentityServer.
func (s *Server) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.o.DriverName, VendorVersion: s.o.Version}, nil
}

// GetPluginCapabilities implements csi.IdentityServer. The process of a node reports the controller service too, as upstream does: the
// answer describes the plugin, not the services on this socket.
func (s *Server) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	services := []csi.PluginCapability_Service_Type{csi.PluginCapability_Service_CONTROLLER_SERVICE}
	if s.o.WithTopology {
		services = append(services, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
	}
	answer := &csi.GetPluginCapabilitiesResponse{}
	for _, service := range services {
		answer.Capabilities = append(answer.Capabilities, &csi.PluginCapability{
			Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: service}},
		})
	}
	for _, expansion := range []csi.PluginCapability_VolumeExpansion_Type{csi.PluginCapability_VolumeExpansion_ONLINE, csi.PluginCapability_VolumeExpansion_OFFLINE} {
		answer.Capabilities = append(answer.Capabilities, &csi.PluginCapability{
			Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: expansion}},
		})
	}
	return answer, nil
}

// Probe implements csi.IdentityServer. It does not check the cloud: the liveness probe would restart the driver during an outage.
func (s *Server) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(s.o.Ready == nil || s.o.Ready())}, nil
}
