package identity

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

func TestTheDriverReportsItsNameAndVersion(t *testing.T) {
	got, err := New(Options{DriverName: "cinder.csi.openstack.org", Version: "1.2.3"}).GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
	if err != nil || got.GetName() != "cinder.csi.openstack.org" || got.GetVendorVersion() != "1.2.3" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestZonesAreACapabilityOnlyWithTopology(t *testing.T) {
	for _, with := range []bool{true, false} {
		got, err := New(Options{WithTopology: with}).GetPluginCapabilities(t.Context(), &csi.GetPluginCapabilitiesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		found := map[csi.PluginCapability_Service_Type]bool{}
		for _, c := range got.GetCapabilities() {
			found[c.GetService().GetType()] = true
		}
		if !found[csi.PluginCapability_Service_CONTROLLER_SERVICE] || found[csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS] != with {
			t.Errorf("topology %v: got %v", with, got)
		}
	}
}

func TestVolumesExpandOnlineAndOffline(t *testing.T) {
	got, err := New(Options{}).GetPluginCapabilities(t.Context(), &csi.GetPluginCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[csi.PluginCapability_VolumeExpansion_Type]bool{}
	for _, c := range got.GetCapabilities() {
		found[c.GetVolumeExpansion().GetType()] = true
	}
	if !found[csi.PluginCapability_VolumeExpansion_ONLINE] || !found[csi.PluginCapability_VolumeExpansion_OFFLINE] {
		t.Errorf("got %v", got)
	}
}

func TestProbeIsWhatTheOptionSays(t *testing.T) {
	for want, option := range map[bool]func() bool{true: nil, false: func() bool { return false }} {
		got, err := New(Options{Ready: option}).Probe(t.Context(), &csi.ProbeRequest{})
		if err != nil || got.GetReady().GetValue() != want {
			t.Errorf("want %t, got %v, %v", want, got, err)
		}
	}
}
