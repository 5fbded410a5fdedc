package nodekills

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const (
	smallBytes = 320 << 20 // the least that mkfs.xfs takes is 300 MiB
	largeBytes = 448 << 20
)

// kind is a way to use a volume.
type kind struct {
	name   string
	fsType string // empty for a raw block volume
	// oldKernel withholds open_tree(2) from the driver, as before Linux 5.2.
	oldKernel bool
}

// kinds are the lifecycles that the tests run. ext2 and ext3 are made, checked and mounted by the tools and calls of
// ext4.
var kinds = []kind{
	{name: "ext4", fsType: "ext4"},
	{name: "xfs", fsType: "xfs"},
	{name: "btrfs", fsType: "btrfs"},
	{name: "block"},
	{name: "ext4 before Linux 5.2", fsType: "ext4", oldKernel: true},
	{name: "block before Linux 5.2", oldKernel: true},
}

// lifecycle is the lifecycle of one volume on a node (CSI specification, "Volume Lifecycle"). Each step checks the
// bytes that were written, whatever was killed.
type lifecycle struct {
	kubelet

	before  string // the files of the server before the first step
	uuid    string // of the file system, from when bytes were written to it
	written bool
}

// step is one call of kubelet, and what holds after it.
type step struct {
	rpc  string
	what string
	call func(ctx context.Context) error
	then func(t *testing.T)
	// first prepares what the call needs: a disk that has grown, a file system that was not unmounted.
	first func(t *testing.T)
	plain bool // the same calls as in another step: nothing is killed here
}

func (s step) String() string { return strings.TrimSuffix(s.rpc+", "+s.what, ", ") }

func newLifecycle(t *testing.T, k kind) *lifecycle {
	l := &lifecycle{kubelet: kubelet{startNode(t, smallBytes), k}}
	l.before = l.tree(t)
	return l
}

// steps are the lifecycle of a volume: staged on an empty disk, published, written to, published read-only, expanded,
// unstaged. It is staged again after its file system was left as by a loss of power.
func (l *lifecycle) steps() []step {
	const pod, reader, second = "pod-1", "pod-2", "pod-3"
	publish := func(pod string, readOnly bool) func(context.Context) error {
		return func(ctx context.Context) error { return l.publish(ctx, pod, readOnly) }
	}
	unpublish := func(pod string) func(context.Context) error {
		return func(ctx context.Context) error { return l.unpublish(ctx, pod) }
	}
	steps := []step{
		{rpc: "NodeStageVolume", what: "empty disk", call: l.stage, then: func(t *testing.T) { l.wantMount(t, l.staging(), false, l.fsType != "") }},
		{rpc: "NodePublishVolume", call: publish(pod, false), then: func(t *testing.T) { l.wantMount(t, l.target(pod), false, true); l.write(t, pod) }},
		{rpc: "NodePublishVolume", what: "read-only", call: publish(reader, true), then: func(t *testing.T) { l.wantMount(t, l.target(reader), true, true); l.read(t, reader) }},
		{rpc: "NodeExpandVolume", first: l.growDisk, call: func(ctx context.Context) error { return l.expand(ctx, pod, largeBytes) }, then: l.wantGrown},
		{rpc: "NodeUnpublishVolume", what: "read-only", call: unpublish(reader), plain: true},
		{rpc: "NodeUnpublishVolume", first: l.loosePower, call: unpublish(pod)},
		{rpc: "NodeUnstageVolume", call: l.unstage, then: l.wantNothingLeft},
		{rpc: "NodeStageVolume", what: "file system with a log to replay", call: l.stage, then: func(t *testing.T) { l.wantMount(t, l.staging(), false, l.fsType != "") }},
		{rpc: "NodePublishVolume", what: "again", call: publish(second, false), then: func(t *testing.T) { l.read(t, second) }, plain: true},
		{rpc: "NodeUnpublishVolume", what: "again", call: unpublish(second), plain: true},
		{rpc: "NodeUnstageVolume", what: "again", call: l.unstage, then: l.wantNothingLeft, plain: true},
	}
	var kept []step
	for _, s := range steps {
		switch {
		case s.rpc == "NodeExpandVolume" && l.fsType == "ext4" && !mayGrowExt4(): // said in the report
		case l.oldKernel && s.what != "read-only": // the other steps are those of the lifecycle without oldKernel
			s.plain = true
			kept = append(kept, s)
		default:
			kept = append(kept, s)
		}
	}
	return kept
}

// mayGrowExt4 reports whether the kernel lets this process grow a mounted ext4, which needs CAP_SYS_RESOURCE. Sandboxes
// withhold it.
func mayGrowExt4() bool {
	const sysResource = 24
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(status), "CapEff:")
	var effective uint64
	_, err = fmt.Sscanf(strings.TrimSpace(after), "%x", &effective)
	return err == nil && effective&(1<<sysResource) != 0
}

// content is what the pod writes. It has three parts, at places far from one another.
func content(part int) []byte {
	seed := sha256.Sum256([]byte{byte(part)})
	return bytes.Repeat(seed[:], 1<<10)
}

// places are where a pod writes to a raw block volume.
var places = []int64{0, 100 << 20, smallBytes - 1<<20}

func (l *lifecycle) files(pod string) (paths []string, offsets []int64) {
	for part := range places {
		if l.fsType == "" {
			paths, offsets = append(paths, l.target(pod)), append(offsets, places[part])
		} else {
			paths, offsets = append(paths, filepath.Join(l.target(pod), fmt.Sprintf("data-%d", part))), append(offsets, 0)
		}
	}
	return paths, offsets
}

// write writes through the target, as the pod does, until the disk has the bytes. From here on the file system may not
// be made again.
func (l *lifecycle) write(t *testing.T, pod string) {
	t.Helper()
	paths, offsets := l.files(pod)
	for part, path := range paths {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
		must(t, "open what the pod writes", err)
		_, err = f.WriteAt(content(part), offsets[part])
		must(t, "write what the pod writes", errors.Join(err, f.Sync(), f.Close()))
	}
	l.written, l.uuid = true, l.readUUID(t)
}

// read wants what the pod wrote, and the same file system.
func (l *lifecycle) read(t *testing.T, pod string) {
	t.Helper()
	paths, offsets := l.files(pod)
	for part, path := range paths {
		f, err := os.Open(path)
		must(t, "open what the pod wrote", err)
		got := make([]byte, len(content(part)))
		_, err = f.ReadAt(got, offsets[part])
		must(t, "read what the pod wrote", errors.Join(err, f.Close()))
		if !bytes.Equal(got, content(part)) {
			t.Errorf("%s: the bytes that the pod wrote are not there", path)
		}
	}
	if uuid := l.readUUID(t); uuid != l.uuid {
		t.Errorf("the file system had UUID %s and has %s: it was made twice", l.uuid, uuid)
	}
}

// readUUID reads where ext4, xfs and btrfs keep it (Linux, struct ext4_super_block, xfs_dsb, btrfs_super_block).
func (l *lifecycle) readUUID(t *testing.T) string {
	t.Helper()
	at, ok := map[string]int64{"ext4": 1024 + 0x68, "xfs": 32, "btrfs": 0x10000 + 0x20}[l.fsType]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%x", l.diskAt(t, at, 16))
}

// diskAt reads the disk past the cache, which the kernel's own file system may have behind.
func (l *lifecycle) diskAt(t *testing.T, at, length int64) []byte {
	t.Helper()
	f, err := os.Open(l.disk)
	must(t, "open the disk", err)
	defer f.Close()
	got := make([]byte, length)
	_, err = f.ReadAt(got, at)
	must(t, "read the disk", err)
	return got
}

func (l *lifecycle) growDisk(t *testing.T) {
	testenv.GrowLoop(t, l.disk, largeBytes)
}

// wantGrown wants the file system to have the size that the driver answered with. What xfs and btrfs keep for
// themselves is less than a tenth.
func (l *lifecycle) wantGrown(t *testing.T) {
	t.Helper()
	if l.fsType == "" {
		return
	}
	var s unix.Statfs_t
	must(t, "ask the file system for its size", unix.Statfs(l.staging(), &s))
	if got := int64(s.Blocks) * s.Bsize; got < largeBytes*3/4 || got <= smallBytes {
		t.Errorf("the driver answered that the volume has %d bytes, and its file system has %d", largeBytes, got)
	}
}

// loosePower shuts the file system down when its log is written and nothing else, as a loss of power would. btrfs has
// no such call, and neither does it have a log that a tool replays.
func (l *lifecycle) loosePower(t *testing.T) {
	if l.fsType != "ext4" && l.fsType != "xfs" {
		return
	}
	const shutdown, logFlush = 0x8004587D, 1 // EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN are one number
	f, err := os.Open(l.staging())
	must(t, "open the file system", err)
	err = unix.IoctlSetPointerInt(int(f.Fd()), shutdown, logFlush)
	must(t, "shut the file system down", errors.Join(err, f.Close()))
}

// mount is a line of the mount table below the server's directory.
type mount struct{ path, options string }

func (l *lifecycle) mounts(t *testing.T) (found []mount) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	must(t, "read the mount table", err)
	for row := range strings.Lines(string(text)) {
		if f := strings.Fields(row); len(f) > 5 && strings.HasPrefix(f[4], l.Path()+"/") {
			found = append(found, mount{f[4], f[5]})
		}
	}
	return found
}

// wantMount wants exactly one mount at path, as success says there is. A raw block volume has none where it is staged.
func (l *lifecycle) wantMount(t *testing.T, path string, readOnly, mounted bool) {
	t.Helper()
	var there []string
	for _, m := range l.mounts(t) {
		if m.path == path {
			there = append(there, m.options)
		}
	}
	switch {
	case !mounted && len(there) == 0:
	case len(there) != 1 || !mounted:
		t.Errorf("%s: want one mount %t, got %v", path, mounted, there)
	case strings.HasPrefix(there[0], "ro") != readOnly:
		t.Errorf("%s: want read-only %t, got options %s", path, readOnly, there[0])
	}
}

// wantNothingLeft checks what must hold after unstage. There is no mount, no file and no user of the disk, and the file
// system passes its own check.
func (l *lifecycle) wantNothingLeft(t *testing.T) {
	t.Helper()
	for _, m := range l.mounts(t) {
		t.Errorf("the mount %s is left", m.path)
	}
	if left := l.tree(t); left != l.before {
		t.Errorf("files before:\n%sand after:\n%s", l.before, left)
	}
	fd, err := unix.Open(l.disk, unix.O_RDONLY|unix.O_EXCL, 0)
	must(t, "open the disk exclusively, since nothing may use it", err)
	must(t, "close the disk", unix.Close(fd))
	file := strings.TrimSpace(testenv.Run(t, "losetup", "--noheadings", "--output", "BACK-FILE", l.disk))
	if loops := strings.Fields(testenv.Run(t, "losetup", "--noheadings", "--output", "NAME", "--associated", file)); len(loops) != 1 {
		t.Errorf("want the disk's own loop device and no other, got %v", loops)
	}
	l.wantBytes(t)
}

// wantBytes looks at the disk of a volume that is not in use.
func (l *lifecycle) wantBytes(t *testing.T) {
	t.Helper()
	if l.fsType != "" || !l.written {
		if got := l.readUUID(t); l.written && got != l.uuid {
			t.Errorf("the file system had UUID %s and has %s: it was made twice", l.uuid, got)
		}
		return
	}
	for part, at := range places {
		if !bytes.Equal(l.diskAt(t, at, int64(len(content(part)))), content(part)) {
			t.Errorf("the disk lacks the bytes that the pod wrote at %d", at)
		}
	}
}

// tree lists the server's files but for the directories that kubelet keeps: those above a target or a staging
// directory.
func (l *lifecycle) tree(t *testing.T) string {
	t.Helper()
	var list strings.Builder
	keeps := map[string]bool{}
	for _, path := range []string{l.staging(), l.target("pod-1"), l.target("pod-2"), l.target("pod-3")} {
		for p := filepath.Dir(path); p != l.Path(); p = filepath.Dir(p) {
			keeps[p] = true
		}
	}
	err := filepath.WalkDir(l.Path(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !keeps[path] {
			fmt.Fprintln(&list, d.Type(), path)
		}
		return err
	})
	must(t, "list the server's files", err)
	return list.String()
}
