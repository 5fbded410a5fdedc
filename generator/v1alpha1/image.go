package v1alpha1

// Images overrides image references, by role or sidecar.
type Images struct {
	// Registry replaces the registry of every image that names none of its own: one mirror for all.
	Registry      string `json:"registry,omitempty"`
	Driver        Image  `json:"driver,omitzero"`
	Provisioner   Image  `json:"provisioner,omitzero"`
	Attacher      Image  `json:"attacher,omitzero"`
	Resizer       Image  `json:"resizer,omitzero"`
	Snapshotter   Image  `json:"snapshotter,omitzero"`
	LivenessProbe Image  `json:"livenessprobe,omitzero"`
	Registrar     Image  `json:"registrar,omitzero"`
	RBACProxy     Image  `json:"rbacproxy,omitzero"` // kube-rbac-proxy, before the metrics on standalone
	Generator     Image  `json:"generator,omitzero"` // of the drift check
}

// Image overrides parts of one image's reference, and when kubelet pulls it.
type Image struct {
	Registry   string `json:"registry,omitempty"`
	Repository string `json:"repository,omitempty"`
	Tag        string `json:"tag,omitempty"`
	Digest     string `json:"digest,omitempty"`
	PullPolicy string `json:"pullPolicy,omitempty"` // Always, IfNotPresent or Never
}

// ByName are the images that are overridden, by role or sidecar.
func (i Images) ByName() map[string]Image {
	named := map[string]Image{}
	for name, image := range map[string]Image{
		"driver": i.Driver, "provisioner": i.Provisioner, "attacher": i.Attacher, "resizer": i.Resizer, "snapshotter": i.Snapshotter,
		"livenessprobe": i.LivenessProbe, "registrar": i.Registrar, "rbacproxy": i.RBACProxy, "generator": i.Generator,
	} {
		if image != (Image{}) {
			named[name] = image
		}
	}
	return named
}
