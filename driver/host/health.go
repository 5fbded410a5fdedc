package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Health reports what is wrong with a volume as this server sees it (CSI specification, "NodeGetVolumeHealth"). It
// checks the disk, the file system on it, and whether that answers at the paths where the volume is or should be.
// NotFound if the volume is not here and paths are empty.
func (h *Host) Health(ctx context.Context, id volume.ID, paths ...string) ([]volume.HealthIssue, error) {
	if err := disk.CheckID(id); err != nil {
		return nil, err
	}
	paths = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return p == "" })
	ctx, cancel := volume.BeforeDeadline(ctx)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, statsTimeout) // for the disk and all paths together
	defer cancel()
	call, _ := h.health.Start(id, func() diskHealth {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statsTimeout)
		defer cancel()
		return h.readHealth(ctx, id)
	})
	switch {
	case call.WaitUntil(ctx, statsTimeout):
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, volume.Interrupted(ctx, "read the health of volume %s: its disk has not answered", id).Cause(cause.DiskSilent)
	default:
		return []volume.HealthIssue{notResponding(fmt.Sprintf("the disk of volume %s has not answered since %s; its backend may be down",
			id, call.Started.Format(time.RFC3339)))}, nil
	}
	result := call.Value
	if volume.Is(result.err, volume.NotFound) && len(paths) > 0 {
		return []volume.HealthIssue{{Severity: volume.Inaccessible, Reason: "DiskMissing", Message: result.err.Error()}}, nil
	}
	if result.err != nil {
		return nil, result.err
	}
	if len(paths) == 0 {
		paths = result.paths
	}
	found := slices.Clone(result.issues)
	for _, path := range paths {
		found = append(found, h.pathHealth(ctx, path)...)
	}
	return distinct(found), nil
}

func notResponding(message string) volume.HealthIssue {
	return volume.HealthIssue{Severity: volume.Inaccessible, Reason: "NotResponding", Message: message}
}

// diskHealth is the health of a volume as far as the driver reads it without its file system.
type diskHealth struct {
	issues []volume.HealthIssue
	paths  []string // where it is mounted
	err    error
}

// readHealth may block for ever on a dead disk: it opens and closes it.
func (h *Host) readHealth(ctx context.Context, id volume.ID) diskHealth {
	d, err := h.disks.Find(ctx, id)
	switch {
	case volume.Is(err, volume.Unavailable), volume.Is(err, volume.DeadlineExceeded):
		return diskHealth{issues: []volume.HealthIssue{notResponding(err.Error())}}
	case volume.Is(err, volume.NotFound):
		return diskHealth{err: err}
	case err != nil:
		return diskHealth{issues: []volume.HealthIssue{{Severity: volume.Inaccessible, Reason: "DiskRefused", Message: err.Error()}}}
	}
	defer d.Close()
	table, err := h.mounts.Table()
	if err != nil {
		return diskHealth{err: err}
	}
	issues := h.fileSystemIssues(d, table)
	switch err := h.readDisk(ctx, d.Path); {
	case volume.Is(err, volume.Unavailable):
		issues = append(issues, notResponding(err.Error()))
	case err != nil:
		issues = append(issues, unreadableDisk(d.Path, err))
	}
	return diskHealth{issues: issues, paths: table.PathsOn(d.Number)}
}

// fileSystemIssues are the issues of a file system that the kernel reports without asking it.
func (h *Host) fileSystemIssues(d *disk.Disk, table mount.Table) (found []volume.HealthIssue) {
	for _, e := range table {
		if e.On(d.Number) {
			found = append(found, h.readOnlyIssue(e, d.Name)...)
		}
	}
	return append(found, h.recordedErrors(d.Name)...)
}

func (h *Host) readOnlyIssue(e mount.Entry, disk string) []volume.HealthIssue {
	why := h.readOnlyByKernel(e, disk)
	if why == "" {
		return nil
	}
	return []volume.HealthIssue{{Severity: volume.Degraded, Reason: "FileSystemReadOnly", Message: why + ". " + stopPods}}
}

// recordedErrors is the issue of a file system on a disk, by the name of the disk in sysfs, in which ext4 recorded errors.
func (h *Host) recordedErrors(name string) []volume.HealthIssue {
	count := h.fs.Ext4Errors(name)
	if count == "" {
		return nil
	}
	return []volume.HealthIssue{{
		Severity: volume.Degraded, Reason: "FileSystemErrors",
		Message: "ext4 recorded " + count + " errors; stop the pods that use it: the driver checks it when it is staged again",
	}}
}

func unreadableDisk(path string, err error) volume.HealthIssue {
	return volume.HealthIssue{Severity: volume.Inaccessible, Reason: "InputOutputError", Message: "read disk " + path + ": " + err.Error()}
}

// pathHealth reads the file system at path. A path without a mount tells nothing about the volume.
func (h *Host) pathHealth(ctx context.Context, path string) []volume.HealthIssue {
	_, err := h.Stats(ctx, path)
	switch {
	case err == nil, volume.Is(err, volume.NotFound), volume.Is(err, volume.Canceled):
		return nil
	case volume.Is(err, volume.Unavailable), volume.Is(err, volume.DeadlineExceeded):
		return []volume.HealthIssue{notResponding(err.Error())}
	}
	return []volume.HealthIssue{{Severity: volume.Inaccessible, Reason: "InputOutputError", Message: err.Error()}}
}

// distinct keeps the first entry of each severity and reason (CSI specification, VolumeHealthEntry).
func distinct(all []volume.HealthIssue) (kept []volume.HealthIssue) {
	for _, a := range all {
		if !slices.ContainsFunc(kept, func(k volume.HealthIssue) bool { return k.Severity == a.Severity && k.Reason == a.Reason }) {
			kept = append(kept, a)
		}
	}
	return kept
}
