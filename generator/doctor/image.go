package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// unpublished are the images of this project as a configuration that does not name them has them, with their keys of spec.images. No registry
// has that name.
var unpublished = map[string]string{"registry.invalid/cinder-csi/cinder-csi-driver": "driver", "registry.invalid/cinder-csi/cinder-csi-generator": "generator"}

// images is one run of the check of images. A registry that does not answer is asked once.
type images struct {
	report      *Report
	through     http.RoundTripper
	unreachable map[string]error // by registry
	unasked     map[string][]string
}

// CheckImages asks the registry of each image whether it has it, with the credentials that docker or podman would use here. A nil
// transport is the usual one.
func (r *Report) CheckImages(ctx context.Context, references []string, through http.RoundTripper) {
	if through == nil {
		through = remote.DefaultTransport
	}
	c := &images{report: r, through: through, unreachable: map[string]error{}, unasked: map[string][]string{}}
	for _, image := range references {
		c.check(ctx, image)
	}
	for _, registry := range slices.Sorted(maps.Keys(c.unreachable)) {
		r.add("image", Warning, fmt.Sprintf("registry %s cannot be asked for %d images: %s", registry, len(c.unasked[registry]), cloud.Public(c.unreachable[registry].Error())),
			"doctor does not know whether the nodes can pull them", "check the network, or name a mirror in spec.images")
	}
	r.notChecked("whether the nodes can pull the images", "the registries were asked from here, with the credentials of this user",
		"kubectl debug node/NODE --image=IMAGE pulls an image on a node")
}

func (c *images) check(ctx context.Context, image string) {
	ref, err := name.ParseReference(image)
	if err != nil {
		c.report.add("image", Error, "image "+image+" is not a reference: "+cloud.Public(err.Error()), "kubelet cannot pull it", "correct spec.images")
		return
	}
	if key := unpublished[ref.Context().Name()]; key != "" {
		c.report.add("image", Error, "no registry is named for the "+key+" image", "the pods do not start without it",
			"build it ("+pages.BuildTheImage.String()+") or copy one of a release, push it to your registry, and name that in spec.images."+key)
		return
	}
	registry := ref.Context().RegistryStr()
	err = c.unreachable[registry]
	if err == nil {
		_, err = remote.Head(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(c.through))
	}
	var answer *transport.Error
	switch refused := errors.As(err, &answer) && answer.StatusCode < http.StatusInternalServerError; {
	case err == nil:
		c.report.ok("image", "the registry has %s", image)
	case refused:
		c.report.add("image", Error, fmt.Sprintf("the registry refuses %s: HTTP %d %s", image, answer.StatusCode, http.StatusText(answer.StatusCode)), "the pods do not start without it",
			"check spec.images, and whether the pods need an imagePullSecret (spec.roles)")
	default:
		c.unreachable[registry] = err
		c.unasked[registry] = append(c.unasked[registry], image)
	}
}
