package v1alpha1

// NodePool are nodes that need other settings than the rest. They get a DaemonSet of their own, cinder-csi-node-NAME, and the other one leaves
// them out. What a pool does not set is as for all nodes.
type NodePool struct {
	Name string `json:"name"`
	// NodeSelector is one label: the other DaemonSet leaves its nodes out, and the nodes without one of two labels cannot be selected.
	NodeSelector map[string]string `json:"nodeSelector"`
	// Tolerations replace those of roles.node; an empty list means none.
	Tolerations []Toleration `json:"tolerations,omitzero"`
	// VolumeAttachLimit is how many volumes each of these nodes takes.
	VolumeAttachLimit *int `json:"volumeAttachLimit,omitempty"`
	// KubeletDir is kubelet's directory on these nodes.
	KubeletDir string `json:"kubeletDir,omitempty"`
}

// KubeletDirectory are the values that a directory of kubelet may have.
var KubeletDirectory = Directory{Example: "/var/lib/k0s/kubelet"}
