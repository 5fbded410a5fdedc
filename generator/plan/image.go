package plan

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
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

func (d *decider) checkImages(path string, images map[string]v1alpha1.Image) {
	for _, name := range slices.Sorted(maps.Keys(images)) {
		d.checkImage(path+"."+name, images[name])
	}
}

func (d *decider) checkImage(path string, i v1alpha1.Image) {
	host, _, _ := strings.Cut(i.Registry, "/")
	if i.Registry != "" && (!imageRegistry.MatchString(i.Registry) || !strings.ContainsAny(host, ".:")) {
		d.problem("%s.registry: %q is not a registry such as registry.example or registry.example:5000/mirror", path, i.Registry)
	}
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
