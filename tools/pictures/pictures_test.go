package pictures

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

const top = "../.."

func TestThePicturesShowTheDataOfToday(t *testing.T) {
	t.Parallel()
	drawn, err := Draw(os.DirFS(top))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range drawn {
		got, err := os.ReadFile(filepath.Join(top, Dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s is stale (%v); run `make pictures`", name, err)
		}
	}
	// A picture that no program draws goes stale, and nobody notices.
	files, err := os.ReadDir(filepath.Join(top, Dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if drawn[f.Name()] == "" {
			t.Errorf("%s: no painter draws it", f.Name())
		}
	}
}

// Browsers show nothing of an SVG file that is no XML.
func TestThePicturesAreXMLAndNarrow(t *testing.T) {
	t.Parallel()
	drawn, err := Draw(os.DirFS(top))
	if err != nil {
		t.Fatal(err)
	}
	for name, svg := range drawn {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if !strings.Contains(svg, "prefers-color-scheme:dark") || !strings.Contains(svg, "<title>") {
			t.Errorf("%s has no dark scheme or no title", name)
		}
	}
}

func TestDataThatThePicturesDoNotKnowIsAnError(t *testing.T) {
	t.Parallel()
	deployment := "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: surprise}]}}}"
	files := fstest.MapFS{"manifests/vanilla/controller.yaml": {Data: []byte(deployment)}}
	if _, err := parts(files); err == nil || !strings.Contains(err.Error(), "container surprise") {
		t.Errorf("want an error that names the container, got %v", err)
	}
	page := fstest.MapFS{e2ePage: {Data: []byte("\nClaim to running pod, step by step:\n\n| a | b | c |\n| - | - | - |\n| attached | elves | 0.10 |\n")}}
	if _, err := attachDetach(page); err == nil || !strings.Contains(err.Error(), "elves") {
		t.Errorf("want an error that names the layer, got %v", err)
	}
	if _, err := driftComment(fstest.MapFS{reviewPage: {Data: []byte("no output")}}); err == nil || !strings.Contains(err.Error(), "<!-- changes -->") {
		t.Errorf("want an error for a page without the output of drift, got %v", err)
	}
	guests := fstest.MapFS{guestsPage: {Data: []byte("\nThese are the layers:\n\n| a | b | c |\n| - | - | - |\n| moon | elves | 1 |\n")}}
	if _, err := bytePath(guests); err == nil || !strings.Contains(err.Error(), "moon") {
		t.Errorf("want an error that names the place, got %v", err)
	}
	if _, err := anatomy(fstest.MapFS{e2ePage: {Data: []byte("\n![time of each flow by layer](x)\n\n| flow | driver | runs | total | elves |\n| - | - | - | - | - |\n| a | b | 1 | 2 | 3 |\n")}}); err == nil || !strings.Contains(err.Error(), "elves") {
		t.Errorf("want an error that names the layer, got %v", err)
	}
	if _, err := plan(fstest.MapFS{planFile: {Data: []byte("target: vanilla\n")}}); err == nil || !strings.Contains(err.Error(), "no decision") {
		t.Errorf("want an error for a plan without decisions of the cloud, got %v", err)
	}
	if _, err := nodeLoss(page); err == nil {
		t.Error("want an error for a page without the time of a lost node")
	}
}
