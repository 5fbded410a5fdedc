package contract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMountFlagsAreTakenOneByOneOrInALine(t *testing.T) {
	t.Parallel()
	const selinux = `context="system_u:object_r:container_file_t:s0:c15,c25"` // kubelet writes it so
	got, readOnly, err := ParseMountFlags([]string{"noatime", "discard, nodev", "", "ro", selinux, "rw,ro"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"noatime", "discard", "nodev", "ro", selinux, "rw", "ro"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !readOnly {
		t.Error("want read-only, as the last of ro and rw says")
	}
}

func TestMountFlagsThatChangeAnythingElseAreRefused(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{
		"bind", "rbind", "move", "remount", "loop", "loop=/dev/loop0", "offset=512", "noatime,bind", "noatime, remount", "Bind",
		"sizelimit=1", "logdev=/dev/vdc", "rtdev=/dev/vdc", "device=/dev/vdc", "journal_path=/dev/vdc", "x-mount.mkdir", "X-mount.idmap=/proc/1/ns/user",
		"make-rshared", `context="a`, `context="system_u:object_r:container_file_t:s0\",errors=panic,context=\""`, "a\nb", "a\x00",
	} {
		if _, _, err := ParseMountFlags([]string{flag}); err == nil || !strings.Contains(err.Error(), "mountOptions") {
			t.Errorf("%q: want it refused, got %v", flag, err)
		}
	}
}

func FuzzMountFlags(f *testing.F) {
	f.Add(`noatime,context="a,b"`)
	f.Add(`",",bind`)
	f.Add("ro ,\trw")
	f.Fuzz(func(t *testing.T, entry string) {
		options, _, err := ParseMountFlags([]string{entry})
		if err != nil {
			return
		}
		again, _, err := ParseMountFlags(options)
		if err != nil || cmp.Diff(options, again, cmpopts.EquateEmpty()) != "" {
			t.Errorf("%q gives %q, and those %q, %v", entry, options, again, err)
		}
	})
}
