package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/cinder-csi/cinder-csi/tools/image"
)

// imageMakers are the released images, each of the program of its name.
var imageMakers = []struct {
	name string
	make func(context.Context, []byte, image.Debian) (image.Image, error)
}{
	{driver, image.New},
	{"cinder-csi-generator", image.NewGenerator},
}

// buildImages writes one image index for each image, with an SBOM for each architecture. Every program of an image is run once.
func (r *release) buildImages(ctx context.Context) error {
	for _, maker := range imageMakers {
		archive := image.Archive{Name: "registry.invalid/cinder-csi/" + maker.name + ":" + r.Version, Created: r.time}
		for _, p := range linux {
			built := program{maker.name, p}
			content, err := os.ReadFile(r.path(built.file()))
			if err != nil {
				return err
			}
			img, err := maker.make(ctx, content, r.packages())
			if err != nil {
				return fmt.Errorf("%s for %s: %w", maker.name, p.arch, err)
			}
			if r.Home != "" {
				img.Labels["org.opencontainers.image.source"] = r.Home
			}
			if err := r.probe(ctx, img); err != nil {
				return fmt.Errorf("%s for %s: %w", maker.name, p.arch, err)
			}
			if err := r.describeImage(built, img); err != nil {
				return err
			}
			r.uses(img.Packages)
			archive.Images = append(archive.Images, img)
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

func (r *release) packages() image.Debian {
	return image.Debian{Dir: r.Cache, Sources: r.Sources}
}

func (r *release) probe(ctx context.Context, img image.Image) error {
	if img.Architecture == runtime.GOARCH {
		return img.Probe(ctx, nil, r.Report)
	}
	emulator, err := image.Emulator(ctx, r.packages(), img.Architecture)
	if err != nil {
		return err
	}
	return img.Probe(ctx, emulator, r.Report)
}

// uses records packages for the provenance, each file once.
func (r *release) uses(packages []image.Package) {
	for _, p := range packages {
		if !slices.ContainsFunc(r.debian, func(other image.Package) bool { return other.SHA256 == p.SHA256 }) {
			r.debian = append(r.debian, p)
		}
	}
}
