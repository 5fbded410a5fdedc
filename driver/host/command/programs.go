package command

import (
	"context"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

type program struct {
	pkg string // the Debian package, for the error about a missing program
	// answers are the exit codes by which the program says that it did its work, or why it cannot. Every other code
	// says nothing about the disk, such as 127 of the dynamic linker or 2 of mount(8) for no memory.
	answers []int
	// tenantMemory is true if the content of a volume decides how much memory the program takes.
	tenantMemory bool
}

// doneOrFailed are the exit codes of programs whose manual lists none, or only zero and not zero. By their sources they
// exit with 1 when they cannot do their work.
var doneOrFailed = []int{0, 1}

// programs are those that the driver runs. The codes are those of the manuals, "Exit status".
var programs = map[string]program{
	"mkfs.ext2": {pkg: "e2fsprogs", answers: doneOrFailed}, "mkfs.ext3": {pkg: "e2fsprogs", answers: doneOrFailed},
	"mkfs.ext4": {pkg: "e2fsprogs", answers: doneOrFailed}, "resize2fs": {pkg: "e2fsprogs", answers: doneOrFailed, tenantMemory: true},
	// A sum: 1 corrected, 2 restart the server, 4 errors left, 8 cannot. Not 16 wrong arguments, 32 canceled, 128 a shared library.
	"fsck.ext4":  {pkg: "e2fsprogs", answers: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, tenantMemory: true},
	"mkfs.xfs":   {pkg: "xfsprogs", answers: doneOrFailed},
	"xfs_growfs": {pkg: "xfsprogs", answers: doneOrFailed},
	"mkfs.btrfs": {pkg: "btrfs-progs", answers: doneOrFailed},
	"btrfs":      {pkg: "btrfs-progs", answers: doneOrFailed},
	"blkid":      {pkg: "util-linux", answers: []int{0, 2, 4, 8}}, // found, nothing, an error, several
	"wipefs":     {pkg: "util-linux", answers: doneOrFailed},
	"mount":      {pkg: "mount", answers: []int{0, 1, 32}}, // mounted, not permitted, refused
}

// Ask runs one of the driver's programs and returns its answer. A program has one of three outcomes: it did its work, it
// says that it cannot, or it did not answer. The third decides nothing and is retried:
// Unavailable for a signal or for an exit code that the manual does not explain. The output of a program that
// ran out of memory is no answer either.
func Ask(ctx context.Context, run Runner, name string, args ...string) (Result, error) {
	result, err := run.Run(ctx, name, args...)
	switch {
	case err != nil:
		return result, err
	case result.Code != 0 && lacksMemory(result):
		return result, volume.Errorf(volume.Unavailable, "run %s: the program had no more memory%s, so it gave no answer. The next try runs it again. "+
			"If it fails again, use the volume on a node with more memory: %s", name, atPeak(result.Peak), result.Message()).Cause(cause.NodeMemory)
	case !slices.Contains(programs[name].answers, result.Code):
		return result, volume.Errorf(volume.Unavailable, "run %s: it ended with exit code %d, which its manual does not explain for this, so it gave no answer. "+
			"The next try runs it again: %s", name, result.Code, result.Message()).Cause(cause.NodeMemory)
	}
	return result, nil
}

// lacksMemory reports whether a program says so, by the texts of libext2fs and libc. The third is that of a thread which
// cannot be started for want of a stack (measured with a limit).
func lacksMemory(r Result) bool {
	return slices.ContainsFunc([]string{"Memory allocation failed", "Cannot allocate memory", "Resource temporarily unavailable"}, func(text string) bool {
		return strings.Contains(r.Stderr, text) || strings.Contains(r.Stdout, text)
	})
}
