package errortable

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var statusFile = filepath.Join("testdata", "statuses.txt")

// The statuses of Cinder (objects/fields.py of Cinder 21: VolumeStatus, SnapshotStatus, BackupStatus, VolumeAttachStatus).
var statuses = map[string][]string{
	"volume": {
		"creating", "available", "reserved", "attaching", "detaching", "in-use", "maintenance", "deleting", "awaiting-transfer", "error",
		"error_deleting", "backing-up", "restoring-backup", "error_backing-up", "error_restoring", "error_extending", "downloading",
		"uploading", "retyping", "extending", "managing", "error_managing", "error_managing_deleting", "unmanaging",
	},
	"snapshot":   {"creating", "available", "error", "deleting", "deleted", "error_deleting", "unmanaging", "updating", "backing-up", "restoring"},
	"backup":     {"creating", "available", "error", "deleting", "deleted", "error_deleting", "restoring"},
	"attachment": {"reserved", "attaching", "attached", "detaching", "error_attaching", "error_detaching"},
}

// statusCase is an RPC about an object in a status.
type statusCase struct {
	object, rpc, way string
	call             func(ctx context.Context, w *world) error
}

func (m statusCase) String() string { return strings.TrimSpace(m.rpc + " " + m.way) }

// statusCases are every RPC that is about such an object.
func statusCases() []statusCase {
	var all []statusCase
	add := func(object, rpc, way string, call func(ctx context.Context, w *world) error) {
		all = append(all, statusCase{object, rpc, way, call})
	}
	for _, object := range []string{"volume", "attachment"} {
		add(object, "DeleteVolume", "", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: w.volume}))
		})
		add(object, "ControllerPublishVolume", "", func(ctx context.Context, w *world) error { return w.publish(ctx, w.az1) })
		add(object, "ControllerPublishVolume", "elsewhere", func(ctx context.Context, w *world) error { return w.publish(ctx, w.az2) })
		add(object, "ControllerUnpublishVolume", "", func(ctx context.Context, w *world) error { return w.unpublish(ctx, w.az1) })
		add(object, "ControllerUnpublishVolume", "everywhere", func(ctx context.Context, w *world) error { return w.unpublish(ctx, "") })
		add(object, "ControllerExpandVolume", "", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: w.volume, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}}))
		})
		add(object, "ControllerModifyVolume", "", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{VolumeId: w.volume, MutableParameters: map[string]string{"type": "multiattach"}}))
		})
		add(object, "CreateSnapshot", "", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.CreateSnapshot(ctx, snapshotOfPrepared(w)))
		})
		add(object, "CreateSnapshot", "as a backup", func(ctx context.Context, w *world) error {
			req := snapshotOfPrepared(w)
			req.Parameters = map[string]string{"type": "backup"}
			return csitest.Outcome(w.CreateSnapshot(ctx, req))
		})
		add(object, "CreateVolume", "of its name", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.CreateVolume(ctx, csitest.Claim("prepared")))
		})
		add(object, "CreateVolume", "from it", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.CreateVolume(ctx, csitest.Claim("pvc", csitest.FromVolume(w.volume))))
		})
		add(object, "ControllerGetVolume", "", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: w.volume}))
		})
		add(object, "ControllerGetVolumeHealth", "", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: w.volume}))
		})
		add(object, "ControllerListVolumeHealth", "", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.ControllerListVolumeHealth(ctx, &csi.ControllerListVolumeHealthRequest{}))
		})
		add(object, "ListVolumes", "", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.ListVolumes(ctx, &csi.ListVolumesRequest{}))
		})
		add(object, "ValidateVolumeCapabilities", "", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{VolumeId: w.volume, VolumeCapabilities: []*csi.VolumeCapability{csitest.Mounted("")}}))
		})
	}
	for _, object := range []string{"snapshot", "backup"} {
		add(object, "DeleteSnapshot", "", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: w.snapshot}))
		})
		add(object, "CreateSnapshot", "of its name", func(ctx context.Context, w *world) error {
			req := &csi.CreateSnapshotRequest{Name: "prepared", SourceVolumeId: w.volume}
			if object == "backup" {
				req.Parameters = map[string]string{"type": "backup"}
			}
			return csitest.Outcome(w.CreateSnapshot(ctx, req))
		})
		add(object, "CreateVolume", "from it", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.CreateVolume(ctx, csitest.Claim("pvc", csitest.FromSnapshot(w.snapshot))))
		})
		add(object, "ListSnapshots", "", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.ListSnapshots(ctx, &csi.ListSnapshotsRequest{}))
		})
		add(object, "ListSnapshots", "of its id", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: w.snapshot}))
		})
		add(object, "DeleteVolume", "that it is of", func(ctx context.Context, w *world) error {
			return csitest.Outcome(w.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: w.volume}))
		})
	}
	return all
}

// enter prepares an object and puts it into a status, where it stays.
func (m statusCase) enter(w *world, state string) {
	w.prepared()
	switch m.object {
	case "volume":
		if state == "in-use" {
			w.attached(w.az1)
		}
		w.admin.Reset("volumes", w.volume, state)
	case "snapshot":
		w.snapshotMade()
		w.admin.Reset("snapshots", w.snapshot, state)
	case "backup":
		w.do("prepare a backup", func(ctx context.Context) error {
			answer, err := w.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "prepared", SourceVolumeId: w.volume, Parameters: map[string]string{"type": "backup"}})
			w.snapshot = answer.GetSnapshot().GetSnapshotId()
			return err
		})
		time.Sleep(time.Minute)
		w.admin.Reset("backups", w.snapshot, state)
	case "attachment":
		w.attached(w.az1)
		if err := w.sim.SetAttachmentStatus(w.volume, w.az1, state); err != nil {
			w.t.Fatal(err)
		}
	}
}

// situation is a statusCase in one status.
type situation struct{ object, status, statusCase string }

// The test calls every RPC about objects in every status that Cinder has for them. The answer is the documented one. It is never
// Internal, which means an error that the driver did not expect.
func TestEveryRPCAnswersEveryStatusAsDocumented(t *testing.T) {
	want := readStatuses(t)
	got := map[situation]string{}
	var mu sync.Mutex
	t.Run("meet", func(t *testing.T) {
		for _, m := range statusCases() {
			t.Run(m.object+"/"+m.String(), func(t *testing.T) {
				t.Parallel()
				for _, state := range statuses[m.object] {
					t.Run(state, func(t *testing.T) {
						bubble(t, func(t *testing.T) {
							w := newWorld(t)
							m.enter(w, state)
							ctx, cancel := context.WithTimeout(t.Context(), deadline)
							err := m.call(ctx, w)
							cancel()
							synctest.Wait()
							code := status.Code(err)
							if code == codes.Internal || code == codes.Unknown {
								t.Errorf("the RPC answers a known status with %v", err)
							}
							s := situation{m.object, state, m.String()}
							mu.Lock()
							got[s] = code.String()
							mu.Unlock()
							if want[s] != code.String() && !*update {
								t.Errorf("want %s, got %v", cmp.Or(want[s], "a documented answer"), err)
							}
						})
					})
				}
			})
		}
	})
	if *update {
		writeStatuses(t, got)
		return
	}
	for s := range want {
		if _, met := got[s]; !met && !t.Failed() {
			t.Errorf("%v is documented, but no case reached it", s)
		}
	}
}

// readStatuses reads the table. A line "object" names a kind. The lines after it have an RPC, a code and the statuses with that code,
// separated by tabs.
func readStatuses(t *testing.T) map[situation]string {
	t.Helper()
	text := testfile.Text(t, statusFile)
	all := map[situation]string{}
	object := ""
	for n, line := range strings.Split(text, "\n") {
		fields := strings.Split(line, "\t")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case len(fields) == 2 && fields[0] == "object":
			object = fields[1]
		case len(fields) == 3 && object != "":
			for state := range strings.SplitSeq(fields[2], " ") {
				all[situation{object, state, fields[0]}] = fields[1]
			}
		default:
			t.Fatalf("%s:%d: want object and its kind, or RPC, CODE and statuses, separated by tabs", statusFile, n+1)
		}
	}
	return all
}

// writeStatuses writes the answers below the comment at the head of the file.
func writeStatuses(t *testing.T, got map[situation]string) {
	t.Helper()
	text := testfile.Text(t, statusFile)
	var b strings.Builder
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") {
			b.WriteString(line + "\n")
		}
	}
	object := ""
	for _, m := range sorted(statusCases()) {
		if m.object != object {
			object = m.object
			fmt.Fprintf(&b, "\nobject\t%s\n", object)
		}
		byCode := map[string][]string{}
		var order []string
		for _, state := range statuses[object] {
			code := got[situation{object, state, m.String()}]
			if byCode[code] == nil {
				order = append(order, code)
			}
			byCode[code] = append(byCode[code], state)
		}
		slices.Sort(order)
		for _, code := range order {
			fmt.Fprintf(&b, "%s\t%s\t%s\n", m, code, strings.Join(byCode[code], " "))
		}
	}
	testfile.Write(t, statusFile, b.String(), 0o600)
}

func sorted(all []statusCase) []statusCase {
	kinds := []string{"volume", "attachment", "snapshot", "backup"}
	slices.SortStableFunc(all, func(a, b statusCase) int {
		return cmp.Compare(slices.Index(kinds, a.object), slices.Index(kinds, b.object))
	})
	return all
}
