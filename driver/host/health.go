package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Health looks what is wrong with a volume as this server sees it: its disk, the file system on it, and whether that answers at the
// paths where the volume is or should be. NotFound when it is not here and nobody says that it should be.
func (h *Host) Health(ctx context.Context, id volume.ID, paths ...string) ([]volume.HealthIssue, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	paths = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return p == "" })
	ctx, cancel := beforeDeadline(ctx)
	defer cancel()
	q, _ := h.examining.put(id, func() examination {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statLimit)
		defer cancel()
		return h.examine(ctx, id)
	})
	switch {
	case q.await(ctx, statLimit):
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ended(ctx, "the disk of volume %s has not answered", id)
	default:
		return []volume.HealthIssue{unanswered(fmt.Sprintf("the disk of volume %s has not answered, asked at %s; its backend may hang", id, q.asked.Format(time.RFC3339)))}, nil
	}
	e := q.answer
	if volume.Is(e.err, volume.NotFound) && len(paths) > 0 {
		return []volume.HealthIssue{{Severity: volume.Inaccessible, Reason: "DiskMissing", Message: e.err.Error()}}, nil
	}
	if e.err != nil {
		return nil, e.err
	}
	if len(paths) == 0 {
		paths = e.mounted
	}
	found := slices.Clone(e.ailments)
	for _, path := range paths {
		found = append(found, h.answers(ctx, path)...)
	}
	return distinct(found), nil
}

func unanswered(message string) volume.HealthIssue {
	return volume.HealthIssue{Severity: volume.Inaccessible, Reason: "NotResponding", Message: message}
}

// examination is what is found out about a volume without asking its file system.
type examination struct {
	ailments []volume.HealthIssue
	mounted  []string
	err      error
}

// examine may wait for a dead disk for ever: it opens it, and closes it again.
func (h *Host) examine(ctx context.Context, id volume.ID) examination {
	disk, err := h.Find(ctx, id)
	switch {
	case volume.Is(err, volume.Unavailable), volume.Is(err, volume.DeadlineExceeded):
		return examination{ailments: []volume.HealthIssue{unanswered(err.Error())}}
	case volume.Is(err, volume.NotFound):
		return examination{err: err}
	case err != nil:
		return examination{ailments: []volume.HealthIssue{{Severity: volume.Inaccessible, Reason: "DiskRefused", Message: err.Error()}}}
	}
	defer disk.Close()
	table, err := h.mounts()
	if err != nil {
		return examination{err: err}
	}
	return examination{ailments: h.fileSystemAilments(disk, table), mounted: table.paths(disk)}
}

// fileSystemAilments are what the kernel says of the file system without asking it.
func (h *Host) fileSystemAilments(disk *Disk, table Table) (found []volume.HealthIssue) {
	for _, m := range table {
		if m.On(disk) && m.readOnlyAfterError() {
			found = append(found, volume.HealthIssue{
				Severity: volume.Degraded, Reason: "FileSystemReadOnly",
				Message: "the kernel made the file system read-only after an error; its log says which. Stop the pods that use it, so that it is checked when it is staged again",
			})
		}
	}
	if count := readLine(filepath.Join(h.sys, "fs", "ext4", disk.Name, "errors_count")); count != "" && count != "0" {
		found = append(found, volume.HealthIssue{
			Severity: volume.Degraded, Reason: "FileSystemErrors",
			Message: "ext4 has noted " + count + " errors; stop the pods that use it, so that it is checked when it is staged again",
		})
	}
	return found
}

// readOnlyAfterError reports whether the kernel made the file system read-only after an error. It then has the option ro, which whoever
// mounted it so has among the mount's own options too. ext4 says emergency_ro from Linux 6.14 on, and has rw beside it.
func (m Mount) readOnlyAfterError() bool {
	return slices.Contains(m.SuperOptions, "ro") && !m.ReadOnly() || slices.Contains(m.SuperOptions, "emergency_ro")
}

// answers asks the file system at path. A path without a mount says nothing of the volume.
func (h *Host) answers(ctx context.Context, path string) []volume.HealthIssue {
	_, err := h.Stats(ctx, path)
	switch {
	case err == nil, volume.Is(err, volume.NotFound), volume.Is(err, volume.Canceled):
		return nil
	case volume.Is(err, volume.Unavailable), volume.Is(err, volume.DeadlineExceeded):
		return []volume.HealthIssue{unanswered(err.Error())}
	}
	return []volume.HealthIssue{{Severity: volume.Inaccessible, Reason: "InputOutputError", Message: err.Error()}}
}

// distinct keeps the first of each severity and reason, as the CSI specification has it (VolumeHealthEntry).
func distinct(all []volume.HealthIssue) (kept []volume.HealthIssue) {
	for _, a := range all {
		if !slices.ContainsFunc(kept, func(k volume.HealthIssue) bool { return k.Severity == a.Severity && k.Reason == a.Reason }) {
			kept = append(kept, a)
		}
	}
	return kept
}
