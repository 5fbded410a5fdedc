package host

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// The hunt damages disks at random and stages them with the real tools: `make test-full SUITE=disks` in full, a few of each in every run as root.
var (
	huntSeed    = flag.Uint64("hunt-seed", 0, "repeats a hunt; 0 for a new one")
	huntDamages = flag.Int("hunt-damages", 0, "how many damages of each file system, and a tenth as many killed mkfs; 0 for 200 with -full and 2 without")
)

func hunt(t *testing.T) (random *rand.Rand, damages int) {
	t.Helper()
	testenv.NeedRoot(t)
	seed := *huntSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat it with -hunt-seed %d", seed)
	damages = *huntDamages
	switch {
	case damages > 0:
	case testenv.Full():
		damages = 200
	default:
		damages = 2
	}
	return rand.New(rand.NewPCG(seed, 1)), damages
}

const huntedSize = 1 << 30 // so that ext, XFS and btrfs have several copies

// hunted is a file system with files in an image, and where the copies of its identity are.
type hunted struct {
	image  string
	fsType string // empty for LUKS
	copies [][2]int64
}

var huntedTypes = []string{"ext2", "ext3", "ext4", "xfs", "btrfs", "LUKS"}

func newHunted(t *testing.T, kind string) *hunted {
	t.Helper()
	const ag, group = 256 << 20, 128 << 20
	copies := map[string][][2]int64{
		"ext4":  {{1024, 1024}, {group, 1024}, {3 * group, 1024}, {5 * group, 1024}, {7 * group, 1024}},
		"xfs":   {{0, 512}, {ag, 512}, {2 * ag, 512}, {3 * ag, 512}},
		"btrfs": {{btrfsSuper, 4096}, {64 << 20, 4096}},
		"LUKS":  {{0, 512}, {16 << 10, 512}},
	}
	copies["ext2"], copies["ext3"] = copies["ext4"], copies["ext4"]
	x := newHostile(t, huntedSize)
	b := &hunted{image: filepath.Join(t.TempDir(), "image"), fsType: kind, copies: copies[kind]}
	if kind == "LUKS" {
		testenv.NeedTools(t, "cryptsetup", "cryptsetup-bin")
		b.fsType = ""
		testenv.Run(t, "sh", "-c", `echo key | cryptsetup luksFormat --batch-mode --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$1"`, "sh", x.disk)
	} else {
		must(t, x.stage(t, StageSpec{FSType: kind}))
		for i := range 32 { // the kernel spreads directories over the groups
			dir := x.Path("staging", fmt.Sprint(i))
			must(t, os.Mkdir(dir, 0o750))
			must(t, os.WriteFile(filepath.Join(dir, "data"), []byte(strings.Repeat("data", 4<<10)), 0o600))
		}
		must(t, x.Unpublish(t.Context(), x.Path("staging")))
	}
	testenv.Run(t, "cp", "--sparse=always", backing(t, x.disk), b.image)
	return b
}

// data calls do for each range of the image that is not a hole.
func (b *hunted) data(t *testing.T, do func(at int64, bytes []byte)) {
	t.Helper()
	dataOf(t, b.image, do)
}

func dataOf(t *testing.T, file string, do func(at int64, bytes []byte)) {
	t.Helper()
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	for at := int64(0); ; {
		from, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return
		}
		must(t, err)
		at, err = unix.Seek(int(f.Fd()), from, unix.SEEK_HOLE)
		must(t, err)
		bytes := make([]byte, at-from)
		_, err = f.ReadAt(bytes, from)
		must(t, err)
		do(from, bytes)
	}
}

// damage is one write to a disk, or the loss of its end.
type damage struct {
	what string
	at   int64
	data []byte
	cut  int64 // the size that is left
}

func (d damage) String() string {
	if d.cut > 0 {
		return fmt.Sprintf("%s at %d", d.what, d.cut)
	}
	return fmt.Sprintf("%s at %d, %d bytes", d.what, d.at, len(d.data))
}

// damages draws one to three damages. At least one copy of the identity stays: a disk without any looks like an
// empty one.
func (b *hunted) damages(t *testing.T, random *rand.Rand) (list []damage) {
	t.Helper()
	sizes := []int64{512, 1024, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 8 << 20}
	length := func() int64 { return sizes[random.IntN(len(sizes))] }
	var places []int64
	b.data(t, func(at int64, bytes []byte) {
		for n := int64(0); n < int64(len(bytes)); n += 64 << 10 {
			places = append(places, at+n)
		}
	})
	draws := []func() damage{
		func() damage { return damage{what: "zeros", data: make([]byte, length())} },
		func() damage {
			return damage{what: "zeros", at: places[random.IntN(len(places))], data: make([]byte, length())}
		},
		func() damage {
			return damage{what: "zeros", at: random.Int64N(huntedSize/512) * 512, data: make([]byte, length())}
		},
		func() damage { // one copy is lost
			c := b.copies[random.IntN(len(b.copies))]
			return damage{what: "zeros over a copy", at: c[0], data: make([]byte, c[1])}
		},
		func() damage { // the first copy is lost
			return damage{what: "zeros over the first copy", at: b.copies[0][0], data: make([]byte, b.copies[0][1])}
		},
		func() damage { // a part of a write
			c := b.copies[random.IntN(len(b.copies))]
			return damage{what: "a torn write", at: c[0] + random.Int64N(c[1]/64)*64, data: noise(random, 64)}
		},
		func() damage {
			return damage{what: "noise", at: places[random.IntN(len(places))], data: noise(random, length())}
		},
		func() damage {
			return damage{what: "the disk ends", cut: (random.Int64N(huntedSize/4096-4096) + 4096) * 4096}
		},
	}
	for {
		list = list[:0]
		for range 1 + random.IntN(3) {
			list = append(list, draws[random.IntN(len(draws))]())
		}
		if slices.ContainsFunc(b.copies, func(c [2]int64) bool {
			return !slices.ContainsFunc(list, func(d damage) bool {
				return d.cut > 0 && c[0]+c[1] > d.cut || d.cut == 0 && c[0] < d.at+int64(len(d.data)) && d.at < c[0]+c[1]
			})
		}) {
			return list
		}
	}
}

func noise(random *rand.Rand, n int64) []byte {
	bytes := make([]byte, n)
	for i := range bytes {
		bytes[i] = byte(random.Uint32())
	}
	return bytes
}

// write makes a disk or an empty file of the image and its damages.
func (b *hunted) write(t *testing.T, path string, list []damage) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	put := func(at int64, bytes []byte) {
		if at < huntedSize {
			_, err := f.WriteAt(bytes[:min(int64(len(bytes)), huntedSize-at)], at)
			must(t, err)
		}
	}
	b.data(t, put)
	for _, d := range list {
		put(d.at, d.data)
	}
	must(t, f.Sync())
}

func cutTo(list []damage) int64 {
	left := int64(huntedSize)
	for _, d := range list {
		if d.cut > 0 {
			left = min(left, d.cut)
		}
	}
	return left
}

// saysWhatToDo are the ways out that a refusal names.
var saysWhatToDo = regexp.MustCompile(`e2fsck |xfs_repair|btrfs-select-super|btrfs check|cryptsetup repair|attach it again|blkdiscard|when kubelet retries|set the fsType|tune2fs`)

func TestADamagedDiskIsNeverFormattedNorMountedUnchecked(t *testing.T) {
	random, damages := hunt(t)
	for _, kind := range huntedTypes {
		t.Run(kind, func(t *testing.T) {
			b := newHunted(t, kind)
			mounted := 0
			for n := range damages {
				list := b.damages(t, random)
				ok := t.Run(fmt.Sprint(n), func(t *testing.T) {
					if b.check(t, list) {
						mounted++
					}
				})
				if !ok {
					t.Errorf("damage %d: %v", n, list)
				}
			}
			t.Logf("%d damages: %d mounted, %d refused", damages, mounted, damages-mounted)
		})
	}
}

// check stages a damaged disk, and reports whether it was mounted.
func (b *hunted) check(t *testing.T, list []damage) bool {
	t.Helper()
	x := newHostile(t, huntedSize)
	b.write(t, x.disk, list)
	if left := cutTo(list); left < huntedSize {
		must(t, os.Truncate(backing(t, x.disk), left))
		testenv.Run(t, "losetup", "--set-capacity", x.disk)
	}
	err := x.stage(t, StageSpec{FSType: b.fsType})
	if made := x.tools.made(); len(made) > 0 {
		t.Errorf("want no file system made, got %q", made)
	}
	if n := countMounts(t, x.Host, x.Machine); (n == 1) != (err == nil) {
		t.Errorf("want a mount only after success, got %d mounts and %v", n, err)
	}
	if err != nil {
		if !saysWhatToDo.MatchString(err.Error()) {
			t.Errorf("want it said what to do, got %v", err)
		}
		return false
	}
	if err := x.Unpublish(t.Context(), x.Path("staging")); err != nil {
		t.Logf("after a mount: %v", err)
	}
	if strings.HasPrefix(b.fsType, "ext") {
		again := filepath.Join(t.TempDir(), "again")
		must(t, os.WriteFile(again, nil, 0o600))
		must(t, os.Truncate(again, huntedSize))
		b.write(t, again, list)
		must(t, os.Truncate(again, cutTo(list)))
		out, err := exec.Command("fsck.ext4", "-a", again).CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() >= 4 && !x.tools.restored {
			t.Errorf("a check refuses it (%v), and it was mounted for writing: %s", err, out)
		}
	}
	return true
}

// A disk on which nothing was ever mounted ends formatted, also if mkfs was killed, and the next mkfs too.
func TestADiskThatWasNeverMountedIsAlwaysFormatted(t *testing.T) {
	random, damages := hunt(t)
	testenv.NeedTools(t, "strace", "strace")
	for _, fsType := range []string{"ext2", "ext3", "ext4", "xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			writes := mkfsWrites(t, fsType)
			for n := range max(1, damages/10) {
				var killed []int
				for range random.IntN(3) {
					killed = append(killed, 1+random.IntN(writes))
				}
				if n == 0 {
					killed = []int{writes - 2, writes - 4} // among the copies
				}
				t.Run(fmt.Sprint(n, " killed at ", killed), func(t *testing.T) { formatsAfterKills(t, fsType, killed) })
			}
		})
	}
}

// mkfsWrites is how many writes the mkfs of a type makes.
func mkfsWrites(t *testing.T, fsType string) int {
	t.Helper()
	x := newHostile(t, huntedSize)
	trace := filepath.Join(t.TempDir(), "trace")
	x.tools.wrap = []string{"strace", "-f", "-e", "trace=pwrite64", "-o", trace}
	must(t, x.stage(t, StageSpec{FSType: fsType}))
	must(t, x.Unpublish(t.Context(), x.Path("staging")))
	text, err := os.ReadFile(trace)
	must(t, err)
	return strings.Count(string(text), "pwrite64(")
}

func formatsAfterKills(t *testing.T, fsType string, killed []int) {
	t.Helper()
	x := newHostile(t, huntedSize)
	for _, n := range killed {
		x.tools.wrap = []string{"strace", "-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", fmt.Sprintf("inject=pwrite64:signal=SIGKILL:when=%d", n)}
		if err := x.stage(t, StageSpec{FSType: fsType}); err == nil {
			must(t, x.Unpublish(t.Context(), x.Path("staging"))) // the kill came after the last write that counts
		} else {
			t.Log(err)
		}
	}
	x.tools.wrap = nil
	must(t, x.stage(t, StageSpec{FSType: fsType}))
	data := x.Path("staging", "data")
	must(t, os.WriteFile(data, []byte("kept"), 0o600))
	must(t, x.Unpublish(t.Context(), x.Path("staging")))
	x.tools.ran = nil
	must(t, x.stage(t, StageSpec{FSType: fsType}))
	if got, _ := os.ReadFile(data); string(got) != "kept" || len(x.tools.made()) > 0 {
		t.Errorf("want the file kept, got %q, and %q was run", got, x.tools.made())
	}
	must(t, x.Unpublish(t.Context(), x.Path("staging")))
}
