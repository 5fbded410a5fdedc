//go:build scale

package scale

import "slices"

// upstream are the containers of upstream's manifests (cinder-csi-controllerplugin.yaml of cloud-provider-openstack 1.36), with what a second
// replica, the metrics and one directory for all need. The other flags have their defaults: 5 requests a second to the
// API server, and 10 workers in the attacher and the resizer.
var upstream = []container{
	{"driver", []string{"--endpoint", "--cloud-config", "--cluster=kubernetes", "--http-endpoint", "--provide-node-service=false", "--v=1"}},
	{"provisioner", slices.Concat(upstreamSidecar, []string{"--default-fstype=ext4", "--feature-gates=Topology=true", "--extra-create-metadata"})},
	{"attacher", slices.Concat(upstreamSidecar, []string{"--default-fstype=ext4"})},
	{"resizer", slices.Concat(upstreamSidecar, []string{"--handle-volume-inuse-error=false"})},
}

var upstreamSidecar = []string{"--csi-address", "--kubeconfig", "--http-endpoint", "--leader-election", "--leader-election-namespace=cinder-csi", "--timeout=3m"}
