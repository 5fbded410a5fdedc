// Package rights compares what the roles of a bundle grant with what its programs call, as the audit log of an API server has it.
//
// A role is written for one program, though all sidecars share a service account. So a call counts for the roles of the program that sent it.
// A right that only another sidecar's role grants is a finding: that role may change or be absent.
package rights

import (
	"slices"
	"strings"
)

// Right is a verb on a resource, as a rule of RBAC grants it. A subresource is part of the resource: "volumeattachments/status".
type Right struct{ Verb, Group, Resource string }

// String is the verb and the resource in the notation of kubectl: "patch volumeattachments.storage.k8s.io/status".
func (r Right) String() string { return r.Verb + " " + r.Target() }

// Target is the resource with its API group, in the notation of kubectl.
func (r Right) Target() string {
	if r.Group == "" {
		return r.Resource
	}
	resource, subresource, has := strings.Cut(r.Resource, "/")
	if has {
		subresource = "/" + subresource
	}
	return resource + "." + r.Group + subresource
}

// reading are the verbs that read. They count as one: an account that may list can read everything, and client-go lists or watches as the API
// server offers it.
var reading = []string{"get", "list", "watch"}

// isUsed reports whether the right was used, or another right to read the same.
func (r Right) isUsed(used map[Right]bool) bool {
	if !slices.Contains(reading, r.Verb) {
		return used[r]
	}
	return slices.ContainsFunc(reading, func(verb string) bool { return used[Right{verb, r.Group, r.Resource}] })
}

// Grant is a right that a role grants to an account.
type Grant struct {
	Right
	Role    string
	Account string // "NAMESPACE/NAME" of the service account that the role is bound to
}

// String is how a list of reasons names the grant: "ROLE VERB RESOURCE". It has no role where roles do not matter.
func (g Grant) String() string { return strings.TrimSpace(g.Role + " " + g.Right.String()) }

// Program is the program that a role is written for, as the user agent of its calls begins. Empty means any program of the account.
func (g Grant) Program() string {
	for _, sidecar := range []string{"provisioner", "attacher", "resizer", "snapshotter"} {
		if _, rest, ours := strings.Cut(g.Role, "-"+sidecar); ours && (rest == "" || rest[0] == '-') {
			return "csi-" + sidecar
		}
	}
	return ""
}

// mayServe reports whether the right is for the program. The driver has no role of its own for what it reads: it has the token of the pod.
func (g Grant) mayServe(program string) bool {
	return g.Program() == "" || program == "" || g.Program() == program || program == "cinder-csi-driver"
}
