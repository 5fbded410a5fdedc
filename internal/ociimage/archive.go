package ociimage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Image is what a container runtime is given (OCI Image Format Specification 1.1).
type Image struct {
	Name         string // with tag, as a runtime lists it: registry/repository:tag
	Architecture string // as Go names it
	Created      time.Time
	Entrypoint   []string
	Env          []string
	Labels       map[string]string
	Layers       []Tree // the lowest first
}

// Media types and annotations (OCI Image Format Specification: media-types.md, annotations.md); containerd takes a full name from
// an annotation of its own.
const (
	typeIndex      = "application/vnd.oci.image.index.v1+json"
	typeManifest   = "application/vnd.oci.image.manifest.v1+json"
	typeConfig     = "application/vnd.oci.image.config.v1+json"
	typeLayer      = "application/vnd.oci.image.layer.v1.tar+gzip"
	refName        = "org.opencontainers.image.ref.name"
	containerdName = "io.containerd.image.name"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type config struct {
	Created      time.Time `json:"created"`
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Config       runConfig `json:"config"`
	RootFS       rootFS    `json:"rootfs"`
	History      []history `json:"history"`
}

type runConfig struct {
	Entrypoint []string          `json:"Entrypoint"`
	Env        []string          `json:"Env"`
	Labels     map[string]string `json:"Labels,omitempty"`
	WorkingDir string            `json:"WorkingDir"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type history struct {
	Created time.Time `json:"created"`
}

// dockerManifest is an entry of manifest.json, by which `docker load` finds its way (docker save's format).
type dockerManifest struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// blobs are the contents of an archive by their digest.
type blobs map[string][]byte

func (b blobs) add(mediaType string, content []byte) descriptor {
	digest := digestOf(content)
	b[blobPath(digest)] = content
	return descriptor{MediaType: mediaType, Digest: digest, Size: len(content)}
}

func (b blobs) addJSON(mediaType string, v any) (descriptor, error) {
	content, err := json.Marshal(v)
	return b.add(mediaType, content), err
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func blobPath(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }

// Write writes the image as a tar that is an OCI image layout and a `docker save` archive at once. Equal images give equal bytes.
func (m Image) Write(w io.Writer) error {
	files, err := m.files()
	if err != nil {
		return err
	}
	stream := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(files[name])), ModTime: m.Created, Format: tar.FormatPAX}
		if err := stream.WriteHeader(h); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if _, err := stream.Write(files[name]); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return stream.Close()
}

func (m Image) files() (blobs, error) {
	files := blobs{}
	layers, diffIDs, err := m.layers(files)
	if err != nil {
		return nil, err
	}
	settings, err := files.addJSON(typeConfig, m.config(diffIDs))
	if err != nil {
		return nil, err
	}
	top, err := files.addJSON(typeManifest, manifest{SchemaVersion: 2, MediaType: typeManifest, Config: settings, Layers: layers})
	if err != nil {
		return nil, err
	}
	top.Platform = &platform{Architecture: m.Architecture, OS: "linux"}
	_, tag, _ := cutTag(m.Name)
	top.Annotations = map[string]string{refName: tag, containerdName: m.Name}
	docker := dockerManifest{Config: blobPath(settings.Digest), RepoTags: []string{m.Name}}
	for _, layer := range layers {
		docker.Layers = append(docker.Layers, blobPath(layer.Digest))
	}
	for name, v := range map[string]any{
		"oci-layout":    map[string]string{"imageLayoutVersion": "1.0.0"},
		"index.json":    index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{top}},
		"manifest.json": []dockerManifest{docker},
	} {
		if files[name], err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (m Image) config(diffIDs []string) config {
	c := config{
		Created: m.Created.UTC(), Architecture: m.Architecture, OS: "linux",
		Config: runConfig{Entrypoint: m.Entrypoint, Env: m.Env, Labels: m.Labels, WorkingDir: "/"},
		RootFS: rootFS{Type: "layers", DiffIDs: diffIDs},
	}
	for range diffIDs {
		c.History = append(c.History, history{Created: m.Created.UTC()})
	}
	return c
}

// layers writes every layer; a diff id is the digest of the uncompressed tar.
func (m Image) layers(files blobs) (layers []descriptor, diffIDs []string, err error) {
	for _, tree := range m.Layers {
		var plain, packed bytes.Buffer
		if err := tree.WriteTar(&plain, m.Created); err != nil {
			return nil, nil, err
		}
		diffIDs = append(diffIDs, digestOf(plain.Bytes()))
		z := gzip.NewWriter(&packed)
		if _, err := plain.WriteTo(z); err != nil {
			return nil, nil, err
		}
		if err := z.Close(); err != nil {
			return nil, nil, err
		}
		layers = append(layers, files.add(typeLayer, packed.Bytes()))
	}
	return layers, diffIDs, nil
}

// cutTag splits an image's name at its tag; a colon before the last slash is a registry's port.
func cutTag(name string) (repository, tag string, found bool) {
	i := strings.LastIndex(name, ":")
	if i < 0 || strings.Contains(name[i:], "/") {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}
