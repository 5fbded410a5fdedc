package host

import (
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/testenv"
)

// Disks that must not be formatted, staged by the driver's own code with the kernel's block devices and the real tools.

// hostile is a machine with one disk of vol, whose programs are real and written down.
type hostile struct {
	*Host
	*testenv.Machine
	tools *watchedTools
	disk  string // its device node
}

// watchedTools runs programs, and keeps which.
type watchedTools struct {
	processes
	ran   []string
	after func(name string) // runs when a program has ended
}

func (w *watchedTools) Run(ctx context.Context, name string, args ...string) (Result, error) {
	w.ran = append(w.ran, name)
	result, err := w.processes.Run(ctx, name, args...)
	if w.after != nil {
		w.after(name)
	}
	return result, err
}

// made says which programs that make file systems were run.
func (w *watchedTools) made() []string {
	return slices.DeleteFunc(slices.Clone(w.ran), func(name string) bool { return !strings.HasPrefix(name, "mkfs") })
}

func newHostile(t *testing.T, bytes int64) *hostile {
	t.Helper()
	_, m, disk := realHost(t, bytes)
	x := &hostile{Machine: m, disk: disk, tools: &watchedTools{}}
	x.Host = New(Options{SysRoot: m.Sys, DevRoot: m.Dev, Runner: x.tools, Log: slog.New(slog.DiscardHandler)})
	return x
}

func (x *hostile) stage(t *testing.T, s Staging) error {
	t.Helper()
	s.Volume, s.Path = vol, x.Path("staging")
	return x.Host.Stage(t.Context(), s)
}

// staysAsItIs stages the disk with each wish and makes sure that each is refused with the words, that the disk keeps every byte and
// is not mounted, and that nothing that makes a file system was as much as run.
func (x *hostile) staysAsItIs(t *testing.T, words string, wishes ...Staging) {
	t.Helper()
	before := sum(t, x.disk)
	for _, s := range wishes {
		err := x.stage(t, s)
		if !volume.Is(err, volume.DataLoss) && !volume.Is(err, volume.Conflict) || !strings.Contains(err.Error(), words) {
			t.Errorf("asked for %+v: want a refusal that names %q, got %v", s, words, err)
		}
	}
	if made := x.tools.made(); len(made) > 0 {
		t.Errorf("want no file system made, got %q", made)
	}
	if sum(t, x.disk) != before {
		t.Error("want every byte as it was")
	}
	if n := countMounts(t, x.Host, x.Machine); n != 0 {
		t.Errorf("want no mount, got %d", n)
	}
}

func sum(t *testing.T, disk string) [sha256.Size]byte {
	t.Helper()
	f, err := os.Open(disk)
	must(t, err)
	defer f.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, f)
	must(t, err)
	return [sha256.Size]byte(hash.Sum(nil))
}

// wishes are what may be asked of a disk with that on it: a file system that it does not hold, and, where the driver would not
// mount it anyway, whatever is there.
func wishes(holds string) []Staging {
	switch fileSystems[holds].family {
	case "":
		return []Staging{{}, {FSType: "xfs"}}
	case "ext":
		return []Staging{{FSType: "btrfs"}, {FSType: "xfs"}}
	}
	return []Staging{{FSType: "ext4"}, {FSType: "ext2"}}
}

func TestNoFileSystemIsMadeOverAnySignatureThatBlkidKnows(t *testing.T) {
	testenv.NeedRoot(t)
	known := strings.Fields(testenv.Run(t, "blkid", "-k"))
	for _, s := range signatures {
		if !slices.Contains(known, s.name) {
			continue // of a later blkid; the list is held complete below
		}
		t.Run(s.name, func(t *testing.T) {
			x := newHostile(t, s.bytes())
			s.make(t, x.disk)
			if says := testenv.Run(t, "blkid", "-p", "-o", "export", x.disk); !strings.Contains(says, "\nTYPE="+s.name+"\n") {
				t.Fatalf("want blkid to take it for %s, got:\n%s", s.name, says)
			}
			x.staysAsItIs(t, s.name, wishes(s.name)...)
		})
	}
}

// testdata/signatures-not-made.txt names what cannot be made, and why. Whatever else a blkid knows must be made above: one that
// is new, after an update of the tools, fails this test and wants a line there or here.
func TestEverySignatureThatBlkidKnowsIsMadeOrSaidNotToBe(t *testing.T) {
	t.Parallel()
	testenv.NeedTools(t, "blkid", "util-linux")
	made := map[string]bool{}
	for _, s := range signatures {
		made[s.name] = true
	}
	text, err := os.ReadFile(filepath.Join("testdata", "signatures-not-made.txt"))
	must(t, err)
	not := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if name == "" || reason == "" || made[name] {
			t.Errorf("line %q: want a name that is not made, and a reason", line)
		}
		not[name] = true
	}
	for _, name := range strings.Fields(testenv.Run(t, "blkid", "-k")) {
		if !made[name] && !not[name] {
			t.Errorf("blkid knows %s, and no test makes it", name)
		}
	}
}
