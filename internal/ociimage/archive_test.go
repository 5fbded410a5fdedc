package ociimage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func small(created time.Time) Image {
	lower := NewTree()
	lower.AddFile("usr/bin/tool", 0o755, []byte("tool"))
	return Image{
		Name: "registry.example:5000/csi/driver:v1", Architecture: "amd64", Created: created,
		Entrypoint: []string{"/bin/cinder-csi-driver"}, Env: Env, Layers: []Tree{lower, Driver([]byte("program"))},
	}
}

func written(t *testing.T, m Image) []byte {
	t.Helper()
	var w bytes.Buffer
	if err := m.Write(&w); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

// entries reads a tar into contents by name, and the names in order.
func entries(t *testing.T, content []byte) (files map[string][]byte, names []string) {
	t.Helper()
	files = map[string][]byte{}
	for stream := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return files, names
		} else if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(stream)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = data
		names = append(names, h.Name)
	}
}

func decode[T any](t *testing.T, files map[string][]byte, name string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(files[name], &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// follow gives a descriptor's content after checking that it is the one described.
func follow(t *testing.T, files map[string][]byte, d descriptor) string {
	t.Helper()
	name := blobPath(d.Digest)
	content, found := files[name]
	if !found {
		t.Fatalf("the archive has no %s", name)
	}
	if got := digestOf(content); got != d.Digest || len(content) != d.Size {
		t.Errorf("%s: described as %s of %d bytes, is %s of %d", name, d.Digest, d.Size, got, len(content))
	}
	return name
}

func TestImageIsAnOCILayoutWhoseDigestsMatch(t *testing.T) {
	t.Parallel()
	files, _ := entries(t, written(t, small(noon)))
	if want, got := `{"imageLayoutVersion":"1.0.0"}`, string(files["oci-layout"]); want != got {
		t.Errorf("oci-layout: want %s, got %s", want, got)
	}
	top := decode[index](t, files, "index.json")
	if len(top.Manifests) != 1 {
		t.Fatalf("want one manifest, got %d", len(top.Manifests))
	}
	m := decode[manifest](t, files, follow(t, files, top.Manifests[0]))
	c := decode[config](t, files, follow(t, files, m.Config))
	if len(m.Layers) != 2 || len(c.RootFS.DiffIDs) != len(m.Layers) || len(c.History) != len(m.Layers) {
		t.Fatalf("want two layers everywhere, got %d, diff ids %d, history %d", len(m.Layers), len(c.RootFS.DiffIDs), len(c.History))
	}
	for i, layer := range m.Layers {
		z, err := gzip.NewReader(bytes.NewReader(files[follow(t, files, layer)]))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if want, got := c.RootFS.DiffIDs[i], digestOf(plain); want != got {
			t.Errorf("layer %d: diff id %s, content %s", i, want, got)
		}
	}
	if want, got := 3+1+1+2, len(files); want != got {
		t.Errorf("want %d files and no blob that nothing names, got %d", want, got)
	}
}

func TestImageIsNamedForEveryRuntime(t *testing.T) {
	t.Parallel()
	files, _ := entries(t, written(t, small(noon)))
	top := decode[index](t, files, "index.json").Manifests[0]
	want := map[string]string{
		"org.opencontainers.image.ref.name": "v1",
		"io.containerd.image.name":          "registry.example:5000/csi/driver:v1",
	}
	if diff := cmp.Diff(want, top.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	docker := decode[[]dockerManifest](t, files, "manifest.json")[0]
	if diff := cmp.Diff([]string{"registry.example:5000/csi/driver:v1"}, docker.RepoTags); diff != "" {
		t.Errorf("repository tags (-want +got):\n%s", diff)
	}
	for _, name := range append(docker.Layers, docker.Config) {
		if files[name] == nil {
			t.Errorf("manifest.json names %s, which is not there", name)
		}
	}
}

func TestEqualImagesAreEqualBytes(t *testing.T) {
	t.Parallel()
	if !bytes.Equal(written(t, small(noon)), written(t, small(noon))) {
		t.Error("two images of the same contents differ")
	}
	if bytes.Equal(written(t, small(noon)), written(t, small(noon.Add(time.Second)))) {
		t.Error("the creation time makes no difference")
	}
}

func TestNameIsCutAtTheTag(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]string{
		"driver:v1":                {"driver", "v1"},
		"registry:5000/driver":     {"registry:5000/driver", ""},
		"registry:5000/driver:dev": {"registry:5000/driver", "dev"},
	} {
		repository, tag, found := cutTag(name)
		if want != [2]string{repository, tag} || found != (tag != "") {
			t.Errorf("%s: want %q, got %q and %q", name, want, repository, tag)
		}
	}
}

func TestUpstreamsNameLeadsToTheDriver(t *testing.T) {
	t.Parallel()
	whole := NewTree()
	for name, f := range Driver([]byte("program")) {
		whole[name] = f
	}
	if f := whole.Find("/bin/cinder-csi-plugin"); f == nil || string(f.Data) != "program" {
		t.Errorf("want the driver at /bin/cinder-csi-plugin, got %v", f)
	}
}

func TestDriverThatIsNotStaticIsRefused(t *testing.T) {
	t.Parallel()
	_, err := New(t.Context(), "driver:v1", noon, program("/lib64/ld.so"), Debian{Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("want advice to build without cgo, got %v", err)
	}
	if _, err := New(t.Context(), "driver:v1", noon, []byte("text"), Debian{Dir: t.TempDir()}); err == nil {
		t.Error("a text was accepted as the driver")
	}
}
