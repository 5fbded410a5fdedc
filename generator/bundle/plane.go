package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

// The planes: what is built and applied as one.
const (
	planeCluster    = "cluster"
	planeManagement = "management"
	planeGuest      = "guest"
)

// plane is one build. The fields controller and node say which pods it has. The field cluster says that it has the objects of the
// cluster with the claims: CSIDriver, classes, the rights of the sidecars.
type plane struct {
	r    plan.Result
	name string
	dir  string

	controller, node, cluster bool

	// controllerNS is where this plane's objects of the controller live, nodeNS those of the node.
	controllerNS, nodeNS     plan.Decision[string]
	controllerConf, nodeConf node // cloud.conf
}

func planesOf(r plan.Result) ([]*plane, error) {
	nodeConf, err := nodeConf(r)
	if err != nil {
		return nil, err
	}
	controllerConf, err := controllerConf(r)
	if err != nil {
		return nil, err
	}
	controller, node := r.ControllerNamespace, r.NodeNamespace
	if controller.Value == "" || node.Value == "" {
		return nil, fmt.Errorf("the plan has no namespaces")
	}
	make := func(p plane) *plane {
		p.r, p.controllerConf, p.nodeConf = r, controllerConf, nodeConf
		return &p
	}
	switch r.Target {
	case v1alpha1.Vanilla, v1alpha1.Standalone:
		return []*plane{make(plane{name: planeCluster, controller: true, node: true, cluster: true, controllerNS: controller, nodeNS: node})}, nil
	case v1alpha1.HostedControlPlane:
		return []*plane{
			make(plane{name: planeManagement, dir: planeManagement, controller: true, controllerNS: controller}),
			// The sidecars' account and leases are in the guest, beside the node.
			make(plane{name: planeGuest, dir: planeGuest, node: true, cluster: true, controllerNS: node, nodeNS: node}),
		}, nil
	}
	return nil, fmt.Errorf("target %q: want vanilla, standalone or hypershift", r.Target)
}

func (p *plane) openShift() bool { return p.r.OpenShift.Value }

func (p *plane) hosted() bool { return p.r.Hosted.Value }

// guestToken is whether the sidecars reach the guest with a token of a service account.
func (p *plane) guestToken() bool { return p.r.GuestAccess.Value == v1alpha1.ServiceAccountToken }

func (p *plane) snapshots() bool { return p.r.SnapshotClass.Value.Enabled }

// snapshotsOn is the decision that switches on what snapshots need.
func (p *plane) snapshotsOn() Ref { return Ref{p.r.SnapshotClass.ID, "enabled"} }

// hasCA is whether the controller's pods mount certificates.
func (p *plane) hasCA() bool { return p.r.CASource.Value.ConfigMap != "" }

func (p *plane) monitored() bool { return p.r.Monitoring.Value != v1alpha1.None }

func (p *plane) alerts() bool { return p.monitored() && p.r.Alerts.Value }

func (p *plane) dashboards() bool { return p.monitored() && p.r.Dashboards.Value }

// controllerConf is the decided cloud.conf with the sections of the zone map.
func controllerConf(r plan.Result) (node, error) {
	conf, err := cloudconf.Parse([]byte(r.CloudConf.Value))
	if err != nil {
		return nil, fmt.Errorf("the plan's cloud.conf: %w", err)
	}
	refs := []Ref{refOf(r.CloudConf)}
	zones := r.ZoneMap.Value
	if len(zones) == 0 {
		return from(r.CloudConf.Value, refs...), nil
	}
	for _, compute := range slices.Sorted(maps.Keys(zones)) {
		conf.Set(config.Zone, compute, config.VolumeZone, zones[compute])
	}
	return from(string(conf.Bytes()), append(refs, refOf(r.ZoneMap))...), nil
}

// nodeConf is the cloud.conf of the node: the attach limit, and the keys of the controller's file about metadata and devices.
// It never has [Global], because the node does not talk to OpenStack.
func nodeConf(r plan.Result) (node, error) {
	conf, err := cloudconf.Parse([]byte(r.CloudConf.Value))
	if err != nil {
		return nil, fmt.Errorf("the plan's cloud.conf: %w", err)
	}
	file := &cloudconf.File{Sections: []*cloudconf.Section{{Name: "BlockStorage"}}}
	refs := []Ref{refOf(r.AttachLimit), refOf(r.Metadata)}
	for _, name := range []string{"BlockStorage", "Metadata"} {
		if s := conf.Section(name, ""); s != nil {
			file.Merge(&cloudconf.File{Sections: []*cloudconf.Section{s}})
			refs = append(refs, refOf(r.CloudConf))
		}
	}
	if limit := r.AttachLimit.Value; limit != v1alpha1.Auto {
		file.Set("BlockStorage", "", "node-volume-attach-limit", limit)
	}
	file.Set(config.Metadata, "", config.SearchOrder, strings.Join(r.Metadata.Value, ","))
	return from(string(file.Bytes()), distinct(refs)...), nil
}
