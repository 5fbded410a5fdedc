package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestAnArchiveHasTheProgramItsLicencesManualsAndCompletions(t *testing.T) {
	t.Parallel()
	r := &release{Options: Options{Version: "v1.2.3", Report: io.Discard}, dir: t.TempDir(), time: noon}
	for _, name := range []string{
		"bin/kubectl-cinder-linux-amd64", "LICENSE", "THIRD_PARTY_LICENSES.txt", "man/kubectl-cinder.1", "man/kubectl-cinder-volume.1", "man/cinder-csi-driver.1",
		"completions/bash/kubectl-cinder", "completions/zsh/_kubectl-cinder", "completions/fish/kubectl-cinder.fish", "completions/bash/cinder-csi-generator", "completions/kubectl_complete-cinder",
	} {
		if err := r.write(name, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := r.companions("kubectl-cinder")
	if err != nil {
		t.Fatal(err)
	}
	content, err := r.pack(program{"kubectl-cinder", platform{"linux", "amd64"}}, files)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{
		"kubectl-cinder": 0o755, "LICENSE": 0o644, "THIRD_PARTY_LICENSES.txt": 0o644, "man/kubectl-cinder.1": 0o644, "man/kubectl-cinder-volume.1": 0o644,
		"completions/bash/kubectl-cinder": 0o644, "completions/zsh/_kubectl-cinder": 0o644, "completions/fish/kubectl-cinder.fish": 0o644,
		"completions/kubectl_complete-cinder": 0o755,
	}
	if diff := cmp.Diff(want, modes(t, content)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The pages name these files, and a user of a release has no checkout.
func TestTheArchiveOfTheGeneratorHasTheFilesThatTheFirstPagesName(t *testing.T) {
	t.Parallel()
	r := &release{Options: Options{Version: "v1.2.3", Report: io.Discard}, dir: t.TempDir(), time: noon}
	for _, name := range []string{"bin/cinder-csi-generator-linux-amd64", "LICENSE", "THIRD_PARTY_LICENSES.txt"} {
		if err := r.write(name, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.copyExamples("../.."); err != nil {
		t.Fatal(err)
	}
	files, err := r.companions("cinder-csi-generator")
	if err != nil {
		t.Fatal(err)
	}
	content, err := r.pack(program{"cinder-csi-generator", platform{"linux", "amd64"}}, files)
	if err != nil {
		t.Fatal(err)
	}
	packed := modes(t, content)
	for _, page := range []string{"../../docs/tutorial/first-volume.md", "../../docs/how-to/use-volumes.md", "../../docs/how-to/review-a-deployment.md"} {
		text := testfile.Read(t, page)
		named := regexp.MustCompile(`(?m)^ *(?:cp|sh|kubectl apply -f) (?:"\$CINDER_CSI/)?(examples/[^\s"]+)`).FindAllSubmatch(text, -1)
		if len(named) == 0 {
			t.Errorf("%s names no example in a command", page)
		}
		for _, m := range named {
			if _, is := packed[string(m[1])]; !is {
				t.Errorf("%s names %s, which is not in the archive", page, m[1])
			}
		}
	}
}

func modes(t *testing.T, content []byte) map[string]int64 {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for from := tar.NewReader(compressed); ; {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(noon) {
			t.Errorf("%s has the time %s", h.Name, h.ModTime)
		}
		all[h.Name] = h.Mode
	}
}
