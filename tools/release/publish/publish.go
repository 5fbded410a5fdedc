// Package publish brings the files of a built release to a registry and lays out what a person downloads.
//
// It signs nothing: tools/release/sign.sh does. No name of a registry or of a repository stands here; each comes from the caller.
package publish

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// Media types of a chart in a registry (Helm, "OCI-based registries").
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// Artefact is something in the registry, named by its digest.
type Artefact struct {
	Kind     string `json:"kind"`     // image, chart
	Name     string `json:"name"`     // such as cinder-csi-driver
	Ref      string `json:"ref"`      // registry/repository@sha256:…
	Tag      string `json:"tag"`      // registry/repository:tag
	Platform string `json:"platform"` // architecture of one image of an index; "" is the index, or the chart
}

// Registry is where artefacts go.
type Registry struct {
	Prefix   string // host[:port]/path; names are appended
	Insecure bool   // plain HTTP, for a registry in a rehearsal
}

func (r Registry) tag(repository, tag string) (name.Tag, error) {
	options := []name.Option{name.StrictValidation}
	if r.Insecure {
		options = append(options, name.Insecure)
	}
	// A registry's path is in lower case, and the name of a GitHub organization may not be.
	return name.NewTag(strings.ToLower(r.Prefix)+"/"+repository+":"+tag, options...)
}

func authenticated(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// Push pushes the images and the chart of a release directory. A tag that the registry has with other content is refused: a released
// version never changes.
func Push(ctx context.Context, to Registry, dist, version string) ([]Artefact, error) {
	archives, err := filepath.Glob(filepath.Join(dist, "images", "*.tar"))
	if err != nil || len(archives) == 0 {
		return nil, fmt.Errorf("%s has no images: build the release first (%w)", dist, errors.Join(err, os.ErrNotExist))
	}
	var all []Artefact
	for _, archive := range archives {
		pushed, err := pushImage(ctx, to, archive, version)
		if err != nil {
			return nil, fmt.Errorf("push %s: %w", archive, err)
		}
		all = append(all, pushed...)
	}
	chart, err := pushChart(ctx, to, filepath.Join(dist, "chart", "cinder-csi-"+strings.TrimPrefix(version, "v")+".tgz"))
	if err != nil {
		return nil, fmt.Errorf("push the chart: %w", err)
	}
	return append(all, chart), nil
}

// pushImage pushes the image index of an OCI layout in a tar archive.
func pushImage(ctx context.Context, to Registry, archive, version string) ([]Artefact, error) {
	index, remove, err := openIndex(archive)
	if err != nil {
		return nil, err
	}
	defer remove()
	program := strings.TrimSuffix(filepath.Base(archive), ".tar")
	tag, err := to.tag(program, version)
	if err != nil {
		return nil, err
	}
	digest, err := index.Digest()
	if err != nil {
		return nil, err
	}
	if err := unmoved(ctx, tag, digest); err != nil {
		return nil, err
	}
	if err := remote.WriteIndex(tag, index, authenticated(ctx)...); err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	all := []Artefact{{Kind: "image", Name: program, Ref: tag.Digest(digest.String()).String(), Tag: tag.String()}}
	for _, entry := range manifest.Manifests {
		all = append(all, Artefact{Kind: "image", Name: program, Ref: tag.Digest(entry.Digest.String()).String(), Tag: tag.String(), Platform: entry.Platform.OS + "-" + entry.Platform.Architecture})
	}
	return all, nil
}

// openIndex unpacks an archive and returns the nested index, which is what a registry stores.
func openIndex(archive string) (v1.ImageIndex, func(), error) {
	dir, err := os.MkdirTemp("", "layout-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	index, err := nested(archive, dir)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return index, remove, nil
}

func nested(archive, dir string) (v1.ImageIndex, error) {
	if err := unpack(archive, dir); err != nil {
		return nil, err
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 || !manifest.Manifests[0].MediaType.IsIndex() {
		return nil, fmt.Errorf("want one image index in %s, got %d entries: build the release for both architectures", archive, len(manifest.Manifests))
	}
	return top.ImageIndex(manifest.Manifests[0].Digest)
}

func unpack(archive, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for from := tar.NewReader(file); ; {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(from)
		if err != nil {
			return err
		}
		if err := errors.Join(root.MkdirAll(filepath.Dir(h.Name), 0o755), root.WriteFile(h.Name, content, 0o644)); err != nil {
			return err
		}
	}
}

// pushChart pushes a chart as `helm push` does.
func pushChart(ctx context.Context, to Registry, archive string) (Artefact, error) {
	content, err := os.ReadFile(archive)
	if err != nil {
		return Artefact{}, err
	}
	chart, err := loader.LoadFile(archive)
	if err != nil {
		return Artefact{}, err
	}
	config, err := json.Marshal(chart.Metadata)
	if err != nil {
		return Artefact{}, err
	}
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(content, chartContent))
	if err != nil {
		return Artefact{}, err
	}
	artefact := withConfig{Image: image, config: config}
	// Helm appends the name of the chart to the address that a person gives, and names the tag after the version.
	tag, err := to.tag("charts/"+chart.Name(), chart.Metadata.Version)
	if err != nil {
		return Artefact{}, err
	}
	digest, err := artefact.Digest()
	if err != nil {
		return Artefact{}, err
	}
	if err := unmoved(ctx, tag, digest); err != nil {
		return Artefact{}, err
	}
	if err := remote.Write(tag, artefact, authenticated(ctx)...); err != nil {
		return Artefact{}, err
	}
	return Artefact{Kind: "chart", Name: chart.Name(), Ref: tag.Digest(digest.String()).String(), Tag: tag.String()}, nil
}

// unmoved fails if the tag has other content.
func unmoved(ctx context.Context, tag name.Tag, want v1.Hash) error {
	found, err := remote.Head(tag, authenticated(ctx)...)
	if missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the tag %s: %w", tag, err)
	}
	if found.Digest != want {
		return fmt.Errorf("the registry has %s with the digest %s, and this release has %s: a released version never changes, so release the next patch version", tag, found.Digest, want)
	}
	return nil
}
