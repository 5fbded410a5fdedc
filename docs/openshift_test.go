package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// TestTheCommandsOfTheOpenShiftPageRun runs every command that needs no OpenShift, and compares the way of adopt with the one in testdata.
func TestTheCommandsOfTheOpenShiftPageRun(t *testing.T) {
	const path = "how-to/openshift.md"
	text := testfile.Text(t, path)
	page := text
	r := newReview(t)
	configuration := regexp.MustCompile("(?s)```yaml\n# distribution.yaml\n(.*?)```").FindStringSubmatch(page)
	if configuration == nil {
		t.Fatal("the page has no configuration")
	}
	testfile.Write(t, filepath.Join(r.dir, "work", "distribution.yaml"), configuration[1], 0o644)
	var adopt string
	ran := 0
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(block[1], "# needs OpenShift\n") {
			continue
		}
		ran++
		if out := r.run(t, block[1], 0); strings.Contains(block[1], "-generator adopt ") {
			_, adopt, _ = strings.Cut(out, "Check first\n")
		}
	}
	if ran < 3 || adopt == "" {
		t.Fatalf("%d blocks ran, and adopt printed %q", ran, adopt)
	}
	const printed = "testdata/adopt-openshift.txt" // the page links to it
	want := "Check first\n" + adopt
	if *update {
		testfile.Write(t, printed, want, 0o644)
	}
	got := testfile.Read(t, printed)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s has another output; go test ./docs -update writes it (-want +got):\n%s", printed, diff)
	}
}
