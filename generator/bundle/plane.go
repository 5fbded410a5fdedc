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
	controller, node := r.ControllerNamespace, r.NodeNamespace
	if controller.Value == "" || node.Value == "" {
		return nil, fmt.Errorf("the plan has no namespaces")
	}
	make := func(p plane) *plane {
		p.r, p.controllerConf, p.nodeConf = r, controllerConf(r), nodeConf(r)
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

func (p *plane) snapshots() bool { return p.r.SnapshotClass.Value.Enabled }

// controllerConf is the decided cloud.conf, and after it the sections of the zone map.
func controllerConf(r plan.Result) node {
	refs := []Ref{refOf(r.CloudConf)}
	zones := r.ZoneMap.Value
	if len(zones) == 0 {
		return valueOf(r.CloudConf.Value, refs...)
	}
	var file cloudconf.File
	for _, compute := range slices.Sorted(maps.Keys(zones)) {
		file.Set(config.Zone, compute, config.VolumeZone, zones[compute])
	}
	return valueOf(r.CloudConf.Value+"\n"+string(file.Bytes()), append(refs, refOf(r.ZoneMap))...)
}

// nodeConf is the cloud.conf of the node: the attach limit, and where the node reads its metadata. It has no [Global], because the node does
// not talk to OpenStack.
func nodeConf(r plan.Result) node {
	file := cloudconf.File{Sections: []*cloudconf.Section{{Name: "BlockStorage"}}}
	if limit := r.AttachLimit.Value; limit != v1alpha1.Auto {
		file.Set("BlockStorage", "", "node-volume-attach-limit", limit)
	}
	file.Set(config.Metadata, "", config.SearchOrder, strings.Join(r.Metadata.Value, ","))
	return valueOf(string(file.Bytes()), refOf(r.AttachLimit), refOf(r.Metadata))
}
