package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Whatever is under the mount point is not the driver's. A file there may be what a pod wrote while the volume was not mounted.
func TestUnmountRemovesOnlyAnEmptyMountPoint(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		place func(path string) error
		keeps bool
	}{
		"an empty directory": {place: func(path string) error { return os.Mkdir(path, 0o750) }},
		"an empty file":      {place: func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		"nothing":            {place: func(string) error { return nil }},
		"a file with data":   {place: func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) }, keeps: true},
		"a directory with a file": {place: func(path string) error {
			return errors.Join(os.Mkdir(path, 0o750), os.WriteFile(filepath.Join(path, "file"), nil, 0o600))
		}, keeps: true},
		"a directory with a directory": {place: func(path string) error { return os.MkdirAll(filepath.Join(path, "dir"), 0o750) }, keeps: true},
	} {
		path := filepath.Join(t.TempDir(), "volume")
		must(t, test.place(path))
		before, _ := os.Lstat(path)
		err := readings("6.1.0", rootMount).Unmount(path, nil)
		after, gone := os.Lstat(path)
		switch {
		case test.keeps:
			hosttest.WantKind(t, err, volume.Conflict, path, "not empty")
			if gone != nil || !os.SameFile(before, after) {
				t.Errorf("%s: want it kept, got %v", name, gone)
			}
		case err != nil, !errors.Is(gone, fs.ErrNotExist):
			t.Errorf("%s: want it removed, got %v, %v", name, err, gone)
		}
	}
}
