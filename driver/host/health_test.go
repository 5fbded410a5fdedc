package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestHealthReportsEachProblem(t *testing.T) {
	t.Parallel()
	gone := func(b *fakeHost) { must(b.t, os.RemoveAll(filepath.Join(b.Sys, "block", "vdb"))) }
	for name, c := range map[string]struct {
		do    func(*fakeHost)
		paths []string
		want  string // severity, reason
	}{
		"nothing": {do: func(*fakeHost) {}, paths: []string{"staging", ""}},
		"no disk": {do: gone, paths: []string{"staging"}, want: "1 DiskMissing"},
		"two disks": {do: func(b *fakeHost) {
			b.plug(b.t, "vdc", serial, num(254, 32))
		}, want: "1 DiskRefused"},
		"made read-only by the kernel": {do: func(b *fakeHost) {
			b.mounter.table[0].SuperOptions = []string{"ro"}
			b.mounter.write()
		}, want: "0 FileSystemReadOnly"},
		"made read-only by the kernel of Linux 6.14": {do: func(b *fakeHost) {
			b.mounter.table[0].SuperOptions = []string{"rw", "errors=remount-ro", "emergency_ro"}
			b.mounter.write()
		}, want: "0 FileSystemReadOnly"},
		"mounted read-only": {do: func(b *fakeHost) {
			b.mounter.table[0].SuperOptions, b.mounter.table[0].Options = []string{"ro"}, []string{"ro"}
			b.mounter.write()
		}},
		"mounted read-only from a write-protected disk": {do: func(b *fakeHost) {
			b.Sysfs(b.t, "vdb", map[string]string{"ro": "1\n"})
			b.mounter.table[0].SuperOptions, b.mounter.table[0].Options = []string{"ro"}, []string{"ro"}
			b.mounter.write()
		}},
		"errors that ext4 noted": {do: func(b *fakeHost) {
			dir := filepath.Join(b.Sys, "fs", "ext4", "vdb")
			must(b.t, os.MkdirAll(dir, 0o755))
			must(b.t, os.WriteFile(filepath.Join(dir, "errors_count"), []byte("3\n"), 0o600))
		}, want: "0 FileSystemErrors"},
		"an input or output error": {do: func(b *fakeHost) {
			b.kernel.stat = func(string) (Stats, error) { return Stats{}, errors.New("input/output error") }
		}, want: "1 InputOutputError"},
		"nothing is mounted there": {do: func(b *fakeHost) {
			b.kernel.stat = func(string) (Stats, error) { return Stats{}, errors.New("asked") }
		}, paths: []string{"elsewhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := staged(t, "rw")
			b.kernel.stat = func(string) (Stats, error) { return Stats{}, nil }
			c.do(b)
			var paths []string
			for _, p := range c.paths {
				if p != "" {
					p = b.kubelet(p)
				}
				paths = append(paths, p)
			}
			found, err := b.Health(t.Context(), vol, paths...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range found {
				got = append(got, string('0'+rune(a.Severity))+" "+a.Reason)
				if a.Message == "" {
					t.Error("want a message")
				}
			}
			if strings.Join(got, ",") != c.want {
				t.Errorf("want %q, got %q: %+v", c.want, got, found)
			}
			if name == "no disk" {
				_, err := b.Health(t.Context(), vol)
				wantKind(t, err, volume.NotFound)
			}
		})
	}
	b := staged(t, "rw")
	_, err := b.Health(t.Context(), "short")
	wantKind(t, err, volume.NotFound)
}

func TestHealthOfAnUnresponsiveFileSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		answer := make(chan struct{})
		b.kernel.stat = func(string) (Stats, error) { <-answer; return Stats{}, nil }
		for range 2 { // the second joins the first and starts no read
			found, err := b.Health(t.Context(), vol)
			if err != nil || len(found) != 1 || found[0].Reason != "NotResponding" || found[0].Severity != volume.Inaccessible {
				t.Errorf("want it reported, got %+v, %v", found, err)
			}
		}
		close(answer)
	})
}

// kubelet asks for the usage of each mounted volume once a minute, and for its health only with a feature gate.
func TestReadingTheUsageShowsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for want, do := range map[string]func(*fakeHost){
		"": func(*fakeHost) {},
		"FileSystemReadOnly": func(b *fakeHost) {
			b.mounter.table[0].SuperOptions = []string{"ro"}
			b.mounter.write()
		},
		"FileSystemErrors": func(b *fakeHost) {
			dir := filepath.Join(b.Sys, "fs", "ext4", "vdb")
			must(b.t, os.MkdirAll(dir, 0o755))
			must(b.t, os.WriteFile(filepath.Join(dir, "errors_count"), []byte("3\n"), 0o600))
		},
		"InputOutputError": func(b *fakeHost) {
			b.kernel.read = func(string) error { return errors.New("input/output error") }
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			b := staged(t, "rw")
			b.kernel.stat = func(string) (Stats, error) { return Stats{Bytes: Usage{Total: 7}}, nil }
			do(b)
			s, err := b.Stats(t.Context(), b.kubelet("staging"))
			if err != nil || s.Bytes.Total != 7 {
				t.Errorf("want the usage all the same, got %+v, %v", s, err)
			}
			got := ""
			for _, issue := range s.Issues {
				got += issue.Reason
			}
			if got != want {
				t.Errorf("want %q, got %+v", want, s.Issues)
			}
		})
	}
}
