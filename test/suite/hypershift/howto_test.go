//go:build hypershift

package hypershift

import (
	"path/filepath"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// follow runs the code blocks of a section of docs/how-to/hypershift.md as they stand, in the work directory.
func (h *hosted) follow(t *testing.T, section string) {
	t.Helper()
	text := testfile.Text(t, filepath.Join(repo, "docs/how-to/hypershift.md"))
	blocks := testenv.Value(readme.Blocks(text, section))(t)
	for _, block := range blocks {
		if _, err := command(h.work, "", "bash", "-eo", "pipefail", "-c", block); err != nil {
			t.Fatalf("section %q: %v", section, err)
		}
	}
}
