package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/cinder-csi/cinder-csi/internal/ociimage"
)

// imageMakers are the released images, each of the program of its name.
var imageMakers = []struct {
	name string
	make func(context.Context, []byte, ociimage.Debian) (ociimage.Image, error)
}{
	{driver, ociimage.New},
	{"cinder-csi-generator", ociimage.NewGenerator},
}

// buildImages writes one image index for each image, with an SBOM for each architecture. Every program of an image is run once.
func (r *release) buildImages(ctx context.Context) error {
	for _, maker := range imageMakers {
		archive := ociimage.Archive{Name: "ghcr.io/cinder-csi/" + maker.name + ":" + r.Version, Created: r.time}
		for _, p := range linux {
			built := program{maker.name, p}
			content, err := os.ReadFile(r.path(built.file()))
			if err != nil {
				return err
			}
			image, err := maker.make(ctx, content, r.packages())
			if err != nil {
				return fmt.Errorf("%s for %s: %w", maker.name, p.arch, err)
			}
			if err := r.probe(ctx, image); err != nil {
				return fmt.Errorf("%s for %s: %w", maker.name, p.arch, err)
			}
			if err := r.describeImage(built, image); err != nil {
				return err
			}
			r.uses(image.Packages)
			archive.Images = append(archive.Images, image)
		}
		var content bytes.Buffer
		if err := archive.Write(&content); err != nil {
			return err
		}
		name := "images/" + maker.name + ".tar"
		if err := r.write(name, content.Bytes(), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(r.Report, "%s %s %s\n", name, archive.Name, r.sizeOf(name))
	}
	return nil
}

func (r *release) packages() ociimage.Debian {
	return ociimage.Debian{Dir: r.Cache, Sources: r.Sources}
}

func (r *release) probe(ctx context.Context, image ociimage.Image) error {
	if image.Architecture == runtime.GOARCH {
		return image.Probe(ctx, nil, r.Report)
	}
	emulator, err := ociimage.Emulator(ctx, r.packages(), image.Architecture)
	if err != nil {
		return err
	}
	return image.Probe(ctx, emulator, r.Report)
}

// uses records packages for the provenance, each file once.
func (r *release) uses(packages []ociimage.Package) {
	for _, p := range packages {
		if !slices.ContainsFunc(r.debian, func(other ociimage.Package) bool { return other.SHA256 == p.SHA256 }) {
			r.debian = append(r.debian, p)
		}
	}
}
