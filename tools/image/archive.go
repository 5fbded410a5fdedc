package image

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image is the image of one architecture.
type Image struct {
	Architecture string // as Go names it: amd64, arm64
	Entrypoint   []string
	Env          []string
	Labels       map[string]string
	User         string    // as UID:GID; "" is root
	Layers       []Tree    // the lowest first
	Packages     []Package // Debian packages with a file in a layer
	probes       []probeCommand
}

// Annotations of the entry in index.json: OCI Image Format Specification (annotations.md), and containerd's full name.
const (
	refName        = "org.opencontainers.image.ref.name"
	containerdName = "io.containerd.image.name"
)

// Archive is what Write writes: the images of one name.
type Archive struct {
	Name    string    // with tag: registry/repository:tag
	Created time.Time // the time of every image, layer and file
	Images  []Image   // one per architecture
}

// Write writes a tar that is both an OCI image layout and a `docker save` archive. Equal archives give equal bytes.
//
// With several architectures, index.json names one nested image index, as a registry stores it. The `docker save` part has no such index
// and names the first image.
func (a Archive) Write(w io.Writer) error {
	var images []v1.Image
	for _, m := range a.Images {
		built, err := m.build(a.Created)
		if err != nil {
			return fmt.Errorf("build the image for %s: %w", m.Architecture, err)
		}
		images = append(images, built)
	}
	dir, err := os.MkdirTemp("", "image-layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, a.index(images)); err != nil {
		return fmt.Errorf("write the image layout: %w", err)
	}
	docker, err := a.dockerManifest(images[0])
	if err != nil {
		return err
	}
	files := Tree{}
	files.AddFile("manifest.json", 0o644, docker)
	if err := files.addDirectory(dir); err != nil {
		return err
	}
	return files.WriteTar(w, a.Created)
}

// index makes index.json. Its only entry has the name: that of the image, or that of an index of several images.
func (a Archive) index(images []v1.Image) v1.ImageIndex {
	var entries []mutate.IndexAddendum
	for i, built := range images {
		platform := &v1.Platform{OS: "linux", Architecture: a.Images[i].Architecture}
		entries = append(entries, mutate.IndexAddendum{Add: built, Descriptor: v1.Descriptor{Platform: platform}})
	}
	if len(entries) > 1 {
		entries = []mutate.IndexAddendum{{Add: newIndex(entries)}}
	}
	_, tag, _ := cutTag(a.Name)
	entries[0].Annotations = map[string]string{refName: tag, containerdName: a.Name}
	return newIndex(entries)
}

func newIndex(entries []mutate.IndexAddendum) v1.ImageIndex {
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), entries...)
}

// dockerManifest makes manifest.json, which `docker load` reads to find the configuration and the layers.
func (a Archive) dockerManifest(m v1.Image) ([]byte, error) {
	config, err := m.ConfigName()
	if err != nil {
		return nil, err
	}
	layers, err := m.Layers()
	if err != nil {
		return nil, err
	}
	entry := tarball.Descriptor{Config: blobPath(config), RepoTags: []string{a.Name}}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return nil, err
		}
		entry.Layers = append(entry.Layers, blobPath(digest))
	}
	return json.Marshal(tarball.Manifest{entry})
}

func blobPath(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }

// Digest returns the digest of the image manifest, as sha256:HEX.
func (m Image) Digest(created time.Time) (string, error) {
	built, err := m.build(created)
	if err != nil {
		return "", err
	}
	digest, err := built.Digest()
	return digest.String(), err
}

func (m Image) build(created time.Time) (v1.Image, error) {
	at := v1.Time{Time: created.UTC()}
	built, err := mutate.ConfigFile(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		&v1.ConfigFile{
			Created: at, Architecture: m.Architecture, OS: "linux", RootFS: v1.RootFS{Type: "layers"},
			Config: v1.Config{Entrypoint: m.Entrypoint, Env: m.Env, Labels: m.Labels, User: m.User, WorkingDir: "/"},
		})
	if err != nil {
		return nil, err
	}
	for _, tree := range m.Layers {
		layer, err := tree.layer(created)
		if err != nil {
			return nil, err
		}
		if built, err = mutate.Append(built, mutate.Addendum{Layer: layer, History: v1.History{Created: at}}); err != nil {
			return nil, err
		}
	}
	return built, nil
}

func (t Tree) layer(created time.Time) (v1.Layer, error) {
	var plain bytes.Buffer
	if err := t.WriteTar(&plain, created); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(plain.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
}

// addDirectory adds the regular files below a directory, readable for everybody.
func (t Tree) addDirectory(dir string) error {
	return filepath.WalkDir(dir, func(full string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(full)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, full)
		if err != nil {
			return err
		}
		t.AddFile(filepath.ToSlash(name), 0o644, content)
		return nil
	})
}

// cutTag splits an image name at its tag. A colon before the last slash belongs to a registry's port.
func cutTag(name string) (repository, tag string, found bool) {
	i := strings.LastIndex(name, ":")
	if i < 0 || strings.Contains(name[i:], "/") {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}

// architectures are the ones an image can be made for, by the machine in a program's ELF header.
var architectures = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// architectureOf reads for which architecture a program was built.
func architectureOf(program []byte) (string, error) {
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return "", err
	}
	architecture, known := architectures[file.Machine]
	if !known {
		return "", fmt.Errorf("its machine is %s; images are made for amd64 and arm64", file.Machine)
	}
	return architecture, nil
}
