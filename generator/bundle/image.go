package bundle

import (
	"cmp"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/manifests"
)

// image is an entry of a kustomization's images.
type image struct {
	Name    string `json:"name"`
	NewName string `json:"newName"`
	NewTag  string `json:"newTag,omitempty"`
	Digest  string `json:"digest,omitempty"`
}

// pins are the images of manifests/components/images.
func pins() ([]image, error) {
	const file = "components/images/kustomization.yaml"
	text, err := manifests.Files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var k struct {
		Images []image `json:"images"`
	}
	if err := yaml.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return k.Images, nil
}

// images are the images of the plane's pods: the pins, and what the configuration says over them.
func (p *plane) images() ([]image, error) {
	all, err := pins()
	if err != nil {
		return nil, err
	}
	var used []image
	for _, i := range all {
		role, container, _ := strings.Cut(strings.TrimPrefix(i.Name, "cinder-csi/"), "-")
		switch {
		case role == "controller" && !p.controller, role == "node" && !p.node, container == "snapshotter" && !p.snapshots():
			continue
		case role == "controller":
			i = i.over(p.r.Controller.Value.Images[container])
		default:
			i = i.over(p.r.Node.Value.Images[container])
		}
		used = append(used, i)
	}
	return used, nil
}

// over is the image with what an override says of it: a registry replaces the first element, a repository the rest. A digest alone
// identifies an image; a new tag without one drops the pinned digest.
func (i image) over(o v1alpha1.Image) image {
	registry, repository, _ := strings.Cut(i.NewName, "/")
	i.NewName = cmp.Or(o.Registry, registry) + "/" + cmp.Or(o.Repository, repository)
	if o.Tag != "" {
		i.NewTag, i.Digest = o.Tag, ""
	}
	if o.Digest != "" {
		i.NewTag, i.Digest = "", o.Digest
	}
	return i
}
