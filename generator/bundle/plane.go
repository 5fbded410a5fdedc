package bundle

import (
	"fmt"

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

// plane is one build. Controller and node say which role's pods it has; cluster says that it has what belongs to the cluster whose
// claims are served: CSIDriver, classes, the sidecars' rights.
type plane struct {
	r    plan.Result
	name string
	dir  string

	controller, node, cluster bool

	// controllerNS is where this plane's objects of the controller live, nodeNS those of the node.
	controllerNS, nodeNS string
	controllerConf       string // cloud.conf
	nodeConf             string
}

func planesOf(r plan.Result) ([]*plane, error) {
	nodeConf, err := nodeConf(r)
	if err != nil {
		return nil, err
	}
	ns := r.Namespaces.Value
	if ns.Controller == "" || ns.Node == "" {
		return nil, fmt.Errorf("the plan has no namespaces")
	}
	make := func(p plane) *plane {
		p.r, p.controllerConf, p.nodeConf = r, r.CloudConf.Value, nodeConf
		return &p
	}
	switch r.Target {
	case v1alpha1.Vanilla, v1alpha1.Standalone:
		return []*plane{make(plane{name: planeCluster, controller: true, node: true, cluster: true, controllerNS: ns.Controller, nodeNS: ns.Node})}, nil
	case v1alpha1.HostedControlPlane:
		return []*plane{
			make(plane{name: planeManagement, dir: planeManagement, controller: true, controllerNS: ns.Controller}),
			// The sidecars' account and leases are in the guest, beside the node.
			make(plane{name: planeGuest, dir: planeGuest, node: true, cluster: true, controllerNS: ns.Node, nodeNS: ns.Node}),
		}, nil
	}
	return nil, fmt.Errorf("target %q: want vanilla, standalone or hypershift", r.Target)
}

func (p *plane) openShift() bool { return p.r.Target != v1alpha1.Vanilla }

func (p *plane) hosted() bool { return p.r.Target == v1alpha1.HostedControlPlane }

func (p *plane) snapshots() bool { return p.r.SnapshotClass.Value.Enabled }

func (p *plane) ca() string { return p.r.Credentials.Value.CABundle }

// nodeConf is the node's cloud.conf: what the controller's says of metadata and devices, and the attach limit; never [Global],
// because the node does not talk to OpenStack.
func nodeConf(r plan.Result) (string, error) {
	conf, err := cloudconf.Parse([]byte(r.CloudConf.Value))
	if err != nil {
		return "", fmt.Errorf("the plan's cloud.conf: %w", err)
	}
	node := &cloudconf.File{Sections: []*cloudconf.Section{{Name: "BlockStorage"}}}
	for _, name := range []string{"BlockStorage", "Metadata"} {
		if s := conf.Section(name, ""); s != nil {
			node.Merge(&cloudconf.File{Sections: []*cloudconf.Section{s}})
		}
	}
	if limit := r.AttachLimit.Value; limit != "" {
		node.Set("BlockStorage", "", "node-volume-attach-limit", limit)
	}
	return string(node.Bytes()), nil
}
