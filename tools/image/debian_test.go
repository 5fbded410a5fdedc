package image

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestAFileOfAptSourcesMustBeThereAndEndInSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a.sources", "a.list"} {
		testfile.Write(t, filepath.Join(dir, name), "", 0o644)
	}
	for name, want := range map[string]string{"a.sources": "", "a.list": "ends in .sources", "b.sources": "no such file"} {
		_, err := onlySources(filepath.Join(dir, name))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", name, want, err)
		}
	}
}

func TestControlFieldsAreRead(t *testing.T) {
	t.Parallel()
	control := []byte("Package: e2fsprogs\nPre-Depends: libc6\nVersion: 1.47.0-2+b2\nDescription: tools\n Version: not this\n")
	for name, want := range map[string]string{"Package": "e2fsprogs", "Version": "1.47.0-2+b2", "Source": ""} {
		if got := controlField(control, name); got != want {
			t.Errorf("%s: want %q, got %q", name, want, got)
		}
	}
}
