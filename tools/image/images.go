package image

import (
	"context"
	"fmt"
)

// Env is the environment of a program in an image, and of the tools that it runs.
var Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}

// Driver makes the upper layer: the driver, and the name under which upstream's manifests start it.
func Driver(program []byte) Tree {
	t := Tree{}
	t.AddFile("usr/bin/cinder-csi-driver", 0o755, program)
	t.AddSymlink("usr/bin/cinder-csi-plugin", "cinder-csi-driver")
	return t
}

// New makes the driver image for the architecture of the given program.
func New(ctx context.Context, program []byte, debian Debian) (Image, error) {
	m, err := newImage(ctx, program, debian, Packages, Tools)
	if err != nil {
		return Image{}, err
	}
	m.named("cinder-csi-driver")
	m.Layers = append(m.Layers, Driver(program))
	m.probes = probes
	return m, nil
}

// NewGenerator makes the generator image for the architecture of the given program. It has the program and certificate authorities, no
// shell. It runs as user 65532; to write into a mounted directory, run it as the owner of the directory.
func NewGenerator(ctx context.Context, program []byte, debian Debian) (Image, error) {
	m, err := newImage(ctx, program, debian, []string{"base-files", "ca-certificates"}, []string{"etc/os-release"})
	if err != nil {
		return Image{}, err
	}
	m.named("cinder-csi-generator")
	m.User = "65532:65532"
	upper := Tree{}
	upper.AddFile("usr/bin/cinder-csi-generator", 0o755, program)
	m.Layers = append(m.Layers, upper)
	m.probes = generatorProbes
	return m, nil
}

func (m *Image) named(program string) {
	m.Entrypoint = []string{"/bin/" + program}
	m.Labels = map[string]string{
		"org.opencontainers.image.title":    program,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

// newImage makes the lowest layer of an image for a program, which must be a static program for Linux.
func newImage(ctx context.Context, program []byte, debian Debian, packages, tools []string) (Image, error) {
	architecture, err := architectureOf(program)
	if err != nil {
		return Image{}, fmt.Errorf("the file is not a program for Linux: %w", err)
	}
	interpreter, _, err := needed(program)
	if err != nil {
		return Image{}, fmt.Errorf("read the program: %w", err)
	}
	if interpreter != "" {
		return Image{}, fmt.Errorf("the program needs %s; build it with CGO_ENABLED=0", interpreter)
	}
	root, used, err := Root(ctx, debian.For(architecture), packages, tools)
	if err != nil {
		return Image{}, fmt.Errorf("make the root file system for %s: %w", architecture, err)
	}
	return Image{Architecture: architecture, Env: Env, Layers: []Tree{root}, Packages: used}, nil
}
