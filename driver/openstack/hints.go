package openstack

import "github.com/cinder-csi/cinder-csi/driver/contract"

// wireHints is the object OS-SCH-HNT:scheduler_hints beside the volume in the body of a create (Cinder API reference, "Create a volume").
type wireHints struct {
	SameHost      []string `json:"same_host,omitempty"`
	DifferentHost []string `json:"different_host,omitempty"`
	Query         string   `json:"query,omitempty"`
	LocalTo       string   `json:"local_to_instance,omitempty"`
}

const hintsKey = "OS-SCH-HNT:scheduler_hints"

// withHints adds the hints, if there are any, to the body of a create. An old Cinder without them refuses the key.
func withHints(body map[string]any, h contract.Hints) map[string]any {
	if !h.Empty() {
		body[hintsKey] = wireHints{SameHost: h.SameHost, DifferentHost: h.DifferentHost, Query: h.Query, LocalTo: h.LocalToServer}
	}
	return body
}
