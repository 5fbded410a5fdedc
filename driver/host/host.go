// Package host is the Linux side of the driver: which server this is, which disk is which volume, what is on it, where it is
// mounted.
//
// A disk is known by its own serial and by nothing else: no name, link or order is trusted, and what was found is verified
// before every use. A file system is made only on a disk that was read and found empty by two tools. Nothing here deletes
// anything but an empty directory or an empty file, and nothing here asks the cloud for more than this server's own metadata.
package host

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Options says where the parts of this machine are. The zero value is a real machine.
type Options struct {
	SysRoot  string // sysfs; /sys when empty
	DevRoot  string // device nodes, by the names sysfs uses; /dev when empty
	ProcRoot string // procfs; /proc when empty

	// ConfigDriveDir is a directory that already holds the content of the config drive. When empty, the disk labelled config-2
	// is looked for and read.
	ConfigDriveDir string
	// MetadataURL is what the path /openstack/latest/meta_data.json is appended to; http://169.254.169.254 when empty, or
	// http://[fe80::a9fe:a9fe] on one of the interfaces.
	MetadataURL string
	// SearchOrder lists where it is looked for which server this is, of Places; all of them in their order when empty. Upstream's
	// cloud.conf [Metadata] search-order.
	SearchOrder []string

	Log       *slog.Logger      // slog.Default when nil
	Runner    Runner            // runs mkfs and its kin; processes of this machine when nil
	Mounter   Mounter           // changes mounts; this process's mount namespace when nil
	Transport http.RoundTripper // asks the metadata service; without a proxy when nil
}

// Host is one machine. Its methods may be called concurrently; it does not keep two callers from working on the same volume,
// which is the lock of their caller.
type Host struct {
	sys, dev, proc string

	run     Runner
	mounter Mounter
	log     *slog.Logger

	readFile   func(path string) ([]byte, error)
	release    func() string // of the kernel
	openDevice func(path string) (device, error)
	stat       func(path string) (Stats, error)
	syncfs     func(path string) error
	openAlone  func(path string) error
	btrfsDisks func(path string) (uint64, error)

	identity  *identity
	scanning  atomic.Bool // SCSI hosts are asked for new disks
	searching atomic.Bool // the config drive is looked for
	labels    labels
	listening questions[identifier, label]      // asked of disks
	asking    questions[string, stated]         // asked of the file systems at paths
	examining questions[volume.ID, examination] // asked of volumes
	flushing  questions[string, struct{}]       // asked of the file systems at paths: to write out all they have
	looking   questions[string, bool]           // whether a file system of ours is on a disk, asked by its device node
	lenient   sync.Map                          // target -> nothing: said that a publication there is writable and need not be
}

// pollInterval is how often the driver reads sysfs while it waits for a disk or for its new size. One reading of 25 disks takes 0.4 ms,
// so a wait costs 0.2% of a processor, and a disk is found 100 ms after it appears on average. The kernel's events would save those.
const pollInterval = 200 * time.Millisecond

const (
	margin      = 2 * time.Second
	rescanAfter = 15 * time.Second // the last step: virtio and virtio-scsi announce disks by themselves
)

// New makes a Host. It touches nothing.
func New(o Options) *Host {
	h := &Host{
		sys: or(o.SysRoot, "/sys"), dev: or(o.DevRoot, "/dev"), proc: or(o.ProcRoot, "/proc"),
		run: o.Runner, mounter: o.Mounter, log: o.Log,
		readFile: os.ReadFile, release: sync.OnceValue(kernelRelease), openDevice: openBlockDevice, stat: statPath,
		syncfs: syncfs, openAlone: openAlone, btrfsDisks: btrfsDisks,
	}
	if h.log == nil {
		h.log = slog.Default()
	}
	if h.run == nil {
		h.run = processes{}
	}
	if h.mounter == nil {
		h.mounter = kernelMounter{run: h.run}
	}
	h.identity = newIdentity(o, h)
	return h
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// resolveUsed is resolve for a path where a volume should be already. A relative path holds none, since nothing is ever mounted at
// one, and the CSI specification's answer to a volume that is not where the caller says is NotFound.
func resolveUsed(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", volume.Errorf(volume.NotFound, "no volume is at %q: the path is not absolute", path)
	}
	return resolve(path)
}

// resolve gives path as mountinfo would show it: links in its parents followed, its last element untouched. A last element that
// is itself a link is refused: mount(2) would follow it to a place nobody named.
func resolve(path string) (string, error) {
	clean := filepath.Clean(path)
	if !filepath.IsAbs(path) || clean == "/" || strings.ContainsRune(path, 0) {
		return "", volume.Errorf(volume.InvalidArgument, "path %q must be absolute and not the root directory", path)
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(clean))
	if os.IsNotExist(err) {
		return clean, nil
	}
	if err != nil {
		return "", volume.Errorf(volume.Failed, "resolve the path %s: %w", clean, err)
	}
	full := filepath.Join(parent, filepath.Base(clean))
	if _, err := os.Readlink(full); err == nil { // unlike lstat(2) it asks no file system that may be dead: it is what is mounted there
		return "", volume.Errorf(volume.InvalidArgument, "%s is a symbolic link; name the directory or file itself", full)
	}
	return full, nil
}
