package publish

import (
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestAChartIsPushedAsHelmDoesAndATagIsNeverMoved(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	to := Registry{Prefix: strings.TrimPrefix(server.URL, "http://") + "/Owner/repo", Insecure: true}
	archive := packagedChart(t, "first")
	pushed, err := pushChart(t.Context(), to, archive)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(pushed.Tag, "/owner/repo/charts/cinder-csi:1.2.3") || !strings.Contains(pushed.Ref, "/owner/repo/charts/cinder-csi@sha256:") {
		t.Errorf("want the tag of the chart's version and a digest, got %+v", pushed)
	}
	ref, err := name.ParseReference(pushed.Ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	checkChart(t, image)
	if _, err := pushChart(t.Context(), to, archive); err != nil {
		t.Errorf("the same chart again: %v", err)
	}
	if _, err := pushChart(t.Context(), to, packagedChart(t, "second")); err == nil || !strings.Contains(err.Error(), "a released version never changes") {
		t.Errorf("another chart of that version: want a refusal, got %v", err)
	}
}

// checkChart checks what Helm's registry client requires of a chart.
func checkChart(t *testing.T, image v1.Image) {
	t.Helper()
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Config.MediaType != chartConfig || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != chartContent {
		t.Errorf("want the media types of Helm, got %+v", manifest)
	}
	raw, err := image.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	var metadata struct{ Name, Version string }
	if err := json.Unmarshal(raw, &metadata); err != nil || metadata.Name != "cinder-csi" || metadata.Version != "1.2.3" {
		t.Errorf("want Chart.yaml as the configuration, got %s, %v", raw, err)
	}
}

func packagedChart(t *testing.T, description string) string {
	t.Helper()
	dir := t.TempDir()
	testfile.Write(t, filepath.Join(dir, "Chart.yaml"), "apiVersion: v2\nname: cinder-csi\nversion: 1.2.3\ndescription: "+description+"\n", 0o644)
	chart, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := chartutil.Save(chart, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func TestTheDownloadsHaveAKrewManifestAndChecksumsOfEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := Assets{Output: filepath.Join(dir, "downloads"), Version: "v1.2.3", Home: "https://git.example.com/p", Downloads: "https://git.example.com/p/dl"}
	if err := os.Mkdir(a.Output, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range krewPlatforms {
		if err := a.write("kubectl-cinder-v1.2.3-"+p.os+"-"+p.arch+".tar.gz", []byte(p.os+p.arch)); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []func() error{a.krew, a.images, a.checksums} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	manifest := testfile.Read(t, filepath.Join(a.Output, "cinder.yaml"))
	for _, want := range []string{
		"version: v1.2.3", "uri: https://git.example.com/p/dl/kubectl-cinder-v1.2.3-darwin-arm64.tar.gz",
	} {
		if !strings.Contains(string(manifest), want) {
			t.Errorf("the krew manifest has no %q:\n%s", want, manifest)
		}
	}
	sums := testfile.Read(t, filepath.Join(a.Output, "SHA256SUMS"))
	for _, want := range []string{"  artefacts.json\n", "  cinder.yaml\n", "  kubectl-cinder-v1.2.3-linux-amd64.tar.gz\n"} {
		if !strings.Contains(string(sums), want) {
			t.Errorf("SHA256SUMS has no %q:\n%s", want, sums)
		}
	}
}
