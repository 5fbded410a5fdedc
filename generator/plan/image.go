package plan

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// The parts of an image's reference, as container runtimes read it (distribution's reference grammar). A registry may have the
// first parts of the path with it, as a mirror's often does.
var (
	imageRegistry   = regexp.MustCompile(`^(` + imageHost + `|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?(/` + imagePart + `)*$`)
	imageRepository = regexp.MustCompile(`^` + imagePart + `(/` + imagePart + `)*$`)
	imageTag        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	imageDigest     = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

const (
	imageHost = `[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*`
	imagePart = `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`
)

func (d *decider) checkImages(path string, images v1alpha1.Images) {
	d.checkRegistry(path, images.Registry)
	byName := images.ByName()
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		d.checkImage(path+"."+name, byName[name])
	}
}

func (d *decider) checkRegistry(path, registry string) {
	host, _, _ := strings.Cut(registry, "/")
	if registry != "" && (!imageRegistry.MatchString(registry) || !strings.ContainsAny(host, ".:")) {
		d.problem("%s.registry: %q is not a registry such as registry.example or registry.example:5000/mirror", path, registry)
	}
}

func (d *decider) checkImage(path string, i v1alpha1.Image) {
	d.checkRegistry(path, i.Registry)
	if i.Repository != "" && !imageRepository.MatchString(i.Repository) {
		d.problem("%s.repository: %q is not a repository such as sig-storage/csi-resizer", path, i.Repository)
	}
	if i.Tag != "" && !imageTag.MatchString(i.Tag) {
		d.problem("%s.tag: %q is not a tag: letters, digits, '_', '.' and '-', at most 128", path, i.Tag)
	}
	if i.Tag == "latest" && i.Digest == "" {
		d.warn("%s.tag: latest may be another image on every node and after every restart; name a version, or a digest", path)
	}
	if i.Digest != "" && !imageDigest.MatchString(i.Digest) {
		d.problem("%s.digest: %q is not sha256: and 64 hex digits", path, i.Digest)
	}
}

// imageReference is an image as container runtimes read it: NAME[:TAG][@DIGEST].
func imageReference(name, tag, digest string) string {
	if tag != "" {
		name += ":" + tag
	}
	if digest != "" {
		name += "@" + digest
	}
	return name
}

// SplitImage is the name, tag and digest of a reference; the name begins with a registry.
func SplitImage(reference string) (name, tag, digest string) {
	name, digest, _ = strings.Cut(reference, "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name, tag = name[:colon], name[colon+1:]
	}
	return name, tag, digest
}

// generatorImage is the name of the image of the drift check.
const generatorImage = "generator"

// noRegistry is where the base has the images of this project, which has no registry. The name never resolves (RFC 2606), so no node pulls
// an image that somebody else made.
const noRegistry = "registry.invalid/"

// unpublished says what a person must do about an image that no registry has.
var unpublished = "no registry has this image by default: build or mirror it (" + pages.BuildTheImage.Title() + ") and set spec.images."

// Unpublished are the images, by their names in spec.images, that no registry has. A bundle with one can be read, not run.
func (r Result) Unpublished() []string {
	var names []string
	for _, i := range []struct {
		name  string
		image Decision[string]
	}{{"driver", r.Image(r.Controller, "driver")}, {"driver", r.Image(r.Node, "driver")}, {generatorImage, r.Images[generatorImage]}} {
		if strings.HasPrefix(i.image.Value, noRegistry) && !slices.Contains(names, i.name) {
			names = append(names, i.name)
		}
	}
	return names
}

// warnOfImage comes before all other warnings, because the first apply fails without the image.
func (d *decider) warnOfImage(r Result) {
	for _, name := range slices.Backward(r.Unpublished()) {
		d.warnings = slices.Insert(d.warnings, 0, "the "+name+" image: "+unpublished+name)
	}
}

// SidecarRelease is the first release of a sidecar that has all flags of a bundle, and the flag that its earlier releases lack.
type SidecarRelease struct{ Image, Program, Release, Flag string }

// SidecarReleases are those of the images with flags, by their names in spec.images; an unknown flag ends a program at once. Each was found in the
// source of the releases around it. A flag that is added to a bundle may need a later release here.
var SidecarReleases = []SidecarRelease{
	{"provisioner", "csi-provisioner", "v6.3.0", "--snapshot-orphan-sweep-interval"},
	{"attacher", "csi-attacher", "v4.6.0", "--logging-format"},
	{"resizer", "csi-resizer", "v1.10.0", "--logging-format"},
	{"snapshotter", "csi-snapshotter", "v8.3.0", "--logging-format"},
	{"registrar", "csi-node-driver-registrar", "v2.11.0", "--logging-format"},
	{"livenessprobe", "livenessprobe", "v2.12.0", "--logging-format"},
}

// released is the tag of a release; other builds may have the flags of a later one.
var released = regexp.MustCompile(`^v([0-9]+)\.([0-9]+)\.([0-9]+)$`)

// version gives the numbers of a released tag, nil for another.
func version(tag string) []int {
	var numbers []int
	for _, part := range released.FindStringSubmatch(tag) {
		if n, err := strconv.Atoi(part); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// checkSidecars refuses a release without a flag that every bundle sets.
func (d *decider) checkSidecars(r Result) {
	for _, s := range SidecarReleases {
		for _, image := range slices.Compact([]string{r.Image(r.Controller, s.Image).Value, r.Image(r.Node, s.Image).Value}) {
			name, tag, digest := SplitImage(image)
			given := version(tag)
			if len(given) == 3 && digest == "" && strings.HasSuffix(name, "/"+s.Program) && slices.Compare(given, version(s.Release)) < 0 {
				d.problem("spec.images.%s.tag: %s %s has no flag %s, which the bundle sets, and ends at once; name %s or later, or leave the tag out", s.Image, s.Program, tag, s.Flag, s.Release)
			}
		}
	}
}

// rbacProxy names the image of kube-rbac-proxy. A container of it exists for each endpoint of metrics.
const rbacProxy = "rbacproxy"

// ImageOf is the name of a container's image in spec.images.
func ImageOf(container string) string {
	if strings.HasPrefix(container, "kube-rbac-proxy-") {
		return rbacProxy
	}
	return container
}

func (d *decider) imagesOf(role string) []string {
	switch {
	case role == v1alpha1.NodeRole:
		return nodeImages
	case role == driftCheckRole && d.spec.DriftCheck.Schedule == "":
		return nil
	case role == driftCheckRole:
		return driftCheckImages
	case d.proxied:
		return append(slices.Clone(controllerImages), rbacProxy)
	}
	return controllerImages
}

// images are the images that both roles share, and the one of the drift check.
func (d *decider) images() map[string]Decision[string] {
	all, over, mirror := map[string]Decision[string]{}, d.spec.Images.ByName(), d.spec.Images.Registry
	for _, role := range []string{v1alpha1.ControllerRole, v1alpha1.NodeRole, driftCheckRole} {
		for _, name := range d.imagesOf(role) {
			key := "spec.images." + name
			if mirror != "" && withoutPolicy(over[name]) == (v1alpha1.Image{}) {
				key = "spec.images.registry"
			}
			all[name] = d.image(role, name, d.mirrored(over[name], mirror), key)
		}
	}
	return all
}

// withoutPolicy is the part of an override that concerns the reference.
func withoutPolicy(i v1alpha1.Image) v1alpha1.Image {
	i.PullPolicy = ""
	return i
}

// mirrored is an override with the mirror as its registry, where it names none of its own.
func (d *decider) mirrored(over v1alpha1.Image, mirror string) v1alpha1.Image {
	over.Registry = cmp.Or(over.Registry, mirror, d.spec.Images.Registry)
	return withoutPolicy(over)
}

// image is the base's image of a container with the configured parts. A registry replaces the first element of the name, a
// repository the rest. A digest alone identifies an image; a new tag without one drops the digest of the base.
func (d *decider) image(role, container string, over v1alpha1.Image, key string) Decision[string] {
	decision := Decision[string]{Value: base().images[role+"/"+container], Source: Default, Reason: "the release that this version is tested with"}
	isUnpublished := strings.HasPrefix(decision.Value, noRegistry) && over.Registry == ""
	if isUnpublished {
		decision.Reason = unpublished + container
	}
	if over == (v1alpha1.Image{}) {
		return decision
	}
	decision.Source, decision.Reason = FromConfig, key+" is set"
	if isUnpublished {
		decision.Reason += "; " + unpublished + container
	}
	name, tag, digest := SplitImage(decision.Value)
	registry, repository, _ := strings.Cut(name, "/")
	switch {
	case over.Digest != "":
		tag, digest = "", over.Digest
	case over.Tag != "":
		tag, digest = over.Tag, ""
	}
	decision.Value = imageReference(cmp.Or(over.Registry, registry)+"/"+cmp.Or(over.Repository, repository), tag, digest)
	return decision
}
