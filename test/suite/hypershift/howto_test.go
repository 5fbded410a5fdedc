//go:build hypershift

package hypershift

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
)

// follow runs the code blocks of a section of docs/how-to/hypershift.md as they stand, in the work directory.
func (h *hosted) follow(t *testing.T, section string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repo, "docs/how-to/hypershift.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := readme.Blocks(string(text), section)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		if _, err := command(h.work, "", "bash", "-eo", "pipefail", "-c", block); err != nil {
			t.Fatalf("section %q: %v", section, err)
		}
	}
}
