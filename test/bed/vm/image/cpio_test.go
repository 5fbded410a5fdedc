package image

import (
	"bytes"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/tools/image"
)

func TestAnArchiveHoldsEveryFileAsItIs(t *testing.T) {
	t.Parallel()
	tree := image.Tree{"sbin": {Mode: fs.ModeDir | 0o755}, "init": {Mode: fs.ModeSymlink | 0o777, Link: "sbin/init"}}
	tree.AddFile("sbin/init", 0o755, []byte("12345"))
	var archive bytes.Buffer
	if err := WriteCPIO(&archive, tree); err != nil {
		t.Fatal(err)
	}
	if archive.Len()%4 != 0 {
		t.Errorf("want a multiple of 4 bytes, so that another archive can follow, got %d", archive.Len())
	}
	want := []string{"init 120777 sbin/init", "sbin 40755 ", "sbin/init 100755 12345", "TRAILER!!! 0 "}
	if diff := cmp.Diff(want, list(t, archive.Bytes())); diff != "" {
		t.Error(diff)
	}
}

// list reads an archive as the kernel does.
func list(t *testing.T, archive []byte) (files []string) {
	t.Helper()
	for len(archive) > 0 {
		field := func(i int) int {
			n, err := strconv.ParseInt(string(archive[6+8*i:14+8*i]), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		if string(archive[:6]) != "070701" {
			t.Fatalf("an entry begins with %q", archive[:6])
		}
		mode, size, nameSize := field(1), field(6), field(11)
		dataAt := (110 + nameSize + 3) &^ 3
		name := strings.TrimSuffix(string(archive[110:110+nameSize]), "\x00")
		files = append(files, name+" "+strconv.FormatInt(int64(mode), 8)+" "+string(archive[dataAt:dataAt+size]))
		archive = archive[(dataAt+size+3)&^3:]
	}
	return files
}

func TestAModuleComesAfterAllThatNeedsIt(t *testing.T) {
	t.Parallel()
	k := kernelModules{needs: map[string][]string{"sr_mod": {"cdrom", "scsi_mod"}, "cdrom": {"scsi_mod"}, "scsi_mod": {"scsi_common"}, "scsi_common": nil}}
	if diff := cmp.Diff([]string{"cdrom", "scsi_mod", "scsi_common"}, k.closure("sr_mod")); diff != "" {
		t.Error(diff)
	}
}
