package image

import (
	"bytes"
	"debug/elf"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func small(architecture string) Image {
	lower := NewTree()
	lower.AddFile("usr/bin/tool", 0o755, []byte("tool for "+architecture))
	return Image{
		Architecture: architecture, Entrypoint: []string{"/bin/cinder-csi-driver"}, Env: Env,
		Labels: map[string]string{"title": "driver"}, Layers: []Tree{lower, Driver([]byte("program"))},
	}
}

func archiveOf(architectures ...string) Archive {
	a := Archive{Name: "registry.example:5000/csi/driver:v1", Created: noon}
	for _, architecture := range architectures {
		a.Images = append(a.Images, small(architecture))
	}
	return a
}

func written(t *testing.T, a Archive) []byte {
	t.Helper()
	var w bytes.Buffer
	if err := a.Write(&w); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

// unpacked writes an archive into a directory and gives its image index, after a check of every digest and size in it.
func unpacked(t *testing.T, content []byte) (files Tree, index v1.ImageIndex) {
	t.Helper()
	files = Tree{}
	if _, err := files.AddTar(bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := files.Extract(dir); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("the image layout is not valid: %v", err)
	}
	return files, index
}

func manifests(t *testing.T, index v1.ImageIndex) []v1.Descriptor {
	t.Helper()
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	return m.Manifests
}

var fullName = map[string]string{
	"org.opencontainers.image.ref.name": "v1",
	"io.containerd.image.name":          "registry.example:5000/csi/driver:v1",
}

func TestArchiveIsAnOCILayoutOfOneImage(t *testing.T) {
	t.Parallel()
	files, index := unpacked(t, written(t, archiveOf("amd64")))
	all := manifests(t, index)
	if len(all) != 1 {
		t.Fatalf("want one manifest, got %d", len(all))
	}
	if diff := cmp.Diff(&v1.Platform{OS: "linux", Architecture: "amd64"}, all[0].Platform); diff != "" {
		t.Errorf("platform (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fullName, all[0].Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	image, err := index.Image(all[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	checkConfig(t, image)
	// index.json, oci-layout, manifest.json, the image's manifest, its configuration, two layers: no blob that nothing names.
	if want, got := 7, regularFiles(files); want != got {
		t.Errorf("want %d files, got %d: %q", want, got, files.names())
	}
}

func checkConfig(t *testing.T, image v1.Image) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		Entrypoint: []string{"/bin/cinder-csi-driver"}, Env: Env, Labels: map[string]string{"title": "driver"}, WorkingDir: "/",
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if !config.Created.Equal(noon) || config.Architecture != "amd64" || config.OS != "linux" {
		t.Errorf("want linux/amd64 of %v, got %s/%s of %v", noon, config.OS, config.Architecture, config.Created)
	}
	if len(config.RootFS.DiffIDs) != 2 || len(config.History) != 2 || !config.History[1].Created.Equal(noon) {
		t.Errorf("want two layers of %v, got %d with history %v", noon, len(config.RootFS.DiffIDs), config.History)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	got := []types.MediaType{manifest.MediaType, manifest.Config.MediaType, manifest.Layers[0].MediaType}
	if diff := cmp.Diff([]types.MediaType{types.OCIManifestSchema1, types.OCIConfigJSON, types.OCILayer}, got); diff != "" {
		t.Errorf("media types (-want +got):\n%s", diff)
	}
}

func regularFiles(t Tree) (n int) {
	for _, f := range t {
		if f.Mode.IsRegular() {
			n++
		}
	}
	return n
}

func TestTwoArchitecturesAreOneIndexWithTheName(t *testing.T) {
	t.Parallel()
	_, top := unpacked(t, written(t, archiveOf("amd64", "arm64")))
	all := manifests(t, top)
	if len(all) != 1 || all[0].MediaType != types.OCIImageIndex {
		t.Fatalf("want one image index, got %v", all)
	}
	if diff := cmp.Diff(fullName, all[0].Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	index, err := top.ImageIndex(all[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range manifests(t, index) {
		got = append(got, m.Platform.String())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func TestDockerLoadFindsTheFirstImage(t *testing.T) {
	t.Parallel()
	for _, architectures := range [][]string{{"amd64"}, {"arm64", "amd64"}} {
		files, _ := unpacked(t, written(t, archiveOf(architectures...)))
		docker, err := tarball.LoadManifest(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(written(t, archiveOf(architectures...)))), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"registry.example:5000/csi/driver:v1"}, docker[0].RepoTags); diff != "" {
			t.Errorf("repository tags (-want +got):\n%s", diff)
		}
		if len(docker[0].Layers) != 2 {
			t.Errorf("want two layers, got %q", docker[0].Layers)
		}
		for _, name := range append(docker[0].Layers, docker[0].Config) {
			if files[name] == nil {
				t.Fatalf("manifest.json names %s, which is not there", name)
			}
		}
		if want := `"architecture":"` + architectures[0] + `"`; !strings.Contains(string(files[docker[0].Config].Data), want) {
			t.Errorf("manifest.json names a configuration without %s: %s", want, files[docker[0].Config].Data)
		}
	}
}

func TestEqualImagesAreEqualBytes(t *testing.T) {
	t.Parallel()
	once := written(t, archiveOf("amd64", "arm64"))
	if !bytes.Equal(once, written(t, archiveOf("amd64", "arm64"))) {
		t.Error("two archives of the same contents differ")
	}
	later := archiveOf("amd64", "arm64")
	later.Created = noon.Add(time.Second)
	if bytes.Equal(once, written(t, later)) {
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
	_, err := New(t.Context(), program("/lib64/ld.so"), Debian{Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("want advice to build without cgo, got %v", err)
	}
	if _, err := New(t.Context(), []byte("text"), Debian{Dir: t.TempDir()}); err == nil {
		t.Error("a text was accepted as the driver")
	}
}

func TestArchitectureIsReadFromTheProgram(t *testing.T) {
	t.Parallel()
	const machine = 18 // offset of e_machine, elf(5)
	for want, code := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "": elf.EM_RISCV} {
		content := program("")
		content[machine] = byte(code)
		got, err := architectureOf(content)
		if want != got || (err != nil) != (want == "") {
			t.Errorf("%v: want %q, got %q and %v", code, want, got, err)
		}
	}
}

func TestPackagesOfEachArchitectureHaveTheirOwnDirectory(t *testing.T) {
	t.Parallel()
	amd64, arm64 := Debian{Dir: "cache"}.For("amd64"), Debian{Dir: "cache"}.For("arm64")
	if amd64.Dir == arm64.Dir || amd64.Architecture != "amd64" || arm64.Architecture != "arm64" {
		t.Errorf("got %+v and %+v", amd64, arm64)
	}
}
