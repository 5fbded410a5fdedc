package release

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestATagIsReleasedOnlyIfItsSectionHasADay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tag, heading, want string }{
		{"v1.2.3", "[1.2.3] - 2026-01-31", ""},
		{"v1.2.3", "[1.2.3] - not released", "put the day of the release after the version"},
		{"v1.2.3", "[1.2.3]", "put the day of the release after the version"},
		{"v9.9.9", "[1.2.3] - 2026-01-31", `appVersion in charts/cinder-csi/Chart.yaml has "v1.2.3"`},
		{"", "[1.2.3] - 2026-01-31", "no tag"},
	} {
		root := versioned(t, "1.2.3", "v1.2.3", "v1.2.3", "1.2.3")
		write(t, root, "CHANGELOG.md", "# Changelog\n\n## "+c.heading+"\n\n### Added\n\n- A thing.\n\n## [1.2.2] - 2026-01-01\n\n- Older.\n")
		err := CheckTag(root, c.tag)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: want %q, got %v", c.tag, c.heading, c.want, err)
		}
		text, err := Changes(root, "v1.2.3")
		if want := "### Added\n\n- A thing.\n"; err != nil || text != want {
			t.Errorf("%s: want %q, got %q, %v", c.heading, want, text, err)
		}
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	testfile.Write(t, filepath.Join(root, name), text, 0o644)
}
